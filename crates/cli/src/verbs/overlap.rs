//! `netdyno overlap`.

use crate::campaign;
use crate::campaign::method::{Method, Terms};
use crate::job::ranks::Ranks;
use crate::options::abilities::all_able;
use crate::options::bench::BenchArgs;
use crate::options::headings::WHAT;
use crate::options::once::each_once;
use crate::options::values::bytes;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::{Args, ValueEnum};
use netdyno_layers::catalogue::Layer;
use netdyno_measure::order::Order;
use netdyno_measure::overlap::data::OverlapLaunch;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_measure::overlap::extract::extract;
use netdyno_measure::overlap::pattern::smallest_trip;
use netdyno_measure::overlap::plan::{self, METHODS, OverlapPlan};
use netdyno_measure::overlap::record::Overlap;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Doubt, Found};
use netdyno_measure::show::Size;
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "overlap",
    [
        ("netdyno overlap --over am+shm,tcp", "compare two layers"),
        ("netdyno overlap --over tcp --sizes 5kB,1MB", "choose the sizes"),
        ("netdyno overlap --over am+udp --progress thread", "add a progress thread"),
    ],
)];

/// Measure how much computation goes on behind messages (COMB)
///
/// It also tells who pays for moving the data (docs/overlap.md).
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct OverlapArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Use these methods [default: all]
    #[arg(
        long,
        value_name = "METHOD[,METHOD…]",
        value_enum,
        value_delimiter = ',',
        help_heading = WHAT,
        hide_short_help = true
    )]
    pub method: Vec<CombMethod>,

    /// Send messages of these sizes
    ///
    /// In bytes or as in 5kB, 100KiB, 1MB. Those that a layer does not carry are left out.
    #[arg(
        long,
        value_name = "SIZE[,SIZE…]",
        default_value = "64,5kB,100kB,1MB",
        value_delimiter = ',',
        value_parser = message_size,
        help_heading = WHAT
    )]
    pub sizes: Vec<usize>,

    /// How many messages the methods keep under way.
    #[command(flatten)]
    pub under_way: UnderWay,

    /// Let messages make progress in calls alone, or in a thread of the layer as well
    ///
    /// The kernel wakes the thread. It runs in the worker, on the worker's processor.
    #[arg(long, value_name = "WHERE", default_value = "calls", help_heading = WHAT, hide_short_help = true)]
    pub progress: ProgressIn,
}

/// Where messages make progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressIn {
    /// In calls
    Calls,
    /// In a thread as well
    Thread,
}

impl From<ProgressIn> for ProgressBy {
    fn from(progress: ProgressIn) -> Self {
        match progress {
            ProgressIn::Calls => Self::Calls,
            ProgressIn::Thread => Self::Thread,
        }
    }
}

/// How many messages the methods of COMB keep under way.
#[derive(Clone, Copy, Debug, Args)]
pub struct UnderWay {
    /// Keep this many messages under way in COMB's polling method [default: 4]
    ///
    /// Each way; fewer where a layer has less room.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=Order::LARGEST_BATCH.into()),
        help_heading = WHAT,
        hide_short_help = true
    )]
    pub queue: Option<u8>,

    /// Post this many messages in a cycle of COMB's post-work-wait [default: 1]
    ///
    /// Each way; fewer where a layer has less room.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=Order::LARGEST_BATCH.into()),
        help_heading = WHAT,
        hide_short_help = true
    )]
    pub batch: Option<u8>,
}

impl UnderWay {
    /// Checks that each number that is given is one of a method that is measured.
    ///
    /// # Errors
    /// No method uses it.
    pub fn check(&self, methods: &[plan::Method]) -> Result<(), Fault> {
        use plan::Method::{Max, Polling, Pww};
        let unused = |option: &str, users: &str| {
            Err(Fault::BadInput(format!(
                "{option} is of {users}, which is not measured here: leave {option} away"
            )))
        };
        if self.queue.is_some() && !methods.contains(&Polling) {
            return unused("--queue", "the method polling");
        }
        if self.batch.is_some() && !methods.iter().any(|method| matches!(method, Pww | Max)) {
            return unused("--batch", "the methods pww and max");
        }
        Ok(())
    }
}

/// The methods of `netdyno overlap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CombMethod {
    /// Compute, test, answer what has arrived: availability and bandwidth against the interval
    Polling,
    /// Post, compute without a call, wait: times of each, and what is stolen from the work
    Pww,
    /// The most work that goes behind a message for free
    Max,
}

