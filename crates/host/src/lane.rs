//! One direction between two Virtual Interfaces: lines for what is short, and a buffer beside them.
//!
//! A line is a cache line: a header whose sequence number says that it is ready, as in a
//! [`ring`](crate::ring), and seven words. What does not fit into them lies in the buffer, in pieces
//! that follow each other; where the next one begins both sides know by themselves, so that nothing
//! that is sent says where to look.
//!
//! A line is written again once the reader has taken so many; the writer is told how many those are.

use crate::bytes::{Readable, Stretch};
use crate::region::Region;
#[cfg(not(loom))]
use crate::ring::APART;
use crate::ring::{LINE, Order};
use crate::sync::{AtomicU64, Ordering, Tracked};
use netdyno_protocol::frame::slot::{sequence_at, sequence_of};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

/// Lines of a lane; few in a model.
pub const LINES: usize = if cfg!(loom) { 2 } else { 128 };
/// Words of a line.
pub const WORDS: usize = 7;
/// Most bytes of a piece in the buffer.
pub const PIECE: usize = if cfg!(loom) { LINE } else { 64 * 1024 };
/// Bytes of the buffer: longer than what a processor caches for itself alone, as a
/// [`stage`](crate::stage) is.
const BUFFER: usize = if cfg!(loom) { 2 } else { 32 } * PIECE;
/// Bytes of a lane.
pub const LEN: usize = LINES * STRIDE + BUFFER + size_of::<Tracks>();

#[repr(C)]
#[cfg_attr(loom, derive(Default))]
struct Line {
    header: AtomicU64,
    words: [AtomicU64; WORDS],
    #[cfg(not(loom))]
    _apart: [AtomicU64; (APART - LINE) / 8],
}

/// From one line to the next; a model's are larger.
const STRIDE: usize = size_of::<Line>();
#[cfg(not(loom))]
const _: () = assert!(STRIDE == APART);

/// One for as much of the buffer as a cache line has.
type Tracks = [Tracked; BUFFER / LINE];

/// What both ends have: the memory, and where the next line and the next piece are.
struct End {
    lines: NonNull<Line>,
    buffer: NonNull<u8>,
    tracks: NonNull<Tracks>,
    order: Order,
    next: u64,
    bytes: u64,
    _region: Arc<Region>,
}

/// Makes the atomics of a model, before its ends: memory of zeros is none of loom's.
#[cfg(all(test, loom))]
pub(crate) fn lay_out(region: &Region, offset: usize) {
    for nth in 0..LINES {
        let line = region.at(offset + nth * STRIDE, STRIDE).cast::<Line>();
        // SAFETY: inside of the region, aligned, and used by nobody yet.
        unsafe { line.write(Line::default()) };
    }
    let tracks = region.at(offset + LINES * STRIDE + BUFFER, size_of::<Tracks>()).cast::<Tracks>();
    // SAFETY: inside of the region, aligned, and used by nobody yet.
    unsafe { tracks.write(Tracks::default()) };
}

/// Where a piece lies in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    at: usize,
    len: usize,
}

// SAFETY: memory belongs to the process, not to a thread. What an end shares with the other one it accesses by
// atomics and copies of atomic bytes.
unsafe impl Send for End {}

impl End {
    fn new(region: &Arc<Region>, offset: usize) -> Self {
        assert!(offset.is_multiple_of(LINE));
        Self {
            lines: region.at(offset, LEN).cast(),
            buffer: region.at(offset + LINES * STRIDE, BUFFER),
            tracks: region.at(offset + LINES * STRIDE + BUFFER, size_of::<Tracks>()).cast(),
            order: Order::new(LINES),
            next: 0,
            bytes: 0,
            _region: Arc::clone(region),
        }
    }

    #[inline(always)]
    fn line(&self) -> &Line {
        // SAFETY: an index of the order is below the number of lines, which lie in the region; zeros
        // are a valid line; both sides touch it by atomics only.
        unsafe { self.lines.add(self.order.index(self.next)).as_ref() }
    }

    /// Where the next piece of `len` bytes begins: in one stretch.
    fn begin(&self, len: usize) -> u64 {
        let left = BUFFER as u64 - self.bytes % BUFFER as u64;
        if (len as u64) <= left { self.bytes } else { self.bytes + left }
    }

    /// The next piece, which has `len` bytes: all of it is in the buffer.
    fn take_piece(&mut self, len: usize) -> Piece {
        assert!(len <= PIECE, "more than a piece has");
        let begin = self.begin(len);
        self.bytes = begin + len.next_multiple_of(LINE) as u64;
        Piece { at: (begin % BUFFER as u64) as usize, len }
    }

    fn tracks(&self, Piece { at, len }: Piece) -> &[Tracked] {
        // SAFETY: they lie in the region; nothing writes to them but by shared references.
        let tracks = unsafe { self.tracks.as_ref() };
        &tracks[at / LINE..(at + len).div_ceil(LINE)]
    }
}

