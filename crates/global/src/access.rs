//! Access to global memory: blocking, split-phase, one-way and atomic.

use crate::error::Error;
use crate::state::{OPERATE, Segment};
use crate::world::World;
use netdyno_protocol::global::GlobalPointer;
use netdyno_protocol::global::initiator::{Completion, Failure, Landing, Outstanding};
use netdyno_protocol::global::message::{Operation, Request};
use netdyno_protocol::global::target::WORD;

impl World {
    /// Reads bytes, and waits for them.
    ///
    /// # Errors
    /// Returns `OutOfBounds` or `NoSuchSegment` as its owner sees it, `NoSuchRank`, or the end of the job.
    pub fn read(&mut self, from: GlobalPointer, into: &mut [u8]) -> Result<(), Error> {
        if self.is_bulk(from.rank, into.len()) {
            return self.read_bulk(from, into);
        }
        if let Ok(word) = <&mut [u8; WORD as usize]>::try_from(&mut *into) {
            *word = self.read_u64(from)?.to_le_bytes();
            return Ok(());
        }
        self.state.initiator.bytes.clear();
        self.state.initiator.bytes.resize(into.len(), 0);
        let operation = Operation::Get(into.len() as u64);
        self.operate(from, into.len(), operation, Landing::Bytes(0), Completion::Call)?;
        self.complete(Completion::Call)?;
        into.copy_from_slice(&self.state.initiator.bytes);
        Ok(())
    }

    /// Writes bytes, and waits until they are written.
    ///
    /// # Errors
    /// As of [`World::read`].
    pub fn write(&mut self, to: GlobalPointer, bytes: &[u8]) -> Result<(), Error> {
        self.send(to, bytes, Completion::Call)?;
        self.complete(Completion::Call)
    }

    /// Reads a word, little endian.
    ///
    /// # Errors
    /// As of [`World::read`].
    pub fn read_u64(&mut self, from: GlobalPointer) -> Result<u64, Error> {
        self.fetch_word(from, Operation::Get(WORD))
    }

    /// Writes a word, little endian, and waits until it is written.
    ///
    /// # Errors
    /// As of [`World::read`].
    pub fn write_u64(&mut self, to: GlobalPointer, word: u64) -> Result<(), Error> {
        self.write(to, &word.to_le_bytes())
    }

    /// Begins to get `len` bytes into a segment of this rank. They are there after the next [`World::sync`]. Waits only
    /// for room to send.
    ///
    /// # Errors
    /// Returns `OutOfBounds` or `NoSuchSegment` if the local range is wrong. Errors of the owner come back to the sync.
    pub fn get(&mut self, from: GlobalPointer, to: Segment, offset: u64, len: usize) -> Result<(), Error> {
        self.check_local(to, offset, len)?;
        if self.is_bulk(from.rank, len) {
            return self.get_bulk(from, to, offset as usize, len);
        }
        let landing = Landing::Segment { segment: to.0, offset };
        self.operate(from, len, Operation::Get(len as u64), landing, Completion::Sync)
    }

    /// Begins to put bytes. They are written after the next [`World::sync`]. Returns when `bytes` may be used again.
    ///
    /// # Errors
    /// Returns `NoSuchRank` or the end of the job. Errors of the owner come back to the sync.
    pub fn put(&mut self, to: GlobalPointer, bytes: &[u8]) -> Result<(), Error> {
        self.send(to, bytes, Completion::Sync)
    }

    /// Begins to add to a word. The sum is there after the next [`World::sync`]; additions between two syncs all count.
    /// The offset is a multiple of eight.
    ///
    /// # Errors
    /// Returns `NoSuchRank` or the end of the job. Errors of the owner come back to the sync.
    pub fn add(&mut self, at: GlobalPointer, addend: u64) -> Result<(), Error> {
        self.operate(at, WORD as usize, Operation::Add(addend), Landing::Nothing, Completion::Sync)
    }

    /// Begins to add to a word and to get its old value into a segment of this rank. Both are done after the next
    /// [`World::sync`]. The offset `at` is a multiple of eight.
    ///
    /// # Errors
    /// As of [`World::get`].
    pub fn get_add(&mut self, at: GlobalPointer, addend: u64, to: Segment, offset: u64) -> Result<(), Error> {
        self.check_local(to, offset, WORD as usize)?;
        let landing = Landing::Segment { segment: to.0, offset };
        self.operate(at, WORD as usize, Operation::FetchAdd(addend), landing, Completion::Sync)
    }

