//! Copies of a block by one processor: the peak of layers within a host.

use crate::bench::Bench;
use crate::layer::Time;
use std::hint::black_box;

/// The largest piece. A larger block is copied in pieces, because memory is no faster for it.
const PIECE: usize = 64 << 20;
/// A batch copies this many bytes, if the counts below allow it.
const BATCH: usize = 256 << 10;
/// The largest number of copies in a batch.
const COPIES_AT_MOST: usize = 4096;

/// Two blocks of memory, of which one is copied into the other.
pub(super) struct Copier {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Copier {
    /// Returns blocks for copies of up to `largest` bytes.
    pub(super) fn new(largest: usize) -> Self {
        let piece = largest.min(PIECE);
        // Pages of zeros would all be the same page.
        Self { from: vec![1; piece], to: vec![2; piece] }
    }

    /// Returns the time of a copy of `bytes`, in nanoseconds: the mean of a batch.
    pub(super) fn copy_ns<L: Time>(&mut self, bench: &mut Bench<'_, L>, bytes: usize) -> f64 {
        let copies = (BATCH / bytes.max(1)).clamp(1, COPIES_AT_MOST);
        // The first copy fetches the block into the caches.
        self.copy(bytes.min(PIECE));
        let start = bench.layer.now();
        for _ in 0..copies {
            self.copy(bytes);
        }
        (bench.since(start) - bench.timer_ns) / copies as f64
    }

    fn copy(&mut self, bytes: usize) {
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(self.from.len());
            black_box(&mut self.to)[..piece].copy_from_slice(&black_box(&self.from)[..piece]);
            left -= piece;
        }
    }
}
