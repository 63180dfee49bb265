//! `netdyno onesided`.

use crate::campaign;
use crate::campaign::method::{Method, Terms};
use crate::job::ranks::Ranks;
use crate::options::access::AccessArgs;
use crate::options::bench::BenchArgs;
use crate::options::headings::WHAT;
use crate::options::values::largest;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::Args;
use netdyno_measure::onesided::data::{Access, OnesidedLaunch};
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

    /// How memory is reached.
    #[command(flatten)]
    access: AccessArgs,
}

/// Measures and writes the result.
pub fn run(args: &OnesidedArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let bench = args.bench.of_every_size("onesided")?;
    let access = args.access.checked(&bench.over)?;
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
        Some(extract(&launches, terms.of_figures(), terms.precision)?.of())
    }
}
