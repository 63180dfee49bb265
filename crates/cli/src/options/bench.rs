//! The options of every measuring verb: layers, precision, hosts and conditions.

use crate::options::headings::{HOSTS, HOW_PRECISELY, OUTPUT, SLOW, WHAT, WHERE};
use crate::options::output::OutputArgs;
use crate::options::values::{bind, confidence, max_time, peer, precision, size};
use crate::terminal::fault::Fault;
use clap::Args;
use netdyno_clock::place;
use netdyno_host::wait::Wait;
use netdyno_job::launcher::Launcher;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::record::Options;
use netdyno_protocol::dial::parameters::Dials;
use netdyno_protocol::faults::Faults;
use netdyno_protocol::sim::Truth;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Default size of a message, in bytes.
const DEFAULT_SIZE: u32 = 32;

/// Maximum length of a label, in characters.
const LABEL_AT_MOST: usize = 40;

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
    /// Launches are shortened to fit into it, and none begins after it. A layer that is measured with several ways to wait
    /// has it for each of them.
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
    /// is measured each way, interleaved. Ways: spin, yield, block, and spin:20us, which spins for 20 us before
    /// it blocks.
    #[arg(
        long,
        value_name = "HOW[,HOW…]",
        value_delimiter = ',',
        help_heading = WHERE,
        hide_short_help = true
    )]
    wait: Vec<Wait>,

    /// Put the sockets of this host at this address
    ///
    /// Concerns am+udp, vi+udp, global+udp, udp and tcp. The port is the replier's. By default 127.0.0.1, or the address
    /// that the peer or the processes of the launcher reach.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = bind, help_heading = HOSTS, hide_short_help = true)]
    pub bind: Option<SocketAddr>,

    /// Run the replier on this host, where `netdyno serve` runs
    #[arg(long, value_name = "HOST[:PORT]", value_parser = peer, help_heading = HOSTS, hide_short_help = true)]
    pub peer: Option<SocketAddr>,

    /// Start processes by this command, as in 'mpiexec -n {n}'
    ///
    /// It may start them on this host or on others. These find the address of this host; --bind names one. By default
    /// they are children of this command.
    #[arg(long, value_name = "COMMAND", conflicts_with = "peer", help_heading = HOSTS, hide_short_help = true)]
    pub launcher: Option<Launcher>,

    /// The address of a server that netdyno does not start. The verbs that measure one set it.
    #[arg(skip)]
    pub server: Option<SocketAddr>,

    /// Read the key of --peer from this file, not from NETDYNO_KEY
    #[arg(long, value_name = "FILE", help_heading = HOSTS, hide_short_help = true)]
    pub key_file: Option<PathBuf>,
}

impl Measuring {
    /// Returns the bytes of user data in a request and in a reply.
    pub fn size_bytes(&self) -> usize {
        self.size.unwrap_or(DEFAULT_SIZE) as usize
    }

    /// Returns the wait policies that the user named; empty for the default.
    pub fn waits(&self) -> Vec<Wait> {
        self.wait.clone()
    }

    /// Returns the options for the record.
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
    /// offload=off,eager=8KiB,steal=0.1ns/B,helper=0.1ns/B; for utilisation what a wait costs (a share), and
    /// soft interrupts on another processor, as in spin=1,softirq=500ns; for registration what memory costs, as in
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
    /// Probabilities for each datagram of am+udp, vi+udp and global+udp, and of the same over xdp:
    /// loss=0.01,dup=0.01,reorder=0.02,corrupt=0.001, and burst=0.001 for bad times of up to 5 ms.
    #[arg(long, value_name = "NAME=SHARE,…", help_heading = SLOW, hide_short_help = true)]
    pub faults: Option<Faults>,

    /// Turn the dials of am+shm, am+udp and am+xdp, as in latency=20us
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

/// The name of a result in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The layer of the result; `None` if the user named none.
    pub layer: Option<Layer>,
    /// The name.
    pub text: String,
}

/// A list of processors, not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

/// Parses a label. A text that contains `=` must have its layer before it.
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

fn cpus(text: &str) -> Result<CpuList, String> {
    match place::parse_list(text) {
        Some(cpus) if !cpus.is_empty() => Ok(CpuList(cpus)),
        _ => Err("must be a list of processors, as in 0,1 or 0-3".into()),
    }
}

/// Size in the record of a verb that measures every size: the smallest one, in bytes.
const SMALLEST: u32 = 1;

impl BenchArgs {
    /// Returns how and which layers are measured.
    pub fn measured(&self) -> (&Measuring, &[Layer]) {
        (&self.measuring, &self.over)
    }

    /// Returns the options of a verb that measures every size.
    ///
    /// # Errors
    /// The user named a size.
    pub fn of_every_size(&self, verb: &str) -> Result<Self, Fault> {
        let mut bench = self.clone();
        match bench.measuring.size.replace(SMALLEST) {
            None => Ok(bench),
            Some(_) => Err(Fault::BadInput(format!(
                "{verb} measures every size, so that --size means nothing: use --largest"
            ))),
        }
    }
}
