//! A measuring verb: the task of its launches, and the evaluation of their data.

use crate::hosts::host::Machines;
use crate::hosts::processes::Processes;
use crate::launch::bench::Bench;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::logp::data::LaunchData;
use netdyno_measure::logp::extract::extract;
use netdyno_measure::logp::pattern::{BATCH_MESSAGES, LONGEST_BURST, Plan};
use netdyno_measure::logp::ratio::ratios;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Found, LayerResult, Ratio};
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
    /// The layer.
    pub layer: Layer,
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

/// A measuring verb.
pub trait Method {
    /// Returns the processes of a launch.
    fn processes(&self) -> Processes {
        Processes::Pair
    }

    /// Takes what the tasks need of the benches, before the first launch.
    fn prepare(&mut self, _benches: &[Bench]) {}

    /// Returns layers that the user did not name, to be measured after those. `machines` are those of the processes.
    fn also_measures(&mut self, _machines: Machines) -> Vec<Layer> {
        Vec::new()
    }

    /// Returns the ways to wait in which each layer is measured besides polling, as far as it can, unless the user
    /// names the ways.
    fn also_waits(&self) -> Vec<Wait> {
        Vec::new()
    }

    /// Reports whether the figures depend on the distance between the processors. Launches at different
    /// distances are then evaluated separately. A verb whose figures are all differences within one launch
    /// returns `false`.
    fn is_stratified(&self) -> bool {
        true
    }

    /// Returns the task of the layer's next launch; `before` is the data of the previous ones.
    fn task(&self, terms: &Terms, before: &[Data]) -> Task;

    /// Evaluates the launches. Returns `None` if they contain no usable data.
    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>>;

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
        let shape = Data::first::<LaunchData>(before).map(|data| data.shape.clone());
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

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        let launches = Data::of_verb(launches);
        Some(extract(&launches, terms.of_figures(), terms.precision)?.of())
    }
}
