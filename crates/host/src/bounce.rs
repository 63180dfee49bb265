//! Bounce buffers between two processes. One side fills the slots (cells) of a stage in round-robin order,
//! and the other side empties them in the same order. Data is copied twice. For long transfers the two copies
//! overlap.
//!
//! A stage is larger than a processor's private cache. Data in a full cell therefore moves on to a cache that
//! both processors share before the reader empties it. The same holds for an empty cell before the writer
//! refills it. Measured with 1 MiB of private cache, for copies of 1 MiB in cells of 64 KiB:
//!
//! * A stage of 2 MiB took 31 µs.
//! * A stage of 256 KiB took 124 µs.
//! * The system's copy from process to process, which a stage replaces, took 77 µs.
//!
//! As with rings, credits ensure that a cell is emptied before it is refilled. A peer that breaks this rule
//! corrupts only the data that it sends or receives. Cells are copied as atomic bytes, so that the race is no
//! undefined behaviour.

use crate::bytes::Bytes;
use crate::copy::{copy, copy_in_order, copy_slice};
use crate::region::Region;
use crate::sync::Tracked;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

/// Size of a cell in bytes; small in a loom model.
pub const CELL: usize = if cfg!(loom) { 64 } else { 64 * 1024 };
/// Number of cells of a stage; few in a loom model.
pub const CELLS: usize = if cfg!(loom) { 2 } else { 32 };
/// Size of a stage in bytes.
pub const LEN: usize = CELL * CELLS + size_of::<Tracks>();

/// One marker for each cell.
type Tracks = [Tracked; CELLS];

/// The state of one side: the memory, and the index of the next cell.
struct End {
    cells: NonNull<u8>,
    tracks: NonNull<Tracks>,
    next: usize,
    _region: Arc<Region>,
}

// SAFETY: memory belongs to the process, not to a thread. A side accesses shared memory only by copies of
// atomic bytes.
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

    /// Returns the next cell for `len` bytes, and advances past it.
    #[inline]
    fn turn(&mut self, len: usize) -> (NonNull<u8>, &Tracked) {
        assert!(len <= CELL, "more than a cell has");
        let index = self.next;
        self.next = (index + 1) % CELLS;
        // SAFETY: the index is that of a cell and of its marker. Both lie in the region.
        unsafe { (self.cells.add(index * CELL), &self.tracks.as_ref()[index]) }
    }
}

/// Initializes the markers of a loom model before its sides are created. Loom does not accept zeroed memory.
#[cfg(all(test, loom))]
pub(crate) fn lay_out(region: &Region, offset: usize) {
    let tracks = region.at(offset + CELL * CELLS, size_of::<Tracks>()).cast::<Tracks>();
    // SAFETY: inside the region, aligned, and not yet in use.
    unsafe { tracks.write(Tracks::default()) };
}

/// The side that fills the cells.
pub struct BounceWriter {
    end: End,
    /// For each cell that may still be full: the number of the message that announced it, oldest first.
    filled: VecDeque<u64>,
}

/// The side that empties the cells.
pub struct BounceReader(End);

/// The right to fill one empty cell.
///
/// A second cell is a type error:
///
/// ```compile_fail,E0382
/// use netdyno_host::bounce::BounceWriter;
/// fn fill_two(stage: &mut BounceWriter) {
///     let cell = stage.granted_cell();
///     cell.fill(&[1], 0);
///     cell.fill(&[2], 1);
/// }
/// ```
#[must_use]
pub struct EmptyCell<'a>(&'a mut BounceWriter);

impl BounceWriter {
    /// Creates the filling side of the stage at byte `offset` of a region.
    ///
    /// # Safety
    /// No other code of this process may fill the stage or use its memory.
    ///
    /// # Panics
    /// Panics if the stage is not inside the region.
    pub unsafe fn new(region: &Arc<Region>, offset: usize) -> Self {
        Self { end: End::new(region, offset), filled: VecDeque::new() }
    }

