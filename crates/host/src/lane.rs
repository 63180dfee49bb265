//! One direction of a shared-memory connection between two Virtual Interfaces: a message ring of cache-line
//! slots (lines), and a payload buffer beside it.
//!
//! A line has a header and seven words. The sequence number in the header marks the line as ready, as in a
//! [`ring`](crate::ring). Longer payloads lie in the buffer as consecutive pieces. Both ends compute where
//! the next piece begins, so that no message carries an offset.
//!
//! The writer reuses a line after the reader has taken it. The layer above reports to the writer how many
//! lines the reader has taken.

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

/// Number of lines of a lane; few in a loom model.
pub const LINES: usize = if cfg!(loom) { 2 } else { 128 };
/// Number of words of a line.
pub const WORDS: usize = 7;
/// Maximum length of a piece in the buffer, in bytes.
pub const PIECE: usize = if cfg!(loom) { LINE } else { 64 * 1024 };
/// Size of the buffer in bytes. It exceeds a processor's private cache, for the reason given in
/// [`bounce`](crate::bounce).
const BUFFER: usize = if cfg!(loom) { 2 } else { 32 } * PIECE;
/// Size of a lane in bytes.
pub const LEN: usize = LINES * STRIDE + BUFFER + size_of::<Tracks>();

#[repr(C)]
#[cfg_attr(loom, derive(Default))]
struct Line {
    header: AtomicU64,
    words: [AtomicU64; WORDS],
    #[cfg(not(loom))]
    _apart: [AtomicU64; (APART - LINE) / 8],
}

/// Stride between lines, in bytes. Lines of a loom model are larger.
const STRIDE: usize = size_of::<Line>();
#[cfg(not(loom))]
const _: () = assert!(STRIDE == APART);

/// One marker for each cache line of the buffer.
type Tracks = [Tracked; BUFFER / LINE];

/// The state of one end: the memory, and the positions of the next line and the next piece.
struct End {
    lines: NonNull<Line>,
    buffer: NonNull<u8>,
    tracks: NonNull<Tracks>,
    order: Order,
    next: u64,
    bytes: u64,
    _region: Arc<Region>,
}

/// Initializes the atomics of a loom model before its ends are created. Loom does not accept zeroed memory as
/// atomics.
#[cfg(all(test, loom))]
pub(crate) fn lay_out(region: &Region, offset: usize) {
    for nth in 0..LINES {
        let line = region.at(offset + nth * STRIDE, STRIDE).cast::<Line>();
        // SAFETY: inside the region, aligned, and not yet in use.
        unsafe { line.write(Line::default()) };
    }
    let tracks = region.at(offset + LINES * STRIDE + BUFFER, size_of::<Tracks>()).cast::<Tracks>();
    // SAFETY: inside the region, aligned, and not yet in use.
    unsafe { tracks.write(Tracks::default()) };
}

/// The location of a piece in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    at: usize,
    len: usize,
}

// SAFETY: memory belongs to the process, not to a thread. An end accesses shared memory only by atomics and
// by copies of atomic bytes.
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
        // SAFETY: an index of the order is below the number of lines, which all lie in the region. Zeroed
        // memory is a valid line. Both sides access it by atomics only.
        unsafe { self.lines.add(self.order.index(self.next)).as_ref() }
    }

    /// Returns the position of the next piece of `len` bytes. A piece never wraps around the end of the
    /// buffer.
    fn begin(&self, len: usize) -> u64 {
        let left = BUFFER as u64 - self.bytes % BUFFER as u64;
        if (len as u64) <= left { self.bytes } else { self.bytes + left }
    }

    /// Allocates the next piece of `len` bytes, which is contiguous in the buffer.
    fn take_piece(&mut self, len: usize) -> Piece {
        assert!(len <= PIECE, "more than a piece has");
        let begin = self.begin(len);
        self.bytes = begin + len.next_multiple_of(LINE) as u64;
        Piece { at: (begin % BUFFER as u64) as usize, len }
    }

    fn tracks(&self, Piece { at, len }: Piece) -> &[Tracked] {
        // SAFETY: the markers lie in the region, and all access to them is by shared references.
        let tracks = unsafe { self.tracks.as_ref() };
        &tracks[at / LINE..(at + len).div_ceil(LINE)]
    }
}

/// The writing end of a lane.
pub struct Writer {
    end: End,
    /// Number of lines that the reader has taken.
    taken: u64,
    /// Bytes of the buffer that the reader has freed, counted over the life of the lane.
    freed: u64,
    /// For each line with a piece that is not yet taken: its number, and the value of `freed` once it is
    /// taken.
    pieces: VecDeque<(u64, u64)>,
}

/// The reading end of a lane.
pub struct Reader(End);

/// The error of a reader that reports lines that were never written, or fewer lines than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lied;

/// Returns both ends of a lane in memory of its own, for two threads of this process.
pub fn pair() -> (Writer, Reader) {
    let region = Arc::new(Region::anonymous(LEN));
    // SAFETY: the memory is new, so that these ends alone use it.
    unsafe { (Writer::new(&region, 0), Reader::new(&region, 0)) }
}

impl Writer {
    /// Creates the writing end of the lane at `offset`.
    ///
    /// # Safety
    /// No other code of this process may write to the lane or use its memory.
    ///
    /// # Panics
    /// Panics if the lane is not inside the region or not aligned.
    pub unsafe fn new(region: &Arc<Region>, offset: usize) -> Self {
        Self { end: End::new(region, offset), taken: 0, freed: 0, pieces: VecDeque::new() }
    }

