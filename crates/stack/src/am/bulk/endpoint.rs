//! Operations of an endpoint on memory: its own, and that of its peers.

use super::handlers::Placed;
use super::memory::{Memory, MemoryRange};
use super::remote::{Remote, Target};
use crate::am::Endpoint;
use crate::am::call::Call;
use crate::am::error::{AttachError, MemoryError, OutOfBounds, TransferError};
use crate::am::peer_id::PeerId;
use netdyno_protocol::frame::memory_key::MemoryKey;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// The source of the bytes of a store.
pub(in crate::am) enum Source<'a> {
    /// Borrowed from a caller that waits until it may use them again.
    Lent(&'a [u8]),
    /// Shared with the caller, which does not wait.
    Shared(Shared),
}

/// Reference-counted bytes of a store: all of an [`Arc`], or the first of them.
#[derive(Clone, Debug)]
pub struct Shared {
    bytes: Arc<[u8]>,
    len: usize,
}

impl Shared {
    /// Returns the first `len` of `bytes`, or all of them if there are no more.
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

/// The destination of the bytes of a get.
#[derive(Clone)]
pub(in crate::am) struct Destination {
    pub memory: Memory,
    pub offset: usize,
    pub len: usize,
}

impl<S> Endpoint<S> {
    /// Allocates `len` bytes, all zero, that peers may store into and get from. Peers on this host map
    /// the memory, so that each transfer is one copy.
    ///
    /// # Errors
    /// Returns an error if the system provides no such memory.
    pub fn allocate(&mut self, len: usize) -> Result<Memory, MemoryError> {
        self.offer.memories.allocate(len)
    }

    /// Registers `bytes`, so that peers may store into them and get from them.
    ///
    /// # Errors
    /// Returns an error if the system provides no random identifier.
    pub fn register(&mut self, bytes: Box<[u8]>) -> Result<Memory, MemoryError> {
        self.offer.memories.register(bytes)
    }

    /// Registers the `len` bytes from `base` on, so that peers may store into them and get from them.
    ///
    /// # Errors
    /// Returns an error if the system provides no random identifier.
    ///
    /// # Safety
    /// The bytes must be readable and writable until they are deregistered and all handles are dropped.
    /// A `get` into them holds a handle as well, until its handler has run or the peer is lost.
    /// Meanwhile nobody may hold a reference to the bytes.
    pub unsafe fn register_raw(&mut self, base: NonNull<u8>, len: usize) -> Result<Memory, MemoryError> {
        // SAFETY: as the caller promised, the bytes stay until the last handle is dropped, and nobody
        // holds a reference to them.
        unsafe { self.offer.memories.register_raw(base, len) }
    }

    /// Deregisters memory: bytes of peers no longer land in it, and transfers to and from it are
    /// refused. Existing handles can still read and write it.
    ///
    /// # Errors
    /// Returns `NotRegistered` if no memory with this identifier is registered. Returns an error if
    /// peers map the memory and the system has no memory for a private copy: transfers are refused, but
    /// a peer that breaks the protocol can still write to the old pages.
    pub fn deregister(&mut self, memory: u64) -> Result<(), MemoryError> {
        self.offer.memories.deregister(memory)
    }

    /// Attaches memory of `peer` for transfers, by the key that the peer made of it. Polls while the
    /// peer has to be asked.
    ///
    /// # Errors
    /// Returns an error if `key` is no key, if `peer` has no such memory (any more), or if a peer is
    /// lost.
    pub fn attach(&mut self, state: &mut S, peer: PeerId, key: &[u8]) -> Result<Remote, AttachError> {
        let key = MemoryKey::parse(key).map_err(|malformed| AttachError::Key(format!("{malformed:?}")))?;
        match self.shm.find(peer) {
            Some(_) => self.attach_over_shm(state, peer, &key),
            None => self.attach_over_other(state, peer, &key),
        }
    }

    /// Releases what [`attach`](Self::attach) holds for `remote`.
    pub fn detach(&mut self, remote: Remote) {
        // Other transports hold nothing.
        if let Some(shm) = self.shm.find_mut(remote.peer) {
            shm.detach(remote);
        }
    }

    /// Stores `bytes` into the memory of a peer, at `target`. The handler of stores at index `handler`
    /// then runs at the peer, with up to four words. Returns when `bytes` may be used again; polls until
    /// there is room in the window and until the transport has copied the bytes.
    ///
    /// # Errors
    /// Returns an error and writes nothing if the range is outside of the memory, or if the memory is
    /// known to be deregistered. Returns `Lost` if a peer is lost.
    pub fn store<const N: usize>(
        &mut self,
        state: &mut S,
        target: Target,
        bytes: &[u8],
        handler: u8,
        words: [u64; N],
    ) -> Result<(), TransferError> {
        self.begin_store(state, target, Source::Lent(bytes), &Call::new(handler, words))
    }

    /// Stores bytes as [`store`](Self::store) does, but may keep them until they are transferred. The
    /// call waits only for room in the window.
    ///
    /// # Errors
    /// As for [`store`](Self::store).
    pub fn store_shared<const N: usize>(
        &mut self,
        state: &mut S,
        target: Target,
        bytes: impl Into<Shared>,
        handler: u8,
        words: [u64; N],
    ) -> Result<(), TransferError> {
        self.begin_store(state, target, Source::Shared(bytes.into()), &Call::new(handler, words))
    }

    fn begin_store(
        &mut self,
        state: &mut S,
        target: Target,
        source: Source<'_>,
        call: &Call,
    ) -> Result<(), TransferError> {
        target.check(source.bytes().len())?;
        self.check_refusals()?;
        match self.shm.find(target.remote.peer) {
            Some(_) => self.store_over_shm(state, target, source, call),
            None => self.store_over_other(state, target, source, call),
        }
    }

    /// Gets bytes from the memory of a peer, from `target` on, into `local`, as many as fit. A later poll
    /// runs the handler of gets at index `handler`, with up to four words. Polls until there is room in
    /// the window.
    ///
    /// # Errors
    /// Returns an error if the range is outside of either memory, or if the peer's memory is known to be
    /// deregistered. Returns `Lost` if a peer is lost.
    pub fn get<const N: usize>(
        &mut self,
        state: &mut S,
        target: Target,
        local: MemoryRange<'_>,
        handler: u8,
        words: [u64; N],
    ) -> Result<(), TransferError> {
        target.check(local.len)?;
        let destination = Destination::new(local)?;
        self.check_refusals()?;
        if self.offer.handlers.fetched(handler).is_none() {
            return Err(TransferError::NoHandler(handler));
        }
        let call = Call::new(handler, words);
        match self.shm.find(target.remote.peer) {
            Some(_) => self.get_over_shm(state, target, destination, call),
            None => self.get_over_other(state, target, &destination, &call),
        }
    }

    /// Checks that a handler of refusals is set, because a refusal may come later and must not go
    /// unnoticed.
    fn check_refusals(&self) -> Result<(), TransferError> {
        match self.offer.handlers.refused() {
            Some(_) => Ok(()),
            None => Err(TransferError::NoHandlerOfRefusals),
        }
    }
}

impl Destination {
    /// Returns the bytes, once they have arrived.
    pub fn placed(&self) -> Placed<'_> {
        Placed { memory: &self.memory, offset: self.offset, len: self.len }
    }

    fn new(MemoryRange { memory, offset, len }: MemoryRange<'_>) -> Result<Self, TransferError> {
        OutOfBounds::check(offset, len, memory.len()).map_err(TransferError::Local)?;
        Ok(Self { memory: memory.clone(), offset, len })
    }
}
