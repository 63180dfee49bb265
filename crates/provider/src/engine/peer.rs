//! A peer: how many messages it can take, and what waits for it.

use super::links::RECEIVES;
use crate::frame::Header;
use crate::memory::{Memory, Window};
use std::collections::VecDeque;

/// Bytes that travel to a peer in pieces, or that are written into its memory.
#[derive(Debug)]
pub struct Stream {
    pub memory: Memory,
    /// Number of bytes that were sent.
    pub sent: usize,
    /// The peer's transfer.
    pub transfer: u32,
    pub origin: Origin,
    /// The peer's memory, if the bytes are written there.
    pub window: Option<Window>,
}

/// Where the bytes of a stream come from. When that is closed, they are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A message of this endpoint, or an RDMA write: a transfer of this process.
    Message { endpoint: u16, transfer: u32 },
    /// A region with this key, which a peer reads. The endpoint reports it.
    Region { key: u64, endpoint: u16 },
}

/// The state of the messages to a peer.
#[derive(Debug)]
pub struct Peer {
    /// Number of messages that the peer can take.
    pub credits: u16,
    /// Number of places for the peer's messages that it does not know of.
    pub owed: u16,
    /// Messages that wait for room.
    pub waiting: VecDeque<(Header, Vec<u8>)>,
    pub streams: VecDeque<Stream>,
    /// It is in the list of peers with work.
    pub is_listed: bool,
    pub is_lost: bool,
    /// It was told to keep the bytes of its messages.
    pub is_told: bool,
    /// It wants the bytes of messages kept here until a receive takes them.
    pub is_holding: bool,
    /// The bytes of injected messages that are kept here for it.
    pub copied_bytes: usize,
}

impl Peer {
    pub fn new() -> Self {
        Self {
            credits: RECEIVES,
            owed: 0,
            waiting: VecDeque::new(),
            streams: VecDeque::new(),
            is_listed: false,
            is_lost: false,
            is_told: false,
            is_holding: false,
            copied_bytes: 0,
        }
    }

    /// Returns whether a message may be sent that is not [`Kind::Credits`](crate::frame::Kind::Credits). The last
    /// credit is kept for those: otherwise two sides without credits would wait for each other.
    pub fn has_room(&self) -> bool {
        self.credits > 1
    }

    /// Returns whether the peer must be told of free places, because it has few.
    pub fn is_owed_much(&self) -> bool {
        self.owed >= RECEIVES / 2
    }
}
