//! Memory that peers may store into and get from.

use crate::am::error::{MemoryError, NotRegistered, OutOfBounds};
use netdyno_host::bytes::Bytes;
use netdyno_host::random;
use netdyno_host::ring::LINE;
use netdyno_protocol::frame::memory_key::{LONGEST, MemoryKey, Place};
use std::collections::HashMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Offsets of words in the first page of a segment with memory. `CLOSED` is set once the memory is
/// deregistered; the others hold its identifier, its length, and the number of its endpoint in the
/// process.
const CLOSED: usize = LINE;
const ID: usize = 2 * LINE;
const LEN: usize = ID + 8;
const ENDPOINT: usize = ID + 16;

/// Memory that peers may store into and get from, as long as it is registered.
///
/// This is a handle: the memory exists until the last handle is dropped. Peers write at any time, so its
/// bytes are copied in and out and never borrowed. A copy made while a peer stores into the same bytes
/// may contain some new and some old bytes.
#[derive(Clone)]
pub struct Memory(Arc<Registered>);

struct Registered {
    id: u64,
    bytes: Bytes,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Memory {
    /// Returns the identifier of the memory: 64 random bits. A peer that knows it may use the memory.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Returns the length of the memory, in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.bytes.len()
    }

    /// Returns whether the memory has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.bytes.is_empty()
    }

    /// Returns the key of the memory: bytes that the program passes by any means to peers that may use
    /// it.
    pub fn key(&self) -> Vec<u8> {
        let place = match self.0.bytes.segment() {
            None => Place::Elsewhere,
            Some(segment) => {
                Place::Segment { pid: std::process::id(), fd: segment.descriptor(), nonce: segment.nonce() }
            }
        };
        MemoryKey { id: self.id(), len: self.len() as u64, place }.encode().to_vec()
    }

    /// Copies bytes of the memory, from `offset` on, into `into`.
    ///
    /// # Errors
    /// Returns an error if the range is outside of the memory.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfBounds> {
        OutOfBounds::check(offset, into.len(), self.len())?;
        self.0.bytes.read(offset, into);
        Ok(())
    }

    /// Returns little-endian words of the memory, from `offset` on. Each is read when the iterator comes to it.
    ///
    /// # Errors
    /// Returns an error if the range is outside of the memory.
    #[inline]
    pub fn words(
        &self,
        offset: usize,
        words: usize,
    ) -> Result<impl ExactSizeIterator<Item = u64> + '_, OutOfBounds> {
        OutOfBounds::check(offset, words.saturating_mul(8), self.len())?;
        Ok(self.0.bytes.words(offset, words))
    }

    /// Copies `from` into the memory, from `offset` on.
    ///
    /// # Errors
    /// Returns an error if the range is outside of the memory.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfBounds> {
        OutOfBounds::check(offset, from.len(), self.len())?;
        self.0.bytes.write(offset, from);
        Ok(())
    }

    /// Returns the `len` bytes from `offset` on, as the destination of a `get`, which checks the range.
    pub fn range(&self, offset: usize, len: usize) -> MemoryRange<'_> {
        MemoryRange { memory: self, offset, len }
    }

    pub(in crate::am) fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }

    /// Tells peers that map the memory to stop using it. If this process still holds a handle, replaces
    /// the pages by a private copy, so that no peer can write to them. The shared pages go back to the system, although
    /// peers may map them until they use the memory again.
    fn close(self) -> Result<(), MemoryError> {
        let Some(closed) = self.0.bytes.word(CLOSED) else { return Ok(()) };
        // Release: pairs with the acquire in `Mapped::is_open`.
        closed.store(1, Ordering::Release);
        if Arc::strong_count(&self.0) > 1 {
            self.0.bytes.withdraw()?;
        } else {
            self.0.bytes.give_back();
        }
        Ok(())
    }
}

/// A range of local memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRange<'a> {
    pub(super) memory: &'a Memory,
    pub(super) offset: usize,
    pub(super) len: usize,
}

/// All registered memories of an endpoint.
pub(in crate::am) struct Memories {
    endpoint: u64,
    by_id: HashMap<u64, Memory>,
}

impl Memories {
    /// Returns an empty table for the endpoint that has this number in its process.
    pub(in crate::am) fn new(endpoint: u64) -> Self {
        Self { endpoint, by_id: HashMap::new() }
    }

    pub(in crate::am) fn endpoint(&self) -> u64 {
        self.endpoint
    }

