//! Virtual Interfaces over shared memory, and over UDP: reliable delivery, one VI to each peer.
//!
//! Receives are posted in advance and posted again when taken, which belongs to o_r; a send is over when
//! the wire has it, which belongs to o_s. A VI breaks where a message finds no receive: requests and
//! replies are limited by the window, messages by receives that the peer has told of.
//!
//! * [`meeting`]: how two processes come to a connection. * [`requests`]: requests and replies of one
//!   size, and of any. * [`messages`]: messages into the memory of posted receives.
//! * [`memory`]: what registering costs, and VIs.

pub(crate) mod meeting;
pub(crate) mod memory;
mod messages;
pub(crate) mod requests;

use crate::half::{Half, LayerOptions, PEER_TIMEOUT, Replier, Role};
use crate::messages::support::Support;
use crate::messages::{Exchange, RealMessenger};
use crate::real::{RealReplier, RealRequester};
use meeting::Meeting;
use messages::ViMessages;
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::task::{AnySize, Messages, Subject};
use netdyno_stack::vi::{UdpOptions, WireKind};
use requests::ViRequests;
use std::net::SocketAddr;

/// The largest message of a fixed size.
pub const MAX_SIZE: usize = 1 << 20;
/// Requests without a reply: half of the lines that a lane in shared memory has, and as many datagrams
/// as may be on the wire at once.
pub(crate) const WINDOW: usize = 64;

/// The way over UDP, from a socket there.
pub(crate) fn at(bind: SocketAddr) -> UdpOptions {
    // Longer than the layer's own patience, which says what is wrong.
    let peer_timeout = 2 * PEER_TIMEOUT;
    UdpOptions { bind: Some(bind), peer_timeout, ..UdpOptions::default() }
}

/// The same as the options say.
pub(crate) fn over_udp(&LayerOptions { bind, faults, seed, .. }: &LayerOptions) -> WireKind {
    WireKind::Udp(UdpOptions { faults, seed, ..at(bind) })
}

/// Why there are none over shared memory here, where that is so: a process that connects with itself
/// does what two do with each other.
pub(crate) fn is_missing() -> Option<String> {
    memory::ViMemory::open(WireKind::Shm).and_then(|mut memory| memory.try_out()).err().map(|error| error.0)
}

/// This process's half.
pub(crate) struct ViHalf {
    meeting: Meeting,
    side: Side,
    options: LayerOptions,
}

/// What the VI is for.
enum Side {
    Requests(ViRequests),
    Messages(ViMessages),
}

impl ViHalf {
    /// Opens a provider on `wire`, and a VI with all memory that it needs.
    pub(crate) fn open(wire: WireKind, role: Role, options: LayerOptions) -> Result<Self, LayerError> {
        let is_requester = role == Role::Requester;
        let mut side = match options.face {
            Face::Requests => Side::Requests(ViRequests::of_one_size(wire, is_requester, &options)?),
            Face::Sized => Side::Requests(ViRequests::of_any_size(wire, is_requester, &options)?),
            Face::Messages => Side::Messages(ViMessages::open(wire, options.size_bytes)?),
        };
        let meeting = match &mut side {
            Side::Requests(wire) => Meeting::open(&mut wire.link.consumer, role)?,
            Side::Messages(wire) => Meeting::open(&mut wire.link.consumer, role)?,
        };
        Ok(Self { meeting, side, options })
    }

    fn connect(self, peer: &[u8]) -> Result<Connected, LayerError> {
        let LayerOptions { wait, size_bytes, .. } = self.options;
        Ok(match self.side {
            Side::Requests(mut wire) => {
                self.meeting.connect(&mut wire.link, peer)?;
                Connected::Requests(wire)
            }
            Side::Messages(mut wire) => {
                let peer = wire.take_key(peer)?;
                self.meeting.connect(&mut wire.link, peer)?;
                Connected::Messages(Exchange::new(wire, wait, size_bytes))
            }
        })
    }
}

/// The same, connected.
enum Connected {
    Requests(ViRequests),
    Messages(Exchange<ViMessages>),
}

impl Half for ViHalf {
    fn address(&self) -> Vec<u8> {
        match &self.side {
            Side::Requests(wire) => self.meeting.address(&wire.link.consumer),
            Side::Messages(wire) => [wire.key(), self.meeting.address(&wire.link.consumer)].concat(),
        }
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let LayerOptions { wait, face, .. } = self.options;
        Ok(match self.connect(peer)? {
            Connected::Requests(wire) if face == Face::Sized => {
                Box::new(AnySize(RealRequester::new(wire, wait, WINDOW)))
            }
            Connected::Requests(wire) => Box::new(RealRequester::new(wire, wait, WINDOW)),
            Connected::Messages(exchange) => Box::new(Messages(RealMessenger::new(exchange))),
        })
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let wait = self.options.wait;
        Ok(match self.connect(peer)? {
            Connected::Requests(wire) => Box::new(RealReplier::new(wire, wait)),
            Connected::Messages(exchange) => Box::new(Support::new(exchange)),
        })
    }

    fn messenger(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        match self.connect(peer)? {
            Connected::Messages(exchange) => Ok(Box::new(RealMessenger::new(exchange))),
            Connected::Requests(_) => Err(LayerError::new("the layer was not opened for messages")),
        }
    }
}
