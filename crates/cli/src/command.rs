//! The command line: the bare command, its verbs, and the checks that involve several options.

use crate::help;
use crate::options::bench::Measuring;
use crate::options::headings::{OUTPUT, WHAT};
use crate::options::output::OutputArgs;
use crate::terminal::fault::Fault;
use crate::verbs::{Verb, first_example};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser};
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

impl Cli {
    /// Returns the definition of the command, with all help texts.
    pub fn definition() -> Command {
        help::dress(Self::command())
    }

    /// Parses and checks the command line.
    pub fn from_command_line() -> Result<Self, Fault> {
        let mut definition = Self::definition();
        let fault = |error| Fault::of_command_line(error, first_example);
        let matches = definition.try_get_matches_from_mut(env::args_os()).map_err(fault)?;
        misplaced(&definition, &matches)?;
        let cli = Self::from_arg_matches(&matches).map_err(fault)?;
        cli.check()?;
        Ok(cli)
    }

    /// Checks the options that depend on each other.
    fn check(&self) -> Result<(), Fault> {
        let is_one_sided = self.verb.as_ref().is_some_and(Verb::is_one_sided);
        let lacks_requests = |(_, over): (_, &'_ [Layer])| {
            over.iter().copied().find(|layer| !layer.has_requests() && !is_one_sided)
        };
        if let Some(layer) = self.measured().and_then(lacks_requests) {
            return Err(Fault::BadInput(format!(
                "{layer} has one-sided operations alone: use netdyno memory or netdyno onesided --over {layer}"
            )));
        }
        match self.measured() {
            Some((Measuring { key_file: Some(_), peer: None, .. }, _)) => Err(Fault::BadInput(
                "--key-file has the key of a served host: name that host too, as in --peer HOST".into(),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the measuring options and the layers of `--over`, if the verb measures.
    pub fn measured(&self) -> Option<(&Measuring, &[Layer])> {
        match &self.verb {
            None => Some((&self.measuring, &self.over)),
            Some(verb) => verb.measured(),
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
