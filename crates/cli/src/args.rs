//! What can be asked for on the command line.

use crate::compare::CompareArgs;
use crate::completions::CompletionsArgs;
use crate::export::ExportArgs;
use crate::fault::Fault;
use crate::guard::GuardArgs;
use crate::help::{self, HOSTS, HOW_PRECISELY, OUTPUT, SLOW, WHAT, WHERE};
use crate::man::ManArgs;
use crate::overlap::SIZES;
use crate::plugin::PluginArgs;
use crate::run::RunArgs;
use crate::session::PORT;
use crate::sweep::SweepArgs;
use crate::validate::ValidateArgs;
use clap::parser::ValueSource;
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};
use netdyno_clock::place;
use netdyno_host::wait::Wait;
use netdyno_job::launcher::Launcher;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::overlap::plan;
use netdyno_measure::record::Options;
use netdyno_protocol::dial::terms::Dials;
use netdyno_protocol::faults::Faults;
use netdyno_protocol::sim::Truth;
use std::env;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of a message, where nothing is said of it.
const DEFAULT_SIZE: u32 = 32;
/// Characters of a label.
const LABEL_AT_MOST: usize = 40;
/// Processes that `contention` has at most.
pub const PROCS_AT_MOST: u8 = 64;

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

/// How to measure: the options of every measuring verb.
#[derive(Clone, Debug, Args)]
pub struct Measuring {
    /// Send messages of this size [default: 32]
    ///
    /// Bytes of user data in a request, and in a reply, as in 64, 5kB or 64KiB.
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = WHAT)]
    pub size: Option<u32>,

    /// Stop at intervals this narrow
    ///
    /// Half the width of an interval, as a share of the value, or, for o_s, o_r and L, of the one-way time
    /// that they are parts of.
    #[arg(long, value_name = "SHARE", default_value = "0.02", value_parser = precision, help_heading = HOW_PRECISELY)]
    pub precision: f64,

    /// Set the confidence of every interval
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.95",
        value_parser = confidence,
        help_heading = HOW_PRECISELY,
        hide_short_help = true
    )]
    pub confidence: f64,

    /// Limit the time for each layer
    ///
    /// Launches are shortened to fit into it, and none begins after it.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = max_time, help_heading = HOW_PRECISELY)]
    pub max_time: Duration,

    /// Start this many fresh process pairs for each layer, at least
    ///
    /// More are started until the precision or the time is reached.
    #[arg(
        long,
        value_name = "N",
        default_value = "9",
        value_parser = clap::value_parser!(u16).range(1..=1000),
        help_heading = HOW_PRECISELY,
        hide_short_help = true
    )]
    pub launches: u16,

    /// Seed everything random
    #[arg(long, value_name = "N", default_value = "1", help_heading = HOW_PRECISELY, hide_short_help = true)]
    pub seed: u64,

    /// Run requester and replier on these processors, as in 0,1
    ///
    /// By default two that are near each other. With --peer the second one is of that host. Many processes
    /// take them by rank, and again from the first where there are more processes than processors.
    #[arg(long, value_name = "A,B", value_parser = cpus, help_heading = WHERE, hide_short_help = true)]
    pub cpus: Option<CpuList>,

    /// Choose what a process does while nothing arrives
    ///
    /// By default spin where there are two processors, otherwise yield. Several, as in block,spin: each layer
    /// is measured each way, interleaved.
    #[arg(
        long,
        value_name = "HOW[,HOW…]",
        value_delimiter = ',',
        value_parser = ["spin", "yield", "block"],
        help_heading = WHERE,
        hide_short_help = true
    )]
    wait: Vec<String>,

    /// Put the sockets of this host at this address
    ///
    /// Concerns am+udp, vi+udp, udp and tcp. The port is the replier's. By default 127.0.0.1, or the address
    /// that reaches the peer.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = bind, help_heading = HOSTS, hide_short_help = true)]
    pub bind: Option<SocketAddr>,

    /// Run the replier on this host, where `netdyno serve` runs
    #[arg(long, value_name = "HOST[:PORT]", value_parser = peer, help_heading = HOSTS, hide_short_help = true)]
    pub peer: Option<SocketAddr>,

    /// Start processes by this command, as in 'mpiexec -n {n}'
    ///
    /// It may start them on this host or on others; --bind says which address of this host they reach. By
    /// default they are children of this command.
    #[arg(long, value_name = "COMMAND", conflicts_with = "peer", help_heading = HOSTS, hide_short_help = true)]
    pub launcher: Option<Launcher>,

    /// Read the key of --peer from this file, not from NETDYNO_KEY
    #[arg(long, value_name = "FILE", help_heading = HOSTS, hide_short_help = true)]
    pub key_file: Option<PathBuf>,
}