    pub(super) fn allocate(&mut self, len: usize) -> Result<Memory, MemoryError> {
        check_len(len)?;
        let memory = self.insert(Bytes::in_segment(len)?)?;
        let word = |offset| memory.0.bytes.word(offset).expect("a segment has a first page");
        word(ID).store(memory.id(), Ordering::Relaxed);
        word(LEN).store(len as u64, Ordering::Relaxed);
        word(ENDPOINT).store(self.endpoint, Ordering::Relaxed);
        Ok(memory)
    }

    pub(super) fn register(&mut self, bytes: Box<[u8]>) -> Result<Memory, MemoryError> {
        self.insert(Bytes::of_box(bytes))
    }

    /// # Safety
    /// As for [`Bytes::lent`], until the last handle is dropped.
    pub(super) unsafe fn register_raw(
        &mut self,
        base: NonNull<u8>,
        len: usize,
    ) -> Result<Memory, MemoryError> {
        check_len(len)?;
        // SAFETY: as the caller promised, the bytes stay until the last handle is dropped, and nobody
        // holds a reference to them.
        self.insert(unsafe { Bytes::lent(base, len) })
    }

    fn insert(&mut self, bytes: Bytes) -> Result<Memory, MemoryError> {
        let id = u64::from_le_bytes(random::bytes().map_err(|error| MemoryError::Random(error.into()))?);
        let memory = Memory(Arc::new(Registered { id, bytes }));
        self.by_id.insert(id, memory.clone());
        Ok(memory)
    }

    pub(super) fn deregister(&mut self, id: u64) -> Result<(), MemoryError> {
        self.by_id.remove(&id).ok_or(NotRegistered(id))?.close()
    }

    /// Returns the memory with this identifier.
    pub(in crate::am) fn get(&self, id: u64) -> Option<&Memory> {
        self.by_id.get(&id)
    }

    /// Returns the memory with this identifier, if the range that a peer asks for is inside of it.
    pub(in crate::am) fn find(&self, id: u64, offset: u64, len: u64) -> Option<(&Memory, usize, usize)> {
        let memory = self.get(id)?;
        let (offset, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
        OutOfBounds::check(offset, len, memory.len()).ok()?;
        Some((memory, offset, len))
    }
}

impl Drop for Memories {
    fn drop(&mut self) {
        for (_, memory) in self.by_id.drain() {
            // A handle that is left then sees late writes of peers that were about to write.
            let _ = memory.close();
        }
    }
}

fn check_len(len: usize) -> Result<(), MemoryError> {
    if len as u64 <= LONGEST { Ok(()) } else { Err(MemoryError::TooLong(len)) }
}

/// Memory of another process on this host, mapped into this one.
pub(in crate::am) struct Mapped {
    pub(in crate::am) id: u64,
    bytes: Bytes,
}

impl Mapped {
    /// Maps the segment that a key names. Returns `None` if the memory is no longer registered, or if
    /// identifier or length are not those of the key.
    pub(in crate::am) fn open(
        id: u64,
        len: usize,
        pid: u32,
        fd: u32,
        nonce: [u8; 16],
    ) -> Result<Option<Self>, netdyno_host::segment::SegmentError> {
        let bytes = Bytes::of_segment(pid, fd, nonce, len)?;
        let word = |offset| bytes.word(offset).map(|word| word.load(Ordering::Relaxed));
        let is_meant = word(ID) == Some(id) && word(LEN) == Some(len as u64);
        let mapped = Self { id, bytes };
        Ok((is_meant && mapped.is_open()).then_some(mapped))
    }

    /// Returns the number of the endpoint that owns the memory, within its process.
    pub(in crate::am) fn endpoint(&self) -> u64 {
        self.bytes.word(ENDPOINT).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Whether the memory is still registered.
    pub(in crate::am) fn is_open(&self) -> bool {
        // Acquire: pairs with the release in `Memory::close`.
        self.bytes.word(CLOSED).is_some_and(|closed| closed.load(Ordering::Acquire) == 0)
    }

    pub(in crate::am) fn write(&self, offset: usize, from: &[u8]) {
        self.bytes.write(offset, from);
    }

    /// Copies bytes to memory of this process. Returns whether the memory was registered until the copy
    /// ended. The pages of deregistered memory are released and read as zeros.
    pub(in crate::am) fn read(&self, offset: usize, to: &Memory, at: usize, len: usize) -> bool {
        self.bytes.copy(offset, to.bytes(), at, len);
        // Read the bytes before the word, because the owner sets the word before it releases the pages.
        fence(Ordering::Acquire);
        self.is_open()
    }
}
