//! `netdyno bulk`.

use crate::campaign;
use crate::campaign::method::{Method, Terms};
use crate::job::ranks::Ranks;
use crate::options::bench::BenchArgs;
use crate::options::connect::ConnectArgs;
use crate::options::headings::WHAT;
use crate::options::once::each_once;
use crate::options::values::{bytes, largest};
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::Args;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::bulk::data::{BulkLaunch, Direction};
use netdyno_measure::bulk::extract::extract;
use netdyno_measure::bulk::pattern::BulkPlan;
use netdyno_measure::bulk::signature::SignaturePlan;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Doubt, Found};
use netdyno_measure::show::Bytes;
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "bulk",
    [
        ("netdyno bulk --over am+shm,tcp", "compare two layers"),
        ("netdyno bulk --over tcp --direction get --largest 1MiB", "get up to 1 MiB"),
        ("netdyno bulk --over udp --signature 8 --out bulk.html", "draw a signature"),
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

    /// Move the data from the requester (store) or to it (get)
    ///
    /// A get is the layer's own get over am+shm, am+udp and am+xdp, and a small request with a reply of n bytes elsewhere.
    #[arg(long, value_name = "WAY", default_value = "store", value_parser = direction, help_heading = WHAT, hide_short_help = true)]
    pub direction: Direction,

    /// Measure whole signatures of these sizes too, as in 8,2KiB
    ///
    /// Bursts of M transfers with delays D between them. Over am+shm and am+udp every transfer is a store, or a get,
    /// whatever its size.
    #[arg(
        long,
        value_name = "SIZE,…",
        value_delimiter = ',',
        value_parser = signature_size,
        help_heading = WHAT,
        hide_short_help = true
    )]
    pub signature: Vec<usize>,
}

/// Maximum number of sizes whose signature is measured.
const SIGNATURES_AT_MOST: usize = 16;

/// Maximum size of a transfer of a signature, in bytes. A signature has hundreds of transfers, so that one launch
/// with larger ones takes minutes.
const SIGNATURE_BYTES_AT_MOST: usize = 64 << 20;

fn signature_size(text: &str) -> Result<usize, String> {
    let size = Some(bytes(text)?).filter(|size| (1..=SIGNATURE_BYTES_AT_MOST).contains(size));
    size.ok_or_else(|| "must be sizes from 1B to 64MiB, as in 8,2KiB".into())
}

/// Returns the sizes in ascending order.
///
/// # Errors
/// There are too many, one stands there twice, or a layer has no messages of such a size.
fn signatures(sizes: &[usize], over: &[Layer]) -> Result<Vec<usize>, Fault> {
    each_once("--signature", sizes, |&size| Bytes(size).to_string())?;
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    if sizes.len() > SIGNATURES_AT_MOST {
        return Err(Fault::BadInput(format!(
            "--signature names {} sizes: name at most {SIGNATURES_AT_MOST}",
            sizes.len()
        )));
    }
    let largest = sizes.last().copied().unwrap_or(0);
    match over.iter().find(|layer| layer.max_transfer() < largest) {
        None => Ok(sizes),
        Some(layer) => Err(Fault::BadInput(format!(
            "--signature {largest} is more than the {} bytes that {layer} carries in a message",
            layer.max_transfer()
        ))),
    }
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
    let signatures = signatures(&args.signature, &bench.over)?;
    let max_time_ns = bench.measuring.max_time.as_nanos() as f64;
    campaign::run(Box::new(EverySize { largest_bytes, direction, signatures, max_time_ns }), &bench, ranks)
}

/// Messages of every size.
#[derive(Debug)]
struct EverySize {
    largest_bytes: usize,
    direction: Direction,
    signatures: Vec<usize>,
    /// Time for each layer, in nanoseconds.
    max_time_ns: f64,
}

impl Method for EverySize {
    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, precision, confidence, seed, .. } = terms;
        // The first launch chooses the sizes and bursts for all launches.
        let first = Data::first::<BulkLaunch>(before);
        let shape = first.map(|data| data.shape.clone());
        let signatures = SignaturePlan::of_sizes(&self.signatures, first).into_iter();
        let signatures = signatures.map(|plan| plan.within(self.max_time_ns)).collect();
        let &Self { largest_bytes, direction, .. } = self;
        let budget_ns = budget_ns.min(LONGEST_LAUNCH_NS);
        Task::Bulk(BulkPlan {
            launch,
            shape,
            largest_bytes,
            direction,
            signatures,
            budget_ns,
            precision,
            confidence,
            seed,
        })
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
