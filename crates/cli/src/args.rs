//! What can be asked for on the command line.

use crate::compare::CompareArgs;
use crate::export::ExportArgs;
use crate::fault::Fault;
use crate::guard::GuardArgs;
use crate::overlap::SIZES;
use crate::plugin::PluginArgs;
use crate::run::RunArgs;
use crate::session::PORT;
use crate::sweep::SweepArgs;
use crate::validate::ValidateArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use netdyno_clock::place;
use netdyno_host::wait::Wait;
use netdyno_job::launcher::Launcher;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::overlap::plan;
use netdyno_measure::record::Options;
use netdyno_protocol::dial::terms::Dials;
use netdyno_protocol::faults::Faults;
use netdyno_protocol::sim::Truth;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of a message, where nothing is said of it.
const DEFAULT_SIZE: u32 = 32;
/// Characters of a label.
const LABEL_AT_MOST: usize = 40;
/// Processes that `contention` has at most.
pub const PROCS_AT_MOST: u8 = 64;

/// Puts a communication layer on the bench and reads its LogP parameters.
///
/// Without a verb, netdyno characterises the layers that need nothing but this machine
/// (am+shm, am+udp, udp, tcp), prints their table, and writes netdyno.json and
/// netdyno-report.html.
#[derive(Debug, Parser)]
#[command(version, disable_help_subcommand = true, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Option<Verb>,

    /// How to measure.
    #[command(flatten)]
    pub measuring: Measuring,

    /// Folder for netdyno.json and netdyno-report.html
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub dir: PathBuf,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Measure o_s, o_r, g, L and the round trip of layers, by the LogP signature
    Logp(Box<LogpArgs>),
    /// Measure layers at every size: T(n), bandwidth, o_s(n), o_r(n), g(n), L(n), G, and where
    /// the protocol changes
    Bulk(Box<BulkArgs>),
    /// Measure what becomes of round trips and gaps where many processes communicate at once
    Contention(Box<ContentionArgs>),
    /// Measure how much computation goes behind messages, and who pays for moving them (COMB)
    Overlap(Box<OverlapArgs>),
    /// Measure what registering and deregistering memory costs against its size, beside mlock
    Registration(Box<RegistrationArgs>),
    /// Run an MPI program as it is over a link as it is wanted: dials for L, o_s, o_r, g_s, g_r, G
    Run(Box<RunArgs>),
    /// Find out which parameter of its link a program depends on, and how far each can go
    Sweep(Box<SweepArgs>),
    /// Prove the dials: turn each to several values and look what becomes of every parameter
    Validate(Box<ValidateArgs>),
    /// List the layers, what each can do, and why one is not available here
    Layers,
    /// Draw the report from saved records
    Report(ReportArgs),
    /// Serve this host to `--peer` of another one, until Ctrl-C
    Serve(ServeArgs),
    /// Compare two records, or two layers of one: ratios with intervals, and a limit for checks
    Compare(CompareArgs),
    /// Write parameters in the forms that simulators read: LogGOPSim, SimGrid, CSV
    Export(ExportArgs),
    /// Build layers written in C against the library that is here, and show what they are made of
    Plugin(PluginArgs),
    /// Prove the reliable protocol: seeds of a simulated network that fails, against an oracle
    Soak(SoakArgs),
    /// One process of a launch; started by netdyno itself
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Ends a run whose command was killed; started by netdyno itself
    #[command(hide = true)]
    Guard(GuardArgs),
}

/// How to measure: the options of every measuring verb.
#[derive(Clone, Debug, Args)]
pub struct Measuring {
    /// Half-width of an interval at which measuring stops: a share of the value, or, for
    /// o_s, o_r and L, of the one-way time that they are parts of
    #[arg(long, value_name = "SHARE", default_value = "0.02", value_parser = precision, allow_negative_numbers = true)]
    pub precision: f64,

