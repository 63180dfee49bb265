//! A completion queue: one place to look for what is done on many queues (Speight et al. 1999,
//! section 2). It says of which VI and on which side; the descriptor is taken from there.

use super::descriptor::Side;
use super::nic::ViHandle;
use super::table::{Full, handle};
use alloc::collections::VecDeque;

handle! {
    /// A completion queue.
    CqHandle
}

/// Why a call about completion queues is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CqError {
    /// There is no such queue.
    NoSuchQueue,
    /// No queue has so many entries.
    NoSuchSize,
    /// There can not be more queues.
    TooMany,
    /// VIs have it.
    InUse,
    /// It has more entries than it is to have room for.
    TooSmall,
}

/// Where something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The VI.
    pub vi: ViHandle,
    /// Its queue.
    pub side: Side,
}

/// A completion queue.
#[derive(Clone, Debug)]
pub struct CompletionQueue {
    entries: VecDeque<Done>,
    most: usize,
    /// Queues of VIs that complete here.
    users: u32,
    /// The program wants to be called for so many more.
    callbacks: u32,
}

impl CompletionQueue {
    /// An empty queue of so many entries.
    pub fn new(most: u32) -> Self {
        Self { entries: VecDeque::new(), most: most as usize, users: 0, callbacks: 0 }
    }

    /// Whether there is room for one more, and nobody wants to be called for it.
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

    /// Room for so many entries from now on. Those that are there stay.
    pub fn resize(&mut self, most: u32) -> Result<(), CqError> {
        if self.entries.len() > most as usize {
            return Err(CqError::TooSmall);
        }
        self.most = most as usize;
        Ok(())
    }

    /// Forgets what is done on a VI, which is no more.
    pub fn forget(&mut self, vi: ViHandle) {
        self.entries.retain(|done| done.vi != vi);
    }

    /// One more queue completes here.
    pub fn join(&mut self) {
        self.users += 1;
    }

    /// One no longer does.
    pub fn leave(&mut self) {
        self.users = self.users.saturating_sub(1);
    }

    pub fn is_in_use(&self) -> bool {
        self.users > 0
    }

    /// The program wants to be called for one more.
    pub fn want_callback(&mut self) {
        self.callbacks += 1;
    }

    /// One for which the program is to be called.
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
