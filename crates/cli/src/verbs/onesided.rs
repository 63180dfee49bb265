//! `netdyno onesided`.

use crate::campaign;
use crate::campaign::method::{Method, Terms};
use crate::job::ranks::Ranks;
use crate::options::abilities::all_able;
use crate::options::bench::BenchArgs;
use crate::options::headings::WHAT;
use crate::options::values::largest;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::Args;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::onesided::data::{Access, Level, Memory, OnesidedLaunch, Synchronisation};
use netdyno_measure::onesided::extract::extract;
use netdyno_measure::onesided::pattern::OnesidedPlan;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::Found;
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "onesided",
    [
        ("netdyno onesided --over am+shm,vi+shm", "compare two layers"),
        ("netdyno onesided --over vi+udp --level reception", "choose the level of a VI"),
        ("netdyno onesided --over vi+shm --out onesided.html", "draw the result"),
    ],
)];

/// Measure put, get and fetch-and-add on another process's memory
///
/// Time until an operation has started, is complete here and is complete there, gap, G and bandwidth at
/// every size (docs/onesided.md).
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct OnesidedArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Measure sizes up to this one, as in 64KiB
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = largest, help_heading = WHAT)]
    pub largest: usize,

    /// Choose the reliability level of Virtual Interfaces [default: delivery]
    ///
    /// It says what the completion of a put means: the wire has the bytes and may lose them (unreliable),
    /// delivers them (delivery), or has put them into the target's memory (reception).
    #[arg(
        long,
        value_name = "LEVEL",
        value_parser = ["unreliable", "delivery", "reception"],
        help_heading = WHAT,
        hide_short_help = true
    )]
    level: Option<String>,

    /// Choose the synchronisation of MPI's operations [default: lock]
    ///
    /// The target takes no part (lock), all processes call a fence before and after the operations (fence), or the
    /// target posts its memory and waits for them (post: MPI_Win_post and MPI_Win_start).
    #[arg(
        long,
        value_name = "SYNC",
        value_parser = ["lock", "fence", "post"],
        help_heading = WHAT,
        hide_short_help = true
    )]
    sync: Option<String>,

    /// Choose whose memory is put into and got from [default: registered]
    ///
    /// Memory of netdyno that is registered with the library, or memory that the library allocates (MPI_Win_allocate,
    /// ucp_mem_map). Within a host libraries may reach their own memory without the kernel.
    #[arg(
        long,
        value_name = "MEMORY",
        value_parser = ["registered", "allocated"],
        help_heading = WHAT,
        hide_short_help = true
    )]
    memory: Option<String>,
}

/// Measures and writes the result.
pub fn run(args: &OnesidedArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let bench = args.bench.of_every_size("onesided")?;
    let over = &bench.over;
    all_able(over, Layer::has_one_sided, "one-sided operations here", "use")?;
    if args.level.is_some() {
        all_able(over, Layer::has_levels, "reliability levels", "use --level with")?;
    }
    if args.sync.is_some() {
        all_able(over, Layer::has_synchronisations, "synchronisations to choose", "use --sync with")?;
    }
    if args.memory.is_some() {
        all_able(over, Layer::allocates, "choice of memory", "use --memory with")?;
    }
    let memory = match args.memory.as_deref() {
        Some("allocated") => Memory::Allocated,
        _ => Memory::Registered,
    };
    let synchronisation = match args.sync.as_deref() {
        Some("fence") => Synchronisation::Fence,
        Some("post") => Synchronisation::Post,
        _ => Synchronisation::Lock,
    };
    let level = match args.level.as_deref() {
        Some("unreliable") => Level::Unreliable,
        Some("reception") => Level::Reception,
        _ => Level::Delivery,
    };
    let access = Access { level, synchronisation, memory };
    let accessing = Accessing { largest_bytes: args.largest, access };
    campaign::run(Box::new(accessing), &bench, ranks)
}

/// One-sided operations on another process's memory.
#[derive(Debug)]
struct Accessing {
    largest_bytes: usize,
    access: Access,
}

impl Method for Accessing {
    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, seed, .. } = terms;
        // The first launch chooses the numbers of operations for all launches.
        let shape = Data::first::<OnesidedLaunch>(before).map(|data| data.shape.clone());
        let &Self { largest_bytes, access } = self;
        Task::Onesided(OnesidedPlan { launch, shape, access, largest_bytes, budget_ns, seed })
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        let launches = Data::of_verb(launches);
        Some(extract(&launches, terms.confidence, terms.precision)?.of())
    }
}