/// The end of a lane that writes.
pub struct Writer {
    end: End,
    /// Lines that the reader has taken.
    taken: u64,
    /// Bytes of the buffer that are free again, counted over the life of the lane.
    freed: u64,
    /// Lines with pieces that are not taken, and where the buffer is free behind each.
    pieces: VecDeque<(u64, u64)>,
}

/// The end of a lane that reads.
pub struct Reader(End);

/// The reader says to have taken what was never written, or less than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lied;

impl Writer {
    /// The writing end of the lane at `offset`.
    ///
    /// # Safety
    /// In this process nobody else writes to the lane, and nothing else uses its memory.
    ///
    /// # Panics
    /// Where it is not inside of the region or not aligned.
    pub unsafe fn new(region: &Arc<Region>, offset: usize) -> Self {
        Self { end: End::new(region, offset), taken: 0, freed: 0, pieces: VecDeque::new() }
    }

    /// Lines written so far.
    pub fn written(&self) -> u64 {
        self.end.next
    }

    /// Lines that the reader has taken, as far as is known.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The reader has taken so many lines.
    ///
    /// # Errors
    /// It can not have.
    pub fn free(&mut self, taken: u64) -> Result<(), Lied> {
        if !(self.taken..=self.end.next).contains(&taken) {
            return Err(Lied);
        }
        self.taken = taken;
        while let Some(&(_, freed)) = self.pieces.front().filter(|(line, _)| *line < taken) {
            self.freed = freed;
            self.pieces.pop_front();
        }
        Ok(())
    }

    /// The room for a line, and for a piece with it; `None` where there is none.
    #[inline(always)]
    pub fn room(&mut self) -> Option<Room<'_>> {
        self.has_room().then_some(Room(self))
    }

    /// Whether there is room for a line, and for a piece with it.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.end.next - self.taken < LINES as u64
            && self.end.begin(PIECE) + PIECE as u64 - self.freed <= BUFFER as u64
    }
}

/// The right to write one line, with a piece or without: there is room for both, and nothing else is written
/// meanwhile.
///
/// A second line is a type error:
///
/// ```compile_fail,E0382
/// use netdyno_host::lane::{WORDS, Writer};
/// fn write_two(lane: &mut Writer) {
///     if let Some(room) = lane.room() {
///         room.write(0, &[0; WORDS]);
///         room.write(0, &[0; WORDS]);
///     }
/// }
/// ```
#[must_use]
pub struct Room<'a>(&'a mut Writer);

impl Room<'_> {
    /// Writes a line.
    #[inline]
    pub fn write(self, code: u8, words: &[u64; WORDS]) {
        let Self(Writer { end, taken, .. }) = self;
        debug_assert!(end.next - *taken < LINES as u64);
        let line = end.line();
        for (word, &value) in line.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        let header = u64::from(sequence_at(end.next)) | u64::from(code) << 32;
        // Release: pairs with the acquire in `Reader::read`; words and piece come first.
        line.header.store(header, Ordering::Release);
        end.next += 1;
    }

    /// Writes a line with a piece: all bytes of `from`, at most [`PIECE`] of them.
    ///
    /// # Panics
    /// Where there are more: the caller has checked.
    pub fn write_piece(self, code: u8, words: &[u64; WORDS], from: &[Stretch]) {
        let Writer { end, freed, pieces, .. } = &mut *self.0;
        let piece = end.take_piece(from.iter().map(Stretch::len).sum());
        debug_assert!(end.bytes - *freed <= BUFFER as u64);
        end.tracks(piece).iter().for_each(|track| track.write(|| ()));
        let mut at = piece.at;
        for stretch in from {
            // SAFETY: the stretches are together as long as the piece, which is in the buffer. That is in a region,
            // which has no reference to its bytes; both ends access it by such copies.
            unsafe { stretch.readable().copy_out(end.buffer.add(at)) };
            at += stretch.len();
        }
        pieces.push_back((end.next, end.bytes));
        self.write(code, words);
    }
}

impl Reader {
    /// The reading end of the lane at `offset`.
    ///
    /// # Safety
    /// In this process nobody else reads from the lane, and nothing else uses its memory.
    ///
    /// # Panics
    /// Where it is not inside of the region or not aligned.
    pub unsafe fn new(region: &Arc<Region>, offset: usize) -> Self {
        Self(End::new(region, offset))
    }

    /// Lines taken so far.
    pub fn taken(&self) -> u64 {
        self.0.next
    }

    /// The next line, if it is there: its code and its words. It stays the next one until
    /// [`Reader::advance`].
    #[inline(always)]
    pub fn read(&self) -> Option<(u8, [u64; WORDS])> {
        let line = self.0.line();
        // Acquire: pairs with the release in `Writer::write`.
        let header = line.header.load(Ordering::Acquire);
        if sequence_of(header) != sequence_at(self.0.next) {
            return None;
        }
        let words = std::array::from_fn(|at| line.words[at].load(Ordering::Relaxed));
        Some(((header >> 32) as u8, words))
    }

    /// Goes past the line that was read.
    #[inline]
    pub fn advance(&mut self) {
        self.0.next += 1;
    }

