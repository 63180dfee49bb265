//! One side's half of a connection over UDP: a number that nobody guesses.

use netdyno_protocol::frame::udp_port::UdpPortAddress;

/// What the peer needs to know to speak to this endpoint.
#[derive(Debug)]
pub(in crate::am) struct UdpPort(pub(super) UdpPortAddress);

impl UdpPort {
    pub(in crate::am) fn address(&self) -> UdpPortAddress {
        self.0
    }
}
