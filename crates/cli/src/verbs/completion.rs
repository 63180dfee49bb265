//! `netdyno completion`.

use crate::campaign;
use crate::campaign::method::{Method, Terms};
use crate::job::ranks::Ranks;
use crate::launch::bench::Bench;
use crate::launch::peak::peak_of;
use crate::options::bench::BenchArgs;
use crate::options::headings::WHAT;
use crate::options::values::{largest, rate};
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use crate::verbs::bulk::no_larger_message;
use clap::Args;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::completion::data::CompletionLaunch;
use netdyno_measure::completion::extract::extract;
use netdyno_measure::completion::pattern::CompletionPlan;
use netdyno_measure::completion::peak::{Peak, PeakSource};
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Doubt, Found};
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;
use std::time::Duration;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "completion",
    [
        ("netdyno completion --over vi+shm,vi+udp", "poll, then block"),
        ("netdyno completion --over tcp --wait spin,yield", "choose the ways to wait"),
        ("netdyno completion --over vi+udp --best-spin", "how long to spin first"),
    ],
)];

/// Measure latency and bandwidth by polling and by blocking
///
/// Half round trip and bandwidth at every size by each way to wait, their ratios, and the fastest way
/// (docs/completion.md). By default each layer polls, and also blocks if it can.
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct CompletionArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Measure sizes up to this one
    ///
    /// Less where a layer carries no message of that size.
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = largest, help_heading = WHAT)]
    pub largest: usize,

    /// Compare the bandwidth with this peak, as in 12.5GB/s or 100Mbit/s
    ///
    /// By default the speed of the link that the layer uses, or within a host the rate of one copy.
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = WHAT, hide_short_help = true)]
    pub peak: Option<f64>,

    /// Find the best time to spin before blocking
    ///
    /// Measures spin:1us, spin:3us, spin:10us, spin:30us and spin:100us besides polling and blocking. For other
    /// times name them all, as in --wait spin,spin:5us,spin:20us.
    #[arg(long, conflicts_with = "wait", help_heading = WHAT)]
    pub best_spin: bool,
}

/// The times to spin before blocking of which the best one is found, in microseconds.
const SPINS_US: [u64; 5] = [1, 3, 10, 30, 100];

/// Measures and writes the result.
pub fn run(args: &CompletionArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let bench = args.bench.of_every_size("completion")?;
    if args.best_spin && !bench.over.iter().any(|layer| layer.can_wait(Wait::Block)) {
        let layers: Vec<String> = bench.over.iter().map(Layer::to_string).collect();
        return Err(Fault::BadInput(format!(
            "--best-spin needs a layer that can block, and {} cannot: leave --best-spin away",
            layers.join(", ")
        )));
    }
    let names_waits = !bench.measuring.waits().is_empty();
    let (largest_bytes, given) = (args.largest, args.peak);
    let (spins, peaks) = (args.best_spin, Vec::new());
    let method = Completing { largest_bytes, names_waits, only_polled: Vec::new(), spins, given, peaks };
    campaign::run(Box::new(method), &bench, ranks)
}

/// Latency and bandwidth by the ways to wait.
#[derive(Debug)]
struct Completing {
    largest_bytes: usize,
    /// True if the user named the ways to wait.
    names_waits: bool,
    /// The layers that would also block if they could.
    only_polled: Vec<Layer>,
    /// True if the best time to spin is wanted.
    spins: bool,
    /// The peak that the user gave, in bytes per second.
    given: Option<f64>,
    /// The peak of each layer.
    peaks: Vec<(Layer, Peak)>,
}

impl Method for Completing {
    fn prepare(&mut self, benches: &[Bench]) {
        let peak = |bench: &Bench| match self.given {
            Some(peak) => Peak::of(PeakSource::Given, peak, "given by --peak"),
            None => peak_of(bench),
        };
        self.only_polled = if self.names_waits { Vec::new() } else { only_polled(benches) };
        self.peaks = benches.iter().map(|bench| (bench.layer, peak(bench))).collect();
    }

    fn also_waits(&self) -> Vec<Wait> {
        let spins = if self.spins { &SPINS_US[..] } else { &[] };
        let spins = spins.iter().map(|&us| Wait::SpinFor(Duration::from_micros(us)));
        [Wait::Block].into_iter().chain(spins).collect()
    }

    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, seed, .. } = terms;
        // The first launch chooses the numbers of messages for all launches.
        let shape = Data::first::<CompletionLaunch>(before).map(|data| data.shape.clone());
        let largest_bytes = self.largest_bytes;
        let peak = self.peaks.iter().find(|(layer, _)| *layer == terms.layer);
        let peak = peak.map(|(_, peak)| peak.clone()).unwrap_or_default();
        Task::Completion(CompletionPlan { launch, shape, largest_bytes, peak, budget_ns, seed })
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        let launches = Data::of_verb(launches);
        let mut reading = extract(&launches, terms.of_figures(), terms.precision)?;
        let last = reading.found.sizes.last().map(|size| size.size_bytes);
        reading.found.largest_bytes = last.filter(|&last| last < self.largest_bytes);
        reading.doubts.extend(reading.found.largest_bytes.map(no_larger_message));
        reading.doubts.extend(self.only_polled.contains(&terms.layer).then(|| cannot_block(terms.layer)));
        Some(reading.of())
    }
}

/// Returns the layers that are only polled, because they cannot block.
pub fn only_polled(benches: &[Bench]) -> Vec<Layer> {
    let blocks = |layer| benches.iter().any(|bench| bench.layer == layer && bench.wait.sleeps());
    let layers = benches.iter().map(|bench| bench.layer);
    layers.filter(|&layer| layer != Layer::Sim && !blocks(layer)).collect()
}

/// Warns that a layer cannot block.
pub fn cannot_block(layer: Layer) -> Doubt {
    let text = format!("{layer} has no way to block, so that only polling is measured");
    Doubt::new("cannot_block", text)
}
