//! `netdyno logp`.

use crate::campaign;
use crate::campaign::method::{Method, Signature, Terms};
use crate::campaign::reference::{self, Route};
use crate::hosts::host::Machines;
use crate::job::ranks::Ranks;
use crate::options::bench::BenchArgs;
use crate::options::connect::ConnectArgs;
use crate::options::headings::WHAT;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::Args;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::logp::ratio::{ratio, ratios};
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Found, LayerResult, Ratio};
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "logp",
    [
        ("netdyno logp --over am+shm,udp,tcp", "compare three layers"),
        ("netdyno logp --over mpi --launcher 'mpiexec -n {n}'", "measure an MPI"),
        ("netdyno logp --over tcp --size 1KiB --out run.json", "keep the record"),
    ],
)];

/// Measure o_s, o_r, g, L and the round trip
///
/// The method is the LogP signature: bursts of requests with delays between them.
#[derive(Debug, Args)]
pub struct LogpArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// The server of others that is measured.
    #[command(flatten)]
    pub server: ConnectArgs,

    /// Do not measure a lean layer beside MPI, libfabric and UCX
    ///
    /// It is am+shm within a host, am+udp over sockets and between hosts.
    #[arg(long, help_heading = WHAT, hide_short_help = true)]
    pub no_reference: bool,
}

/// Measures and writes the result.
pub fn run(args: &LogpArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let mut bench = args.server.of(&args.bench);
    // The label of the only layer that the user named stays with that layer.
    if let [only] = bench.over[..] {
        bench.label.iter_mut().for_each(|label| label.layer = label.layer.or(Some(only)));
    }
    let method = Compared {
        bench: bench.clone(),
        adds: !args.no_reference,
        route: Route::of(&bench.measuring, Machines::This),
        added: Vec::new(),
    };
    campaign::run(Box::new(method), &bench, ranks)
}

/// The LogP signature of layers, with lean layers on the same path as references.
#[derive(Debug)]
struct Compared {
    /// The options of the user.
    bench: BenchArgs,
    /// Whether lean layers that the user did not name are added.
    adds: bool,
    /// The path of the messages, once it is known where the processes run.
    route: Route,
    /// Lean layers that the user did not name.
    added: Vec<Layer>,
}

impl Method for Compared {
    fn also_measures(&mut self, machines: Machines) -> Vec<Layer> {
        self.route = Route::of(&self.bench.measuring, machines);
        self.added = if self.adds { reference::missing(&self.bench, self.route) } else { Vec::new() };
        self.added.clone()
    }

    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        Signature.task(terms, before)
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        Signature.read(launches, terms)
    }

    fn notes(&self) -> Vec<String> {
        let note = |lean: &Layer| {
            format!(
                "{lean} is measured as well, the lean layer on the same path (--no-reference leaves it away)"
            )
        };
        self.added.iter().map(note).collect()
    }

    fn ratios(&self, results: &[LayerResult], confidence: f64) -> Vec<Ratio> {
        let beside = results.iter().flat_map(|above| {
            let below = self.beside(above, results);
            below.map(|below| ratio(above, below, confidence)).unwrap_or_default()
        });
        let beside: Vec<Ratio> = beside.map(|ratio| Ratio { to_reference: true, ..ratio }).collect();
        let added: Vec<String> = self.added.iter().map(Layer::to_string).collect();
        let is_asked_for = |result: &&LayerResult| !added.contains(&result.layer);
        let asked_for: Vec<LayerResult> = results.iter().filter(is_asked_for).cloned().collect();
        let is_beside = |ratio: &Ratio| {
            beside.iter().any(|b| (&b.numerator, &b.denominator) == (&ratio.numerator, &ratio.denominator))
        };
        let others = ratios(&asked_for, confidence).into_iter().filter(|ratio| !is_beside(ratio));
        others.collect::<Vec<_>>().into_iter().chain(beside.iter().cloned()).collect()
    }
}

impl Compared {
    /// Returns the lean layer on the path of a layer, from the same run, with the same wait policy if
    /// possible.
    fn beside<'a>(&self, above: &LayerResult, results: &'a [LayerResult]) -> Option<&'a LayerResult> {
        let lean = self.route.lean_beside(above.layer.parse().ok()?)?.to_string();
        let of_lean = |result: &&LayerResult| result.layer == lean;
        let same_wait = results.iter().filter(of_lean).find(|result| result.wait == above.wait);
        same_wait.or_else(|| results.iter().find(of_lean))
    }
}
