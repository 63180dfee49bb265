//! A single-producer, single-consumer ring of messages.
//!
//! A message is one cache line: four words of arguments, then a header. The sequence number in the header
//! marks the slot as ready. The reader polls only the slot that it expects next. There is no head, no tail
//! and no zeroing, so that a message costs the transfer of one line. The payloads of medium messages lie in
//! buffers beside the ring, one for each slot.
//!
//! Slots are used in a scattered order and lie apart from each other. A dense ring used from front to back
//! triggers the processors' prefetchers. They fetch lines from the writer that it is about to write. A
//! round trip in a dense ring took 1.4 instead of 1.1 two-line bounces. A stream with replies took 38
//! instead of 24 ns a message. Prefetching helps only a reader far behind its writer, so the reader issues
//! explicit prefetches for that case.
//!
//! The ring does not decide when a slot may be reused: the credits of `netdyno_protocol::am` do. A writer
//! spends one credit for each message. A peer that breaks this rule corrupts only its own messages and
//! reaches no memory outside the ring. Words and payload are copied as atomics, so that a read returns some
//! value and is never undefined behaviour.
//!
//! The reader loads each shared value once, into local variables.

use crate::copy::{copy, copy_slice};
use crate::region::Region;
use crate::sync::{AtomicU64, Ordering, Tracked};
use netdyno_protocol::am::Credit;
use netdyno_protocol::frame::slot::{Header, MAX_WORDS, Malformed, sequence_at, sequence_of};
use std::ptr::NonNull;
use std::sync::Arc;

/// Size of a cache line, in bytes.
pub const LINE: usize = 64;
/// Stride in bytes between slots of a ring or of a lane. It exceeds two lines, because processors fetch lines
/// in pairs.
#[cfg(not(loom))]
pub(crate) const APART: usize = 3 * LINE;
/// Prefetch distance of the reader, in messages.
const AHEAD: u64 = 12;

/// One message. The arguments come first, so that they fill the first half of the line.
#[repr(C)]
#[cfg_attr(loom, derive(Default))]
struct Slot {
    words: [AtomicU64; MAX_WORDS],
    header: AtomicU64,
    /// Payload bytes in the slot's buffer, or length of a transfer. Only messages of these kinds write it.
    payload_len: AtomicU64,
    /// Memory and offset of a transfer. They fill the rest of the line.
    place: [AtomicU64; 2],
    /// Departure time of the message. It is written only if dials are set.
    stamp: AtomicU64,
    /// Padding. It is atomic too, because the peer may write to any part of a slot that this side borrows.
    #[cfg(not(loom))]
    _apart: [AtomicU64; (APART - size_of::<Tracked>()) / 8 - MAX_WORDS - 5],
    payload: Tracked,
}

/// Stride between slots, in bytes. Slots of a loom model are larger.
const STRIDE: usize = size_of::<Slot>();
#[cfg(not(loom))]
const _: () = assert!(STRIDE == APART);

/// The location of a ring in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Offset of the slots in bytes, a multiple of [`LINE`].
    pub offset: usize,
    /// Number of slots, a power of two.
    pub slots: usize,
    /// Size of a slot's payload buffer in bytes, a multiple of [`LINE`].
    pub cell: usize,
}

impl Place {
    /// Returns the size of the ring in bytes.
    pub const fn len(&self) -> usize {
        self.slots * (STRIDE + self.cell)
    }

    /// Reports whether the ring has no slots.
    pub const fn is_empty(&self) -> bool {
        self.slots == 0
    }
}

#[cfg(all(test, loom))]
impl Place {
    /// Initializes the atomics of a loom model before its ends are created. Loom does not accept zeroed
    /// memory as atomics.
    pub(crate) fn lay_out(&self, region: &Region) {
        for nth in 0..self.slots {
            let slot = region.at(self.offset + nth * STRIDE, STRIDE).cast::<Slot>();
            // SAFETY: inside the region, aligned, and not yet in use.
            unsafe { slot.write(Slot::default()) };
        }
    }
}

