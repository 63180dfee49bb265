//! An endpoint of Active Messages with memory that its peer stores into: how the two come to
//! know each other, and each other's memory.

use crate::half::{LayerOptions, PEER_TIMEOUT};
use netdyno_measure::layer::LayerError;
use netdyno_stack::am::{Config, Endpoint, Handlers, Memory, PeerId, Port, Remote, Wire as Way};

/// The first two bytes of an address: how long the port's part of the rest is.
const LEN_LEN: usize = 2;

/// Open, not yet connected.
pub(crate) struct Unconnected<S> {
    endpoint: Endpoint<S>,
    port: Port,
    memory: Memory,
}

impl<S> Unconnected<S> {
    /// Opens an endpoint, a port on `way`, and `memory_bytes` of memory.
    pub(crate) fn open(
        way: Way,
        handlers: Handlers<S>,
        memory_bytes: usize,
        options: &LayerOptions,
    ) -> Result<Self, LayerError> {
        let config = Config {
            peer_timeout: PEER_TIMEOUT,
            wait: options.wait,
            window: crate::am::window(way),
            faults: options.faults,
            seed: options.seed,
            bind: options.bind,
            ..Config::default()
        };
        let mut endpoint = crate::am::dialled(handlers, config, options)?;
        let port = endpoint.open_port(way).map_err(LayerError::new)?;
        let memory = endpoint.allocate(memory_bytes).map_err(LayerError::new)?;
        Ok(Self { endpoint, port, memory })
    }

    /// The port's address and the memory's key.
    pub(crate) fn address(&self) -> Vec<u8> {
        let port = self.port.address();
        let mut bytes = (port.len() as u16).to_le_bytes().to_vec();
        bytes.extend(port);
        bytes.extend(self.memory.key());
        bytes
    }

    pub(crate) fn connect(mut self, peer: &[u8]) -> Result<Connected<S>, LayerError> {
        let too_short = || LayerError::new("the address of the other process is too short");
        let (len, rest) = peer.split_first_chunk::<LEN_LEN>().ok_or_else(too_short)?;
        let len = usize::from(u16::from_le_bytes(*len));
        let (port, key) = rest.split_at_checked(len).ok_or_else(too_short)?;
        let peer = self.endpoint.connect(self.port, port).map_err(LayerError::new)?;
        Ok(Connected { endpoint: self.endpoint, peer, memory: self.memory, key: key.to_vec(), remote: None })
    }
}

/// An endpoint with one peer.
pub(crate) struct Connected<S> {
    pub(crate) endpoint: Endpoint<S>,
    pub(crate) peer: PeerId,
    /// What the peer stores into.
    pub(crate) memory: Memory,
    /// The key of the peer's memory, and that memory, once it is attached.
    key: Vec<u8>,
    remote: Option<Remote>,
}

impl<S> Connected<S> {
    /// The peer's memory. Attaching may ask the peer, which polls by then.
    pub(crate) fn attached(&mut self, state: &mut S) -> Result<Remote, LayerError> {
        if let Some(remote) = self.remote {
            return Ok(remote);
        }
        let remote = self.endpoint.attach(state, self.peer, &self.key).map_err(LayerError::new)?;
        self.remote = Some(remote);
        Ok(remote)
    }
}
