//! The values that handlers of transfers receive.

use super::memory::Memory;
use crate::am::error::TooLong;
use crate::am::handlers::ReplySlot;
use crate::am::peer_id::PeerId;
use netdyno_protocol::frame::slot::MAX_WORDS;
use std::fmt;

/// A handler of stores. It runs at the side that owns the memory.
pub type StoreHandler<S> = fn(&mut S, Stored<'_>);
/// A handler of gets. It runs at the side that called `get`.
pub type FetchedHandler<S> = fn(&mut S, Fetched<'_>);
/// The handler of refused transfers. It runs at the side that began the transfer.
pub type RefusedHandler<S> = fn(&mut S, Refused);

/// Bytes in registered memory of this endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    pub(in crate::am) memory: &'a Memory,
    pub(in crate::am) offset: usize,
    pub(in crate::am) len: usize,
}

impl<'a> Placed<'a> {
    /// Returns the memory that holds the bytes.
    pub fn memory(&self) -> &'a Memory {
        self.memory
    }

    /// Returns the offset of the first byte in the memory.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies the bytes into `into`, or as many as fit.
    pub fn read(&self, into: &mut [u8]) {
        let len = into.len().min(self.len);
        self.memory.bytes().read(self.offset, &mut into[..len]);
    }
}

/// Bytes that a peer has stored into memory of this endpoint, given to the handler, which may reply
/// once.
///
/// A second reply is a type error:
///
/// ```compile_fail,E0382
/// use netdyno_stack::am::Handlers;
/// let mut handlers = Handlers::<()>::new();
/// handlers.on_store(0, |_, stored| {
///     stored.reply(0, [1]);
///     stored.reply(0, [2]);
/// });
/// ```
pub struct Stored<'a> {
    pub(in crate::am) peer: PeerId,
    pub(in crate::am) words: [u64; MAX_WORDS],
    pub(in crate::am) bytes: Placed<'a>,
    pub(in crate::am) slot: ReplySlot<'a>,
}

impl<'a> Stored<'a> {
    /// Returns the peer that stored the bytes.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Returns the words that came with the bytes; words that were not sent are 0.
    pub fn words(&self) -> [u64; MAX_WORDS] {
        self.words
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> Placed<'a> {
        self.bytes
    }

    /// Replies with up to four words. Never waits, because the slot of the reply is reserved.
    pub fn reply<const N: usize>(self, handler: u8, words: [u64; N]) {
        self.slot.reply(handler, words);
    }

    /// Replies with up to four words and a payload.
    ///
    /// # Errors
    /// Returns `TooLong` and the request if the payload is too long. Nothing is sent, and the handler
    /// can still reply.
    pub fn reply_medium<const N: usize>(
        self,
        handler: u8,
        words: [u64; N],
        payload: &[u8],
    ) -> Result<(), (TooLong, Self)> {
        let Self { peer, words: own, bytes, slot } = self;
        slot.reply_medium(handler, words, payload)
            .map_err(|(too_long, slot)| (too_long, Self { peer, words: own, bytes, slot }))
    }
}

/// Bytes of a peer that a `get` of this endpoint has brought into its memory.
pub struct Fetched<'a> {
    pub(in crate::am) peer: PeerId,
    pub(in crate::am) words: [u64; MAX_WORDS],
    pub(in crate::am) bytes: Placed<'a>,
}

impl<'a> Fetched<'a> {
    /// Returns the peer that owned the bytes.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Returns the words that were given to the `get`; the others are 0.
    pub fn words(&self) -> [u64; MAX_WORDS] {
        self.words
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> Placed<'a> {
        self.bytes
    }
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Into the peer's memory.
    Store,
    /// Out of the peer's memory.
    Get,
}

/// A transfer that the peer has refused, because the memory is no longer registered. Its handler has not
/// run and will not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The peer that refused.
    pub peer: PeerId,
    /// The direction of the transfer.
    pub transfer: Transfer,
    /// The identifier of the memory at the peer.
    pub memory: u64,
    /// The offset of the first byte in that memory.
    pub offset: u64,
    /// The number of bytes.
    pub len: u64,
    /// The handler that was to run.
    pub handler: u8,
    /// The words for that handler.
    pub words: [u64; MAX_WORDS],
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transfer, offset, len, .. } = self;
        let what = match transfer {
            Transfer::Store => "store",
            Transfer::Get => "get",
        };
        write!(f, "the peer refused to {what} {len} bytes at {offset}: that memory is registered no more")
    }
}