/// The state of one end of a ring: its memory and the position of the next message.
struct End {
    slots: NonNull<Slot>,
    cells: NonNull<u8>,
    order: Order,
    cell: usize,
    /// Position of the next message. `index` is its slot.
    next: u64,
    index: usize,
    /// Keeps the memory mapped.
    _region: Arc<Region>,
}

// SAFETY: memory belongs to the process, not to a thread. An end accesses shared memory only by atomics and
// by copies of atomic bytes.
unsafe impl Send for End {}

impl End {
    fn new(region: &Arc<Region>, place: Place) -> Self {
        assert!(
            place.slots.is_power_of_two()
                && place.offset.is_multiple_of(LINE)
                && place.cell.is_multiple_of(LINE)
        );
        Self {
            slots: region.at(place.offset, place.len()).cast(),
            cells: region.at(place.offset + place.slots * STRIDE, place.slots * place.cell),
            order: Order::new(place.slots),
            cell: place.cell,
            next: 0,
            index: 0,
            _region: Arc::clone(region),
        }
    }

    #[inline(always)]
    fn slot(&self) -> &Slot {
        // SAFETY: an index of the order is below the number of slots, and all slots lie in the region. Zeroed
        // memory is a valid slot. Both sides access it by atomics only.
        unsafe { self.slots.add(self.index).as_ref() }
    }

    /// Advances to the next message. It computes the slot here, off the critical path.
    #[inline(always)]
    fn advance(&mut self) {
        self.next += 1;
        self.index = self.order.index(self.next);
    }

    #[inline(always)]
    fn cell(&self) -> *mut u8 {
        // SAFETY: an index of the order is below the number of slots, and the region has a buffer for each
        // slot.
        unsafe { self.cells.add(self.index * self.cell).as_ptr() }
    }
}

/// The scattered order in which slots are used: a bijection without a constant stride.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    mask: u64,
    shift: u32,
}

impl Order {
    pub(crate) fn new(slots: usize) -> Self {
        let mask = slots as u64 - 1;
        Self { mask, shift: (mask.count_ones() / 2).max(1) }
    }

    /// Returns the slot of the message at `position`. Each step is invertible within the mask, so that no two
    /// positions of a lap share a slot.
    #[inline(always)]
    pub(crate) const fn index(self, position: u64) -> usize {
        let x = position.wrapping_mul(0x2545_f491_4f6c_dd1d) & self.mask;
        let x = x ^ (x >> self.shift);
        x as usize
    }
}

/// The writing end of a ring.
pub struct Writer(End);

/// The reading end of a ring.
pub struct Reader(End);

/// A local copy of a message, which the peer can no longer change. The payload is not part of it:
/// [`Reader::read_payload`] copies that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its validated header.
    pub header: Header,
    /// Its words. Those beyond `header.words` have arbitrary values.
    pub words: [u64; MAX_WORDS],
}

impl Message {
    /// Returns the words that were sent, and 0 in place of the others.
    #[inline(always)]
    pub fn used_words(&self) -> [u64; MAX_WORDS] {
        let used = usize::from(self.header.words);
        std::array::from_fn(|i| if i < used { self.words[i] } else { 0 })
    }
}

/// The part of a registered memory that a message refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Identifier of the memory.
    pub memory: u64,
    /// Offset of the first byte in the memory.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// Returns both ends of a ring in memory of its own, for two threads of this process. It has `slots` messages with
/// payloads of up to `cell` bytes. A writer must not overtake its reader by more than `slots`.
///
/// # Panics
/// Panics if `slots` is no power of two, or `cell` no multiple of [`LINE`].
pub fn pair(slots: usize, cell: usize) -> (Writer, Reader) {
    let place = Place { offset: 0, slots, cell };
    let region = Arc::new(Region::anonymous(place.len()));
    // SAFETY: the memory is new, so that these ends alone use it.
    unsafe { (Writer::new(&region, place), Reader::new(&region, place)) }
}

