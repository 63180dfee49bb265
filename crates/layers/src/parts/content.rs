//! The content of a message of Active Messages.

use crate::am::short::words;
use crate::payload::FILL;

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
}
