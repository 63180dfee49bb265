//! The configuration of a provider.

use netdyno_protocol::faults::Faults;
use netdyno_protocol::vi::NicAttributes;
use std::net::SocketAddr;
use std::time::Duration;

/// The default port, so that programs need to name only a host. It is not registered, lies outside of
/// the ephemeral ports of common systems, and follows the port of `netdyno serve`.
pub const UDP_PORT: u16 = 5648;

/// The transport of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum WireKind {
    /// Shared memory, to processes of the same user on this host.
    #[default]
    Shm,
    /// UDP, to any host.
    Udp(UdpOptions),
}

/// The configuration of a provider.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Config {
    /// The transport.
    pub wire: WireKind,
    /// The limits that the provider shall have.
    pub attributes: NicAttributes,
}

impl Config {
    /// Returns the configuration of a provider with default limits.
    pub fn new(wire: WireKind) -> Self {
        Self { wire, attributes: NicAttributes::default() }
    }

    /// Sets [`Config::attributes`].
    pub fn attributes(self, attributes: NicAttributes) -> Self {
        Self { attributes, ..self }
    }
}

/// The options of the UDP transport.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct UdpOptions {
    /// The address of the socket: one address of this host, or the wildcard address. Port 0 means any
    /// free port. `None` means all IPv4 addresses at [`UDP_PORT`], or at any port if that is taken.
    pub bind: Option<SocketAddr>,
    /// Whether the address is shared with other providers of this user on this host that set this option
    /// as well. Discriminators tell them apart. Otherwise the address belongs to one provider.
    pub is_shared: bool,
    /// Whether the datagrams go over AF_XDP sockets, past the kernel's protocols. The address is then one of an
    /// Ethernet interface, or `None` for an interface that is free, and is not shared.
    pub is_xdp: bool,
    /// Faults to inject into the datagrams that this provider sends.
    pub faults: Faults,
    /// Seed of injected faults. Use different seeds at the two ends; otherwise both draw the same
    /// values.
    pub seed: u64,
    /// Time after which a peer is lost if nothing arrives from it. One pause in which this program does
    /// not call the provider counts for a quarter of it at most.
    pub peer_timeout: Duration,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl UdpOptions {
    /// Returns the default options: an address of its own at [`UDP_PORT`], no faults, and a peer timeout of
    /// 30 seconds.
    pub const fn new() -> Self {
        Self {
            bind: None,
            is_shared: false,
            is_xdp: false,
            faults: Faults::NONE,
            seed: 0,
            // Long, because nobody drives the NIC while a program computes without a call.
            peer_timeout: Duration::from_secs(30),
        }
    }

    /// Sets [`UdpOptions::bind`].
    pub fn bind(self, bind: impl Into<Option<SocketAddr>>) -> Self {
        Self { bind: bind.into(), ..self }
    }

    /// Sets [`UdpOptions::is_shared`].
    pub const fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Sets [`UdpOptions::is_xdp`].
    pub const fn over_xdp(self) -> Self {
        Self { is_xdp: true, ..self }
    }

    /// Sets [`UdpOptions::faults`].
    pub const fn faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Sets [`UdpOptions::seed`].
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets [`UdpOptions::peer_timeout`].
    pub const fn peer_timeout(self, peer_timeout: Duration) -> Self {
        Self { peer_timeout, ..self }
    }
}
