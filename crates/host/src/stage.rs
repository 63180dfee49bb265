//! Cells between two processes: one side fills them in turn, the other empties them in turn.
//! What goes through is copied twice, by both at once where it is long.
//!
//! The cells of a stage are many, and together longer than what a processor caches for itself
//! alone: what was filled has then moved on to a cache that both share by the time that it is
//! emptied, and what was emptied by the time that it is filled. Measured with 1 MiB of private
//! cache and copies of 1 MiB in cells of 64 KiB: 2 MiB in all took 31 µs, 256 KiB 124 µs; the
//! system's copy from process to process, which the cells replace, 77 µs.
//!
//! As with rings, credits see to it that a cell is not filled before it was emptied, and who
//! breaks them spoils what he sends.

use crate::bytes::Bytes;
use crate::copy::{copy, copy_in_order};
use crate::region::Region;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a cell.
pub const CELL: usize = 64 * 1024;
/// Cells of a stage.
pub const CELLS: usize = 32;
/// Bytes of a stage.
pub const LEN: usize = CELL * CELLS;

/// One side's view of a stage.
pub struct Stage {
    cells: NonNull<u8>,
    next: usize,
    _region: Arc<Region>,
}

// SAFETY: used by one thread at a time; what it shares with the other side is handed over by
// the messages about it.
unsafe impl Send for Stage {}

impl Stage {
    /// The stage from byte `offset` of a region on.
    ///
    /// # Safety
    /// In this process nobody else fills it, or nobody else empties it, and nothing else uses
    /// its memory.
    ///
    /// # Panics
    /// Where it is not all inside.
    pub unsafe fn new(region: &Arc<Region>, offset: usize) -> Self {
        Self { cells: region.at(offset, LEN), next: 0, _region: Arc::clone(region) }
    }

    /// The next cell, which has `len` bytes.
    #[inline]
    fn turn(&mut self, len: usize) -> NonNull<u8> {
        assert!(len <= CELL, "more than a cell has");
        let index = self.next;
        self.next = (index + 1) % CELLS;
        // SAFETY: one of the cells.
        unsafe { self.cells.add(index * CELL) }
    }

    /// Fills the next cell, from its start.
    ///
    /// # Panics
    /// Where it is too much: the caller has checked.
    #[inline]
    pub fn fill(&mut self, from: &[u8]) {
        let cell = self.turn(from.len());
        // SAFETY: a cell has so many bytes, and the other side leaves it alone until it is
        // told of them.
        unsafe { copy(from.as_ptr(), cell.as_ptr(), from.len()) };
    }

    /// Fills the next cell with `len` bytes of `from`.
    ///
    /// # Panics
    /// Where it is too much, or there are fewer: the caller has checked.
    #[inline]
    pub fn fill_from(&mut self, from: &Bytes, offset: usize, len: usize) {
        let (cell, from) = (self.turn(len), from.at(offset, len));
        // SAFETY: as in `fill`; as many bytes lie there.
        unsafe { copy(from.as_ptr(), cell.as_ptr(), len) };
    }

    /// Empties the next cell, which has `len` bytes: the last 8 become visible after all others, in order.
    ///
    /// # Panics
    /// Where no cell has so many, or there is no room for them: the caller has checked.
    #[inline]
    pub fn empty_into(&mut self, to: &Bytes, offset: usize, len: usize) {
        let (cell, to) = (self.turn(len), to.at(offset, len));
        // SAFETY: a cell has so many bytes, and so much room is there. A correct peer leaves
        // the cell alone; a hostile one spoils what it sends.
        unsafe { copy_in_order(cell.as_ptr(), to.as_ptr(), len) };
    }

    /// Passes the next cell by.
    pub fn skip(&mut self) {
        self.turn(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage() -> [Stage; 2] {
        let region = Arc::new(Region::on_heap(64 + LEN));
        // SAFETY: one for each side, on memory of its own.
        [(); 2].map(|()| unsafe { Stage::new(&region, 64) })
    }

    #[test]
    fn what_is_filled_in_turn_is_emptied_in_turn() {
        let [mut here, mut there] = stage();
        let taken = Bytes::of_box(vec![0; 10].into());
        for n in 0..2 * CELLS as u8 + 3 {
            if n % 7 == 6 {
                here.skip();
                there.skip();
            } else if n % 2 == 0 {
                here.fill(&[n; 4]);
                there.empty_into(&taken, 3, 4);
            } else {
                here.fill_from(&Bytes::of_box(vec![n; 9].into()), 5, 4);
                there.empty_into(&taken, 3, 4);
            }
            let mut found = [0; 4];
            taken.read(3, &mut found);
            assert!(n % 7 == 6 || found == [n; 4]);
        }
    }

    #[test]
    fn a_whole_stage_is_filled_before_it_is_emptied() {
        let [mut here, mut there] = stage();
        // Miri takes seconds for a whole cell.
        let len = if cfg!(miri) { 1000 } else { CELL };
        for n in 0..CELLS {
            here.fill(&vec![n as u8; len]);
        }
        let taken = Bytes::of_box(vec![0; len].into());
        for n in 0..CELLS {
            there.empty_into(&taken, 0, len);
            let mut found = vec![0; len];
            taken.read(0, &mut found);
            assert_eq!(found, vec![n as u8; len]);
        }
    }

    #[test]
    #[should_panic(expected = "more than a cell has")]
    fn no_cell_is_overfilled() {
        let [mut here, _] = stage();
        here.fill(&vec![0; CELL + 1]);
    }
}