impl Measuring {
    /// Bytes of user data in a request, and in a reply.
    pub fn size_bytes(&self) -> usize {
        self.size.unwrap_or(DEFAULT_SIZE) as usize
    }

    /// What to do while nothing arrives, as far as that was said.
    pub fn waits(&self) -> Vec<Wait> {
        self.wait.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// What goes into the record.
    pub fn options(&self) -> Options {
        Options {
            precision: self.precision,
            confidence: self.confidence,
            max_time_s: self.max_time.as_secs_f64(),
            launches: usize::from(self.launches),
            seed: self.seed,
        }
    }
}

/// What every measuring verb takes: the layers, how to measure them, what becomes of the
/// result.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// Measure these layers (see `netdyno layers`)
    ///
    /// The launches of several layers are interleaved.
    #[arg(long, value_name = "LAYER[,LAYER…]", value_delimiter = ',', required = true, help_heading = WHAT)]
    pub over: Vec<Layer>,

    /// Set the parameters of the sim layer: o_s=1us,o_r=2us,g=5us,L=7us
    ///
    /// Where wanted also capacity=64, window=65536, o_poll=0ns, noise=0.05 (a standard deviation, as a share),
    /// noise_shape=normal (or uniform, laplace or exponential); by the size of a message G=0.5ns/B, processor
    /// time per byte as in O_s=0.1ns/B,O_r=0.1ns/B, and another protocol for large messages as in
    /// change=8KiB,change_G=0.25ns/B,change_L=20us; for overlap which side moves messages, as in
    /// offload=off,eager=8KiB,steal=0.1ns/B,helper=0.1ns/B; for registration what memory costs, as in
    /// register=1us+50ns/page,fault=250ns,cached=100ns,kept=on and
    /// deregister=500ns+10ns/page,lock=1us+30ns/page,unlock=300ns and lock_limit=8MiB,create=5us
    #[arg(long, value_name = "NAME=VALUE,…", help_heading = WHAT, hide_short_help = true)]
    pub truth: Option<Truth>,

    /// How to measure.
    #[command(flatten)]
    pub measuring: Measuring,

    /// Where and in which form the result goes.
    #[command(flatten)]
    pub output: OutputArgs,

    /// Name a result in the report, as in 'mpi=MPICH 5 over tcp'
    ///
    /// The layer may be left away where one is measured.
    #[arg(long, value_name = "[LAYER=]TEXT", value_parser = label, help_heading = OUTPUT, hide_short_help = true)]
    pub label: Vec<Label>,

    /// Lose, repeat, reorder or corrupt datagrams, as in loss=0.01
    ///
    /// Probabilities for each datagram of am+udp and vi+udp: loss=0.01,dup=0.01,reorder=0.02,corrupt=0.001, and
    /// burst=0.001 for bad times of up to 5 ms.
    #[arg(long, value_name = "NAME=SHARE,…", help_heading = SLOW, hide_short_help = true)]
    pub faults: Option<Faults>,

    /// Turn the dials of am+shm and am+udp, as in latency=20us
    ///
    /// latency=20us, send-gap=5us, recv-gap=5us and gap-per-byte=1ns/B (or 1GB/s) set a parameter; latency+20us,
    /// send-overhead+1us and recv-overhead+1us add to it.
    #[arg(long, value_name = "DIAL=VALUE,…", help_heading = SLOW, hide_short_help = true)]
    pub dials: Option<Dials>,

    /// Change the dials with time, by a file or a profile
    ///
    /// A file (docs/dials.md), or interrupt-coalescing, slow-start or congested-hour.
    #[arg(long, value_name = "FILE|NAME", help_heading = SLOW, hide_short_help = true)]
    pub profile: Option<String>,
}

/// What a result is called besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Of which layer, where that was said.
    pub layer: Option<Layer>,
    /// What it is called.
    pub text: String,
}

/// `netdyno logp`.
#[derive(Debug, Args)]
pub struct LogpArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Do not measure a lean layer beside MPI, libfabric and UCX
    ///
    /// It is am+shm within a host, am+udp over sockets and between hosts.
    #[arg(long, help_heading = WHAT, hide_short_help = true)]
    pub no_reference: bool,
}

/// `netdyno bulk`.
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct BulkArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Measure sizes up to this one, as in 64KiB
    ///
    /// Less where a layer carries no message of that size.
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = largest, help_heading = WHAT)]
    pub largest: usize,
}

/// `netdyno contention`.
#[derive(Debug, Args)]
pub struct ContentionArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Start this many processes [default: 4]
    ///
    /// In a job there are by default as many as the job has. With more processes than processors the figures are about scheduling.
    #[arg(
        long,
        value_name = "P",
        value_parser = clap::value_parser!(u8).range(2..=i64::from(PROCS_AT_MOST)),
        help_heading = WHAT
    )]
    pub procs: Option<u8>,
}