    /// Returns the number of lines written so far.
    pub fn written(&self) -> u64 {
        self.end.next
    }

    /// Returns the number of lines that the reader is known to have taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Frees the lines before `taken`, the total that the reader has taken.
    ///
    /// # Errors
    /// Returns `Lied` if `taken` exceeds the lines written, or is less than before.
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

    /// Reserves a line and a piece, or returns `None` if one of them does not fit.
    #[inline(always)]
    pub fn room(&mut self) -> Option<Room<'_>> {
        self.has_room().then_some(Room(self))
    }

    /// Reports whether there is space for a line and a piece of maximum length.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.end.next - self.taken < LINES as u64
            && self.end.begin(PIECE) + PIECE as u64 - self.freed <= BUFFER as u64
    }
}

/// The right to write one line, with or without a piece. There is space for both, and no other write can come
/// in between.
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
    /// Writes a line without a piece.
    #[inline]
    pub fn write(self, code: u8, words: &[u64; WORDS]) {
        let Self(Writer { end, taken, .. }) = self;
        debug_assert!(end.next - *taken < LINES as u64);
        let line = end.line();
        for (word, &value) in line.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        let header = u64::from(sequence_at(end.next)) | u64::from(code) << 32;
        // Release: pairs with the acquire in `Reader::read`. It publishes the words and the piece.
        line.header.store(header, Ordering::Release);
        end.next += 1;
    }

    /// Writes a line with a piece that holds all bytes of `from`, at most [`PIECE`] of them.
    ///
    /// # Panics
    /// Panics if `from` has more bytes: the caller must have checked.
    pub fn write_piece(self, code: u8, words: &[u64; WORDS], from: &[Stretch]) {
        let Writer { end, freed, pieces, .. } = &mut *self.0;
        let piece = end.take_piece(from.iter().map(Stretch::len).sum());
        debug_assert!(end.bytes - *freed <= BUFFER as u64);
        end.tracks(piece).iter().for_each(|track| track.write(|| ()));
        let mut at = piece.at;
        for stretch in from {
            // SAFETY: all stretches together are as long as the piece, which lies in the buffer. The buffer
            // is in a region, which has no reference to its bytes. Both ends access it by atomic copies.
            unsafe { stretch.readable().copy_out(end.buffer.add(at)) };
            at += stretch.len();
        }
        pieces.push_back((end.next, end.bytes));
        self.write(code, words);
    }
}

impl Reader {
    /// Creates the reading end of the lane at `offset`.
    ///
    /// # Safety
    /// No other code of this process may read from the lane or use its memory.
    ///
    /// # Panics
    /// Panics if the lane is not inside the region or not aligned.
    pub unsafe fn new(region: &Arc<Region>, offset: usize) -> Self {
        Self(End::new(region, offset))
    }

    /// Returns the number of lines taken so far.
    pub fn taken(&self) -> u64 {
        self.0.next
    }

    /// Returns the code and the words of the next line if it has arrived. It stays the next line until
    /// [`Reader::advance`].
    #[inline(always)]
    pub fn read(&self) -> Option<(u8, [u64; WORDS])> {
        let line = self.0.line();
        // Acquire: pairs with the release in `Room::write`.
        let header = line.header.load(Ordering::Acquire);
        if sequence_of(header) != sequence_at(self.0.next) {
            return None;
        }
        let words = std::array::from_fn(|at| line.words[at].load(Ordering::Relaxed));
        Some(((header >> 32) as u8, words))
    }

    /// Advances past the current line.
    #[inline]
    pub fn advance(&mut self) {
        self.0.next += 1;
    }

    /// Advances past the piece of the current line, which has `len` bytes, and returns the piece.
    ///
    /// # Panics
    /// Panics if `len` exceeds [`PIECE`]: the caller must have checked.
    pub fn take_piece(&mut self, len: usize) -> Piece {
        self.0.take_piece(len)
    }

    /// Returns the bytes of a piece. The caller copies them out before it validates them, and before it
    /// reports the line as taken.
    pub fn bytes(&self, piece: Piece) -> Readable<'_> {
        self.0.tracks(piece).iter().for_each(|track| track.read(|| ()));
        // SAFETY: a piece of any lane lies in the buffer. The buffer lives as long as `self`, in a region,
        // which has no reference to its bytes. The peer accesses it by copies of atomic bytes. A correct peer
        // does not write it before the line is reported as taken. A hostile peer corrupts only its own data.
        unsafe { Readable::new(self.0.buffer.add(piece.at), piece.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn lane() -> (Writer, Reader) {
        let region = Arc::new(Region::anonymous(64 + LEN));
        // SAFETY: one end each, on memory that nothing else uses.
        unsafe { (Writer::new(&region, 64), Reader::new(&region, 64)) }
    }

    fn stretch(bytes: &mut [u8]) -> Stretch {
        // SAFETY: the stretch is used before any other access to the bytes.
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

    /// The reader thread and the writer thread synchronize data only through the lane. Otherwise
    /// ThreadSanitizer would see orders that the lane does not establish, and would miss races.
    #[test]
    #[cfg_attr(miri, ignore = "Miri takes long for it, and loom has a model of it")]
    fn pieces_cross_threads_in_order_and_whole() {
        let most: u64 = 1000;
        // ThreadSanitizer remembers only a limited number of accesses.
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
