//! The `netdyno` command.
//!
//! * [`command`]: the command line. [`options`]: the options that several verbs share. [`help`]: the help texts.
//! * [`verbs`]: one file per verb, and their registry.
//! * [`campaign`]: interleaved launches of several layers, until the figures are precise or the time is up.
//! * [`launch`]: one launch, from both sides of the control connection.
//! * [`hosts`], [`job`]: the hosts of a measurement, and the command as a job of its own under a launcher.
//! * [`program`]: an MPI program over dials.
//! * [`records`], [`terminal`]: the files with the results, and the messages on standard error.
#![forbid(unsafe_code)]

mod campaign;
mod command;
mod help;
mod hosts;
mod job;
mod launch;
mod options;
mod program;
mod records;
mod terminal;
mod verbs;

use command::Cli;
use job::rank;
use job::ranks::Ranks;
use std::process::ExitCode;
use std::rc::Rc;
use terminal::fault::{self, Fault};
use terminal::{interrupt, voice};
use verbs::{Context, characterise};

fn main() -> ExitCode {
    interrupt::wait_for_children();
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

/// Adapts an error of the command line to the verb: those that pass on a program's status have exit codes of
/// their own.
fn as_verb(fault: Fault) -> Fault {
    let is_verb = |word: &str| verbs::first_example(word).is_some();
    let runs = fault::verb_asked_for(is_verb)
        .is_some_and(|verb| verb == "run" || verb == "sweep" || verb == "launch");
    if runs { fault.of_runner() } else { fault }
}

/// Runs the verb. A measuring verb without `--launcher` runs as one job if a launcher started several
/// processes of it; every other verb runs in each process by itself.
fn perform(cli: &Cli) -> Result<(), Fault> {
    if let Some((measuring, over)) = cli.measured().filter(|(measuring, _)| measuring.launcher.is_none())
        && let Some(place) = rank::place()?
    {
        return rank::run(place, measuring, over, |ranks| act(cli, Some(ranks)));
    }
    act(cli, None)
}

fn act(cli: &Cli, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    match &cli.verb {
        None => characterise::run(cli, ranks),
        Some(verb) => verb.perform(Context { ranks, definition: Cli::definition }),
    }
}
