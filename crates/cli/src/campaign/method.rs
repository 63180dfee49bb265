//! A measuring verb: the task of its launches, and the evaluation of their data.

use netdyno_measure::logp::data::LaunchData;
use netdyno_measure::logp::doubts::is_precise;
use netdyno_measure::logp::extract::extract;
use netdyno_measure::logp::pattern::{BATCH_MESSAGES, LONGEST_BURST, Plan};
use netdyno_measure::logp::ratio::{ratios, shares};
use netdyno_measure::record::{Doubt, Found, LayerResult, Logp, Parameters, Ratio};
use netdyno_measure::stats::Confidence;
use netdyno_measure::task::{Data, Task};

/// Parameters of one launch, the same for every verb.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Number of the launch, from 0, in the order of launches of its layer.
    pub launch: usize,
    /// Time for measuring in this launch, on the layer's clock.
    pub budget_ns: f64,
    /// Full share of the measuring time. `budget_ns` is this share, capped, because more launches say more
    /// than longer ones.
    pub share_ns: f64,
    /// Relative half-width of an interval at which a figure counts as precise.
    pub precision: f64,
    /// Confidence level of that interval.
    pub confidence: f64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Kind of host under the layer.
    pub host: HostState,
}

/// Kind of host under a layer: it decides how much another run of the layer may differ.
#[derive(Clone, Copy, Debug)]
pub enum HostState {
    /// No host: the layer is simulated.
    Simulated,
    /// The distances and speeds of the processors stayed the same.
    Steady,
    /// The hypervisor moved processors, or their speed changed, during the run.
    Changing,
}

impl Terms {
    /// Returns the confidence rule of the figures' intervals. The interval of a simulated layer is to cover
    /// the model's parameter; that of a real layer is to cover the figure of another run.
    pub fn of_figures(&self) -> Confidence {
        match self.host {
            HostState::Simulated => Confidence::of_median(self.confidence),
            HostState::Steady => Confidence::of_repeat(self.confidence),
            HostState::Changing => Confidence::of_repeat_on_changing_host(self.confidence),
        }
    }
}

/// The evaluation of a layer's launches.
pub struct Reading {
    /// The LogP parameters.
    pub parameters: Parameters,
    /// The further findings of the verb.
    pub found: Found,
    /// The warnings about these figures.
    pub doubts: Vec<Doubt>,
}

/// A measuring verb.
pub trait Method {
    /// Returns the number of processes in a launch, or `None` for one pair.
    fn procs(&self) -> Option<usize> {
        None
    }

    /// Reports whether the figures depend on the distance between the processors. Launches at different
    /// distances are then evaluated separately. A verb whose figures are all differences within one launch
    /// returns `false`.
    fn is_stratified(&self) -> bool {
        true
    }

    /// Returns the task of the layer's next launch; `before` is the data of the previous ones.
    fn task(&self, terms: &Terms, before: &[Data]) -> Task;

    /// Reports whether the figures have reached the precision that the user asked for.
    fn is_precise(&self, launches: &[Data], terms: &Terms) -> bool;

    /// Evaluates the launches. Returns `None` if they contain no usable data.
    fn read(&self, launches: Vec<Data>, terms: &Terms) -> Option<Reading>;

    /// Returns the notes for standard error. The campaign prints them after the last launch.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the ratios between the layers of a run.
    fn ratios(&self, results: &[LayerResult], confidence: f64) -> Vec<Ratio> {
        ratios(results, confidence)
    }
}

/// The LogP signature.
#[derive(Debug)]
pub struct Signature;

impl Method for Signature {
    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, precision, confidence, seed, .. } = terms;
        // The first launch chooses the burst lengths and delays for all launches.
        let shape = signatures(before).next().map(|data| data.shape.clone());
        Task::Logp(Plan {
            launch,
            shape,
            budget_ns,
            precision,
            confidence,
            seed,
            longest_burst: LONGEST_BURST,
            batch_messages: BATCH_MESSAGES,
        })
    }

    fn is_precise(&self, launches: &[Data], terms: &Terms) -> bool {
        let launches: Vec<LaunchData> = signatures(launches).cloned().collect();
        extract(&launches, terms.of_figures(), terms.precision)
            .is_some_and(|extracted| is_precise(&extracted.parameters, terms.precision))
    }

    fn read(&self, launches: Vec<Data>, terms: &Terms) -> Option<Reading> {
        let launches: Vec<LaunchData> = signatures(&launches).cloned().collect();
        let extracted = extract(&launches, terms.of_figures(), terms.precision)?;
        Some(Reading {
            parameters: extracted.parameters,
            found: Found::Logp(Logp {
                plateau: extracted.plateau,
                checks: extracted.checks,
                shares: shares(&launches, terms.confidence),
                launches,
            }),
            doubts: extracted.doubts,
        })
    }
}

fn signatures(launches: &[Data]) -> impl Iterator<Item = &LaunchData> {
    launches.iter().filter_map(|data| match data {
        Data::Logp(data) => Some(data),
        _ => None,
    })
}
