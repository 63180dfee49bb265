//! A ring of messages with one writer and one reader.
//!
//! A message is one cache line: four words of arguments, then the header whose
//! sequence number says that the line is ready. The reader looks at the line it
//! expects next and at nothing else; there is no head, no tail and no zeroing, so a
//! message costs the transfer of one line. Payloads of medium messages lie in cells
//! beside the ring, one per slot.
//!
//! Slots are used in a scattered order and lie apart from each other. In a dense ring
//! used from front to back the processors' prefetchers run ahead and fetch lines from
//! the other side that it is about to write: a round trip took 1.4 instead of 1.1
//! two-line bounces, a stream with replies 38 instead of 24 ns a message. What
//! prefetching is good for, a reader far behind its writer, is asked for explicitly.
//!
//! The ring has no rule of its own about when a slot may be written again: the credits of
//! `netdyno_protocol::am` see to that, and a writer takes one for each message. A peer that
//! breaks that rule spoils messages of its own. It reaches no memory outside of the ring, and
//! since words and payload are copied as atomics, what is read is some value and never undefined
//! behaviour.
//!
//! What the other side wrote is read once, into values of our own.

use crate::copy::{copy, copy_slice};
use crate::region::Region;
use crate::sync::{AtomicU64, Ordering, Tracked};
use netdyno_protocol::am::Credit;
use netdyno_protocol::frame::slot::{Header, MAX_WORDS, Malformed, sequence_at, sequence_of};
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// From one slot, or line of a lane, to the next: processors also fetch lines in pairs.
#[cfg(not(loom))]
pub(crate) const APART: usize = 3 * LINE;
/// How far ahead of itself a reader prefetches.
const AHEAD: u64 = 12;

/// One message. The arguments come first so that they fill the first half of the line.
#[repr(C)]
#[cfg_attr(loom, derive(Default))]
struct Slot {
    words: [AtomicU64; MAX_WORDS],
    header: AtomicU64,
    /// Bytes in the slot's cell, or of a transfer; written with such messages only.
    payload_len: AtomicU64,
    /// Memory and offset of a transfer: the rest of the line.
    place: [AtomicU64; 2],
    /// When the message departs, where dials are turned; never written otherwise.
    stamp: AtomicU64,
    /// Atomic as well: the other side may write to all of a slot that is borrowed here.
    #[cfg(not(loom))]
    _apart: [AtomicU64; (APART - size_of::<Tracked>()) / 8 - MAX_WORDS - 5],
    payload: Tracked,
}

/// From one slot to the next; a model's are larger.
const STRIDE: usize = size_of::<Slot>();
#[cfg(not(loom))]
const _: () = assert!(STRIDE == APART);

/// Where a ring lies in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First byte of the slots, a multiple of [`LINE`].
    pub offset: usize,
    /// Slots, a power of two.
    pub slots: usize,
    /// Bytes of a slot's payload cell, a multiple of [`LINE`].
    pub cell: usize,
}

impl Place {
    /// Bytes that the ring takes.
    pub const fn len(&self) -> usize {
        self.slots * (STRIDE + self.cell)
    }

    /// Whether it takes none.
    pub const fn is_empty(&self) -> bool {
        self.slots == 0
    }
}

#[cfg(all(test, loom))]
impl Place {
    /// Makes the atomics of a model, before its ends: memory of zeros is none of loom's.
    pub(crate) fn lay_out(&self, region: &Region) {
        for nth in 0..self.slots {
            let slot = region.at(self.offset + nth * STRIDE, STRIDE).cast::<Slot>();
            // SAFETY: inside of the region, aligned, and used by nobody yet.
            unsafe { slot.write(Slot::default()) };
        }
    }
}

/// What both ends of a ring hold: its memory, and where the next message goes.
struct End {
    slots: NonNull<Slot>,
    cells: NonNull<u8>,
    order: Order,
    cell: usize,
    /// Position of the next message, and the index of its slot.
    next: u64,
    index: usize,
    /// Keeps the memory where it is.
    _region: Arc<Region>,
}

// SAFETY: memory belongs to the process, not to a thread. What an end shares with the other one it accesses by
// atomics and copies of atomic bytes.
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
        // SAFETY: an index of the order is below the number of slots, all of which lie in
        // the region; zeroed memory is a valid slot; both sides touch it by atomics only.
        unsafe { self.slots.add(self.index).as_ref() }
    }

    /// On to the next message. Its slot is found now, before anybody waits for it.
    #[inline(always)]
    fn advance(&mut self) {
        self.next += 1;
        self.index = self.order.index(self.next);
    }

    #[inline(always)]
    fn cell(&self) -> *mut u8 {
        // SAFETY: an index of the order is below the number of slots, and the region has a cell for each slot.
        unsafe { self.cells.add(self.index * self.cell).as_ptr() }
    }
}

/// The scattered order in which slots are used: a bijection that is no stride.
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

    /// The slot of the message at `position`. Each step can be undone within the mask, so
    /// that no two positions of a lap share a slot.
    #[inline(always)]
    pub(crate) const fn index(self, position: u64) -> usize {
        let x = position.wrapping_mul(0x2545_f491_4f6c_dd1d) & self.mask;
        let x = x ^ (x >> self.shift);
        x as usize
    }
}

/// The end of a ring that writes.
pub struct Writer(End);

/// The end of a ring that reads.
pub struct Reader(End);

/// A message as read: nothing in it can be changed by the other side any more, except
/// the payload, which is copied out by [`Reader::read_payload`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its header, checked.
    pub header: Header,
    /// Its words; those beyond `header.words` are whatever was there.
    pub words: [u64; MAX_WORDS],
}

