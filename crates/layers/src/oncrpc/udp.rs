//! Calls and replies over UDP, a datagram each. A server has one socket for all its clients.

use super::client::{Channel, longest_reply};
use super::outgoing::Outgoing;
use super::service::{Service, longest_call};
use crate::requests::Responder;
use crate::socket::{block_on, is_of_others, is_passing};
use crate::udp::port::{UdpPort, WINDOW, failed, lost, send_by, window};
use netdyno_measure::layer::LayerError;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

/// A client's connected socket.
pub(super) struct UdpChannel {
    socket: UdpSocket,
    /// The part of the server's receive buffer that this client may fill, in bytes.
    buffer: usize,
    /// The receive buffer. It is one byte longer than a datagram, so that a longer one is no reply.
    room: Vec<u8>,
}

impl UdpChannel {
    /// Returns the channel to a server of `clients` clients, for replies with up to `largest` bytes of data.
    ///
    /// The receive buffer of the server is assumed to be as large as that of this end, which a server of netdyno asks
    /// for. A server of others is assumed to ask for none.
    pub(super) fn connect(
        port: UdpPort,
        server: &[u8],
        clients: usize,
        largest: usize,
    ) -> Result<Self, LayerError> {
        port.connect(server)?;
        let buffer = if is_of_others(server) { port.usual_buffer.min(port.buffer) } else { port.buffer };
        Ok(Self { socket: port.socket, buffer: buffer / clients, room: vec![0; longest_reply(largest) + 1] })
    }
}

impl Channel for UdpChannel {
    const IS_RELIABLE: bool = false;
    const WINDOW: usize = WINDOW;

    #[inline(always)]
    fn send(&mut self, call: &Outgoing) -> Result<bool, LayerError> {
        match self.socket.send(call.message()) {
            Ok(_) => Ok(true),
            Err(error) if is_passing(&error) => Ok(false),
            Err(error) => Err(lost(&error)),
        }
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<&[u8]>, LayerError> {
        match self.socket.recv(&mut self.room) {
            Ok(len) => Ok(Some(&self.room[..len])),
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(lost(&error)),
        }
    }

    /// Returns the calls that surely fit into the receive buffer of the server, so that few are sent again.
    fn window(&self, message_bytes: usize) -> usize {
        window(self.buffer, message_bytes)
    }

    fn socket(&self) -> impl AsFd {
        &self.socket
    }
}

/// A server.
pub(super) struct UdpServer {
    socket: UdpSocket,
    /// The client that may ask for replies longer than its calls. Without one, all clients of this host may. Any other
    /// address gets a refusal, because it may be forged, and its owner would be flooded.
    client: Option<SocketAddr>,
    service: Service,
    room: Vec<u8>,
}

impl UdpServer {
    /// Returns a server for calls and replies with up to `largest` bytes of data.
    pub(super) fn new(port: UdpPort, client: Option<SocketAddr>, largest: usize) -> Self {
        let room = vec![0; longest_call(largest)];
        Self { socket: port.socket, client, service: Service::new(largest), room }
    }
}

impl Responder for UdpServer {
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let (len, from) = match self.socket.recv_from(&mut self.room) {
            Ok(received) => received,
            Err(error) if is_passing(&error) => return Ok(false),
            Err(error) => return Err(failed(&error)),
        };
        let call = &self.room[..len];
        let Some(reply) = self.service.answer(call) else { return Ok(false) };
        let mut message = reply.message();
        let is_client = self.client == Some(from);
        // The system takes no datagram from another host with an address of loopback.
        let is_safe = is_client || self.client.is_none() && from.ip().to_canonical().is_loopback();
        if !is_safe && message.len() > len {
            let refusal = self.service.refuse_longer(call).map(Outgoing::message);
            // A call of three words has an answer to its version of RPC, which is longer, too.
            let Some(refusal) = refusal.filter(|refusal| refusal.len() <= len) else { return Ok(false) };
            message = refusal;
        }
        let sent = send_by(|| self.socket.send_to(message, from), failed);
        // An address that cannot be reached does not end the service of others.
        if is_client { sent.map(|()| true) } else { Ok(true) }
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        block_on(&self.socket, timeout)
    }
}
