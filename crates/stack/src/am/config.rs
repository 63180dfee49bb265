//! The configuration of an endpoint.

use super::error::OpenError;
use netdyno_host::wait::Wait;
use netdyno_protocol::dial::parameters::Dials;
use netdyno_protocol::faults::Faults;
use netdyno_protocol::frame::port;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The configuration of an endpoint.
///
/// ```
/// use netdyno_stack::am::{Config, Wait};
/// let config = Config::new().window(64).medium_bytes(1024).wait(Wait::Yield);
/// assert_eq!(config.window, 64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Maximum number of unanswered requests to one peer: a power of two from 1 to 32768. A connection
    /// uses the smaller window of its two ends, and at most 16384 over UDP.
    pub window: u32,
    /// Longest payload of a medium message to this endpoint, in bytes: a multiple of 64 up to 1 MiB.
    /// Over UDP the limit is [`LONGEST_PAYLOAD`](super::LONGEST_PAYLOAD) if that is less.
    pub medium_bytes: u32,
    /// Time after which a peer is lost that lives but answers nothing while requests are outstanding, or over UDP stops in
    /// the middle of a store.
    pub peer_timeout: Duration,
    /// What the endpoint does while nothing arrives.
    pub wait: Wait,
    /// Whether peers over shared memory wake the endpoint though [`Config::wait`] never sleeps: for a
    /// progress thread ([`ProgressThread`](super::ProgressThread)), or for a program that sleeps on the
    /// endpoint's descriptor.
    pub is_woken: bool,
    /// The address of the UDP socket, which is opened with the first UDP port. Peers must be able to
    /// reach it; port 0 means any free port.
    pub bind: SocketAddr,
    /// Faults to inject into the datagrams that this endpoint sends.
    pub faults: Faults,
    /// Seed of injected faults and of dials that vary at random. Use different seeds at the two ends;
    /// otherwise both draw the same values.
    pub seed: u64,
    /// Emulated parameters of links to peers on this host; both ends must set the same. Gaps are set (=)
    /// and overheads are added (+), because the link's own parameters have not been measured. Over
    /// shared memory gets are not dialled. Over UDP the longest payload is shorter by
    /// [`STAMP_LEN`](super::STAMP_LEN).
    pub dials: Dials,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// Returns the default configuration: a window of 256 requests, medium messages of 4096 bytes, a peer
    /// timeout of five seconds, [`Wait::Spin`], any port of the loopback interface, no faults and no
    /// dials.
    pub const fn new() -> Self {
        Self {
            window: 256,
            medium_bytes: 4096,
            peer_timeout: Duration::from_secs(5),
            wait: Wait::Spin,
            is_woken: false,
            bind: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            faults: Faults::NONE,
            seed: 0,
            dials: Dials::NONE,
        }
    }

    /// Sets [`Config::window`].
    pub const fn window(self, window: u32) -> Self {
        Self { window, ..self }
    }

    /// Sets [`Config::medium_bytes`].
    pub const fn medium_bytes(self, medium_bytes: u32) -> Self {
        Self { medium_bytes, ..self }
    }

    /// Sets [`Config::peer_timeout`].
    pub const fn peer_timeout(self, peer_timeout: Duration) -> Self {
        Self { peer_timeout, ..self }
    }

    /// Sets [`Config::wait`].
    pub const fn wait(self, wait: Wait) -> Self {
        Self { wait, ..self }
    }

    /// Sets [`Config::is_woken`].
    pub const fn is_woken(self, is_woken: bool) -> Self {
        Self { is_woken, ..self }
    }

    /// Sets [`Config::bind`].
    pub const fn bind(self, bind: SocketAddr) -> Self {
        Self { bind, ..self }
    }

    /// Sets [`Config::faults`].
    pub const fn faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Sets [`Config::seed`].
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets [`Config::dials`].
    pub const fn dials(self, dials: Dials) -> Self {
        Self { dials, ..self }
    }

    /// Reports whether the endpoint may sleep until a peer over shared memory wakes it.
    pub(super) const fn may_sleep(&self) -> bool {
        self.is_woken || self.wait.sleeps()
    }

    pub(super) fn check(&self) -> Result<(), OpenError> {
        if !port::window_is_valid(self.window) {
            return Err(OpenError::Window(self.window));
        }
        if !port::medium_is_valid(self.medium_bytes) {
            return Err(OpenError::Medium(self.medium_bytes));
        }
        Ok(())
    }
}
