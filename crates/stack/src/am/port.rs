//! A port: one side's half of a connection. It serves one peer, once.

use super::peer_id::Wire;
use super::shm::ShmPort;
use super::udp::UdpPort;

/// One side's half of a connection that is not yet made.
#[derive(Debug)]
pub struct Port(pub(super) Way);

#[derive(Debug)]
pub(super) enum Way {
    Shm(ShmPort),
    Udp(UdpPort),
}

impl Port {
    /// Returns the address of the port: bytes that the program passes to the peer by any means.
    pub fn address(&self) -> Vec<u8> {
        match &self.0 {
            Way::Shm(port) => port.address().encode().to_vec(),
            Way::Udp(port) => port.address().encode().to_vec(),
        }
    }

    /// Returns the transport by which the peer reaches this port.
    pub fn wire(&self) -> Wire {
        match self.0 {
            Way::Shm(_) => Wire::Shm,
            Way::Udp(_) => Wire::Udp,
        }
    }
}
