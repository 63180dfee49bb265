//! What the engine needs of the connections to other processes.

use crate::frame::LONGEST_HEADER;
use crate::memory::{Memory, Segment, Window};
use std::ops::Deref;

/// The number of a peer: another process, or this one.
pub type PeerNo = usize;

/// This process is its own first peer.
pub const SELF: PeerNo = 0;

/// Longest message with its header, in bytes.
pub const LONGEST: usize = 8192;
/// Longest payload in bytes.
pub const PAYLOAD: usize = LONGEST - LONGEST_HEADER;
/// Number of messages of a peer for which there is always room.
pub const RECEIVES: u16 = 64;

/// The payload of a message to be sent.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// Bytes of the engine.
    Bytes(&'a [u8]),
    /// `len` bytes of the program's memory, from an offset on.
    Part(&'a Memory, usize, usize),
}

impl Payload<'_> {
    /// Returns a copy of the bytes.
    pub fn to_vec(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.to_vec(),
            Self::Part(memory, offset, len) => {
                let mut bytes = vec![0; len];
                memory.read(offset, &mut bytes);
                bytes
            }
        }
    }

    /// Writes a message with its header to the beginning of `out`. Returns its length.
    #[inline]
    pub fn write_behind(&self, header: &[u8], out: &mut [u8]) -> usize {
        let (head, room) = out.split_at_mut(header.len());
        head.copy_from_slice(header);
        header.len()
            + match *self {
                Self::Bytes(bytes) => {
                    room[..bytes.len()].copy_from_slice(bytes);
                    bytes.len()
                }
                Self::Part(memory, offset, len) => memory.read(offset, &mut room[..len]),
            }
    }
}

/// An event of a connection.
#[derive(Debug)]
pub enum LinkEvent<B> {
    /// A message has arrived.
    Message(PeerNo, B),
    /// The peer has ended, or its connection is broken.
    Lost(PeerNo),
}

/// The outcome of a copy between this process and a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// All bytes are copied.
    Whole,
    /// The bytes have to travel as messages.
    NotHere,
    /// The memory of the peer is not what it said, or is gone.
    Failed,
    /// The process of the peer has ended.
    Ended,
}

/// The connections of this process. A connection is made when it is first used. Messages of one peer arrive in
/// order.
pub trait Links {
    /// A message that has arrived. It occupies one of [`RECEIVES`] places until it is given back.
    type Buffer: Deref<Target = [u8]>;

    /// Sends a message, if there is room. The caller ensures that the peer has a place for it. Returns false if the
    /// caller must try again later.
    fn try_send(&mut self, peer: PeerNo, header: &[u8], payload: Payload<'_>) -> bool;

    /// Returns the next event.
    fn next(&mut self) -> Option<LinkEvent<Self::Buffer>>;

    /// Called when there is no event: now and then looks for requests and lost peers. Returns whether it has.
    fn look_around(&mut self) -> bool {
        false
    }

    /// Returns whether a message that was sent to a peer arrives though this process ends.
    fn outlives_sender(&self, _peer: PeerNo) -> bool {
        true
    }

    /// Returns whether nothing will ever be sent to a peer.
    fn is_hopeless(&self, _peer: PeerNo) -> bool {
        false
    }

    /// Returns whether all that was sent arrives without this process.
    fn is_flushed(&mut self) -> bool {
        true
    }

    /// Returns a peer that does not know who this process is, once.
    fn next_stranger(&mut self) -> Option<PeerNo> {
        None
    }

    /// Returns what peers must know of this process.
    fn introduction(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Notes who a peer says it is. Returns false if that is malformed.
    fn know(&mut self, _peer: PeerNo, _introduction: &[u8]) -> bool {
        true
    }

    /// Gives back a message, so that the peer may send another.
    fn give_back(&mut self, peer: PeerNo, buffer: Self::Buffer);

    /// Ends the connection to a peer, and discards what has not been taken from it.
    fn end(&mut self, peer: PeerNo);

    /// Copies bytes out of the memory of a peer.
    fn pull(&mut self, peer: PeerNo, from: &[Segment], to: &Memory) -> Copied;

    /// Copies bytes into the memory of a peer.
    fn push(&mut self, peer: PeerNo, from: &Memory, to: &[Segment]) -> Copied;

    /// Lets a peer write memory by RDMA. Returns `None` if it cannot; then the bytes travel in pieces.
    fn open_window(&mut self, _peer: PeerNo, _memory: &Memory) -> Option<Window> {
        None
    }

    /// Ends that. A peer that still writes loses its connection.
    fn close_window(&mut self, _peer: PeerNo, _window: &Window) {}

    /// Writes bytes from an offset on into the same offset of a peer's window, as many as there is room for. The bytes
    /// arrive before any later message. Returns the number of bytes; 0 if the caller must try again later.
    fn try_write(&mut self, _peer: PeerNo, _memory: &Memory, _offset: usize, _window: &Window) -> usize {
        0
    }

    /// Waits until nothing is read any more from memory that was written to a peer.
    fn finish_writes(&mut self, _peer: PeerNo) {}
}
