//! `netdyno run`: runs an unmodified MPI program over an emulated link.

use crate::hosts::machine;
use crate::options::headings::OUTPUT;
use crate::options::program::ProgramArgs;
use crate::program::apparatus::Apparatus;
use crate::program::child::{spawn, wait};
use crate::program::dials::{self, DialArgs};
use crate::program::ledger::Ledger;
use crate::program::link::{LinkArgs, Wanted};
use crate::program::route::RouteArgs;
use crate::records::output::{check_writable, write_whole};
use crate::terminal::fault::{Fault, RUNNER};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::voice::note;
use crate::verbs::Examples;
use clap::Args;
use netdyno_apparatus_fi::page::{DialSetting, Plan};
use netdyno_job::launching::exit_code as code;
use netdyno_protocol::dial::parameters::Dials;
use netdyno_protocol::dial::profile::Profile;
use serde::Serialize;
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "run",
    [
        ("netdyno run --latency +10us -- mpiexec -n 4 ./app", "add 10 µs of L"),
        ("netdyno run --bandwidth =1GB/s -- mpiexec -n 2 ./app", "set G"),
        ("netdyno run --profile slow-start -- mpiexec -n 2 ./app", "vary in time"),
    ],
)];

/// Run an unmodified MPI program over an emulated link
///
/// The dials L, o_s, o_r, g_s, g_r and G are turned below MPI, in libfabric (docs/apparatus.md). Options
/// stand before the program.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// How the dials are turned.
    #[command(flatten)]
    dials: DialArgs,

    /// How messages go.
    #[command(flatten)]
    route: RouteArgs,

    /// Write what each rank did to this file, as JSON
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, hide_short_help = true)]
    report: Option<PathBuf>,

    /// What is known of the link.
    #[command(flatten)]
    link: LinkArgs,

    /// Lets the hook panic after so many messages, in a function of the kind named: 150, queue:150, after-send:150
    #[arg(long, value_name = "[KIND:]N", hide = true)]
    fail_at: Option<netdyno_apparatus_fi::fault::InjectedFault>,

    /// What to run.
    #[command(flatten)]
    program: ProgramArgs,
}

/// The report of a run.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    dials: String,
    /// Time profile of the dials.
    profile: Option<String>,
    /// Seed of random dial values.
    seed: u64,
    command: Vec<String>,
    /// Complete command line of netdyno.
    command_line: Vec<String>,
    exit_code: u8,
    /// Reason why the dials were not in force in every rank.
    not_in_force: Option<String>,
    doubts: Vec<String>,
    #[serde(flatten)]
    ledger: &'a Ledger,
}

/// Runs the program and reports the work of the hook.
pub fn run(args: &RunArgs) -> Result<(), Fault> {
    if let Some(file) = &args.report {
        check_writable(file)?;
    }
    dials::check_place(&args.program.command, args.turns_a_dial())?;
    if !args.turns_a_dial() {
        note(
            "warning: no dial is turned: the program runs over the link as it is (see `netdyno run --help`)",
        );
    }
    let interrupt = Interrupt::catch()?;
    let (dials, profile, seed) = (args.dials.dials(), args.dials.profile()?, args.dials.seed);
    let of_profile = profile.iter().flat_map(Profile::points).map(|point| point.dials);
    let all: Vec<Dials> = of_profile.chain([dials]).collect();
    let wanted = Wanted { dials: &all, command: &args.program.command, provider: args.route.provider() };
    let link = args.link.own(&wanted, &interrupt)?;
    let own = link.own;
    dials::check(&dials, profile.as_ref(), &own)?;
    let capacity = args.dials.capacity.unwrap_or(0);
    let settings = vec![DialSetting { dials, own, capacity }];
    let plan = Plan { profile, seed, fail_at: args.fail_at, ..args.route.plan(settings) };
    let apparatus = Apparatus::prepare(&plan, args.route.provider())?;
    let child = spawn(&mut apparatus.command(&args.program.command))?;
    let status = wait(child, apparatus.folder(), &interrupt, None)?.status;
    let ledger = Ledger::of(&apparatus.accounts()?);
    let is_silent = || ledger.is_silent().filter(|_| status.success());
    let asked_for = args.route.provider().filter(|_| !status.success());
    let without_provider = asked_for.and_then(|provider| ledger.without_provider(provider));
    let failing = without_provider.or_else(|| ledger.failing()).or_else(is_silent);
    let of_link = link.doubts.iter().map(|doubt| format!("the link as it is, {doubt}"));
    let of_ranks = ledger.doubts(plan.between.as_ref());
    let doubts: Vec<String> = of_link.chain(of_ranks).collect();
    if let Some(file) = &args.report {
        let command = args.program.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let report = Report {
            schema: "netdyno-run/1",
            dials: dials.to_string(),
            profile: plan.profile.as_ref().map(Profile::to_string),
            seed,
            command,
            command_line: machine::command_line(),
            exit_code: code(status),
            not_in_force: failing.clone(),
            doubts: doubts.clone(),
            ledger: &ledger,
        };
        let text = serde_json::to_string(&report)
            .map_err(|error| Fault::Failed(format!("cannot write the report as JSON: {error}")))?;
        write_whole(file, &(text + "\n"))?;
    }
    // The table goes to standard error, so that it never mixes with the program's output.
    if ledger.has_fabric() && (stderr().is_terminal() || args.report.is_none()) {
        note(&format!("\n{}", ledger.table().trim_end()));
    }
    doubts.iter().for_each(|doubt| note(&format!("doubt: {doubt}")));
    // The ranks of an interrupted program did not finish, so a hook that was not in force proves nothing.
    interrupt.check().map_err(Fault::stopped)?;
    match (failing, code(status)) {
        (None, 0) => Ok(()),
        (None, code) => Err(Fault::Quiet(code)),
        // No rank has reported, so only the program's own output explains its failure.
        (Some(_), status) if status != 0 && ledger.ranks.is_empty() => Err(Fault::Ended(
            RUNNER,
            format!(
                "the program ended with status {status} before any rank was heard of: see what it said, and try \
                 it without netdyno"
            ),
        )),
        (Some(text), status) if status != 0 => {
            Err(Fault::Ended(RUNNER, format!("the program ended with status {status}; {text}")))
        }
        (Some(text), _) => Err(Fault::Ended(RUNNER, text)),
    }
}

impl RunArgs {
    /// Reports whether any option changes the link.
    fn turns_a_dial(&self) -> bool {
        self.dials.are_turned() || self.route.between().is_some()
    }
}
