//! What can go wrong, an enum for each operation.

use super::config::PeerId;
use netdyno_host::datagram::SocketError;
use netdyno_host::segment::SegmentError;
use netdyno_protocol::dial::course::CourseError;
use netdyno_protocol::frame::{memory_key, port, udp_port};
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// Why an endpoint or a port could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The window is not a power of two from 1 to 32768.
    #[error("a window of {0} cannot be made: use a power of two from 1 to 32768")]
    Window(u32),
    /// The size of medium messages is not a multiple of 64 up to 1 MiB.
    #[error("medium messages of {0} bytes cannot be made: use a multiple of 64 up to 1048576")]
    Medium(u32),
    /// The dials cannot be turned so.
    #[error(transparent)]
    Dials(#[from] CourseError),
    /// The shared memory could not be made.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The socket could not be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// Why a peer could not be connected.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The bytes are not the address of a port in shared memory.
    #[error("that is not the address of a port in shared memory of this version: {0:?}")]
    ShmAddress(port::Malformed),
    /// The bytes are not the address of a UDP port.
    #[error("that is not the address of a UDP port of this version: {0:?}")]
    UdpAddress(udp_port::Malformed),
    /// The peer is reached by the other version of the Internet Protocol.
    #[error("the peer is at {0}, which a socket at {1} does not reach: bind to an address of its kind")]
    Family(SocketAddr, SocketAddr),
    /// Dials are turned, and the peer has another clock.
    #[error(
        "dials are turned, and the peer at {0} is not on this host: messages tell by its clock when they are due"
    )]
    DialledFar(SocketAddr),
    /// Dials are turned, and nothing is known of where the peer is.
    #[error("dials are turned, and the system does not list the addresses of this host: {0}")]
    Addresses(#[source] std::io::Error),
    /// The port was opened by another endpoint.
    #[error("that port was opened by another endpoint")]
    ForeignPort,
    /// The peer has ended, or its process cannot be watched.
    #[error("process {pid} cannot be watched: {error}")]
    Life {
        /// The process.
        pid: u32,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// Its shared memory could not be opened.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// Another endpoint has connected with that address.
    #[error("the port of process {0} is taken: an address serves one peer, once")]
    Taken(u32),
}

/// Why a peer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Loss {
    /// Its process has ended. Only shared memory tells; over UDP an end is a silence.
    #[error("its process has ended")]
    Ended,
    /// It closed its endpoint.
    #[error("it closed its endpoint")]
    Closed,
    /// It lives, but took and answered nothing for that long while requests waited.
    #[error("it has answered nothing for {0:?}")]
    Silent(Duration),
    /// It wrote what no correct peer writes.
    #[error("it broke the protocol")]
    Misbehaved,
}

/// A peer is lost, now or since an earlier report.
///
/// Requests to a peer are handled in order, so the two counts tell the fate of each:
/// among the last `unresolved` requests that were issued, the last `not_sent` have not been
/// handled and will not be; whether the others were is unknown. All before them were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "peer {} is lost: {loss}; {unresolved} requests are without an answer, {not_sent} of them were not sent",
    .peer.index()
)]
pub struct PeerLost {
    /// Which one.
    pub peer: PeerId,
    /// Why.
    pub loss: Loss,
    /// Requests to it that are not known to be handled.
    pub unresolved: u32,
    /// Those of them that were never sent: the last ones. None over shared memory, where to
    /// issue is to send.
    pub not_sent: u32,
}

/// Why a request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The window is full: poll until there is room. Only from `try_` calls.
    #[error("the window is full")]
    Full,
    /// The payload is longer than the peer takes.
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
    /// Its length.
    pub len: usize,
    /// The most there may be.
    pub most: usize,
}

impl TooLong {
    pub(super) fn check(payload: &[u8], most: usize) -> Result<(), Self> {
        if payload.len() <= most { Ok(()) } else { Err(Self { len: payload.len(), most }) }
    }
}

/// A range is not all inside of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{len} bytes at {offset} are not all inside of a memory of {memory_len}")]
pub struct OutOfBounds {
    /// The first byte.
    pub offset: usize,
    /// How many there were to be.
    pub len: usize,
    /// How many the memory has.
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

/// No memory of this name is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no memory {0:#018x} is registered")]
pub struct NotRegistered(pub u64);

/// Why memory could not be registered, or not be deregistered.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// No memory is that long.
    #[error("no memory has {0} bytes")]
    TooLong(usize),
    /// The system gave no random bytes to name it by.
    #[error("the system refused to give random bytes: {0}")]
    Random(#[source] std::io::Error),
    /// The shared memory could not be made, or not be made private.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// There is nothing to deregister.
    #[error(transparent)]
    NotRegistered(#[from] NotRegistered),
}

/// Why a peer's memory could not be attached.
#[derive(Debug, Error)]
pub enum AttachError {
    /// The bytes are not the key of a memory.
    #[error("that is not the key of a memory of this version: {0:?}")]
    Key(memory_key::Malformed),
    /// The memory is of another process than the peer's.
    #[error("that is the key of memory that the peer does not have")]
    Foreign,
    /// The peer has no such memory, or has it no more.
    #[error("the peer has no such memory registered")]
    NotRegistered,
    /// Its shared memory could not be opened.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A peer is lost: this one, or another that a poll found to be.
    #[error(transparent)]
    Lost(#[from] PeerLost),
}

/// Why a transfer was not begun, or not ended by the call that waited for it. Nothing was
/// written then, unless a peer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TransferError {
    /// The range is outside of the peer's memory.
    #[error("at the peer, {0}")]
    Remote(OutOfBounds),
    /// The range is outside of the memory here.
    #[error("here, {0}")]
    Local(OutOfBounds),
    /// The memory is registered no more, or this endpoint has not attached it.
    #[error("the peer has that memory registered no more")]
    Deregistered,
    /// No handler of gets has this index.
    #[error("there is no handler of gets at index {0}: set it with on_fetched")]
    NoHandler(u8),
    /// Nobody would learn of a refusal.
    #[error("there is no handler of refused transfers: set it with on_refused")]
    NoHandlerOfRefusals,
    /// A peer is lost: this one, or another that a poll found to be.
    #[error(transparent)]
    Lost(#[from] PeerLost),
}