impl Writer {
    /// Creates the writing end of the ring at `place`.
    ///
    /// # Safety
    /// No other code of this process may write to the ring or use its memory.
    ///
    /// # Panics
    /// Panics if `place` is outside the region or not aligned.
    pub unsafe fn new(region: &Arc<Region>, place: Place) -> Self {
        Self(End::new(region, place))
    }

    /// Returns the number of messages written so far.
    #[inline]
    pub fn written(&self) -> u64 {
        self.0.next
    }

    /// Stores the departure time of the next message, which the caller must then write. `stamp` must not be
    /// 0.
    #[inline]
    pub fn stamp(&mut self, stamp: u64) {
        self.0.slot().stamp.store(stamp, Ordering::Relaxed);
    }

    /// Writes the next message and spends a credit for its slot. It sets the sequence number of `header`.
    ///
    /// ```compile_fail,E0061
    /// use netdyno_host::ring::Writer;
    /// use netdyno_protocol::frame::slot::Header;
    /// fn write_without_a_credit(ring: &mut Writer, header: Header) {
    ///     ring.write(header, &[]);
    /// }
    /// ```
    #[inline(always)]
    pub fn write(&mut self, _credit: Credit, header: Header, words: &[u64]) {
        let slot = self.0.slot();
        for (slot, &word) in slot.words.iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        let header = Header { sequence: sequence_at(self.0.next), ..header };
        // Release: pairs with the acquire in `Reader::read`. It publishes the words and the payload.
        slot.header.store(header.pack(), Ordering::Release);
        self.0.advance();
    }

    /// Writes the next message with a payload of at most `cell` bytes, like [`Writer::write`].
    ///
    /// # Panics
    /// Panics if the payload is longer: the caller must have checked.
    #[inline]
    pub fn write_with_payload(&mut self, credit: Credit, header: Header, words: &[u64], payload: &[u8]) {
        assert!(payload.len() <= self.0.cell);
        let (slot, cell) = (self.0.slot(), self.0.cell());
        // SAFETY: the buffer is as long as asserted above. It lies in a region, which has no reference to its
        // bytes. Both ends access it by atomic copies.
        slot.payload.write(|| unsafe { copy_slice(payload, cell) });
        slot.payload_len.store(payload.len() as u64, Ordering::Relaxed);
        self.write(credit, header, words);
    }

    /// Writes the next message together with the extent that it refers to, in the same line.
    #[inline]
    pub fn write_with_extent(&mut self, credit: Credit, header: Header, words: &[u64], extent: Extent) {
        let slot = self.0.slot();
        slot.payload_len.store(extent.len, Ordering::Relaxed);
        slot.place[0].store(extent.memory, Ordering::Relaxed);
        slot.place[1].store(extent.offset, Ordering::Relaxed);
        self.write(credit, header, words);
    }
}

impl Reader {
    /// Creates the reading end of the ring at `place`.
    ///
    /// # Safety
    /// No other code of this process may read from the ring or use its memory.
    ///
    /// # Panics
    /// Panics if `place` is outside the region or not aligned.
    pub unsafe fn new(region: &Arc<Region>, place: Place) -> Self {
        Self(End::new(region, place))
    }

    /// Returns the next message if it has arrived. It stays the next one until [`Reader::advance`].
    #[inline(always)]
    pub fn read(&self) -> Option<Result<Message, Malformed>> {
        let slot = self.0.slot();
        // Acquire: pairs with the release in `Writer::write`.
        let raw = slot.header.load(Ordering::Acquire);
        if sequence_of(raw) != sequence_at(self.0.next) {
            return None;
        }
        let words = std::array::from_fn(|i| slot.words[i].load(Ordering::Relaxed));
        Some(Header::parse(raw).map(|header| Message { header, words }))
    }

