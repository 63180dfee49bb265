//! One side's half of a connection over UDP: a connection number that nobody can guess.

use netdyno_protocol::frame::udp_port::UdpPortAddress;

/// The address that the peer needs to reach this endpoint.
#[derive(Debug)]
pub(in crate::am) struct UdpPort(pub(super) UdpPortAddress);

impl UdpPort {
    pub(in crate::am) fn address(&self) -> UdpPortAddress {
        self.0
    }
}
