//! `netdyno launch`: starts the ranks of a program.

use crate::options::program::{ProgramArgs, WHAT_TO_RUN};
use crate::program::child::cannot_run;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use crate::verbs::Examples;
use clap::Args;
use netdyno_job::launching::{self, End, LaunchError, PROCS_AT_MOST};
use std::process::Command;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "launch",
    [
        ("netdyno launch -n 4 ./radix_sort 100000", "start four ranks"),
        ("netdyno launch -n 2 -- ./app -n 7", "a program with -n"),
        ("netdyno launch -n 4 netdyno contention --over am+udp", "measure them"),
    ],
)];

/// Start the ranks of a program on this host, as mpiexec does
///
/// For programs over netdyno's global memory, and for those of MPICH and other libraries that speak PMI 1. Once a
/// rank fails, the others are ended, and its status is that of netdyno. Options stand before the program.
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// Start this many ranks
    #[arg(short = 'n', long, value_name = "N", value_parser = procs, help_heading = WHAT_TO_RUN)]
    procs: usize,

    /// What to run.
    #[command(flatten)]
    program: ProgramArgs,
}

/// Parses the number of ranks.
fn procs(text: &str) -> Result<usize, String> {
    let procs = text.parse().ok().filter(|procs| (1..=PROCS_AT_MOST).contains(procs));
    procs.ok_or_else(|| format!("must be from 1 to {PROCS_AT_MOST}, as in 4"))
}

/// Starts the ranks and waits for their end.
pub fn run(args: &LaunchArgs) -> Result<(), Fault> {
    let interrupt = Interrupt::catch()?;
    let [program, arguments @ ..] = &args.program.command[..] else {
        return Err(Fault::BadInput("name a program, as in netdyno launch -n 4 ./app".into()));
    };
    let rank = |_| {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    };
    match launching::run(args.procs, rank, || interrupt.signal()) {
        Ok(End::Done) => Ok(()),
        Ok(End::Stopped(signal)) => Err(Fault::Stopped(signal)),
        Ok(end) => Err(Fault::Ended(end.code(), end.to_string())),
        Err(LaunchError::Start { rank: 0, program, error }) => Err(cannot_run(&program, &error)),
        Err(error) => Err(Fault::Failed(error.to_string())),
    }
}
