//! The wake-up protocol between a sleeping side and the side that must wake it. Both share one word.
//!
//! The sleeping side sets the word and then polls once more for messages. The other side writes a message and
//! then checks the word. Each side executes a fence in between, so that at least one of them sees the other's
//! write. Either the poll finds the message, or the other side ends the sleep.

use crate::sync::{AtomicU64, Ordering, fence};

/// Announces that this side is about to sleep. The caller must poll once more before it sleeps.
pub fn announce(word: &AtomicU64) {
    // Release: pairs with the acquire of `is_to_be_woken`. A side that drains its wake-up before the
    // announcement does not drain the wake-up that answers the announcement.
    word.store(1, Ordering::Release);
    // Pairs with the fence of `is_to_be_woken`.
    fence(Ordering::SeqCst);
}

/// Takes an announcement back, after the sleep or instead of it. So the other side does not wake a side that is
/// awake.
pub fn cancel(word: &AtomicU64) {
    // Acquire: pairs with the release of `is_to_be_woken`, so that the next announcement comes behind a swap
    // that has answered this one.
    word.swap(0, Ordering::Acquire);
}

/// Reports whether the other side sleeps and the caller must wake it. The caller must have written its
/// message before. Only one caller gets `true` for each sleep.
#[inline]
pub fn is_to_be_woken(word: &AtomicU64) -> bool {
    // Pairs with the fence of `announce`.
    fence(Ordering::SeqCst);
    word.load(Ordering::Relaxed) != 0 && word.swap(0, Ordering::AcqRel) != 0
}
