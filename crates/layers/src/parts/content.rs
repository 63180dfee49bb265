//! The content of a message of Active Messages.

use crate::am::short::words;
use crate::payload::FILL;

/// The most messages that wait for their receiver in a ring, and the least, however large they are.
const TOGETHER_IN_RINGS: (usize, usize) = (64, 4);
/// About the bytes of all payloads of a ring, so that a launch touches all of it before it measures.
const IN_RING_BYTES: usize = 1 << 20;

/// What a message carries: up to four words, or a payload.
#[derive(Clone)]
pub(super) struct Content {
    pub(super) words: Vec<u64>,
    pub(super) payload: Vec<u8>,
}

impl Content {
    /// Returns the content of a message of this size.
    pub(super) fn of(size_bytes: usize) -> Self {
        match words(size_bytes) {
            Some(words) => Self { words: vec![1; words], payload: Vec::new() },
            None => Self { words: Vec::new(), payload: vec![FILL; size_bytes] },
        }
    }

    /// Returns the number of such messages that wait for their receiver in a ring: a power of two.
    pub(super) fn together(&self) -> usize {
        let (most, least) = TOGETHER_IN_RINGS;
        match IN_RING_BYTES.checked_div(self.payload.len()) {
            None => most,
            Some(fitting) => (fitting.max(1).next_power_of_two()).clamp(least, most),
        }
    }
}
