//! `netdyno memory`.

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
use netdyno_measure::memory::data::MemoryLaunch;
use netdyno_measure::memory::extract::extract;
use netdyno_measure::memory::pattern::MemoryPlan;
use netdyno_measure::memory::ratio::ratios;
use netdyno_measure::onesided::data::Access;
use netdyno_measure::onesided::pattern::OnesidedPlan;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Found, LayerResult, Ratio};
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "memory",
    [
        ("netdyno memory --over global+shm,am+shm", "compare two layers"),
        ("netdyno memory --over global+udp,ofi:tcp,ucx:tcp", "compare three"),
        ("netdyno memory --over am+shm --out memory.html", "draw the table"),
    ],
)];

/// Compare layers by reads, stores and fetch-and-adds of remote memory
///
/// A read, a write or a fetch+add is one at a time, until it is complete everywhere; a pipelined one or a
/// one-way store is one of a stream. Ratios are to the first layer (docs/memory.md).
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct MemoryArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Write up to this size at once, as in 64KiB
    ///
    /// Writes and stores move 8 B, 64 KiB and this size. Reads and fetch+adds move 8 B.
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = largest, help_heading = WHAT)]
    pub largest: usize,

    /// How memory is reached.
    #[command(flatten)]
    access: AccessArgs,
}

/// Measures and writes the result.
pub fn run(args: &MemoryArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let bench = args.bench.of_every_size("memory")?;
    let access = args.access.checked(&bench.over)?;
    let comparing = Comparing { largest_bytes: args.largest, access };
    campaign::run(Box::new(comparing), &bench, ranks)
}

/// Accesses to another process's memory.
#[derive(Debug)]
struct Comparing {
    largest_bytes: usize,
    access: Access,
}

impl Method for Comparing {
    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, seed, .. } = terms;
        // The first launch chooses the numbers of operations for all launches.
        let shape = Data::first::<MemoryLaunch>(before).map(|data| data.shape.clone());
        let &Self { largest_bytes, access } = self;
        Task::Memory(MemoryPlan(OnesidedPlan { launch, shape, access, largest_bytes, budget_ns, seed }))
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        let launches = Data::of_verb(launches);
        Some(extract(&launches, terms.of_figures(), terms.precision)?.of())
    }

    fn ratios(&self, results: &[LayerResult], confidence: f64) -> Vec<Ratio> {
        ratios(results, confidence)
    }
}