    /// Confidence of every interval
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = confidence, allow_negative_numbers = true)]
    pub confidence: f64,

    /// Time for each layer at most: launches are shortened to fit into it, and after it none is begun
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = max_time)]
    pub max_time: Duration,

    /// Fresh process pairs for each layer, at least; more are added until the precision
    /// or the time is reached
    #[arg(long, value_name = "N", default_value = "9", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub launches: u16,

    /// Bytes of user data in a request, and in a reply [default: 32]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub size: Option<u32>,

    /// Processors of requester and replier, as in 0,1, chosen near each other by default; with
    /// --peer the second is one of that host. Of many processes by rank, again from the first
    /// where there are more processes than processors
    #[arg(long, value_name = "A,B", value_parser = cpus)]
    pub cpus: Option<CpuList>,

    /// What a process does while nothing arrives; spin where there are two processors,
    /// otherwise yield. Several, as in block,spin: each layer is measured each way, interleaved
    #[arg(long, value_name = "HOW[,HOW…]", value_delimiter = ',', value_parser = ["spin", "yield", "block"])]
    wait: Vec<String>,

    /// Address of this host for the sockets of am+udp, vi+udp, udp and tcp, and the replier's
    /// port, where it is to be a certain one; by default 127.0.0.1, or the address that
    /// reaches the peer
    #[arg(long, value_name = "HOST[:PORT]", value_parser = bind)]
    pub bind: Option<SocketAddr>,

    /// Another host for the replier, on which `netdyno serve` runs
    #[arg(long, value_name = "HOST[:PORT]", value_parser = peer)]
    pub peer: Option<SocketAddr>,

    /// What starts the processes of a launch, on this host or on others, as in
    /// 'mpiexec -n {n}'; without it they are children of this command. Where they are on other
    /// hosts, --bind says which address of this host they reach
    #[arg(long, value_name = "COMMAND", conflicts_with = "peer")]
    pub launcher: Option<Launcher>,

    /// File with the key of --peer; without it the key is looked for in NETDYNO_KEY
    #[arg(long, value_name = "FILE", requires = "peer")]
    pub key_file: Option<PathBuf>,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
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
    /// Layers to measure; the launches of several are interleaved
    #[arg(long, value_name = "LAYER[,LAYER…]", value_delimiter = ',', required = true)]
    pub over: Vec<Layer>,

    /// How to measure.
    #[command(flatten)]
    pub measuring: Measuring,

    /// Parameters of the sim layer: o_s=1us,o_r=2us,g=5us,L=7us, and, where wanted,
    /// capacity=64, window=65536, o_poll=0ns, noise=0.05 (a standard deviation, as a share), noise_shape=normal
    /// (or uniform, laplace or exponential); by the size of a message
    /// G=0.5ns/B, processor time per byte as in O_s=0.1ns/B,O_r=0.1ns/B, and another protocol
    /// for large messages as in change=8KiB,change_G=0.25ns/B,change_L=20us; for overlap who
    /// moves messages, as in offload=off,eager=8KiB,steal=0.1ns/B,helper=0.1ns/B; for registration
    /// what memory costs, as in register=1us+50ns/page,fault=250ns,cached=100ns,kept=on,
    /// deregister=500ns+10ns/page,lock=1us+30ns/page,unlock=300ns,lock_limit=8MiB,create=5us
    #[arg(long, value_name = "NAME=VALUE,…")]
    pub truth: Option<Truth>,

    /// What goes wrong with each datagram of am+udp and vi+udp, on purpose, with which probability:
    /// loss=0.01,dup=0.01,reorder=0.02,corrupt=0.001, and burst=0.001 for bad times of up
    /// to 5 ms
    #[arg(long, value_name = "NAME=SHARE,…")]
    pub faults: Option<Faults>,

    /// What am+shm and am+udp are made to be like, on purpose: latency=20us, send-gap=5us,
    /// recv-gap=5us and gap-per-byte=1ns/B (or 1GB/s) set it, latency+20us, send-overhead+1us and
    /// recv-overhead+1us add to it
    #[arg(long, value_name = "DIAL=VALUE,…")]
    pub dials: Option<Dials>,

    /// How that changes with time: a file (docs/dials.md), or interrupt-coalescing, slow-start or
    /// congested-hour
    #[arg(long, value_name = "FILE|NAME")]
    pub profile: Option<String>,

    /// What tells this from other results of the same layer in a report, as in
    /// --label 'mpi=MPICH 5 over tcp'; the layer may be left away where there is one
    #[arg(long, value_name = "[LAYER=]TEXT", value_parser = label)]
    pub label: Vec<Label>,

    /// Where and in which form the result goes.
    #[command(flatten)]
    pub output: OutputArgs,
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
    /// Do not add the lean layer beside which MPI, libfabric and UCX stand: am+shm within a host,
    /// am+udp over sockets and between hosts
    #[arg(long)]
    pub no_reference: bool,

    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,
}

