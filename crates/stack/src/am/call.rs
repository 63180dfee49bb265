//! The handler that a message names, and the words for it.

use netdyno_protocol::frame::slot::MAX_WORDS;

/// The handler that a message names, and the words for it. A short message over an undialled link of
/// shared memory is sent without it, because a copy of the words takes as long as the send.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub handler: u8,
    /// The words, padded with 0.
    pub words: [u64; MAX_WORDS],
    count: u8,
}

impl Call {
    #[inline(always)]
    pub(super) fn new<const N: usize>(handler: u8, words: [u64; N]) -> Self {
        const { assert!(N <= MAX_WORDS) };
        let padded = std::array::from_fn(|at| words.get(at).copied().unwrap_or(0));
        Self { handler, words: padded, count: N as u8 }
    }

    /// Returns the words that are sent.
    pub(super) fn words(&self) -> &[u64] {
        &self.words[..usize::from(self.count)]
    }
}
