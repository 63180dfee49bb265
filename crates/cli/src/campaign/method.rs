//! A measuring verb: what its launches run, and what is read off them.

use netdyno_measure::logp::data::LaunchData;
use netdyno_measure::logp::doubts::is_precise;
use netdyno_measure::logp::extract::extract;
use netdyno_measure::logp::pattern::{BATCH_MESSAGES, LONGEST_BURST, Plan};
use netdyno_measure::logp::ratio::{ratios, shares};
use netdyno_measure::record::{Doubt, Found, LayerResult, Logp, Parameters, Ratio};
use netdyno_measure::stats::Confidence;
use netdyno_measure::task::{Data, Task};

/// What every launch is told, whatever the verb.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Where in the order of launches it stands.
    pub launch: usize,
    /// Time for it, on the layer's clock.
    pub budget_ns: f64,
    /// Its whole share of the time, of which `budget_ns` is what more launches leave of it.
    pub share_ns: f64,
    /// Half-width, as a share of the value, at which a figure is known well enough.
    pub precision: f64,
    /// Confidence of that half-width.
    pub confidence: f64,
    /// Seed of what is random.
    pub seed: u64,
    /// What the layer is measured on.
    pub host: Host,
}

/// What a layer is measured on, as far as another run of it may find something else.
#[derive(Clone, Copy, Debug)]
pub enum Host {
    /// None: the layer is simulated.
    Simulated,
    /// One that stayed as it was.
    Steady,
    /// One that moved processors, or changed their pace, during the run.
    Changing,
}

impl Terms {
    /// What the intervals of figures hold: the truth of a simulated layer, the figure of another run of a
    /// real one.
    pub fn of_figures(&self) -> Confidence {
        match self.host {
            Host::Simulated => Confidence::of_median(self.confidence),
            Host::Steady => Confidence::of_repeat(self.confidence),
            Host::Changing => Confidence::of_repeat_on_changing_host(self.confidence),
        }
    }
}

/// What the launches of a layer say.
pub struct Reading {
    /// The parameters.
    pub parameters: Parameters,
    /// What the verb found beside them.
    pub found: Found,
    /// Why not to take them at their word.
    pub doubts: Vec<Doubt>,
}

/// A measuring verb.
pub trait Method {
    /// How many processes a launch has, where it is not one pair.
    fn procs(&self) -> Option<usize> {
        None
    }

    /// Whether its figures depend on how far the processors are apart, so that launches that differ in
    /// that must not be mixed. Not where every figure is a difference within a launch.
    fn is_stratified(&self) -> bool {
        true
    }

    /// What the next launch of a layer is to run, after those before.
    fn task(&self, terms: &Terms, before: &[Data]) -> Task;

    /// Whether the figures are known as precisely as asked for.
    fn is_precise(&self, launches: &[Data], terms: &Terms) -> bool;

    /// What the launches say; `None` where they say nothing.
    fn read(&self, launches: Vec<Data>, terms: &Terms) -> Option<Reading>;

    /// What is said before the first launch.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ratios between the layers of a run.
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
        // The first launch chooses bursts and delays for all.
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
