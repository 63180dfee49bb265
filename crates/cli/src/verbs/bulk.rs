//! `netdyno bulk`.

use crate::campaign;
use crate::campaign::method::{Method, Terms};
use crate::job::ranks::Ranks;
use crate::options::bench::BenchArgs;
use crate::options::connect::ConnectArgs;
use crate::options::headings::WHAT;
use crate::options::values::largest;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::Args;
use netdyno_measure::bulk::data::{BulkLaunch, Direction};
use netdyno_measure::bulk::extract::extract;
use netdyno_measure::bulk::pattern::BulkPlan;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Doubt, Found};
use netdyno_measure::show::Bytes;
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "bulk",
    [
        ("netdyno bulk --over am+shm,tcp", "compare two layers at every size"),
        ("netdyno bulk --over tcp --direction get --largest 1MiB", "get the data, up to 1 MiB"),
        ("netdyno bulk --over udp --out bulk.html", "draw the result"),
    ],
)];

/// Measure time, overheads, gap and bandwidth at every message size
///
/// T(n), bandwidth, o_s(n), o_r(n), g(n), L(n), G, and where the protocol changes (docs/bulk.md).
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct BulkArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// The server of others that is measured.
    #[command(flatten)]
    pub server: ConnectArgs,

    /// Measure sizes up to this one, as in 64KiB
    ///
    /// Less where a layer carries no message of that size.
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = largest, help_heading = WHAT)]
    pub largest: usize,

    /// Move the data in this direction: store, from the requester; get, to it
    ///
    /// A get is the layer's own get over am+shm and am+udp, and a small request with a reply of n bytes elsewhere.
    #[arg(long, value_name = "WAY", default_value = "store", value_parser = direction, help_heading = WHAT)]
    pub direction: Direction,
}

fn direction(text: &str) -> Result<Direction, String> {
    match text {
        "store" => Ok(Direction::Store),
        "get" => Ok(Direction::Get),
        _ => Err("must be store or get".into()),
    }
}

/// Maximum time of one launch. The placement of the data in memory varies between processes far more than a
/// figure varies within one, so many short launches say more.
const LONGEST_LAUNCH_NS: f64 = 300e6;
/// Measures and writes the result.
pub fn run(args: &BulkArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let bench = args.server.of(&args.bench).of_every_size("bulk")?;
    let &BulkArgs { largest: largest_bytes, direction, .. } = args;
    campaign::run(Box::new(EverySize { largest_bytes, direction }), &bench, ranks)
}

/// Messages of every size.
#[derive(Debug)]
struct EverySize {
    largest_bytes: usize,
    direction: Direction,
}

impl Method for EverySize {
    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, precision, confidence, seed, .. } = terms;
        // The first launch chooses the sizes and bursts for all launches.
        let shape = Data::first::<BulkLaunch>(before).map(|data| data.shape.clone());
        let &Self { largest_bytes, direction } = self;
        let budget_ns = budget_ns.min(LONGEST_LAUNCH_NS);
        Task::Bulk(BulkPlan { launch, shape, largest_bytes, direction, budget_ns, precision, confidence, seed })
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        let launches = Data::of_verb(launches);
        let mut reading = extract(&launches, terms.of_figures(), terms.precision)?;
        let last = reading.found.sizes.last().map(|size| size.size_bytes);
        reading.found.largest_bytes = last.filter(|&last| last < self.largest_bytes);
        reading.doubts.extend(reading.found.largest_bytes.map(no_larger_message));
        Some(reading.of())
    }
}

/// Returns the warning that the layer carries no larger message than this.
pub fn no_larger_message(bytes: usize) -> Doubt {
    let text = format!("no message is larger than {}: sizes beyond it are not offered", Bytes(bytes));
    Doubt::new("largest_message", text)
}
