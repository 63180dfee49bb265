//! Cells between two processes: one side fills them in turn, the other empties them in turn.
//! What goes through is copied twice, by both at once where it is long.
//!
//! The cells of a stage are many, and together longer than what a processor caches for itself
//! alone: what was filled has then moved on to a cache that both share by the time that it is
//! emptied, and what was emptied by the time that it is filled. Measured with 1 MiB of private
//! cache and copies of 1 MiB in cells of 64 KiB: 2 MiB in all took 31 µs, 256 KiB 124 µs; the
//! system's copy from process to process, which the cells replace, 77 µs.
//!
//! As with rings, credits see to it that a cell is not filled before it was emptied. A peer that breaks that
//! rule spoils what it sends, or what it gets: cells are copied as atomic bytes, so that it is nothing worse.

use crate::bytes::Bytes;
use crate::copy::{copy, copy_in_order, copy_slice};
use crate::region::Region;
use crate::sync::Tracked;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a cell; few in a model.
pub const CELL: usize = if cfg!(loom) { 64 } else { 64 * 1024 };
/// Cells of a stage; few in a model.
pub const CELLS: usize = if cfg!(loom) { 2 } else { 32 };
/// Bytes of a stage.
pub const LEN: usize = CELL * CELLS + size_of::<Tracks>();

/// One for each cell.
type Tracks = [Tracked; CELLS];

/// One side's view of a stage: its memory, and which cell is next.
struct End {
    cells: NonNull<u8>,
    tracks: NonNull<Tracks>,
    next: usize,
    _region: Arc<Region>,
}

// SAFETY: memory belongs to the process, not to a thread. What a side shares with the other one it accesses by copies
// of atomic bytes.
unsafe impl Send for End {}

impl End {
    fn new(region: &Arc<Region>, offset: usize) -> Self {
        Self {
            cells: region.at(offset, CELL * CELLS),
            tracks: region.at(offset + CELL * CELLS, size_of::<Tracks>()).cast(),
            next: 0,
            _region: Arc::clone(region),
        }
    }

    /// The next cell, which has `len` bytes.
    #[inline]
    fn turn(&mut self, len: usize) -> (NonNull<u8>, &Tracked) {
        assert!(len <= CELL, "more than a cell has");
        let index = self.next;
        self.next = (index + 1) % CELLS;
        // SAFETY: one of the cells, and what stands for it; both lie in the region.
        unsafe { (self.cells.add(index * CELL), &self.tracks.as_ref()[index]) }
    }
}

/// Makes what a model tracks, before its sides: memory of zeros is none of loom's.
#[cfg(all(test, loom))]
pub(crate) fn lay_out(region: &Region, offset: usize) {
    let tracks = region.at(offset + CELL * CELLS, size_of::<Tracks>()).cast::<Tracks>();
    // SAFETY: inside of the region, aligned, and used by nobody yet.
    unsafe { tracks.write(Tracks::default()) };
}

/// The side that fills the cells.
pub struct StageWriter {
    end: End,
    /// The messages that told of the cells filled last, by their numbers.
    filled: VecDeque<u64>,
}

/// The side that empties the cells.
pub struct StageReader(End);

/// The right to fill one cell, which is empty.
///
/// A second cell is a type error:
///
/// ```compile_fail,E0382
/// use netdyno_host::stage::StageWriter;
/// fn fill_two(stage: &mut StageWriter) {
///     let cell = stage.granted_cell();
///     cell.fill(&[1], 0);
///     cell.fill(&[2], 1);
/// }
/// ```
#[must_use]
pub struct EmptyCell<'a>(&'a mut StageWriter);

impl StageWriter {
    /// The filling side of the stage from byte `offset` of a region on.
    ///
    /// # Safety
    /// In this process nobody else fills it, and nothing else uses its memory.
    ///
    /// # Panics
    /// Where it is not all inside.
    pub unsafe fn new(region: &Arc<Region>, offset: usize) -> Self {
        Self { end: End::new(region, offset), filled: VecDeque::new() }
    }

    /// The next cell, if it is empty: messages up to number `completed`, without it, are complete, and with them
    /// the cells were emptied of which they told.
    pub fn empty_cell(&mut self, completed: u64) -> Option<EmptyCell<'_>> {
        while self.filled.front().is_some_and(|&number| number < completed) {
            self.filled.pop_front();
        }
        (self.filled.len() < CELLS).then_some(EmptyCell(self))
    }

    /// The next cell, which the other side has asked to be filled, and has emptied before: one that has not spoils
    /// what it gets.
    pub fn granted_cell(&mut self) -> EmptyCell<'_> {
        EmptyCell(self)
    }

    /// Passes the next cell by.
    pub fn skip(&mut self) {
        self.end.turn(0);
    }
}

