//! A work queue: the descriptors posted to one side of a VI (Speight et al. 1999, section 2: "send
//! queue and receive queue").
//!
//! ```text
//!   taken | complete: done | pending: started or finished | pending: waiting | next post
//!                           ^ first                        ^ first + begun
//! ```
//!
//! Work may finish out of order: an RDMA read takes a round trip, the send posted after it does not.
//! Descriptors complete in the order of their posting, so a finished one waits for those posted before
//! it.

use super::codes::Status;
use super::descriptor::{Completion, DescriptorAt, Malformed};
use super::table::Full;
use super::work::{Side, Work};
use alloc::collections::VecDeque;

/// A posted descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in memory.
    pub at: DescriptorAt,
    /// The parsed descriptor, or the reason why it is malformed.
    pub work: Result<Work, Malformed>,
    /// The value of [`Memory::changes`](super::memory::Memory::changes) at which a short receive was
    /// checked. The check covers its descriptor and its memory and holds until the value changes.
    /// `None`: not checked.
    pub sound_at: Option<u64>,
    finished: Option<Completion>,
}

/// A completed descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Its place in memory.
    pub at: DescriptorAt,
    /// The values to write into it.
    pub completion: Completion,
}

/// One of the two queues of a VI.
#[derive(Clone, Debug)]
pub struct WorkQueue {
    side: Side,
    most: usize,
    pending: VecDeque<Entry>,
    /// The number of the first pending descriptor, counted over the life of the queue.
    first: u64,
    /// How many pending descriptors have started.
    begun: usize,
    done: VecDeque<Completed>,
    /// How many more completions the program wants a callback for.
    callbacks: u32,
}

impl WorkQueue {
    /// Creates an empty queue for at most `most` descriptors.
    pub fn new(side: Side, most: u32) -> Self {
        Self {
            side,
            most: most as usize,
            pending: VecDeque::new(),
            first: 0,
            begun: 0,
            done: VecDeque::new(),
            callbacks: 0,
        }
    }

    /// Reports whether the queue has no room for one more descriptor.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.pending.len() + self.done.len() >= self.most
    }

    #[inline]
    pub fn post(
        &mut self,
        at: DescriptorAt,
        work: Result<Work, Malformed>,
        sound_at: Option<u64>,
    ) -> Result<(), Full> {
        if self.is_full() {
            return Err(Full);
        }
        self.pending.push_back(Entry { at, work, sound_at, finished: None });
        Ok(())
    }

    /// Reports whether a descriptor can start and complete at once: none is pending, there is room, and
    /// no callback is wanted.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.pending.is_empty() && self.callbacks == 0 && self.done.len() < self.most
    }

    /// The number of the next descriptor to start, if none is pending.
    #[inline]
    pub fn next_number(&self) -> u64 {
        self.first
    }

    /// Adds a descriptor that is complete without ever being pending. The queue must have none pending.
    #[inline]
    pub fn pass(&mut self, completed: Completed) {
        self.first += 1;
        self.keep(completed);
    }

    /// Keeps a completed descriptor until the program takes it.
    #[inline]
    pub fn keep(&mut self, completed: Completed) {
        self.done.push_back(completed);
    }

    /// Returns the first waiting descriptor, if none has started and no callback is wanted.
    #[inline]
    pub fn next_alone(&self) -> Option<&Entry> {
        self.pending.front().filter(|_| self.begun == 0 && self.callbacks == 0)
    }

    /// Completes the first pending descriptor. The caller keeps it ([`WorkQueue::keep`]) or gives it to
    /// the program.
    #[inline]
    pub fn complete_next(&mut self, completion: Completion) -> Option<Completed> {
        let entry = self.pending.front()?;
        let completed = Completed { at: entry.at, completion: completion.of(operation(self.side, entry)) };
        self.pending.pop_front();
        self.first += 1;
        Some(completed)
    }

    /// Returns the first waiting descriptor.
    #[inline]
    pub fn next(&self) -> Option<&Entry> {
        self.pending.get(self.begun)
    }

    /// Reports whether all descriptors before the first waiting one are complete.
    #[inline]
    pub fn is_next_first(&self) -> bool {
        self.begun == 0
    }

    /// Starts the first waiting descriptor and returns its number.
    #[inline]
    pub fn begin(&mut self) -> Option<u64> {
        self.next()?;
        self.begun += 1;
        Some(self.first + self.begun as u64 - 1)
    }

    /// Returns a descriptor that is in progress: started and not finished.
    #[inline]
    pub fn under_way(&self, number: u64) -> Option<&Entry> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.pending.get(at).filter(|entry| at < self.begun && entry.finished.is_none())
    }

    /// Returns all descriptors in progress, with their numbers.
    pub fn all_under_way(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let begun = (self.first..).zip(&self.pending).take(self.begun);
        begun.filter(|(_, entry)| entry.finished.is_none())
    }

    /// Finishes a descriptor. Returns whether it was in progress.
    pub fn finish(&mut self, number: u64, completion: Completion) -> bool {
        if self.under_way(number).is_none() {
            return false;
        }
        let entry = self.pending.get_mut((number - self.first) as usize);
        if let Some(entry) = entry {
            entry.finished = Some(completion.of(operation(self.side, entry)));
        }
        true
    }

    /// Finishes all unfinished descriptors as flushed, because no more will be processed.
    pub fn flush(&mut self) {
        self.begun = self.pending.len();
        for entry in self.pending.iter_mut().filter(|entry| entry.finished.is_none()) {
            let flushed = Completion { status: Status::FLUSHED, ..Completion::default() };
            entry.finished = Some(flushed.of(operation(self.side, entry)));
        }
    }

    /// Completes the first pending descriptor, if it is finished: from now on the program can take it.
    #[inline]
    pub fn settle(&mut self) -> Option<Completed> {
        let Entry { at, finished, .. } = self.pending.front()?;
        let completed = Completed { at: *at, completion: (*finished)? };
        self.pending.pop_front();
        self.first += 1;
        self.begun -= 1;
        self.done.push_back(completed);
        Some(completed)
    }

    /// Takes the first completed descriptor, for the program.
    #[inline]
    pub fn take(&mut self) -> Option<Completed> {
        self.done.pop_front()
    }

    /// Asks for a callback for one more completion.
    pub fn want_callback(&mut self) {
        self.callbacks += 1;
    }

    /// Takes the first completed descriptor for a callback, if one is wanted.
    #[inline]
    pub fn take_for_callback(&mut self) -> Option<Completed> {
        if self.callbacks == 0 {
            return None;
        }
        let completed = self.done.pop_front()?;
        self.callbacks -= 1;
        Some(completed)
    }

    /// Reports whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.done.is_empty()
    }

    /// Returns the waiting descriptors, in order.
    pub fn waiting(&self) -> impl Iterator<Item = &Entry> {
        self.pending.iter().skip(self.begun)
    }
}

