//! Requests of one size between two processes. The reply is as long as the request.

use super::echo::{ECHO, EchoMessage, echo, echo_config};
use super::endpoint;
use crate::half::{Half, Replier};
use crate::options::LayerOptions;
use crate::requests::{RealReplier, RealRequester, Wire};
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::task::Subject;
use netdyno_stack::am::{Endpoint, Handlers, PeerId, Port, Wire as Way};
use std::time::Duration;

/// The state of the handlers.
#[derive(Default)]
struct EchoState {
    /// Replies that have arrived.
    replies: u64,
}

/// This process's half for requests of one size.
pub(crate) struct AmHalf {
    endpoint: Endpoint<EchoState>,
    port: Port,
    window: usize,
    options: LayerOptions,
}

impl AmHalf {
    /// Opens an endpoint and a port on `way`.
    pub(crate) fn open(way: Way, options: LayerOptions) -> Result<Self, LayerError> {
        let mut handlers = Handlers::new();
        handlers.on_request(ECHO, echo);
        handlers.on_reply(ECHO, |state: &mut EchoState, _| state.replies += 1);
        let window = endpoint::window(way) as usize;
        let mut endpoint = endpoint::open(handlers, echo_config(&options, window)?, &options)?;
        let port = endpoint.open_port(way).map_err(LayerError::new)?;
        Ok(Self { endpoint, port, window, options })
    }

    fn connect(mut self, peer: &[u8]) -> Result<AmWire, LayerError> {
        let peer = self.endpoint.connect(self.port, peer).map_err(LayerError::new)?;
        let message = EchoMessage::new(self.options.size_bytes);
        Ok(AmWire { endpoint: self.endpoint, peer, state: EchoState::default(), taken: 0, message })
    }
}

impl Half for AmHalf {
    fn address(&self) -> Vec<u8> {
        self.port.address()
    }

    fn library(&self) -> Option<&str> {
        self.port.description()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let (wait, window) = (self.options.wait, self.window);
        Ok(Box::new(RealRequester::new(self.connect(peer)?, wait, window)))
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let wait = self.options.wait;
        Ok(Box::new(RealReplier::new(self.connect(peer)?, wait)))
    }
}

/// Either end of the wire: an endpoint with one peer.
struct AmWire {
    endpoint: Endpoint<EchoState>,
    peer: PeerId,
    state: EchoState,
    /// Replies that were taken. One poll may bring several, when an earlier one was late.
    taken: u64,
    message: EchoMessage,
}

impl Wire for AmWire {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        let Self { endpoint, peer, state, message, .. } = self;
        message.request(endpoint, state, *peer, ECHO).map_err(LayerError::new)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        if self.state.replies == self.taken {
            self.endpoint.poll(&mut self.state).map_err(LayerError::new)?;
        }
        let found = self.state.replies != self.taken;
        self.taken += u64::from(found);
        Ok(found)
    }

    /// Polls: the handler answers.
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        Ok(self.endpoint.poll(&mut self.state).map_err(LayerError::new)? > 0)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.endpoint.idle(timeout);
        Ok(())
    }

    fn transport(&self) -> Option<Transport> {
        endpoint::transport(&self.endpoint, self.peer)
    }
}