/// `netdyno overlap`.
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct OverlapArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Use these methods [default: all]
    #[arg(
        long,
        value_name = "METHOD[,METHOD…]",
        value_enum,
        value_delimiter = ',',
        help_heading = WHAT,
        hide_short_help = true
    )]
    pub method: Vec<CombMethod>,

    /// Send messages of these sizes
    ///
    /// In bytes or as in 5kB, 100KiB, 1MB. Those that a layer does not carry are left out.
    #[arg(
        long,
        value_name = "SIZE[,SIZE…]",
        default_value = "64,5kB,100kB,1MB",
        value_delimiter = ',',
        value_parser = message_size,
        help_heading = WHAT
    )]
    pub sizes: Vec<usize>,

    /// Keep this many messages under way in the polling method
    ///
    /// Each way; fewer where a layer has less room.
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        value_parser = clap::value_parser!(u8).range(1..=64),
        help_heading = WHAT,
        hide_short_help = true
    )]
    pub queue: u8,
}

/// The methods of `netdyno overlap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CombMethod {
    /// Compute, test, answer what has arrived: availability and bandwidth against the interval
    Polling,
    /// Post, compute without a call, wait: times of each, and what is stolen from the work
    Pww,
    /// The most work that goes behind a message for free
    Max,
}

impl From<CombMethod> for plan::Method {
    fn from(method: CombMethod) -> Self {
        match method {
            CombMethod::Polling => Self::Polling,
            CombMethod::Pww => Self::Pww,
            CombMethod::Max => Self::Max,
        }
    }
}

/// `netdyno registration`.
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct RegistrationArgs {
    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,

    /// Measure regions up to this size, as in 1GiB
    ///
    /// Half of the memory that is available at most.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = largest, help_heading = WHAT)]
    pub largest: usize,
}

/// Where and in which form a result goes.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// Print a table, json, csv or html
    ///
    /// json is the record (schema netdyno/1), csv has one row for each layer and parameter, html is one
    /// self-contained page with plots. By default the form of the file's ending (.json, .csv, .html, .txt), or a
    /// table.
    #[arg(long, value_enum, help_heading = OUTPUT, hide_possible_values = true)]
    pub format: Option<Format>,

    /// Write to this file, not to standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
}

/// `netdyno report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Read these records, or one sweep, as written by --format json
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Write html, or a table, json or csv
    ///
    /// By default the form of the file's ending, or html.
    #[arg(long, value_enum, help_heading = OUTPUT, hide_possible_values = true)]
    pub format: Option<Format>,

    /// Write the report to this file; - is standard output
    #[arg(long, value_name = "FILE", default_value = "netdyno-report.html", help_heading = OUTPUT)]
    pub out: PathBuf,
}

/// `netdyno serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Listen at this address [default: all of this host]
    ///
    /// At a loopback address no key is needed.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = peer, help_heading = HOSTS)]
    pub bind: Option<SocketAddr>,

    /// Read the key from this file; clients need the same one
    ///
    /// Without it the key is looked for in NETDYNO_KEY, or made and printed.
    #[arg(long, value_name = "FILE", help_heading = HOSTS)]
    pub key_file: Option<PathBuf>,

    /// End after one measurement
    #[arg(long, short = '1', help_heading = HOSTS)]
    pub one_off: bool,
}

/// `netdyno worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Connect to the launching side at this address; without it, standard input is the connection
    #[arg(long, value_name = "ADDRESS")]
    pub dial: Option<SocketAddr>,
}

/// `netdyno soak`.
#[derive(Debug, Args)]
pub struct SoakArgs {
    /// Run this many seeds
    #[arg(
        long,
        value_name = "N",
        default_value = "10000",
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = WHAT
    )]
    pub seeds: u64,

    /// Begin with this seed
    ///
    /// A seed that failed is shown again with --first SEED --seeds 1.
    #[arg(long, value_name = "SEED", default_value = "0", help_heading = WHAT)]
    pub first: u64,
}

/// The forms of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, on a terminal
    Table,
    /// The record, schema netdyno/1
    Json,
    /// One row per layer and parameter
    Csv,
    /// One self-contained page with plots
    Html,
}

impl Cli {
    /// The definition of the command, with all help texts.
    pub fn definition() -> Command {
        help::dress(Self::command())
    }

    /// What was asked for.
    pub fn from_command_line() -> Result<Self, Fault> {
        let mut definition = Self::definition();
        let matches = definition.try_get_matches_from_mut(env::args_os())?;
        misplaced(&definition, &matches)?;
        let cli = Self::from_arg_matches(&matches)?;
        cli.check()?;
        Ok(cli)
    }

