//! A work queue: the descriptors that were posted to one side of a VI (Speight et al. 1999, section
//! 2: "send queue and receive queue").
//!
//! ```text
//!   taken | complete: done | pending: finished or under way | pending: waiting | posted next
//!                           ^ first                          ^ first + begun
//! ```
//!
//! Work may finish out of its order (an RDMA read takes a round trip, the send behind it does not).
//! It completes in the order in which it was posted: a finished one waits for those before it.

use super::codes::Status;
use super::descriptor::{Completion, DescriptorAt, Malformed, Side, Work};
use super::table::Full;
use alloc::collections::VecDeque;

/// A descriptor that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub at: DescriptorAt,
    /// What it asks for, if that can be understood.
    pub work: Result<Work, Malformed>,
    /// A short receive was found sound, its own place and its memory, when so many changes of memory were
    /// known ([`Memory::changes`](super::memory::Memory::changes)).
    pub sound_at: Option<u64>,
    finished: Option<Completion>,
}

/// A descriptor that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Where it is.
    pub at: DescriptorAt,
    /// What has come of it.
    pub completion: Completion,
}

/// One queue of a VI.
#[derive(Clone, Debug)]
pub struct WorkQueue {
    side: Side,
    most: usize,
    pending: VecDeque<Entry>,
    /// The number of the first that is pending, counted over the life of the queue.
    first: u64,
    /// How many of those that are pending have begun.
    begun: usize,
    done: VecDeque<Completed>,
    /// The program wants to be called when so many more are done.
    callbacks: u32,
}

impl WorkQueue {
    /// An empty queue for so many descriptors at most.
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

    /// Whether one more would be too many.
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

    /// Whether nothing is before what is posted next, there is room for it, and nobody wants to be called
    /// when it is done.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.pending.is_empty() && self.callbacks == 0 && self.done.len() < self.most
    }

    /// The number of the next one that begins, where nothing is before it.
    #[inline]
    pub fn next_number(&self) -> u64 {
        self.first
    }

    /// One that never had to wait, for nothing was before it, is complete.
    #[inline]
    pub fn pass(&mut self, completed: Completed) {
        self.first += 1;
        self.keep(completed);
    }

    /// The program takes it later.
    #[inline]
    pub fn keep(&mut self, completed: Completed) {
        self.done.push_back(completed);
    }

    /// The first that has not begun, where nothing is before it and nobody wants to be called when it is
    /// done.
    #[inline]
    pub fn next_alone(&self) -> Option<&Entry> {
        self.pending.front().filter(|_| self.begun == 0 && self.callbacks == 0)
    }

    /// That one is complete. It is to be kept, or given to the program.
    #[inline]
    pub fn complete_next(&mut self, completion: Completion) -> Option<Completed> {
        let entry = self.pending.front()?;
        let completed = Completed { at: entry.at, completion: completion.of(operation(self.side, entry)) };
        self.pending.pop_front();
        self.first += 1;
        Some(completed)
    }

    /// The first that has not begun.
    #[inline]
    pub fn next(&self) -> Option<&Entry> {
        self.pending.get(self.begun)
    }

    /// Whether all before it are complete.
    #[inline]
    pub fn is_next_first(&self) -> bool {
        self.begun == 0
    }

    /// Begins with it; its number.
    #[inline]
    pub fn begin(&mut self) -> Option<u64> {
        self.next()?;
        self.begun += 1;
        Some(self.first + self.begun as u64 - 1)
    }

    /// One that has begun and is not finished.
    #[inline]
    pub fn under_way(&self, number: u64) -> Option<&Entry> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.pending.get(at).filter(|entry| at < self.begun && entry.finished.is_none())
    }

    /// All that have begun and are not finished, with their numbers.
    pub fn all_under_way(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let begun = (self.first..).zip(&self.pending).take(self.begun);
        begun.filter(|(_, entry)| entry.finished.is_none())
    }

    /// One that was under way is finished. Whether it was.
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

    /// All that are not finished are so now, for nothing more will be processed.
    pub fn flush(&mut self) {
        self.begun = self.pending.len();
        for entry in self.pending.iter_mut().filter(|entry| entry.finished.is_none()) {
            let flushed = Completion { status: Status::FLUSHED, ..Completion::default() };
            entry.finished = Some(flushed.of(operation(self.side, entry)));
        }
    }

    /// The next to complete, if it is finished: from now on the program can take it.
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

    /// Gives the program the first that is done.
    #[inline]
    pub fn take(&mut self) -> Option<Completed> {
        self.done.pop_front()
    }

    /// The program wants to be called for one more.
    pub fn want_callback(&mut self) {
        self.callbacks += 1;
    }

    /// One that is done and for which the program is to be called.
    #[inline]
    pub fn take_for_callback(&mut self) -> Option<Completed> {
        if self.callbacks == 0 {
            return None;
        }
        let completed = self.done.pop_front()?;
        self.callbacks -= 1;
        Some(completed)
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.done.is_empty()
    }

    /// What is waiting, in its order.
    pub fn waiting(&self) -> impl Iterator<Item = &Entry> {
        self.pending.iter().skip(self.begun)
    }
}

impl Completion {
    /// The same of a descriptor that is done, and was that operation.
    #[inline]
    fn of(self, operation: Status) -> Self {
        Self { status: Status::DONE.with(operation).with(self.status), ..self }
    }
}

/// How a status tells what a descriptor was, also where that was not to be understood.
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
    use super::super::descriptor::{Operation, Segments};
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
        /// Whatever finishes when: descriptors complete in the order in which they were posted,
        /// each once, with what it finished with.
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
