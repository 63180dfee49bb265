//! What an endpoint does with memory: its own, and that of its peers.

use super::handlers::Placed;
use super::memory::Memory;
use super::remote::Remote;
use crate::am::Endpoint;
use crate::am::config::{PeerId, Wire};
use crate::am::error::{AttachError, MemoryError, TransferError};
use crate::am::handlers::spread;
use netdyno_protocol::frame::memory_key::MemoryKey;
use netdyno_protocol::frame::slot::MAX_WORDS;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// Where the bytes of a store come from.
pub(in crate::am) enum Source<'a> {
    /// From a caller that waits until it may use them again.
    Lent(&'a [u8]),
    /// From whoever holds them.
    Shared(Shared),
}

/// Bytes of a store that whoever needs them holds: all of an [`Arc`], or the first of them.
#[derive(Clone, Debug)]
pub struct Shared {
    bytes: Arc<[u8]>,
    len: usize,
}

impl Shared {
    /// The first `len` of `bytes`, or all where there are no more.
    pub fn first(bytes: Arc<[u8]>, len: usize) -> Self {
        let len = len.min(bytes.len());
        Self { bytes, len }
    }
}

impl From<Arc<[u8]>> for Shared {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self { len: bytes.len(), bytes }
    }
}

impl Deref for Shared {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Source<'_> {
    pub(in crate::am) fn bytes(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// What a transfer brings to the handler at its end.
#[derive(Clone, Copy)]
pub(in crate::am) struct Note {
    pub handler: u8,
    pub words: [u64; MAX_WORDS],
    pub count: u8,
}

impl Note {
    fn new<const N: usize>(handler: u8, words: [u64; N]) -> Self {
        const { assert!(N <= MAX_WORDS) };
        Self { handler, words: spread(words), count: N as u8 }
    }

    pub(in crate::am) fn words(&self) -> &[u64] {
        &self.words[..usize::from(self.count)]
    }
}

/// Where the bytes of a get go to.
#[derive(Clone)]
pub(in crate::am) struct Destination {
    pub memory: Memory,
    pub offset: usize,
    pub len: usize,
}

impl<S> Endpoint<S> {
    /// Memory of `len` bytes, all zero, that peers may store into and get from. Peers on this
    /// host map it: each transfer is one copy.
    ///
    /// # Errors
    /// The system gives no such memory.
    pub fn allocate(&mut self, len: usize) -> Result<Memory, MemoryError> {
        self.offer.memories.allocate(len)
    }

    /// Lets peers store into `bytes` and get from them.
    ///
    /// # Errors
    /// The system gives no random name for them.
    pub fn register(&mut self, bytes: Box<[u8]>) -> Result<Memory, MemoryError> {
        self.offer.memories.register(bytes)
    }

    /// Lets peers store into the `len` bytes from `base` on, and get from them.
    ///
    /// # Errors
    /// The system gives no random name for them.
    ///
    /// # Safety
    /// They can be read and written until they are deregistered and all handles are dropped
    /// (those of the program, and, until its handler has run or the peer is lost, that of a
    /// `get` into them), and nobody holds a reference to them meanwhile.
    pub unsafe fn register_raw(&mut self, base: NonNull<u8>, len: usize) -> Result<Memory, MemoryError> {
        // SAFETY: the bytes stay until the last handle is gone, and nobody refers to them, as the caller has promised.
        unsafe { self.offer.memories.register_raw(base, len) }
    }

    /// Nothing of a peer lands in that memory any more, and transfers to and from it are
    /// refused. Handles that are left go on to read and write it.
    ///
    /// # Errors
    /// No memory of this name is registered; or, of memory that peers map, the system has no
    /// memory for a copy that they do not: refused it is, but who disregards that still
    /// writes to it.
    pub fn deregister(&mut self, memory: u64) -> Result<(), MemoryError> {
        self.offer.memories.deregister(memory)
    }

    /// Makes memory of `peer` ready for transfers, by the key that the peer has made of it.
    /// Polls meanwhile, where the peer has to be asked.
    ///
    /// # Errors
    /// That is no key, or `peer` has no such memory (any more), or a peer is lost.
    pub fn attach(&mut self, state: &mut S, peer: PeerId, key: &[u8]) -> Result<Remote, AttachError> {
        let key = MemoryKey::parse(key).map_err(AttachError::Key)?;
        match peer.wire() {
            Wire::Shm => self.attach_over_shm(state, peer, &key),
            Wire::Udp => self.attach_over_udp(state, peer, &key),
        }
    }

    /// Gives up what [`attach`](Self::attach) holds for `remote`.
    pub fn detach(&mut self, remote: Remote) {
        match remote.peer.wire() {
            Wire::Shm => self.shm.peer_mut(remote.peer).detach(remote),
            // Nothing is held.
            Wire::Udp => {}
        }
    }

    /// Stores `bytes` into the memory of a peer from `offset` on, where then the handler of
    /// stores at index `handler` fires, with up to four words. Returns when `bytes` may be
    /// used again; polls meanwhile, where there is no room in the window or the wire takes its
    /// time.
    ///
    /// # Errors
    /// The range is outside of the memory, or that is known to be registered no more: nothing
    /// is written. Or a peer is lost.
    pub fn store<const N: usize>(
        &mut self,
        state: &mut S,
        remote: Remote,
        offset: usize,
        bytes: &[u8],
        handler: u8,
        words: [u64; N],
    ) -> Result<(), TransferError> {
        self.begin_store(state, remote, offset, Source::Lent(bytes), Note::new(handler, words))
    }

    /// The same for bytes that may be kept until they are transferred, so that the call waits
    /// for nothing but room in the window.
    ///
    /// # Errors
    /// As for [`store`](Self::store).
    pub fn store_shared<const N: usize>(
        &mut self,
        state: &mut S,
        remote: Remote,
        offset: usize,
        bytes: impl Into<Shared>,
        handler: u8,
        words: [u64; N],
    ) -> Result<(), TransferError> {
        self.begin_store(state, remote, offset, Source::Shared(bytes.into()), Note::new(handler, words))
    }

    fn begin_store(
        &mut self,
        state: &mut S,
        remote: Remote,
        offset: usize,
        source: Source<'_>,
        note: Note,
    ) -> Result<(), TransferError> {
        remote.check(offset, source.bytes().len()).map_err(TransferError::Remote)?;
        self.check_refusals()?;
        match remote.peer.wire() {
            Wire::Shm => self.store_over_shm(state, remote, offset, source, note),
            Wire::Udp => self.store_over_udp(state, remote, offset, source, note),
        }
    }

    /// Gets `len` bytes from the memory of a peer, from `offset` on, into `local` from `at`
    /// on, where then, in a later poll, the handler of gets at index `handler` fires, with up
    /// to four words. Polls where there is no room in the window.
    ///
    /// # Errors
    /// The range is outside of either memory, or the peer's is known to be registered no more.
    /// Or a peer is lost.
    #[allow(clippy::too_many_arguments, reason = "two ranges, a handler and its words")]
    pub fn get<const N: usize>(
        &mut self,
        state: &mut S,
        remote: Remote,
        offset: usize,
        len: usize,
        local: &Memory,
        at: usize,
        handler: u8,
        words: [u64; N],
    ) -> Result<(), TransferError> {
        remote.check(offset, len).map_err(TransferError::Remote)?;
        let destination = Destination::new(local, at, len)?;
        self.check_refusals()?;
        if self.offer.handlers.fetched(handler).is_none() {
            return Err(TransferError::NoHandler(handler));
        }
        let note = Note::new(handler, words);
        match remote.peer.wire() {
            Wire::Shm => self.get_over_shm(state, remote, offset, destination, note),
            Wire::Udp => self.get_over_udp(state, remote, offset, destination, note),
        }
    }

    /// A refusal that comes later must not go by unnoticed.
    fn check_refusals(&self) -> Result<(), TransferError> {
        match self.offer.handlers.refused() {
            Some(_) => Ok(()),
            None => Err(TransferError::NoHandlerOfRefusals),
        }
    }
}

impl Destination {
    /// The bytes, once they have come.
    pub fn placed(&self) -> Placed<'_> {
        Placed { memory: &self.memory, offset: self.offset, len: self.len }
    }

    fn new(memory: &Memory, offset: usize, len: usize) -> Result<Self, TransferError> {
        crate::am::error::OutOfBounds::check(offset, len, memory.len()).map_err(TransferError::Local)?;
        Ok(Self { memory: memory.clone(), offset, len })
    }
}
