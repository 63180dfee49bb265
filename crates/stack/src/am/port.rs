//! A port: the half of a connection that one side makes, for one peer, once.

use super::config::Wire;
use super::shm::ShmPort;
use super::udp::UdpPort;

/// One side's half of a connection to come.
#[derive(Debug)]
pub struct Port(pub(super) Way);

#[derive(Debug)]
pub(super) enum Way {
    Shm(ShmPort),
    Udp(UdpPort),
}

impl Port {
    /// The bytes to hand to the peer, by whatever way there is.
    pub fn address(&self) -> Vec<u8> {
        match &self.0 {
            Way::Shm(port) => port.address().encode().to_vec(),
            Way::Udp(port) => port.address().encode().to_vec(),
        }
    }

    /// How the peer will reach it.
    pub fn wire(&self) -> Wire {
        match self.0 {
            Way::Shm(_) => Wire::Shm,
            Way::Udp(_) => Wire::Udp,
        }
    }
}