    /// Waits for all gets, puts and split-phase additions of this rank.
    ///
    /// # Errors
    /// Returns the first error that came back since the last sync, or the end of the job.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.complete(Completion::Sync)
    }

    /// Stores bytes one way: no sync of this rank waits for them but [`World::all_store_sync`]. The owner learns of them
    /// by [`World::store_sync`]. Returns when `bytes` may be used again.
    ///
    /// # Errors
    /// Returns `NoSuchRank` or the end of the job. Errors of the owner come back to [`World::all_store_sync`].
    pub fn store(&mut self, to: GlobalPointer, bytes: &[u8]) -> Result<(), Error> {
        self.send(to, bytes, Completion::StoreSync)
    }

    /// Waits until `bytes` bytes were stored into segments of this rank, beyond those that earlier calls waited for.
    ///
    /// # Errors
    /// Returns the end of the job.
    pub fn store_sync(&mut self, bytes: u64) -> Result<(), Error> {
        self.wait(|state| state.stored >= bytes)?;
        self.state.stored -= bytes;
        Ok(())
    }

    /// Waits until all stores of all ranks are written. All ranks call it. It takes the bytes that [`World::store_sync`]
    /// has not waited for.
    ///
    /// # Errors
    /// Returns the first error that came back to a store of this rank, after all ranks have called. Returns the end of
    /// the job.
    pub fn all_store_sync(&mut self) -> Result<(), Error> {
        let failure = self.failure_of(Completion::StoreSync)?;
        self.barrier()?;
        self.state.stored = 0;
        // Separates the stores before the call from those of ranks that go on, which must not be forgotten here.
        self.barrier()?;
        failure.map_or(Ok(()), |failure| Err(self.refused(failure)))
    }

    /// Adds to a word and returns its old value. The offset is a multiple of eight.
    ///
    /// # Errors
    /// As of [`World::read`], and `Misaligned`.
    pub fn fetch_add(&mut self, at: GlobalPointer, addend: u64) -> Result<u64, Error> {
        self.fetch_word(at, Operation::FetchAdd(addend))
    }

    /// Replaces a word by `new` if it is `expected`. Returns its old value, which is `expected` if it was replaced.
    ///
    /// # Errors
    /// As of [`World::fetch_add`].
    pub fn compare_swap(&mut self, at: GlobalPointer, expected: u64, new: u64) -> Result<u64, Error> {
        self.fetch_word(at, Operation::CompareSwap { expected, new })
    }

    /// Carries out an operation that returns a word, and waits for it.
    fn fetch_word(&mut self, at: GlobalPointer, operation: Operation<'_>) -> Result<u64, Error> {
        self.operate(at, WORD as usize, operation, Landing::Value, Completion::Call)?;
        self.complete(Completion::Call)?;
        Ok(self.state.initiator.value)
    }

    fn send(&mut self, to: GlobalPointer, bytes: &[u8], completion: Completion) -> Result<(), Error> {
        if self.is_bulk(to.rank, bytes.len()) {
            return self.send_bulk(to, bytes, completion);
        }
        let counts = completion == Completion::StoreSync;
        let operation = if counts { Operation::Store(bytes.into()) } else { Operation::Put(bytes.into()) };
        self.operate(to, bytes.len(), operation, Landing::Nothing, completion)
    }

    /// Reports whether a transfer needs the bulk transfers of the transport.
    fn is_bulk(&self, rank: u32, len: usize) -> bool {
        rank != self.rank() && len > self.piece
    }

    /// Sends an operation to its rank. An operation on this rank is carried out at once.
    #[inline(always)]
    fn operate(
        &mut self,
        at: GlobalPointer,
        len: usize,
        operation: Operation<'_>,
        landing: Landing,
        completion: Completion,
    ) -> Result<(), Error> {
        self.check()?;
        if at.rank >= self.ranks() {
            return Err(Error::NoSuchRank { rank: at.rank, ranks: self.ranks() });
        }
        if at.segment >= netdyno_protocol::global::message::SEGMENTS {
            return Err(Error::NoSuchSegment(at));
        }
        let ticket = self.state.initiator.begin(Outstanding { at, len: len as u64, landing, completion });
        let request = Request { ticket, segment: at.segment, offset: at.offset, operation };
        let (words, payload) = request.encode();
        if at.rank != self.rank() {
            return self.post(at.rank, OPERATE, words, payload);
        }
        let mut out = Vec::new();
        let reply = self.state.serve(words, payload, usize::MAX, &mut out);
        // The reply was made here, so that it cannot be unexpected.
        let taken = self.state.initiator.take(at.rank, reply, &mut self.state.memories);
        debug_assert_eq!(taken, Ok(()));
        Ok(())
    }

    /// Waits for all operations of a kind. Returns the first one that its target refused.
    #[inline(always)]
    fn failure_of(&mut self, completion: Completion) -> Result<Option<Failure>, Error> {
        if self.state.initiator.count(completion) > 0 {
            self.state.traffic.round_trips += 1;
        }
        self.wait(|state| state.initiator.count(completion) == 0)?;
        Ok(self.state.initiator.take_failure(completion))
    }

    /// Waits for all operations of a kind, and returns the first error that came back to them.
    pub(crate) fn complete(&mut self, completion: Completion) -> Result<(), Error> {
        let failure = self.failure_of(completion)?;
        failure.map_or(Ok(()), |failure| Err(self.refused(failure)))
    }

    /// Returns the error of a refused operation. A target that does not understand a request ends the job.
    fn refused(&mut self, failure: Failure) -> Error {
        match Error::refused(failure) {
            Error::Misbehaved(rank) => self.end_by_misuse(rank),
            error => error,
        }
    }
}
