//! `netdyno contention`.

use crate::campaign;
use crate::campaign::method::{Method, Terms};
use crate::hosts::processes::Processes;
use crate::job::ranks::Ranks;
use crate::options::bench::BenchArgs;
use crate::options::headings::WHAT;
use crate::terminal::fault::Fault;
use crate::verbs::Examples;
use clap::Args;
use netdyno_measure::contention::data::CrowdData;
use netdyno_measure::contention::direct::CrowdPlan;
use netdyno_measure::contention::extract::extract;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::Found;
use netdyno_measure::task::{Data, Task};
use std::rc::Rc;

/// Maximum number of processes in `contention`.
pub const PROCS_AT_MOST: u8 = 64;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "contention",
    [
        ("netdyno contention --over am+udp", "measure four processes"),
        ("netdyno contention --over tcp --procs 8 --wait yield", "measure eight"),
        ("mpiexec -n 4 netdyno contention --over am+udp", "measure those of a job"),
    ],
)];

/// Measure round trips and gaps while many processes communicate
#[derive(Debug, Args)]
pub struct ContentionArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Start this many processes [default: 4]
    ///
    /// In a job there are by default as many as the job has. With more processes than processors the figures are
    /// about scheduling.
    #[arg(
        long,
        value_name = "P",
        value_parser = clap::value_parser!(u8).range(2..=i64::from(PROCS_AT_MOST)),
        help_heading = WHAT
    )]
    pub procs: Option<u8>,
}

/// Number of processes if neither the user nor a job sets it.
const PROCS: usize = 4;

/// Measures and writes the result.
pub fn run(args: &ContentionArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let of_job = ranks.as_ref().map(|ranks| ranks.hosts().len());
    let procs = args.procs.map(usize::from).or(of_job).unwrap_or(PROCS);
    if procs > PROCS_AT_MOST.into() {
        return Err(Fault::BadInput(format!(
            "{procs} processes are more than the {PROCS_AT_MOST} that are measured at once"
        )));
    }
    campaign::run(Box::new(Crowding { procs }), &args.bench, ranks)
}

/// The steps that show the effect of contention.
#[derive(Debug)]
struct Crowding {
    procs: usize,
}

impl Method for Crowding {
    fn processes(&self) -> Processes {
        Processes::Many(self.procs)
    }

    fn task(&self, terms: &Terms, before: &[Data]) -> Task {
        let &Terms { launch, budget_ns, seed, .. } = terms;
        // The first launch chooses the window and the delay for all launches.
        let shape = Data::first::<CrowdData>(before).map(|data| data.shape.clone());
        Task::Contention(CrowdPlan { launch, procs: self.procs, shape, budget_ns, seed })
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        let launches = Data::of_verb(launches);
        Some(extract(&launches, terms.of_figures(), terms.precision)?.of())
    }
}
