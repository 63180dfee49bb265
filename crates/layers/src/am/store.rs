//! An endpoint with memory that its peer stores into: how two processes learn each other's address, and
//! attach each other's memory.

use super::endpoint;
use crate::options::LayerOptions;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_stack::am::{Endpoint, Handlers, Memory, PeerId, Port, Remote, Wire as Way};

/// Bytes of the first field of an address: the length of the port's address, which follows it.
const LEN_LEN: usize = 2;

/// An endpoint with memory, not yet connected.
pub(super) struct StoreEndpoint<S> {
    endpoint: Endpoint<S>,
    port: Port,
    memory: Memory,
}

impl<S> StoreEndpoint<S> {
    /// Opens an endpoint, a port on `way`, and `memory_bytes` of memory.
    pub(super) fn open(
        way: Way,
        handlers: Handlers<S>,
        memory_bytes: usize,
        options: &LayerOptions,
    ) -> Result<Self, LayerError> {
        let config = endpoint::config(options, endpoint::window(way));
        let mut endpoint = endpoint::open(handlers, config, options)?;
        let port = endpoint.open_port(way).map_err(LayerError::new)?;
        let memory = endpoint.allocate(memory_bytes).map_err(LayerError::new)?;
        Ok(Self { endpoint, port, memory })
    }

    /// Describes the wire, if it depends on the machine.
    pub(super) fn description(&self) -> Option<&str> {
        self.port.description()
    }

    /// Returns the port's address and the memory's key.
    pub(super) fn address(&self) -> Vec<u8> {
        let port = self.port.address();
        let mut bytes = (port.len() as u16).to_le_bytes().to_vec();
        bytes.extend(port);
        bytes.extend(self.memory.key());
        bytes
    }

    /// Connects to the process at this address.
    pub(super) fn connect(mut self, peer: &[u8]) -> Result<StoreLink<S>, LayerError> {
        let too_short = || LayerError::new("the address of the other process is too short");
        let (len, rest) = peer.split_first_chunk::<LEN_LEN>().ok_or_else(too_short)?;
        let len = usize::from(u16::from_le_bytes(*len));
        let (port, key) = rest.split_at_checked(len).ok_or_else(too_short)?;
        let peer = self.endpoint.connect(self.port, port).map_err(LayerError::new)?;
        Ok(StoreLink { endpoint: self.endpoint, peer, memory: self.memory, key: key.to_vec(), remote: None })
    }
}

/// An endpoint with memory and one peer.
pub(super) struct StoreLink<S> {
    pub(super) endpoint: Endpoint<S>,
    pub(super) peer: PeerId,
    /// The memory that the peer stores into.
    pub(super) memory: Memory,
    /// The key of the peer's memory.
    key: Vec<u8>,
    /// The peer's memory, once it is attached.
    remote: Option<Remote>,
}

impl<S> StoreLink<S> {
    /// Returns the peer's memory, and attaches it first where that is due. Attaching may need an answer of
    /// the peer, which polls by then.
    pub(super) fn attached(&mut self, state: &mut S) -> Result<Remote, LayerError> {
        if let Some(remote) = self.remote {
            return Ok(remote);
        }
        let remote = self.endpoint.attach(state, self.peer, &self.key).map_err(LayerError::new)?;
        self.remote = Some(remote);
        Ok(remote)
    }

    /// Returns the transport's counters, if the wire keeps them.
    pub(super) fn transport(&self) -> Option<Transport> {
        endpoint::transport(&self.endpoint, self.peer)
    }
}