    /// What options mean only together.
    fn check(&self) -> Result<(), Fault> {
        match self.measuring() {
            Some(Measuring { key_file: Some(_), peer: None, .. }) => Err(Fault::BadInput(
                "--key-file has the key of a served host: name that host too, as in --peer HOST".into(),
            )),
            _ => Ok(()),
        }
    }

    /// How to measure, where that is asked for.
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

/// Options of the bare command before a verb, which would not see them.
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

/// Bytes, in units of 1000 or of 1024.
fn bytes(text: &str) -> Result<usize, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let unit: usize = match unit {
        _ if digits.is_empty() => return Err("not a size, as in 64, 5kB or 64KiB".into()),
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("not a size, as in 64, 5kB or 64KiB".into()),
    };
    // More than fits is more than any limit.
    Ok(digits.parse::<usize>().ok().and_then(|count| count.checked_mul(unit)).unwrap_or(usize::MAX))
}

/// The size of a message. What a layer carries is less, and said by the layer.
fn size(text: &str) -> Result<u32, String> {
    let size = u32::try_from(bytes(text)?).ok().filter(|size| *size >= 1);
    size.ok_or_else(|| format!("must be from 1B to {}B", u32::MAX))
}

/// A size from 1 KiB, below which there is hardly a line to draw, to 1 GiB.
fn largest(text: &str) -> Result<usize, String> {
    let size = Some(bytes(text)?).filter(|size| (1 << 10..=1 << 30).contains(size));
    size.ok_or_else(|| "must be from 1KiB to 1GiB".into())
}

/// A size of messages for `overlap`.
fn message_size(text: &str) -> Result<usize, String> {
    let size = bytes(text).map_err(|error| format!("{error}, from 8B to 1GiB"))?;
    let size = Some(size).filter(|size| (SIZES.0..=SIZES.1).contains(size));
    size.ok_or_else(|| "must be from 8B to 1GiB".into())
}

/// A label; one that has a `=` in it itself needs its layer before it.
fn label(text: &str) -> Result<Label, String> {
    let (layer, text) = match text.split_once('=') {
        Some((before, after)) => {
            let layer = before.parse().map_err(|_| {
                format!(
                    "'{before}' before the = is no layer: say LAYER=TEXT, as in 'udp={text}' \
                     (netdyno layers lists them)"
                )
            })?;
            (Some(layer), after.trim())
        }
        None => (None, text.trim()),
    };
    let is_fit = (1..=LABEL_AT_MOST).contains(&text.chars().count()) && !text.contains(char::is_control);
    if is_fit {
        Ok(Label { layer, text: text.into() })
    } else {
        Err(format!("must be a line of 1 to {LABEL_AT_MOST} characters"))
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "not a number".to_owned())
}

fn precision(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if value > 0.0 && value < 1.0 { Ok(value) } else { Err("must be above 0 and below 1, as in 0.02".into()) }
}

/// A confidence, as `0.95`.
pub fn confidence(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if (0.5..=0.9999).contains(&value) {
        Ok(value)
    } else {
        Err("must be from 0.5 to 0.9999, as in 0.95".into())
    }
}

fn max_time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text)
        .map_err(|_| "not a time with a unit, as in 30s or 2min".to_owned())?;
    let range = Duration::from_secs(1)..=Duration::from_secs(86_400);
    if range.contains(&time) { Ok(time) } else { Err("must be from 1s to 1day".into()) }
}

/// Where a socket is to be; 0 stands for any port.
fn bind(text: &str) -> Result<SocketAddr, String> {
    address(text, 0)
}

/// Where a host is served.
fn peer(text: &str) -> Result<SocketAddr, String> {
    address(text, PORT)
}

/// An address of a host, by number or by name, and a port.
fn address(text: &str, default_port: u16) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, default_port));
    }
    let (host, port) = match text.rsplit_once(':') {
        None => (text, default_port),
        Some((host, port)) => {
            (host, port.parse().map_err(|_| format!("'{port}' is not a port: use 0 to 65535"))?)
        }
    };
    let addresses = (host, port).to_socket_addrs().map_err(|_| format!("there is no host '{host}'"))?;
    // Whoever has both is reached by either; the older one is more often set up.
    addresses.min_by_key(|address| address.is_ipv6()).ok_or_else(|| format!("'{host}' has no address"))
}

/// Processors, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

fn cpus(text: &str) -> Result<CpuList, String> {
    match place::parse_list(text) {
        Some(cpus) if !cpus.is_empty() => Ok(CpuList(cpus)),
        _ => Err("must be a list of processors, as in 0,1 or 0-3".into()),
    }
}
