//! The transports that the suites run over.

use super::{cables, process, seed};
use netdyno_stack::am::{Config, Dial, Dials, Faults, Setting, Wait, Wire};
use netdyno_stack::vi::{UdpOptions, WireKind};
use std::net::{Ipv4Addr, SocketAddr};

/// A wire and its settings, which all endpoints of a test share.
pub struct Transport {
    /// The module of its tests.
    pub name: &'static str,
    pub wire: Wire,
    /// The faults that are injected on the wire.
    pub faults: Faults,
    /// The dials of the link, for Active Messages.
    pub dials: Dials,
    /// Whether the provider of VIs allocates the memory, so that peers can map it (zero-copy). Receivers
    /// then copy long messages themselves.
    pub is_lent: bool,
    /// How endpoints of Active Messages wait.
    pub wait: Wait,
}

pub const SHM: Transport = Transport {
    name: "over_shm",
    wire: Wire::Shm,
    faults: Faults::NONE,
    dials: Dials::NONE,
    is_lent: false,
    wait: Wait::Yield,
};
/// Endpoints that sleep, and that their peers wake.
pub const BLOCKING_SHM: Transport = Transport { name: "over_blocking_shm", wait: Wait::Block, ..SHM };
pub const LENT: Transport = Transport { name: "over_lent", is_lent: true, ..SHM };
pub const UDP: Transport = Transport { name: "over_udp", wire: Wire::Udp, ..SHM };
/// AF_XDP sockets, at one interface for each endpoint.
pub const XDP: Transport = Transport { name: "over_xdp", wire: Wire::Xdp, ..SHM };
/// The interfaces of a test over AF_XDP, one for each endpoint, and the tests with many.
const FEW: u8 = 6;
const MANY: u8 = 24;
const OF_MANY: [&str; 2] =
    ["among_24_endpoints_in_4_threads", "many_losses_are_reported_within_the_bound_for_one"];
/// A network that loses, duplicates, reorders and corrupts datagrams.
pub const BAD_UDP: Transport = Transport {
    name: "over_bad_udp",
    faults: Faults { loss: 0.05, duplicate: 0.02, reorder: 0.05, corrupt: 0.01, burst: 0.0 },
    ..UDP
};
pub const BAD_XDP: Transport = Transport { name: "over_bad_xdp", wire: Wire::Xdp, ..BAD_UDP };
/// Dials that make a slow link.
const SLOW: Dials = Dials::NONE
    .with(Dial::Latency, Setting::Add(3_000.0))
    .with(Dial::SendOverhead, Setting::Add(100.0))
    .with(Dial::RecvOverhead, Setting::Add(100.0))
    .with(Dial::SendGap, Setting::Set(400.0))
    .with(Dial::RecvGap, Setting::Set(300.0))
    .with(Dial::GapPerByte, Setting::Set(0.05));
pub const DIALLED_SHM: Transport = Transport { name: "over_dialled_shm", dials: SLOW, ..SHM };
pub const DIALLED_UDP: Transport = Transport { name: "over_dialled_udp", dials: SLOW, ..UDP };

impl Transport {
    /// Returns whether connections over the wire send datagrams, and again what was lost.
    pub fn is_of_datagrams(&self) -> bool {
        self.wire != Wire::Shm
    }

    /// Returns whether the wire loses no message, as long as both sides poll.
    pub fn is_sound(&self) -> bool {
        self.faults == Faults::NONE
    }

    /// Prepares this thread for the named test over the transport. Returns `false` if this machine does not allow
    /// that. A child process is prepared as its parent is.
    pub fn is_ready(&self, test: &str) -> bool {
        let interfaces = if OF_MANY.contains(&test) { MANY } else { FEW };
        self.wire != Wire::Xdp || process::is_child() || cables::connect(interfaces)
    }

    /// Returns the settings of an endpoint of Active Messages.
    pub fn config(&self) -> Config {
        let config = Config::new().wait(self.wait).faults(self.faults).seed(self.seed()).dials(self.dials);
        if self.wire == Wire::Xdp { config.bind((Ipv4Addr::UNSPECIFIED, 0).into()) } else { config }
    }

    /// Returns the wire of a provider of Virtual Interfaces.
    pub fn vi_wire(&self) -> WireKind {
        match self.wire {
            Wire::Shm => WireKind::Shm,
            wire => {
                let options = UdpOptions::new().faults(self.faults).seed(self.seed());
                WireKind::Udp(match wire {
                    Wire::Xdp => options.over_xdp(),
                    _ => options.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
                })
            }
        }
    }

    /// Returns a seed of the faults.
    fn seed(&self) -> u64 {
        if self.is_sound() { 0 } else { seed() }
    }

    /// Returns the path of a suite, or of a function in it, among the tests over this transport.
    pub fn path_of(&self, path: &str) -> String {
        let parts: Vec<&str> = path.splitn(3, "::").collect();
        [parts[0], parts[1], self.name, parts[2]].join("::")
    }
}
