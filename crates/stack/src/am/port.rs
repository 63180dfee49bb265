//! A port: one side's half of a connection. It serves one peer, once.

use super::peer_id::Wire;
use super::shm::ShmPort;

/// One side's half of a connection that is not yet made.
#[derive(Debug)]
pub struct Port {
    pub(super) wire: Wire,
    pub(super) address: Vec<u8>,
    pub(super) description: Option<String>,
    /// The memory that the peer writes to; `None` for a port of another transport.
    pub(super) memory: Option<ShmPort>,
}

impl From<ShmPort> for Port {
    fn from(memory: ShmPort) -> Self {
        let address = memory.address().encode().to_vec();
        Self { wire: Wire::Shm, address, description: None, memory: Some(memory) }
    }
}

impl Port {
    /// Returns the address of the port: bytes that the program passes to the peer by any means.
    pub fn address(&self) -> Vec<u8> {
        self.address.clone()
    }

    /// Describes the wire of the transport, if it depends on the machine: the interface and its driver.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns the transport by which the peer reaches this port.
    pub fn wire(&self) -> Wire {
        self.wire
    }
}