impl CombMethod {
    /// Returns the name on the command line.
    fn name(&self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl From<CombMethod> for plan::Method {
    fn from(method: CombMethod) -> Self {
        match method {
            CombMethod::Polling => Self::Polling,
            CombMethod::Pww => Self::Pww,
            CombMethod::Max => Self::Max,
        }
    }
}

/// Parses the size of a message for `overlap`.
pub fn message_size(text: &str) -> Result<usize, String> {
    let size = bytes(text).map_err(|error| format!("{error}, from 8B to 1GiB"))?;
    let size = Some(size).filter(|size| (SIZES.0..=SIZES.1).contains(size));
    size.ok_or_else(|| "must be from 8B to 1GiB".into())
}

/// Returns the sizes of `--sizes` in ascending order.
///
/// # Errors
/// A size stands there twice.
pub fn ascending(sizes: &[usize]) -> Result<Vec<usize>, Fault> {
    each_once("--sizes", sizes, |&size| Size(size).to_string())?;
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    Ok(sizes)
}

/// Measures and writes the result.
pub fn run(args: &OverlapArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let mut bench = args.bench.clone();
    let sizes = ascending(&args.sizes)?;
    let smallest = smallest_trip(&sizes);
    if bench.measuring.size.replace(u32::try_from(smallest).unwrap_or(u32::MAX)).is_some() {
        return Err(Fault::BadInput(
            "overlap measures several sizes: use --sizes, as in --sizes 5kB,100kB".into(),
        ));
    }
    if let Some(layer) = bench.over.iter().find(|layer| !layer.has_messages()) {
        return Err(Fault::BadInput(format!(
            "{layer} has requests and replies alone, and no messages that overlap could post: use another layer"
        )));
    }
    if args.progress == ProgressIn::Thread {
        let has_thread = Layer::has_progress_thread;
        all_able(&bench.over, has_thread, "progress thread of netdyno's", "use --progress thread with")?;
    }
    check_smallest(sizes.first().copied().unwrap_or(0), &bench.over)?;
    each_once("--method", &args.method, CombMethod::name)?;
    let methods: Vec<plan::Method> = METHODS
        .into_iter()
        .filter(|method| {
            args.method.is_empty() || args.method.iter().any(|chosen| plan::Method::from(*chosen) == *method)
        })
        .collect();
    args.under_way.check(&methods)?;
    let comb = Comb { progress_by: args.progress.into(), ..Comb::new(sizes, args.under_way, methods) };
    campaign::run(Box::new(comb), &bench, ranks)
}

/// Rejects a layer that carries no message of any of the sizes.
fn check_smallest(smallest: usize, layers: &[Layer]) -> Result<(), Fault> {
    match layers.iter().find(|layer| smallest > layer.max_message()) {
        Some(layer) => Err(Fault::BadInput(format!(
            "--sizes: {layer} carries messages of up to {}, and {} is more: name a smaller size",
            Size(layer.max_message()),
            Size(smallest)
        ))),
        None => Ok(()),
    }
}

/// The COMB methods: computation that goes on behind messages.
#[derive(Debug)]
pub struct Comb {
    /// Sizes of messages, ascending.
    pub sizes: Vec<usize>,
    /// Number of messages that the polling method keeps under way in each direction.
    pub queue: usize,
    /// Number of messages that a cycle of post-work-wait posts in each direction.
    pub batch: usize,
    /// Where messages make progress.
    pub progress_by: ProgressBy,
    /// The methods. Without any, only messages alone are measured.
    pub methods: Vec<plan::Method>,
}

impl Method for Comb {
    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, precision, seed, .. } = terms;
        // The first launch chooses the sizes and intervals for all launches.
        let shape = Data::first::<OverlapLaunch>(before).map(|data| data.shape.clone());
        let (sizes, methods) = (self.sizes.clone(), self.methods.clone());
        let &Self { queue, batch, progress_by, .. } = self;
        Task::Overlap(OverlapPlan {
            launch,
            shape,
            sizes,
            queue,
            batch,
            progress_by,
            methods,
            budget_ns,
            precision,
            seed,
        })
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        let launches = Data::of_verb(launches);
        let mut reading = extract(&launches, terms.confidence, terms.precision)?;
        reading.doubts.extend(self.not_offered(&reading.found));
        Some(reading.of())
    }
}

impl Comb {
    /// Returns the methods with messages of `sizes`, ascending.
    pub fn new(sizes: Vec<usize>, under_way: UnderWay, methods: Vec<plan::Method>) -> Self {
        let queue = under_way.queue.map_or(QUEUE, usize::from);
        let batch = under_way.batch.map_or(BATCH, usize::from);
        Self { sizes, queue, batch, progress_by: ProgressBy::Calls, methods }
    }

    /// Returns warnings about requested sizes, a queue and a batch that the layer does not support.
    fn not_offered(&self, overlap: &Overlap) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let offered: Vec<usize> = overlap.trips.iter().map(|trip| trip.size_bytes).collect();
        let missing: Vec<String> = self
            .sizes
            .iter()
            .filter(|size| !offered.contains(size))
            .map(|&size| Size(size).to_string())
            .collect();
        if !missing.is_empty() {
            doubts.push(Doubt::new(
                "largest_message",
                format!("no message is as large as {}: that is not offered", missing.join(" or ")),
            ));
        }
        for (name, has, wanted) in
            [("queue_is_shorter", overlap.queue, self.queue), ("batch_is_smaller", overlap.batch, self.batch)]
        {
            if has < wanted {
                let text = format!("the layer has {has} messages under way at most, {wanted} were asked for");
                doubts.push(Doubt::new(name, text));
            }
        }
        doubts
    }
}

/// Default number of messages under way in the polling method, each way.
const QUEUE: usize = 4;
/// Default number of messages in a cycle of post-work-wait, each way.
const BATCH: usize = 1;

/// Smallest and largest size of a message, in bytes.
pub const SIZES: (usize, usize) = (Order::LEN, 1 << 30);