    /// Returns the departure time of the current message. Call it after [`Reader::read`] and before
    /// [`Reader::advance`]. The value is 0 if the message has none.
    #[inline]
    pub fn stamp(&self) -> u64 {
        self.0.slot().stamp.load(Ordering::Relaxed)
    }

    /// Copies the payload of the current message, between [`Reader::read`] and [`Reader::advance`].
    #[inline]
    pub fn read_payload(&self, into: &mut Vec<u8>) -> Result<(), Malformed> {
        let len = self.0.slot().payload_len.load(Ordering::Relaxed);
        let len = usize::try_from(len).ok().filter(|&len| len <= self.0.cell).ok_or(Malformed)?;
        into.clear();
        into.reserve(len);
        // SAFETY: the buffer is at least `len` bytes long, and both ends access it by atomic copies. A
        // correct peer does not write it before it has a credit for it again. A hostile peer corrupts only
        // bytes that are not yet validated. The vector has reserved `len` bytes as well.
        self.0.slot().payload.read(|| unsafe { copy(self.0.cell(), into.as_mut_ptr(), len) });
        // SAFETY: the copy has just initialized `len` bytes.
        unsafe { into.set_len(len) };
        Ok(())
    }

    /// Reads the last message before [`Reader::advance`] again, together with its extent. Only some kinds of
    /// messages need an extent, so `read` does not load it for all. The peer may have changed the message
    /// since: the caller must validate it like a new one.
    ///
    /// # Panics
    /// Panics if no message has been read.
    #[cold]
    pub fn reread(&self) -> Result<(Message, Extent), Malformed> {
        let last = self.0.order.index(self.0.next.checked_sub(1).expect("a message was read"));
        // SAFETY: an index of the order is below the number of slots, and all slots lie in the region. Both
        // sides access them by atomics only.
        let slot = unsafe { self.0.slots.add(last).as_ref() };
        let words = std::array::from_fn(|i| slot.words[i].load(Ordering::Relaxed));
        let extent = Extent {
            memory: slot.place[0].load(Ordering::Relaxed),
            offset: slot.place[1].load(Ordering::Relaxed),
            len: slot.payload_len.load(Ordering::Relaxed),
        };
        let header = Header::parse(slot.header.load(Ordering::Relaxed))?;
        Ok((Message { header, words }, extent))
    }