impl Message {
    /// Its words, and 0 beyond those that were sent.
    #[inline(always)]
    pub fn used_words(&self) -> [u64; MAX_WORDS] {
        let used = usize::from(self.header.words);
        std::array::from_fn(|i| if i < used { self.words[i] } else { 0 })
    }
}

/// The part of a registered memory that a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The name of the memory.
    pub memory: u64,
    /// Its first byte in there.
    pub offset: u64,
    /// Bytes in it.
    pub len: u64,
}

impl Writer {
    /// The writing end of the ring at `place`.
    ///
    /// # Safety
    /// In this process nobody else writes to the ring, and nothing else uses its memory.
    ///
    /// # Panics
    /// Where `place` is not inside of the region or not aligned.
    pub unsafe fn new(region: &Arc<Region>, place: Place) -> Self {
        Self(End::new(region, place))
    }

    /// Writes when the next message departs, which is then to be written. Not 0.
    #[inline]
    pub fn stamp(&mut self, stamp: u64) {
        self.0.slot().stamp.store(stamp, Ordering::Relaxed);
    }

    /// Writes the next message, with a credit for its slot. The sequence number of `header` is set here.
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
        // Release: pairs with the acquire in `Reader::read`; words and payload come first.
        slot.header.store(header.pack(), Ordering::Release);
        self.0.advance();
    }

    /// Writes the next message with a payload of at most a cell, as [`Writer::write`] does
    /// without one.
    ///
    /// # Panics
    /// Where the payload is longer: the caller has checked.
    #[inline]
    pub fn write_with_payload(&mut self, credit: Credit, header: Header, words: &[u64], payload: &[u8]) {
        assert!(payload.len() <= self.0.cell);
        let (slot, cell) = (self.0.slot(), self.0.cell());
        // SAFETY: the cell is as long, and in a region, which has no reference to its bytes; both ends access it by
        // such copies.
        slot.payload.write(|| unsafe { copy_slice(payload, cell) });
        slot.payload_len.store(payload.len() as u64, Ordering::Relaxed);
        self.write(credit, header, words);
    }

    /// Writes the next message with the extent that it is about, in the same line.
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
    /// The reading end of the ring at `place`.
    ///
    /// # Safety
    /// In this process nobody else reads from the ring, and nothing else uses its memory.
    ///
    /// # Panics
    /// Where `place` is not inside of the region or not aligned.
    pub unsafe fn new(region: &Arc<Region>, place: Place) -> Self {
        Self(End::new(region, place))
    }

    /// The next message, if it is there. It stays the next one until [`Reader::advance`].
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

    /// The stamp of the message that is read but not advanced over; 0 where it has none.
    #[inline]
    pub fn stamp(&self) -> u64 {
        self.0.slot().stamp.load(Ordering::Relaxed)
    }

    /// Copies the payload of the message that is read but not advanced over.
    #[inline]
    pub fn read_payload(&self, into: &mut Vec<u8>) -> Result<(), Malformed> {
        let len = self.0.slot().payload_len.load(Ordering::Relaxed);
        let len = usize::try_from(len).ok().filter(|&len| len <= self.0.cell).ok_or(Malformed)?;
        into.clear();
        into.reserve(len);
        // SAFETY: the cell is as long, and both ends access it by such copies: a correct peer leaves it alone until
        // it has a credit for it again, and a hostile one spoils bytes that nobody has looked at yet. So long is the
        // vector's room as well.
        self.0.slot().payload.read(|| unsafe { copy(self.0.cell(), into.as_mut_ptr(), len) });
        // SAFETY: so many bytes were just written.
        unsafe { into.set_len(len) };
        Ok(())
    }

    /// Reads once more the message that was advanced over last, with the extent that it is
    /// about: what another kind of message has no use for need not be kept for all of them.
    /// The other side may have changed it; it is to be checked like any that is new.
    ///
    /// # Panics
    /// Where there is none.
    #[cold]
    pub fn reread(&self) -> Result<(Message, Extent), Malformed> {
        let last = self.0.order.index(self.0.next.checked_sub(1).expect("a message was read"));
        // SAFETY: an index of the order is below the number of slots, all of which lie in the region; both sides
        // touch them by atomics only.
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

    /// Done with the message: the next one is expected.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.0.advance();
        self.prefetch();
    }

    /// Fetches a line that a writer far ahead has written. Where it has not, the line is
    /// still here from the last lap, and nothing moves.
    #[inline(always)]
    fn prefetch(&self) {
        let index = self.0.order.index(self.0.next + AHEAD);
        // SAFETY: an index of the order is that of a slot; a prefetch touches no value.
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

    /// A credit where the test sees to it that there is room.
    fn credit() -> Credit {
        Credits::new(1).take().unwrap()
    }

    const SHORT: Header = Header { sequence: 0, completed: 0, handler: 3, kind: Kind::Short, words: 4 };

    fn ring(slots: usize, cell: usize) -> (Writer, Reader) {
        let place = Place { offset: 64, slots, cell };
        let region = Arc::new(Region::on_heap(64 + place.len()));
        // SAFETY: one end of each kind on memory of its own.
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

    /// Two threads, many laps, a window of credits between them: every message once, in
    /// order, whole. Miri runs this with fewer messages.
    #[test]
    fn messages_cross_threads_once_in_order_and_whole() {
        let messages: u64 = if cfg!(miri) { 60 } else { 200_000 };
        let slots = 8;
        let (mut writer, mut reader) = ring(slots, 64);
        // What the reader has taken is a credit again.
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

    /// A peer that writes without credits. Under Miri it is the test that this is no undefined behaviour.
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
