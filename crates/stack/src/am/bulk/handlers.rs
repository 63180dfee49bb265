//! What the handlers of transfers are given.

use super::memory::Memory;
use crate::am::config::PeerId;
use crate::am::error::TooLong;
use crate::am::handlers::Outbox;
use netdyno_protocol::frame::slot::MAX_WORDS;
use std::fmt;

/// A handler of stores, at the side whose memory was written.
pub type StoreHandler<S> = fn(&mut S, Stored<'_>);
/// A handler of gets, at the side that asked.
pub type FetchedHandler<S> = fn(&mut S, Fetched<'_>);
/// The handler of transfers that were refused, at the side that asked.
pub type RefusedHandler<S> = fn(&mut S, Refused);

/// Bytes in memory of this endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    pub(in crate::am) memory: &'a Memory,
    pub(in crate::am) offset: usize,
    pub(in crate::am) len: usize,
}

impl<'a> Placed<'a> {
    /// The memory that they are in.
    pub fn memory(&self) -> &'a Memory {
        self.memory
    }

    /// Where they begin in there.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether they are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies them, or as many as there is room for.
    pub fn read(&self, into: &mut [u8]) {
        let len = into.len().min(self.len);
        self.memory.bytes().read(self.offset, &mut into[..len]);
    }
}

/// Bytes that a peer has stored into memory of this endpoint, in the hands of the handler,
/// which may answer once.
///
/// A second answer is a type error:
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
    pub(in crate::am) outbox: Outbox<'a>,
}

impl<'a> Stored<'a> {
    /// Who stored them.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The words that came with them; 0 beyond those that were sent.
    pub fn words(&self) -> [u64; MAX_WORDS] {
        self.words
    }

    /// The bytes.
    pub fn bytes(&self) -> Placed<'a> {
        self.bytes
    }

    /// Replies with up to four words. Never waits: the slot was reserved.
    pub fn reply<const N: usize>(self, handler: u8, words: [u64; N]) {
        self.outbox.reply(handler, words);
    }

    /// Replies with up to four words and a payload. Where the payload is too long, nothing
    /// is sent and the request remains, to be answered otherwise.
    pub fn reply_medium<const N: usize>(
        self,
        handler: u8,
        words: [u64; N],
        payload: &[u8],
    ) -> Result<(), (TooLong, Self)> {
        match TooLong::check(payload, self.outbox.medium_bytes()) {
            Ok(()) => {
                self.outbox.reply_medium(handler, words, payload);
                Ok(())
            }
            Err(too_long) => Err((too_long, self)),
        }
    }
}

/// Bytes of a peer that have arrived in memory of this endpoint, which had asked for them.
pub struct Fetched<'a> {
    pub(in crate::am) peer: PeerId,
    pub(in crate::am) words: [u64; MAX_WORDS],
    pub(in crate::am) bytes: Placed<'a>,
}

impl<'a> Fetched<'a> {
    /// Whose they were.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// The words that were given to the `get`; 0 beyond those.
    pub fn words(&self) -> [u64; MAX_WORDS] {
        self.words
    }

    /// The bytes.
    pub fn bytes(&self) -> Placed<'a> {
        self.bytes
    }
}

/// Which way bytes were to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Into the peer's memory.
    Store,
    /// Out of it.
    Get,
}

/// A transfer that the peer has refused: the memory is registered no more. Its handler has
/// not run and will not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Who refused.
    pub peer: PeerId,
    /// What was refused.
    pub transfer: Transfer,
    /// The memory at the peer.
    pub memory: u64,
    /// Where the bytes begin in there.
    pub offset: u64,
    /// How many there are.
    pub len: u64,
    /// The handler that was to run.
    pub handler: u8,
    /// The words for it.
    pub words: [u64; MAX_WORDS],
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transfer, offset, len, .. } = self;
        let what = match transfer {
            Transfer::Store => "store",
            Transfer::Get => "get",
        };
        let peer = self.peer.index();
        write!(f, "peer {peer} refused to {what} {len} bytes at {offset}: that memory is registered no more")
    }
}
