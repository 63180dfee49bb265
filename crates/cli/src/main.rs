//! The `netdyno` command.
//!
//! * [`command`]: the command line. [`options`]: the options that several verbs share, and the help texts.
//! * [`verbs`]: one file per verb.
//! * [`campaign`]: interleaved launches of several layers, until the figures are precise or the time is up.
//! * [`launch`]: one launch, from both sides of the control connection.
//! * [`hosts`], [`job`]: the hosts of a measurement, and the command as a job of its own under a launcher.
//! * [`program`]: an MPI program over dials.
//! * [`records`], [`terminal`]: the files with the results, and the messages on standard error.
#![forbid(unsafe_code)]

mod campaign;
mod command;
mod hosts;
mod job;
mod launch;
mod options;
mod program;
mod records;
mod terminal;
mod verbs;

use command::{Cli, Verb};
use job::rank;
use job::ranks::Ranks;
use launch::worker;
use program::guard;
use std::process::ExitCode;
use std::rc::Rc;
use terminal::fault::{self, Fault};
use terminal::voice;
use verbs::{
    bulk, characterise, compare, completions, contention, export, layers, logp, man, overlap, plugin,
    registration, report, run, serve, soak, sweep, validate,
};

fn main() -> ExitCode {
    let parsed = Cli::from_command_line().map_err(rank::said_once).map_err(as_verb);
    let performed = parsed.and_then(|cli| {
        voice::set(cli.common.quiet, cli.common.verbose);
        perform(&cli)
    });
    match performed {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fault.exit(),
    }
}

/// Adapts an error of the command line to the verb: `run` and `sweep` have exit codes of their own.
fn as_verb(fault: Fault) -> Fault {
    let runs = fault::verb_asked_for().is_some_and(|verb| verb == "run" || verb == "sweep");
    if runs { fault.of_runner() } else { fault }
}

/// Runs the verb. A measuring verb without `--launcher` runs as one job if a launcher started several
/// processes of it; every other verb runs in each process by itself.
fn perform(cli: &Cli) -> Result<(), Fault> {
    match (cli.measuring(), rank::place()) {
        (Some(measuring), Some(place)) if measuring.launcher.is_none() => {
            rank::run(place, measuring, |ranks| act(cli, Some(ranks)))
        }
        _ => act(cli, None),
    }
}

fn act(cli: &Cli, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    match &cli.verb {
        None => characterise::run(cli, ranks),
        Some(Verb::Logp(args)) => logp::run(args, ranks),
        Some(Verb::Bulk(args)) => bulk::run(args, ranks),
        Some(Verb::Contention(args)) => contention::run(args, ranks),
        Some(Verb::Overlap(args)) => overlap::run(args, ranks),
        Some(Verb::Registration(args)) => registration::run(args, ranks),
        Some(Verb::Validate(args)) => validate::run(args, ranks),
        Some(Verb::Run(args)) => run::run(args).map_err(Fault::of_runner),
        Some(Verb::Sweep(args)) => sweep::run(args).map_err(Fault::of_runner),
        Some(Verb::Layers) => layers::run(),
        Some(Verb::Report(args)) => report::run(args),
        Some(Verb::Serve(args)) => serve::run(args),
        Some(Verb::Compare(args)) => compare::run(args),
        Some(Verb::Export(args)) => export::run(args),
        Some(Verb::Plugin(args)) => plugin::run(args),
        Some(Verb::Soak(args)) => soak::run(args),
        Some(Verb::Completions(args)) => completions::run(args, Cli::definition()),
        Some(Verb::Man(args)) => man::run(args, Cli::definition()),
        Some(Verb::Worker(args)) => worker::run(args),
        Some(Verb::Guard(args)) => guard::run(args),
    }
}
