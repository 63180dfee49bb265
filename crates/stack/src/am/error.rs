//! The errors: one enum for each operation.

use super::peer_id::{PeerId, Wire};
use netdyno_host::datagram::{SocketError, XdpError};
use netdyno_host::segment::SegmentError;
use netdyno_host::wakeup::WakeupError;
use netdyno_protocol::dial::time_profile::TimeProfileError;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// Reasons why an endpoint or a port could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The window is not a power of two from 1 to 32768.
    #[error("a window of {0} cannot be made: use a power of two from 1 to 32768")]
    Window(u32),
    /// The size of medium messages is not a multiple of 64 up to 1 MiB.
    #[error("medium messages of {0} bytes cannot be made: use a multiple of 64 up to 1048576")]
    Medium(u32),
    /// The dials, or their time profile, are not valid.
    #[error(transparent)]
    Dials(#[from] TimeProfileError),
    /// The shared memory could not be created.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The socket could not be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The AF_XDP sockets could not be opened.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// The wake-up could not be made.
    #[error(transparent)]
    Wakeup(#[from] WakeupError),
}

/// Reasons why a peer could not be connected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The bytes are not the address of a port of this transport.
    #[error("that is not the address of a port over {wire} of this version: {reason}")]
    Address {
        /// The transport of the port that was to be connected.
        wire: Wire,
        /// The first field that is wrong.
        reason: String,
    },
    /// The endpoint has 1048576 peers over this transport.
    #[error("an endpoint has at most 1048576 peers over one transport: open another endpoint")]
    TooManyPeers,
    /// The peer's address and the local socket are of different versions of the Internet Protocol.
    #[error("the peer is at {0}, which a socket at {1} does not reach: bind to an address of its kind")]
    Family(SocketAddr, SocketAddr),
    /// Dials are set, and the peer is on another host, which has another clock.
    #[error(
        "dials are turned, and the peer at {0} is not on this host: messages tell by its clock when they are due"
    )]
    DialledFar(SocketAddr),
    /// Dials are set, and the system does not say whether the peer's address is of this host.
    #[error("dials are turned, and the system does not list the addresses of this host: {0}")]
    Addresses(#[source] std::io::Error),
    /// The port was opened by another endpoint.
    #[error("that port was opened by another endpoint")]
    ForeignPort,
    /// The peer's process has ended, or the system refuses to watch it.
    #[error("process {pid} cannot be watched: {error}")]
    Life {
        /// The process id of the peer.
        pid: u32,
        /// The error of the system.
        #[source]
        error: std::io::Error,
    },
    /// The peer's shared memory could not be opened.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The wake-up of a peer that may sleep could not be opened.
    #[error(transparent)]
    Wakeup(#[from] WakeupError),
    /// Another endpoint has already connected to that address.
    #[error("the port of process {0} is taken: an address serves one peer, once")]
    Taken(u32),
}

impl ConnectError {
    pub(super) fn address<E: fmt::Debug>(wire: Wire) -> impl Fn(E) -> Self {
        move |reason| Self::Address { wire, reason: format!("{reason:?}") }
    }
}

/// Reasons why a peer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Loss {
    /// The peer's process has ended. Only shared memory detects this; over UDP the peer becomes silent.
    #[error("its process has ended")]
    Ended,
    /// The peer closed its endpoint.
    #[error("it closed its endpoint")]
    Closed,
    /// The peer lives, but took and answered nothing for this long while requests were outstanding, or sent nothing in the
    /// middle of a store.
    #[error("it has answered nothing for {0:?}")]
    Silent(Duration),
    /// The peer wrote a message that no correct peer writes.
    #[error("it broke the protocol")]
    Misbehaved,
}

/// A peer is lost, now or since an earlier report.
///
/// A peer handles requests in order, so the two counts tell the fate of each request. Of the last
/// `unresolved` requests the last `not_sent` were not handled and will not be. Whether the others were
/// handled is unknown. All requests before the last `unresolved` were handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerLost {
    /// The lost peer.
    pub peer: PeerId,
    /// The reason.
    pub loss: Loss,
    /// Number of requests to the peer that are not known to be handled.
    pub unresolved: u32,
    /// Number of those requests that were never sent: the last ones. Always 0 over shared memory, where
    /// an issued request is sent at once.
    pub not_sent: u32,
}

