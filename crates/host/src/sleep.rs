//! The handshake between a side that falls asleep and the one that is to wake it: a word that both share.
//!
//! The side that sleeps sets the word, and then looks once more for what has come. The other side writes a message,
//! and then looks at the word. A fence in between, on either side, sees to it that at least one of them sees what
//! the other one did: a message is found before the sleep, or the sleep is ended.

use crate::sync::{AtomicU64, Ordering, fence};

/// Says that this side sleeps from now on, unless it finds something in the look that is to follow.
pub fn announce(word: &AtomicU64) {
    word.store(1, Ordering::Relaxed);
    // Pairs with the fence of `is_to_be_woken`.
    fence(Ordering::SeqCst);
}

/// Whether the other side sleeps and nobody has woken it: the caller does. A message for it is written before.
#[inline]
pub fn is_to_be_woken(word: &AtomicU64) -> bool {
    // Pairs with the fence of `announce`.
    fence(Ordering::SeqCst);
    word.load(Ordering::Relaxed) != 0 && word.swap(0, Ordering::Relaxed) != 0
}