impl EmptyCell<'_> {
    /// Fills the cell, from its start; the message of that number tells of it.
    ///
    /// # Panics
    /// Where it is too much: the caller has checked.
    #[inline]
    pub fn fill(self, from: &[u8], number: u64) {
        let StageWriter { end, filled } = self.0;
        filled.push_back(number);
        let (cell, track) = end.turn(from.len());
        // SAFETY: a cell has so many bytes, in a region, which has no reference to them; both sides access them by
        // such copies.
        track.write(|| unsafe { copy_slice(from, cell.as_ptr()) });
    }

    /// Fills the cell with `len` bytes of `from`.
    ///
    /// # Panics
    /// Where it is too much, or there are fewer: the caller has checked.
    #[inline]
    pub fn fill_from(self, from: &Bytes, offset: usize, len: usize) {
        let from = from.at(offset, len);
        let (cell, track) = self.0.end.turn(len);
        // SAFETY: a cell has so many bytes, in a region, which has no reference to them; both sides access them by
        // such copies. As many bytes lie at `from`, which are accessed by such copies as well.
        track.write(|| unsafe { copy(from.as_ptr(), cell.as_ptr(), len) });
    }
}

impl StageReader {
    /// The emptying side of the stage from byte `offset` of a region on.
    ///
    /// # Safety
    /// In this process nobody else empties it, and nothing else uses its memory.
    ///
    /// # Panics
    /// Where it is not all inside.
    pub unsafe fn new(region: &Arc<Region>, offset: usize) -> Self {
        Self(End::new(region, offset))
    }

    /// Empties the next cell, which has `len` bytes: the last 8 become visible after all others, in order.
    ///
    /// # Panics
    /// Where no cell has so many, or there is no room for them: the caller has checked.
    #[inline]
    pub fn empty_into(&mut self, to: &Bytes, offset: usize, len: usize) {
        let to = to.at(offset, len);
        let (cell, track) = self.0.turn(len);
        // SAFETY: a cell has so many bytes, in a region, which has no reference to them; both sides access them by
        // such copies: a correct peer leaves the cell alone, and a hostile one spoils what it sends. So much room is
        // at `to`, where bytes are accessed by such copies as well.
        track.read(|| unsafe { copy_in_order(cell.as_ptr(), to.as_ptr(), len) });
    }

    /// Passes the next cell by.
    pub fn skip(&mut self) {
        self.0.turn(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn stage() -> (StageWriter, StageReader) {
        let region = Arc::new(Region::on_heap(64 + LEN));
        // SAFETY: one for each side, on memory of its own.
        unsafe { (StageWriter::new(&region, 64), StageReader::new(&region, 64)) }
    }

    #[test]
    fn what_is_filled_in_turn_is_emptied_in_turn() {
        let (mut here, mut there) = stage();
        let taken = Bytes::of_box(vec![0; 10].into());
        for n in 0..2 * CELLS as u8 + 3 {
            if n % 7 == 6 {
                here.skip();
                there.skip();
            } else if n % 2 == 0 {
                here.granted_cell().fill(&[n; 4], 0);
                there.empty_into(&taken, 3, 4);
            } else {
                here.granted_cell().fill_from(&Bytes::of_box(vec![n; 9].into()), 5, 4);
                there.empty_into(&taken, 3, 4);
            }
            let mut found = [0; 4];
            taken.read(3, &mut found);
            assert!(n % 7 == 6 || found == [n; 4]);
        }
    }

    #[test]
    fn a_whole_stage_is_filled_before_it_is_emptied() {
        let (mut here, mut there) = stage();
        // Miri takes seconds for a whole cell.
        let len = if cfg!(miri) { 200 } else { CELL };
        for n in 0..CELLS {
            here.empty_cell(0).unwrap().fill(&vec![n as u8; len], n as u64);
        }
        assert!(here.empty_cell(0).is_none());
        let taken = Bytes::of_box(vec![0; len].into());
        for n in 0..CELLS {
            there.empty_into(&taken, 0, len);
            let mut found = vec![0; len];
            taken.read(0, &mut found);
            assert_eq!(found, vec![n as u8; len]);
        }
        assert!(here.empty_cell(1).is_some());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri takes long for it, and loom has a model of it")]
    fn a_cell_is_emptied_by_one_thread_before_the_other_fills_it_again() {
        let (most, len) = (100 * CELLS, 100);
        let (mut here, mut there) = stage();
        let ((tell, told), (complete, completed)) = (mpsc::channel(), mpsc::channel());
        // The ends of the channels go with each side, so that one that fails ends the other one.
        std::thread::scope(move |scope| {
            scope.spawn(move || {
                let mut so_far = 0;
                for n in 0..most {
                    let cell = loop {
                        if let Some(cell) = here.empty_cell(so_far) {
                            break cell;
                        }
                        so_far = completed.recv().unwrap();
                    };
                    cell.fill(&vec![n as u8; len], n as u64);
                    tell.send(n).unwrap();
                }
            });
            let taken = Bytes::of_box(vec![0; len].into());
            for n in told {
                there.empty_into(&taken, 0, len);
                let mut found = vec![0; len];
                taken.read(0, &mut found);
                assert_eq!(found, vec![n as u8; len]);
                complete.send(n as u64 + 1).unwrap_or(());
            }
        });
    }

    #[test]
    #[should_panic(expected = "more than a cell has")]
    fn no_cell_is_overfilled() {
        let (mut here, _) = stage();
        here.granted_cell().fill(&vec![0; CELL + 1], 0);
    }
}