impl PeerLost {
    /// Returns the error text with a name for the peer that the user knows.
    pub fn named(&self, peer: &str) -> String {
        let Self { loss, unresolved, not_sent, .. } = self;
        format!(
            "{peer} is lost: {loss}; {unresolved} requests are without an answer, {not_sent} of them were not sent"
        )
    }
}

impl fmt::Display for PeerLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named("the peer"))
    }
}

impl std::error::Error for PeerLost {}

/// Reasons why a request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The window is full: poll until there is room. Only `try_` calls return this.
    #[error("the window is full")]
    Full,
    /// The payload is longer than the peer accepts.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The peer is lost.
    #[error(transparent)]
    Lost(#[from] PeerLost),
}

/// A payload is longer than a medium message to that peer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a payload of {len} bytes is longer than the {most} that the peer takes")]
pub struct TooLong {
    /// The length of the payload, in bytes.
    pub len: usize,
    /// The longest payload that the peer accepts, in bytes.
    pub most: usize,
}

impl TooLong {
    pub(super) fn check(payload: &[u8], most: usize) -> Result<(), Self> {
        if payload.len() <= most { Ok(()) } else { Err(Self { len: payload.len(), most }) }
    }
}

/// A range is not completely inside of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{len} bytes at {offset} are not all inside of a memory of {memory_len}")]
pub struct OutOfBounds {
    /// The offset of the first byte.
    pub offset: usize,
    /// The length of the range, in bytes.
    pub len: usize,
    /// The length of the memory, in bytes.
    pub memory_len: usize,
}

impl OutOfBounds {
    pub(super) fn check(offset: usize, len: usize, memory_len: usize) -> Result<(), Self> {
        match offset.checked_add(len) {
            Some(end) if end <= memory_len => Ok(()),
            _ => Err(Self { offset, len, memory_len }),
        }
    }
}

/// No memory with this identifier is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no memory {0:#018x} is registered")]
pub struct NotRegistered(pub u64);

/// Reasons why memory could not be registered or deregistered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The length is more than any memory can have.
    #[error("no memory has {0} bytes")]
    TooLong(usize),
    /// The system provided no random bytes for the identifier.
    #[error("the system refused to give random bytes: {0}")]
    Random(#[source] std::io::Error),
    /// The shared memory could not be created, or could not be made private.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// No such memory is registered.
    #[error(transparent)]
    NotRegistered(#[from] NotRegistered),
}

/// Reasons why a peer's memory could not be attached.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The bytes are not the key of a memory. The value names the first field that is wrong.
    #[error("that is not the key of a memory of this version: {0}")]
    Key(String),
    /// The memory belongs to another process or endpoint than the peer's.
    #[error("that is the key of memory that the peer does not have")]
    Foreign,
    /// The peer has no such memory registered, or no longer.
    #[error("the peer has no such memory registered")]
    NotRegistered,
    /// The memory's segment could not be opened.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A peer is lost: this one, or another whose loss a poll found.
    #[error(transparent)]
    Lost(#[from] PeerLost),
}

/// Reasons why a transfer was not begun, or why the call that waited for it gave up. Nothing was
/// written, unless a peer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The range is outside of the peer's memory.
    #[error("at the peer, {0}")]
    Remote(OutOfBounds),
    /// The range is outside of the local memory.
    #[error("here, {0}")]
    Local(OutOfBounds),
    /// The memory is no longer registered, or this endpoint has not attached it.
    #[error("the peer has that memory registered no more")]
    Deregistered,
    /// No handler of gets is set at this index.
    #[error("there is no handler of gets at index {0}: set it with on_fetched")]
    NoHandler(u8),
    /// No handler of refusals is set, so that a refusal would go unnoticed.
    #[error("there is no handler of refused transfers: set it with on_refused")]
    NoHandlerOfRefusals,
    /// A peer is lost: this one, or another whose loss a poll found.
    #[error(transparent)]
    Lost(#[from] PeerLost),
}