impl Completion {
    /// Returns the same completion with the bits for "done" and for the operation.
    #[inline]
    fn of(self, operation: Status) -> Self {
        Self { status: Status::DONE.with(operation).with(self.status), ..self }
    }
}

/// Returns the status bits of a descriptor's operation. A malformed descriptor counts as a send or a
/// receive, after its queue.
#[inline]
fn operation(side: Side, entry: &Entry) -> Status {
    match (&entry.work, side) {
        (Ok(work), _) => work.operation.status(),
        (Err(_), Side::Send) => Status::OP_SEND,
        (Err(_), Side::Receive) => Status::OP_RECEIVE,
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::{Operation, Segments};
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn at(address: u64) -> DescriptorAt {
        DescriptorAt { address, handle: 1 }
    }

    fn send() -> Result<Work, Malformed> {
        let segments = Segments::Few(0, Default::default());
        Ok(Work { operation: Operation::Send, immediate: None, is_fenced: false, segments, len: 0 })
    }

    #[derive(Clone, Debug)]
    enum Step {
        Post,
        Begin,
        Finish(prop::sample::Index),
        Flush,
        Take,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => Just(Step::Post),
            4 => Just(Step::Begin),
            4 => any::<prop::sample::Index>().prop_map(Step::Finish),
            1 => Just(Step::Flush),
            4 => Just(Step::Take),
        ];
        proptest::collection::vec(step, 0..500)
    }

    proptest! {
        /// Descriptors complete in the order of their posting, each once and with its own completion,
        /// whatever the order in which they finish.
        #[test]
        fn descriptors_complete_in_the_order_of_their_posting(steps in steps()) {
            let mut queue = WorkQueue::new(Side::Send, 16);
            let (mut posted, mut taken) = (0, 0);
            let mut ways = Vec::new();
            for step in steps {
                match step {
                    Step::Post => {
                        let is_full = posted - taken == 16;
                        prop_assert_eq!(queue.post(at(posted), send(), None).is_err(), is_full);
                        posted += u64::from(!is_full);
                    }
                    Step::Begin => if let Some(number) = queue.begin() {
                        prop_assert_eq!(number, ways.len() as u64);
                        ways.push(None);
                    }
                    Step::Finish(which) => {
                        let under_way: Vec<u64> = queue.all_under_way().map(|(number, _)| number).collect();
                        if !under_way.is_empty() {
                            let number = *which.get(&under_way);
                            let completion = Completion { len: number as u32, ..Completion::default() };
                            prop_assert!(queue.finish(number, completion));
                            prop_assert!(!queue.finish(number, completion));
                            ways[number as usize] = Some(Status::DONE);
                        }
                    }
                    Step::Flush => {
                        queue.flush();
                        ways.resize(posted as usize, None);
                        for way in &mut ways {
                            way.get_or_insert(Status::DONE.with(Status::FLUSHED));
                        }
                    }
                    Step::Take => {
                        while queue.settle().is_some() {}
                        if let Some(Completed { at: DescriptorAt { address, .. }, completion }) = queue.take() {
                            prop_assert_eq!(address, taken);
                            prop_assert_eq!(Some(completion.status), ways[taken as usize]);
                            taken += 1;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_callback_takes_what_is_done_and_no_more() {
        let mut queue = WorkQueue::new(Side::Send, 4);
        (0..2).for_each(|n| queue.post(at(n), send(), None).unwrap());
        queue.want_callback();
        assert_eq!(queue.take_for_callback(), None);
        queue.flush();
        while queue.settle().is_some() {}
        assert_eq!(queue.take_for_callback().unwrap().at, at(0));
        assert_eq!(queue.take_for_callback(), None);
        assert_eq!(queue.take().unwrap().at, at(1));
        assert!(queue.is_empty());
    }

    #[test]
    fn what_could_not_be_understood_is_told_by_its_queue() {
        for (side, operation) in [(Side::Send, Status::OP_SEND), (Side::Receive, Status::OP_RECEIVE)] {
            let mut queue = WorkQueue::new(side, 1);
            queue.post(at(0), Err(Malformed::Control), None).unwrap();
            queue.flush();
            let status = Status::DONE.with(operation).with(Status::FLUSHED);
            assert_eq!(queue.settle().unwrap().completion.status, status);
        }
    }
}
