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

/// Words of the first page of a segment with memory: set once the memory is registered no
/// more; its id; its length; the number of its endpoint in the process.
const CLOSED: usize = LINE;
const ID: usize = 2 * LINE;
const LEN: usize = ID + 8;
const ENDPOINT: usize = ID + 16;

/// Memory that peers may store into and get from, as long as it is registered.
///
/// A handle: the memory is there until the last one is dropped. Peers write at any time, so
/// its bytes are copied in and out and never borrowed; a copy made while a peer stores into
/// the same bytes may have some new and some old ones.
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
    /// Its name, of 64 random bits: who knows it may use the memory.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.0.bytes.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.bytes.is_empty()
    }

    /// The bytes to hand to peers that may use it, by whatever way there is.
    pub fn key(&self) -> Vec<u8> {
        let place = match self.0.bytes.segment() {
            None => Place::Elsewhere,
            Some(segment) => {
                Place::Segment { pid: std::process::id(), fd: segment.descriptor(), nonce: segment.nonce() }
            }
        };
        MemoryKey { id: self.id(), len: self.len() as u64, place }.encode().to_vec()
    }

    /// Copies the bytes from `offset` on.
    ///
    /// # Errors
    /// There are fewer.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfBounds> {
        OutOfBounds::check(offset, into.len(), self.len())?;
        self.0.bytes.read(offset, into);
        Ok(())
    }

    /// Copies `from` to the bytes from `offset` on.
    ///
    /// # Errors
    /// There are fewer.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfBounds> {
        OutOfBounds::check(offset, from.len(), self.len())?;
        self.0.bytes.write(offset, from);
        Ok(())
    }

    pub(in crate::am) fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }

    /// Tells peers that map it to leave it alone, and where somebody here still looks at it,
    /// makes sure of that.
    fn close(self) -> Result<(), MemoryError> {
        let Some(closed) = self.0.bytes.word(CLOSED) else { return Ok(()) };
        // Release: pairs with the acquire in `Mapped::is_open`.
        closed.store(1, Ordering::Release);
        if Arc::strong_count(&self.0) > 1 { Ok(self.0.bytes.withdraw()?) } else { Ok(()) }
    }
}

/// All registered memory of an endpoint.
pub(in crate::am) struct Memories {
    endpoint: u64,
    by_id: HashMap<u64, Memory>,
}

impl Memories {
    /// None yet, of the endpoint that has this number in its process.
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
        // SAFETY: the bytes stay until the last handle is gone, and nobody refers to them, as the caller has promised.
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

    /// The memory of that name.
    pub(in crate::am) fn get(&self, id: u64) -> Option<&Memory> {
        self.by_id.get(&id)
    }

    /// The memory of that name, if it has those bytes: what a peer may ask for.
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
            // Whoever holds it sees what is still written by peers that were about to.
            let _ = memory.close();
        }
    }
}

fn check_len(len: usize) -> Result<(), MemoryError> {
    if len as u64 <= LONGEST { Ok(()) } else { Err(MemoryError::TooLong(len)) }
}

/// The memory of another process on this host, mapped.
pub(in crate::am) struct Mapped {
    pub(in crate::am) id: u64,
    bytes: Bytes,
}

impl Mapped {
    /// Maps what the key of a segment names. `None` where it is registered no more, or the
    /// key is not quite its own.
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

    /// Which endpoint of its process has it.
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

    /// Copies to memory of this process. Returns whether what was copied was registered all
    /// the time: memory that is registered no more is given back, and reads as zeros.
    pub(in crate::am) fn read(&self, offset: usize, to: &Memory, at: usize, len: usize) -> bool {
        self.bytes.copy(offset, to.bytes(), at, len);
        // The bytes come before the word: it was set before they were given back.
        fence(Ordering::Acquire);
        self.is_open()
    }
}