    /// Returns the next cell if it is empty. All messages with numbers below `completed` are complete. The
    /// reader has emptied the cells that these messages announced.
    pub fn empty_cell(&mut self, completed: u64) -> Option<EmptyCell<'_>> {
        while self.filled.front().is_some_and(|&number| number < completed) {
            self.filled.pop_front();
        }
        (self.filled.len() < CELLS).then_some(EmptyCell(self))
    }

    /// Returns the next cell without a check, because the peer asked this side to fill it. A correct peer has
    /// emptied it first. Any other peer corrupts only the data that it receives.
    pub fn granted_cell(&mut self) -> EmptyCell<'_> {
        EmptyCell(self)
    }

    /// Skips the next cell.
    pub fn skip(&mut self) {
        self.end.turn(0);
    }
}

impl EmptyCell<'_> {
    /// Fills the cell from its first byte. `number` is the number of the message that announces it.
    ///
    /// # Panics
    /// Panics if `from` is longer than a cell: the caller must have checked.
    #[inline]
    pub fn fill(self, from: &[u8], number: u64) {
        let BounceWriter { end, filled } = self.0;
        filled.push_back(number);
        let (cell, track) = end.turn(from.len());
        // SAFETY: a cell has at least that many bytes. It lies in a region, which has no reference to them.
        // Both sides access them by atomic copies.
        track.write(|| unsafe { copy_slice(from, cell.as_ptr()) });
    }

    /// Fills the cell with `len` bytes of `from`, starting at `offset`.
    ///
    /// # Panics
    /// Panics if `len` exceeds a cell or the bytes of `from`: the caller must have checked.
    #[inline]
    pub fn fill_from(self, from: &Bytes, offset: usize, len: usize) {
        let from = from.at(offset, len);
        let (cell, track) = self.0.end.turn(len);
        // SAFETY: a cell has at least `len` bytes. It lies in a region, which has no reference to them. Both
        // sides access them by atomic copies. `Bytes::at` checked the source, which is accessed by such
        // copies as well.
        track.write(|| unsafe { copy(from.as_ptr(), cell.as_ptr(), len) });
    }
}

impl BounceReader {
    /// Creates the emptying side of the stage at byte `offset` of a region.
    ///
    /// # Safety
    /// No other code of this process may empty the stage or use its memory.
    ///
    /// # Panics
    /// Panics if the stage is not inside the region.
    pub unsafe fn new(region: &Arc<Region>, offset: usize) -> Self {
        Self(End::new(region, offset))
    }

    /// Copies `len` bytes of the next cell to `offset` of `to`. The last 8 bytes become visible after all
    /// others, in order.
    ///
    /// # Panics
    /// Panics if `len` exceeds a cell or does not fit into `to`: the caller must have checked.
    #[inline]
    pub fn empty_into(&mut self, to: &Bytes, offset: usize, len: usize) {
        let to = to.at(offset, len);
        let (cell, track) = self.0.turn(len);
        // SAFETY: a cell has at least `len` bytes. It lies in a region, which has no reference to them. Both
        // sides access them by atomic copies. A correct peer does not write the cell now, and a hostile one
        // corrupts only its own data. `Bytes::at` checked the target, which is accessed by such copies as
        // well.
        track.read(|| unsafe { copy_in_order(cell.as_ptr(), to.as_ptr(), len) });
    }

    /// Skips the next cell.
    pub fn skip(&mut self) {
        self.0.turn(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn stage() -> (BounceWriter, BounceReader) {
        let region = Arc::new(Region::anonymous(64 + LEN));
        // SAFETY: one end for each side, on memory that nothing else uses.
        unsafe { (BounceWriter::new(&region, 64), BounceReader::new(&region, 64)) }
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
        // Miri needs seconds for a whole cell.
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
        // Each side owns its ends of the channels. If one side fails, its channels close and the other side
        // ends too.
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
