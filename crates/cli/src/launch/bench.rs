//! A layer, and how it is launched; what a launch gives.

use crate::launch::origin::Origin;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::half::DialOptions;
use netdyno_measure::task::Data;
use netdyno_protocol::faults::Faults;
use netdyno_protocol::sim::Truth;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Rank of the requester.
pub const REQUESTER: usize = 0;
/// Rank of the replier.
pub const REPLIER: usize = 1;

/// A layer, and how it is launched.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The layer.
    pub layer: Layer,
    /// What a report calls it besides.
    pub label: Option<String>,
    /// Bytes of a message.
    pub size_bytes: usize,
    /// How its processes wait.
    pub wait: Wait,
    /// Where its processes run, by rank: requester and replier first. None where it has none.
    pub cpus: Vec<usize>,
    /// How many different processors these are, on whatever machines.
    pub processors: usize,
    /// The parameters of a simulated layer.
    pub truth: Option<Truth>,
    /// Where sockets are on this host; the port is the replier's.
    pub bind: SocketAddr,
    /// Where its processes come from.
    pub origin: Origin,
    /// What goes wrong with what is sent, on purpose.
    pub faults: Option<Faults>,
    /// What the link is made to be like, on purpose.
    pub dials: DialOptions,
    /// What its processes have in their environment besides.
    pub variables: Vec<(&'static str, OsString)>,
}

impl Bench {
    /// Where workers on this side have their sockets. What this command has not started may be
    /// anywhere, and knows how it has reached this host.
    pub fn worker_ip(&self) -> IpAddr {
        match self.origin {
            Origin::Children | Origin::Peer(_) => self.bind.ip(),
            Origin::Launcher(_) | Origin::Job(_) => Ipv4Addr::UNSPECIFIED.into(),
        }
    }

    /// Whether all its processes are on this host, as far as is known before they are started.
    pub fn is_of_one_host(&self) -> bool {
        match &self.origin {
            Origin::Children | Origin::Launcher(_) => true,
            Origin::Peer(_) => false,
            Origin::Job(ranks) => ranks.machines() == 1,
        }
    }
}

/// What a launch measured.
pub struct Launched {
    /// The data.
    pub data: Data,
    /// Which library is behind the layer, where one is.
    pub library: Option<String>,
    /// How many machines its processes were on.
    pub machines: usize,
}

impl From<Data> for Launched {
    /// By no library but netdyno's own, in this process.
    fn from(data: Data) -> Self {
        Self { data, library: None, machines: 1 }
    }
}