    /// Goes past the piece of the line, which has so many bytes.
    ///
    /// # Panics
    /// Where no piece has so many: the caller has checked.
    pub fn take_piece(&mut self, len: usize) -> Piece {
        self.0.take_piece(len)
    }

    /// The bytes of a piece: to be copied out before anybody looks at them, and before the writer is told that its
    /// line was taken.
    pub fn bytes(&self, piece: Piece) -> Readable<'_> {
        self.0.tracks(piece).iter().for_each(|track| track.read(|| ()));
        // SAFETY: a piece of any lane is in the buffer, which lives as long as `self`, in a region, which has no
        // reference to its bytes. The other end accesses it by copies of atomic bytes: a correct peer not before it
        // is told, and a hostile one spoils what it sends.
        unsafe { Readable::new(self.0.buffer.add(piece.at), piece.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn lane() -> (Writer, Reader) {
        let region = Arc::new(Region::on_heap(64 + LEN));
        // SAFETY: one end each, on memory of its own.
        unsafe { (Writer::new(&region, 64), Reader::new(&region, 64)) }
    }

    fn stretch(bytes: &mut [u8]) -> Stretch {
        // SAFETY: used before the bytes are touched again.
        unsafe { Stretch::new(NonNull::from(&mut *bytes).cast(), bytes.len()) }
    }

    #[test]
    fn lines_and_pieces_come_in_their_order_over_many_laps() {
        let (mut writer, mut reader) = lane();
        let most = if cfg!(miri) { 300 } else { 2000 };
        let mut waiting = VecDeque::new();
        for nth in 0..most {
            let len = if cfg!(miri) { nth * 7 % 100 } else { nth * 7919 % (PIECE + 1) };
            while !writer.has_room() {
                let (nth, len): (usize, usize) = waiting.pop_front().unwrap();
                assert_eq!(reader.read().unwrap(), (nth as u8, [nth as u64; WORDS]));
                let mut got = vec![0; len];
                let piece = reader.take_piece(len);
                reader.bytes(piece).read(&mut got);
                assert!(got.iter().all(|byte| *byte == nth as u8));
                reader.advance();
                writer.free(reader.taken()).unwrap();
            }
            let mut bytes = vec![nth as u8; len];
            let room = writer.room().unwrap();
            room.write_piece(nth as u8, &[nth as u64; WORDS], &[stretch(&mut bytes)]);
            waiting.push_back((nth, len));
        }
        assert!(writer.written() as usize == most && reader.taken() > 0);
    }

    /// The writer's thread tells the reader's one nothing but by the lane, so that ThreadSanitizer misses no
    /// order that the lane does not make.
    #[test]
    #[cfg_attr(miri, ignore = "Miri takes long for it, and loom has a model of it")]
    fn pieces_cross_threads_in_order_and_whole() {
        let most: u64 = 1000;
        // ThreadSanitizer forgets an access after many others.
        let longest = if cfg!(netdyno_tsan) { 100 } else { PIECE as u64 };
        let len_of = |nth: u64| (nth * 7919 % (longest + 1)) as usize;
        let (mut writer, mut reader) = lane();
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                for nth in 0..most {
                    let line = loop {
                        if let Some(line) = reader.read() {
                            break line;
                        }
                        std::thread::yield_now();
                    };
                    assert_eq!(line, (nth as u8, [nth; WORDS]));
                    let mut found = vec![0; len_of(nth)];
                    let piece = reader.take_piece(found.len());
                    reader.bytes(piece).read(&mut found);
                    assert!(found.iter().all(|byte| *byte == nth as u8));
                    reader.advance();
                    taken.store(reader.taken(), Ordering::Release);
                }
            });
            for nth in 0..most {
                while !writer.has_room() {
                    assert!(!reading.is_finished(), "the reader has failed");
                    std::thread::yield_now();
                    writer.free(taken.load(Ordering::Acquire)).unwrap();
                }
                let mut bytes = vec![nth as u8; len_of(nth)];
                let room = writer.room().unwrap();
                room.write_piece(nth as u8, &[nth; WORDS], &[stretch(&mut bytes)]);
            }
        });
    }

    #[test]
    fn a_lane_that_is_full_has_no_room() {
        let (mut writer, mut reader) = lane();
        assert_eq!(reader.read(), None);
        for nth in 0..LINES as u64 {
            writer.room().unwrap().write(1, &[nth; WORDS]);
        }
        assert!(writer.room().is_none());
        assert_eq!(reader.read(), Some((1, [0; WORDS])));
        reader.advance();
        writer.free(1).unwrap();
        assert!(writer.has_room());
    }

    #[test]
    fn a_reader_that_takes_what_was_not_written_lies() {
        let (mut writer, _) = lane();
        writer.room().unwrap().write(1, &[0; WORDS]);
        assert_eq!(writer.free(2), Err(Lied));
        assert_eq!(writer.free(1), Ok(()));
        assert_eq!(writer.free(0), Err(Lied));
    }
}
