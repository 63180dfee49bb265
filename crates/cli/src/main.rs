//! The `netdyno` command.
//!
//! * [`args`]: what can be asked for. * [`help`], [`completions`], [`man`]: its help, completions and manual
//!   pages. * [`fault`]: how a run can fail, and its exit code. * [`voice`]: what is said besides results.
//! * [`characterise`], [`logp`], [`bulk`], [`contention`], [`overlap`], [`registration`], [`catalogue`], [`report`],
//!   [`compare`], [`export`], [`serve`], [`plugin`], [`soak`]: the verbs.
//! * [`run`]: a program under dials. [`sweep`], [`grid`], [`journal`], [`identity`]: the same again and again. [`validate`], [`dialled`]: whether dials do what they say. [`turn`]: the dials on the command line. [`apparatus`]: the hook
//!   in the program's way. [`guard`]: the end of a run whose command was killed. [`ledger`]: what its ranks say afterwards.
//! * [`campaign`], [`pace`]: launches of several layers, interleaved, until the figures are known or the time is up.
//! * [`probe`], [`stratify`]: launches by how far their processors were apart.
//! * [`method`]: what a measuring verb runs in a launch, and what it reads off launches.
//! * [`launch`], [`worker`]: one launch, from both sides of the control connection.
//! * [`launching`]: where the processes of a launch come from.
//! * [`gathering`], [`attendant`]: the same with many processes.
//! * [`rank`], [`ranks`], [`meeting`]: the command as a job of mpiexec's, each process and the one
//!   that leads.
//! * [`site`]: where it takes place. * [`session`], [`peer`], [`secret`]: with a served host.
//! * [`machine`], [`interrupt`], [`progress`], [`output`], [`saved`]: what the verbs share.
#![forbid(unsafe_code)]

mod apparatus;
mod args;
mod attendant;
mod bulk;
mod campaign;
mod catalogue;
mod characterise;
mod compare;
mod completions;
mod contention;
mod dialled;
mod export;
mod fault;
mod gathering;
mod gauge;
mod grid;
mod guard;
mod help;
mod identity;
mod interrupt;
mod journal;
mod launch;
mod launching;
mod ledger;
mod link;
mod logp;
mod machine;
mod man;
mod meeting;
mod method;
mod output;
mod overlap;
mod pace;
mod peer;
mod plain;
mod plugin;
mod probe;
mod profiles;
mod progress;
mod rank;
mod ranks;
mod reference;
mod registration;
mod report;
mod run;
mod saved;
mod secret;
mod serve;
mod session;
mod site;
mod soak;
mod stratify;
mod sweep;
mod turn;
mod validate;
mod voice;
mod worker;

use args::{Cli, Verb};
use fault::Fault;
use ranks::Ranks;
use std::process::ExitCode;
use std::rc::Rc;

fn main() -> ExitCode {
    let parsed = Cli::from_command_line().map_err(rank::said_once).map_err(as_verb);
    let performed = parsed.and_then(|cli| {
        voice::set(&cli.common);
        perform(&cli)
    });
    match performed {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fault.exit(),
    }
}

/// What is wrong with the command line, as the verb would say it that was meant.
fn as_verb(fault: Fault) -> Fault {
    let runs = fault::verb_asked_for().is_some_and(|verb| verb == "run" || verb == "sweep");
    if runs { fault.of_runner() } else { fault }
}

/// What measures may run as a job of its own launcher's; the rest is for each process.
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
        Some(Verb::Layers) => catalogue::run(),
        Some(Verb::Report(args)) => report::run(args),
        Some(Verb::Serve(args)) => serve::run(args),
        Some(Verb::Compare(args)) => compare::run(args),
        Some(Verb::Export(args)) => export::run(args),
        Some(Verb::Plugin(args)) => plugin::run(args),
        Some(Verb::Soak(args)) => soak::run(args),
        Some(Verb::Completions(args)) => completions::run(args),
        Some(Verb::Man(args)) => man::run(args),
        Some(Verb::Worker(args)) => worker::run(args),
        Some(Verb::Guard(args)) => guard::run(args),
    }
}
