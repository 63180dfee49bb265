//! A completion queue: one queue that collects the completions of many work queues (Speight et al.
//! 1999, section 2). An entry names the VI and the side; the program takes the descriptor from that
//! work queue.

use super::handles::ViHandle;
use super::table::{Full, handle};
use super::work::Side;
use alloc::collections::VecDeque;

handle! {
    /// A handle for a completion queue.
    CqHandle
}

/// The reasons why a call about completion queues is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CqError {
    /// The completion queue does not exist.
    NoSuchQueue,
    /// The number of entries is 0 or too large.
    NoSuchSize,
    /// There are too many completion queues.
    TooMany,
    /// A VI uses the completion queue.
    InUse,
    /// The completion queue holds more entries than the new size allows.
    TooSmall,
}

/// An entry of a completion queue: the work queue with a completed descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The VI.
    pub vi: ViHandle,
    /// The work queue of that VI.
    pub side: Side,
}

/// A completion queue.
#[derive(Clone, Debug)]
pub struct CompletionQueue {
    entries: VecDeque<Done>,
    most: usize,
    /// How many work queues complete here.
    users: u32,
    /// How many more entries the program wants a callback for.
    callbacks: u32,
}

impl CompletionQueue {
    /// Creates an empty queue for at most `most` entries.
    pub fn new(most: u32) -> Self {
        Self { entries: VecDeque::new(), most: most as usize, users: 0, callbacks: 0 }
    }

    /// Reports whether there is room for one more entry and no callback is wanted.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.entries.len() < self.most && self.callbacks == 0
    }

    #[inline]
    pub fn put(&mut self, done: Done) -> Result<(), Full> {
        if self.entries.len() >= self.most {
            return Err(Full);
        }
        self.entries.push_back(done);
        Ok(())
    }

    #[inline]
    pub fn take(&mut self) -> Option<Done> {
        self.entries.pop_front()
    }

    /// Changes the size to `most` entries and keeps those in the queue.
    pub fn resize(&mut self, most: u32) -> Result<(), CqError> {
        if self.entries.len() > most as usize {
            return Err(CqError::TooSmall);
        }
        self.most = most as usize;
        Ok(())
    }

    /// Removes the entries of a VI, because it was destroyed.
    pub fn forget(&mut self, vi: ViHandle) {
        self.entries.retain(|done| done.vi != vi);
    }

    /// Adds one to the work queues that complete here.
    pub fn join(&mut self) {
        self.users += 1;
    }

    /// Takes one from the work queues that complete here.
    pub fn leave(&mut self) {
        self.users = self.users.saturating_sub(1);
    }

    pub fn is_in_use(&self) -> bool {
        self.users > 0
    }

    /// Asks for a callback for one more entry.
    pub fn want_callback(&mut self) {
        self.callbacks += 1;
    }

    /// Takes the next entry for a callback, if one is wanted.
    pub fn take_for_callback(&mut self) -> Option<Done> {
        if self.callbacks == 0 {
            return None;
        }
        let done = self.take()?;
        self.callbacks -= 1;
        Some(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(vi: u32) -> Done {
        Done { vi: ViHandle(vi), side: Side::Send }
    }

    #[test]
    fn entries_come_out_in_their_order_and_stay_when_it_is_resized() {
        let mut queue = CompletionQueue::new(3);
        for vi in 1..=3 {
            queue.put(done(vi)).unwrap();
        }
        assert_eq!(queue.put(done(4)), Err(Full));
        assert_eq!(queue.resize(2), Err(CqError::TooSmall));
        queue.resize(4).unwrap();
        queue.put(done(4)).unwrap();
        assert_eq!(queue.take(), Some(done(1)));
        queue.resize(3).unwrap();
        assert_eq!(queue.put(done(5)), Err(Full));
        queue.forget(ViHandle(3));
        assert_eq!([(); 3].map(|()| queue.take()), [Some(done(2)), Some(done(4)), None]);
    }

    #[test]
    fn a_callback_takes_one_entry() {
        let mut queue = CompletionQueue::new(3);
        queue.put(done(1)).unwrap();
        assert_eq!(queue.take_for_callback(), None);
        queue.want_callback();
        assert_eq!(queue.take_for_callback(), Some(done(1)));
        queue.put(done(2)).unwrap();
        assert_eq!(queue.take_for_callback(), None);
    }
}
