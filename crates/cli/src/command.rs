//! The command line: the bare command, its verbs, and the checks that involve several options.

use crate::launch::worker::WorkerArgs;
use crate::options::bench::Measuring;
use crate::options::help::{self, OUTPUT, WHAT};
use crate::options::output::OutputArgs;
use crate::program::guard::GuardArgs;
use crate::terminal::fault::Fault;
use crate::verbs::bulk::BulkArgs;
use crate::verbs::compare::CompareArgs;
use crate::verbs::completions::CompletionsArgs;
use crate::verbs::contention::ContentionArgs;
use crate::verbs::export::ExportArgs;
use crate::verbs::logp::LogpArgs;
use crate::verbs::man::ManArgs;
use crate::verbs::overlap::OverlapArgs;
use crate::verbs::plugin::PluginArgs;
use crate::verbs::registration::RegistrationArgs;
use crate::verbs::report::ReportArgs;
use crate::verbs::run::RunArgs;
use crate::verbs::serve::ServeArgs;
use crate::verbs::soak::SoakArgs;
use crate::verbs::sweep::SweepArgs;
use crate::verbs::validate::ValidateArgs;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use netdyno_layers::catalogue::Layer;
use std::env;
use std::path::PathBuf;

/// Measure what a message costs: LogP parameters of any communication layer
///
/// Without a command, netdyno characterises the layers that need nothing but this machine (am+shm, am+udp,
/// udp, tcp) and prints their table.
#[derive(Debug, Parser)]
#[command(version, disable_help_flag = true, disable_version_flag = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Option<Verb>,

    /// Measure these layers (see `netdyno layers`)
    ///
    /// By default am+shm, am+udp, udp and tcp; with --peer those of them that reach another host.
    #[arg(long, value_name = "LAYER[,LAYER…]", value_delimiter = ',', help_heading = WHAT)]
    pub over: Vec<Layer>,

    /// How to measure.
    #[command(flatten)]
    pub measuring: Measuring,

    /// Where and in which form the result goes.
    #[command(flatten)]
    pub output: OutputArgs,

    /// Write netdyno.json and netdyno-report.html into this folder
    ///
    /// Without --dir, --out and --format, record and report are written into ./netdyno-results, with the
    /// time in their names.
    #[arg(long, value_name = "FOLDER", conflicts_with = "out", help_heading = OUTPUT, hide_short_help = true)]
    pub dir: Option<PathBuf>,

    /// What every command takes.
    #[command(flatten)]
    pub common: Common,

    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = OUTPUT, hide_short_help = true)]
    version: Option<bool>,
}

/// What every command takes.
#[derive(Debug, Args)]
pub struct Common {
    /// Say nothing on standard error but errors
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = OUTPUT, hide_short_help = true)]
    pub quiet: bool,

    /// Say on standard error what is done, line by line
    #[arg(short, long, global = true, help_heading = OUTPUT, hide_short_help = true)]
    pub verbose: bool,

    /// Print the help: -h the essential options, --help all of them
    #[arg(short, long, action = ArgAction::Help, global = true, help_heading = OUTPUT, hide_short_help = true)]
    help: Option<bool>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Measure o_s, o_r, g, L and the round trip
    ///
    /// The method is the LogP signature: bursts of requests with delays between them.
    Logp(Box<LogpArgs>),
    /// Measure time, overheads, gap and bandwidth at every message size
    ///
    /// T(n), bandwidth, o_s(n), o_r(n), g(n), L(n), G, and where the protocol changes (docs/bulk.md).
    Bulk(Box<BulkArgs>),
    /// Measure round trips and gaps while many processes communicate
    Contention(Box<ContentionArgs>),
    /// Measure how much computation goes on behind messages (COMB)
    ///
    /// It also tells who pays for moving the data (docs/overlap.md).
    Overlap(Box<OverlapArgs>),
    /// Measure what registering memory costs, beside mlock
    Registration(Box<RegistrationArgs>),
    /// Run an unmodified MPI program over an emulated link
    ///
    /// The dials L, o_s, o_r, g_s, g_r and G are turned below MPI, in libfabric (docs/apparatus.md). Options
    /// stand before the program.
    Run(Box<RunArgs>),
    /// Find out which parameters of its link an MPI program depends on
    ///
    /// Each value of each dial is run several times, in random order. An interrupted sweep goes on where it
    /// ended. Options stand before the program.
    Sweep(Box<SweepArgs>),
    /// Check the dials: turn each to several values and measure every parameter
    Validate(Box<ValidateArgs>),
    /// List the layers, what each can do, and why one is not available
    Layers,
    /// Draw the report of saved records
    Report(ReportArgs),
    /// Serve this host to --peer of another one, until Ctrl-C
    Serve(ServeArgs),
    /// Compare two records or two layers: ratios with intervals
    Compare(CompareArgs),
    /// Write parameters for LogGOPSim, for SimGrid, or as CSV
    Export(ExportArgs),
    /// Build layers written in C, or print their sources
    Plugin(PluginArgs),
    /// Check the reliable protocol on a simulated network that fails
    Soak(SoakArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Write the manual pages into a folder
    Man(ManArgs),
    /// Be one process of a launch; started by netdyno itself
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Ends a run whose command was killed; started by netdyno itself
    #[command(hide = true)]
    Guard(GuardArgs),
}

impl Cli {
    /// Returns the definition of the command, with all help texts.
    pub fn definition() -> Command {
        help::dress(Self::command())
    }

    /// Parses and checks the command line.
    pub fn from_command_line() -> Result<Self, Fault> {
        let mut definition = Self::definition();
        let matches = definition.try_get_matches_from_mut(env::args_os())?;
        misplaced(&definition, &matches)?;
        let cli = Self::from_arg_matches(&matches)?;
        cli.check()?;
        Ok(cli)
    }

    /// Checks the options that depend on each other.
    fn check(&self) -> Result<(), Fault> {
        match self.measuring() {
            Some(Measuring { key_file: Some(_), peer: None, .. }) => Err(Fault::BadInput(
                "--key-file has the key of a served host: name that host too, as in --peer HOST".into(),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the measuring options, if the verb measures.
    pub fn measuring(&self) -> Option<&Measuring> {
        match &self.verb {
            None => Some(&self.measuring),
            Some(Verb::Logp(args)) => Some(&args.bench.measuring),
            Some(Verb::Bulk(args)) => Some(&args.bench.measuring),
            Some(Verb::Contention(args)) => Some(&args.bench.measuring),
            Some(Verb::Overlap(args)) => Some(&args.bench.measuring),
            Some(Verb::Registration(args)) => Some(&args.bench.measuring),
            Some(Verb::Validate(args)) => Some(&args.measuring),
            Some(_) => None,
        }
    }
}

/// Rejects options of the bare command before a verb, because the verb would ignore them.
fn misplaced(definition: &Command, matches: &ArgMatches) -> Result<(), Fault> {
    let Some(verb) = matches.subcommand_name() else { return Ok(()) };
    let is_given = |arg: &&Arg| {
        !arg.is_global_set() && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    match definition.get_arguments().find(is_given).and_then(Arg::get_long) {
        Some(option) => Err(Fault::BadInput(format!(
            "--{option} stands before '{verb}', which would not see it: say netdyno {verb} --{option} …"
        ))),
        None => Ok(()),
    }
}