    /// Releases the current message and expects the next one.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.0.advance();
        self.prefetch();
    }

    /// Prefetches a slot that a writer far ahead has written. If it has not, this side's cache still holds
    /// the line from the last lap, and no line moves.
    #[inline(always)]
    fn prefetch(&self) {
        let index = self.0.order.index(self.0.next + AHEAD);
        // SAFETY: an index of the order is that of a slot, and a prefetch reads and writes no value.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.0.slots.add(index).as_ptr().cast());
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_protocol::am::Credits;
    use netdyno_protocol::frame::slot::Kind;
    use std::sync::mpsc;

    /// Returns a credit. The test itself makes sure that there is a free slot.
    fn credit() -> Credit {
        Credits::new(1).take().unwrap()
    }

    const SHORT: Header = Header { sequence: 0, completed: 0, handler: 3, kind: Kind::Short, words: 4 };

    fn ring(slots: usize, cell: usize) -> (Writer, Reader) {
        let place = Place { offset: 64, slots, cell };
        let region = Arc::new(Region::anonymous(64 + place.len()));
        // SAFETY: one end of each kind, on memory that nothing else uses.
        unsafe { (Writer::new(&region, place), Reader::new(&region, place)) }
    }

    #[test]
    fn every_slot_is_used_once_in_a_lap() {
        for log in 0..=if cfg!(miri) { 6 } else { 15 } {
            let slots = 1 << log;
            let order = Order::new(slots);
            let mut used: Vec<usize> =
                (0..slots as u64).map(|position| order.index(position + 3 * slots as u64)).collect();
            used.sort_unstable();
            assert!(used.into_iter().eq(0..slots), "{slots}");
        }
    }

    #[test]
    fn an_empty_ring_has_no_message() {
        let (mut writer, mut reader) = ring(2, 0);
        assert_eq!(reader.read(), None);
        writer.write(credit(), SHORT, &[1, 2, 3, 4]);
        assert_eq!(reader.read().unwrap().unwrap().words, [1, 2, 3, 4]);
        reader.advance();
        assert_eq!(reader.read(), None);
    }

    /// Sends for many laps between two threads, limited by a window of credits. Each message must arrive
    /// once, in order and whole. Miri runs this with fewer messages.
    #[test]
    fn messages_cross_threads_once_in_order_and_whole() {
        let messages: u64 = if cfg!(miri) { 60 } else { 200_000 };
        let slots = 8;
        let (mut writer, mut reader) = ring(slots, 64);
        // Each message that the reader takes returns a credit.
        let mut credits = Credits::new(slots as u32);
        let (took, taken) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for n in 0..messages {
                    let credit = loop {
                        match credits.take() {
                            Some(credit) => break credit,
                            None => drop(credits.complete_to(taken.recv().unwrap())),
                        }
                    };
                    let header = Header { handler: n as u8, kind: Kind::Medium, ..SHORT };
                    let payload = &[n as u8; 64][..(n % 64) as usize];
                    writer.write_with_payload(credit, header, &[n, !n, n * 3, n % 64], payload);
                }
            });
            let mut payload = Vec::new();
            for n in 0..messages {
                let message = loop {
                    if let Some(message) = reader.read() {
                        break message.unwrap();
                    }
                    std::thread::yield_now();
                };
                assert_eq!(message.header.handler, n as u8);
                assert_eq!(message.words, [n, !n, n * 3, n % 64]);
                reader.read_payload(&mut payload).unwrap();
                assert_eq!(payload, vec![n as u8; (n % 64) as usize]);
                reader.advance();
                took.send((n + 1) as u16).unwrap_or(());
            }
        });
    }

    /// A peer that writes without credits. Under Miri the test shows that this is no undefined behaviour.
    #[test]
    #[cfg_attr(netdyno_tsan, ignore = "the payloads of such a writer are a race")]
    fn a_writer_without_credits_spoils_its_own_messages_and_nothing_else() {
        let (mut writer, mut reader) = ring(2, 64);
        let messages: u64 = if cfg!(miri) { 30 } else { 100_000 };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for n in 0..messages {
                    let header = Header { kind: Kind::Medium, ..SHORT };
                    writer.write_with_payload(credit(), header, &[n], &[n as u8; 64]);
                }
            });
            let mut payload = Vec::new();
            for _ in 0..messages {
                if let Some(message) = reader.read() {
                    assert_eq!(message.unwrap().header.kind, Kind::Medium);
                    reader.read_payload(&mut payload).unwrap();
                    assert_eq!(payload.len(), 64);
                    reader.advance();
                }
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn a_header_without_meaning_is_reported_not_believed() {
        let (writer, reader) = ring(2, 0);
        let garbage = u64::from(sequence_at(0)) | 0xf << 56;
        writer.0.slot().header.store(garbage, Ordering::Release);
        assert_eq!(reader.read(), Some(Err(Malformed)));
    }

    #[test]
    fn a_payload_longer_than_its_cell_is_not_read() {
        let (mut writer, reader) = ring(2, 64);
        writer.write_with_payload(credit(), SHORT, &[], &[7; 64]);
        reader.0.slot().payload_len.store(65, Ordering::Relaxed);
        let mut payload = vec![1];
        assert_eq!(reader.read_payload(&mut payload), Err(Malformed));
        assert_eq!(payload, [1]);
    }
}