/// `netdyno bulk`.
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct BulkArgs {
    /// The largest size, in bytes or as in 64KiB; smaller where a layer carries less
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = largest)]
    pub largest: usize,

    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,
}

/// `netdyno contention`.
#[derive(Debug, Args)]
pub struct ContentionArgs {
    /// Processes; with more of them than processors the figures are about scheduling
    /// [default: 4, or as many as there are in the job that netdyno runs in]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u8).range(2..=i64::from(PROCS_AT_MOST)))]
    pub procs: Option<u8>,

    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,
}

/// `netdyno overlap`.
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
pub struct OverlapArgs {
    /// How to measure; all of them by default
    #[arg(long, value_name = "METHOD[,METHOD…]", value_enum, value_delimiter = ',')]
    pub method: Vec<CombMethod>,

    /// Sizes of messages, in bytes or as in 5kB, 100KiB, 1MB; those that a layer does not carry
    /// are left out
    #[arg(long, value_name = "SIZE[,SIZE…]", default_value = "64,5kB,100kB,1MB", value_delimiter = ',', value_parser = message_size)]
    pub sizes: Vec<usize>,

    /// Messages each way that the polling method keeps under way; fewer where a layer has less room
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub queue: u8,

    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,
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
    /// The largest region, in bytes or as in 1GiB; half of the memory that is available at most
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = largest)]
    pub largest: usize,

    /// What is measured, and how.
    #[command(flatten)]
    pub bench: BenchArgs,
}

/// Where and in which form a result goes.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// Form of the result; by default that of the file's ending, or a table
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// File for the result, instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `netdyno report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Records, or one sweep, as written by --format json
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Form of the report; by default that of the file's ending, or html
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// File for the report; - for standard output
    #[arg(long, value_name = "FILE", default_value = "netdyno-report.html")]
    pub out: PathBuf,
}

/// `netdyno serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen; by default at all addresses of this host. At a loopback address no
    /// key is needed
    #[arg(long, value_name = "HOST[:PORT]", value_parser = peer)]
    pub bind: Option<SocketAddr>,

    /// File with a key that clients have too; without it the key is looked for in
    /// NETDYNO_KEY, or made and printed
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,

    /// End after one measurement
    #[arg(long, short = '1')]
    pub one_off: bool,
}

/// `netdyno worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Where the launching side listens; without it, standard input is the connection
    #[arg(long, value_name = "ADDRESS")]
    pub dial: Option<SocketAddr>,
}

/// `netdyno soak`.
#[derive(Debug, Args)]
pub struct SoakArgs {
    /// How many seeds to run
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,

    /// The first of them; a failing seed is shown again with --first SEED --seeds 1
    #[arg(long, value_name = "SEED", default_value = "0")]
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
    /// What was asked for.
    pub fn from_command_line() -> Result<Self, Fault> {
        Ok(Self::try_parse()?)
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

/// A size from 1 KiB, below which there is hardly a line to draw, to 1 GiB.
fn largest(text: &str) -> Result<usize, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[at..] {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("not a size, as in 65536, 64KiB or 4MiB".into()),
    };
    let size = text[..at].parse::<usize>().ok().and_then(|count| count.checked_mul(unit));
    size.filter(|size| (1 << 10..=1 << 30).contains(size)).ok_or_else(|| "must be from 1KiB to 1GiB".into())
}

/// A size of messages for `overlap`, in units of 1000 or of 1024.
fn message_size(text: &str) -> Result<usize, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[at..] {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("not a size, as in 64, 5kB, 100KiB or 1MB".into()),
    };
    let size = text[..at].parse::<usize>().ok().and_then(|count| count.checked_mul(unit));
    size.filter(|size| (SIZES.0..=SIZES.1).contains(size)).ok_or_else(|| "must be from 8B to 1GiB".into())
}

/// A label; one that has a `=` in it itself needs its layer before it.
fn label(text: &str) -> Result<Label, String> {
    let (layer, text) = match text.split_once('=') {
        Some((layer, text)) => (Some(layer.parse()?), text.trim()),
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
