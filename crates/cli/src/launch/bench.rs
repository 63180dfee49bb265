//! A layer with its launch parameters, and the result of a launch.

use crate::hosts::host::Machines;
use crate::launch::origin::Origin;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::options::DialOptions;
use netdyno_measure::task::Data;
use netdyno_protocol::faults::Faults;
use netdyno_protocol::sim::Truth;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Rank of the requester.
pub const REQUESTER: usize = 0;
/// Rank of the replier.
pub const REPLIER: usize = 1;

/// A layer with its launch parameters.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The layer.
    pub layer: Layer,
    /// The name of the result in the report, if the user gave one.
    pub label: Option<String>,
    /// Size of a message, in bytes.
    pub size_bytes: usize,
    /// Wait policy of the processes.
    pub wait: Wait,
    /// Processor of each rank, requester and replier first; empty for a simulated layer.
    pub cpus: Vec<usize>,
    /// Number of different processors, over all machines.
    pub processors: usize,
    /// Model parameters of a simulated layer.
    pub truth: Option<Truth>,
    /// Address of the sockets on this host; the port is the replier's.
    pub bind: SocketAddr,
    /// Origin of the processes, such as a launcher.
    pub origin: Origin,
    /// Injected faults of datagrams.
    pub faults: Option<Faults>,
    /// Dials of the link.
    pub dials: DialOptions,
    /// Additional environment variables of the processes.
    pub variables: Vec<(&'static str, OsString)>,
}

impl Bench {
    /// Returns whether the layer is simulated, in virtual time.
    pub fn is_simulated(&self) -> bool {
        self.truth.is_some()
    }

    /// Returns the address of the workers' sockets on this side. Workers that this command did not start may
    /// be on any host. They use the address of their control connection.
    pub fn worker_ip(&self) -> IpAddr {
        match self.origin {
            Origin::Children | Origin::Peer(_) | Origin::Server(_) => self.bind.ip(),
            Origin::Launcher(_) | Origin::Job(_) => Ipv4Addr::UNSPECIFIED.into(),
        }
    }

    /// Reports whether all processes are on this host, as far as that is known before their start.
    pub fn is_of_one_host(&self) -> bool {
        match &self.origin {
            Origin::Children => true,
            Origin::Launcher(placed) => placed.machines() == Machines::This,
            Origin::Peer(_) | Origin::Server(_) => false,
            Origin::Job(ranks) => ranks.machines() == Machines::This,
        }
    }
}

/// The result of a launch.
pub struct Launched {
    /// The measured data.
    pub data: Data,
    /// Name of the library behind the layer, if any.
    pub library: Option<String>,
    /// Whether a launcher has put the processes on other machines than in its first launch.
    pub is_elsewhere: bool,
}

impl From<Data> for Launched {
    /// Wraps the data of a simulated layer, which runs in this process and uses no library.
    fn from(data: Data) -> Self {
        Self { data, library: None, is_elsewhere: false }
    }
}
