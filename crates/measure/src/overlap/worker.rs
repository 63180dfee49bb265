//! The operations of the worker: round trips, rows, and the loops of both methods.
//!
//! Each message itself says what the other process must send in answer; the processes need no other
//! agreement.

use crate::bench::Bench;
use crate::layer::{LayerError, Messenger, Work};
use crate::order::Order;
use crate::stats::trimmed_mean;

/// Number of cycles after which the messages of the first cycle have no more effect.
const WARM_UP: u32 = 4;
/// The largest number of tests for one message.
const TESTS_AT_MOST: u32 = 4096;

/// The results of one run of the polling method.
pub(super) struct Polled {
    pub(super) polls: u64,
    pub(super) messages: u64,
    pub(super) took_ns: f64,
    pub(super) others_ns: Option<f64>,
}

/// The messages that a cycle of post-work-wait posts in each direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageBatch {
    /// Size of each message.
    pub(super) bytes: usize,
    /// Number of messages.
    pub(super) count: usize,
}

/// The times of post-work-wait cycles: means over the cycles.
pub(super) struct Cycled {
    pub(super) post_ns: f64,
    pub(super) work_ns: f64,
    pub(super) wait_ns: f64,
    pub(super) others_ns: Option<f64>,
}

fn asking(answers: u8, bytes: usize) -> Result<Order, LayerError> {
    Ok(Order { answers, bytes: u32::try_from(bytes).map_err(LayerError::new)? })
}

impl<M: Messenger> Bench<'_, M> {
    /// Sends one message and receives one of the same size. Returns the time in nanoseconds.
    pub(super) fn exchange(&mut self, bytes: usize) -> Result<f64, LayerError> {
        let order = asking(1, bytes)?;
        let start = self.layer.now();
        self.layer.post_receive(0, bytes)?;
        self.layer.post_send(0, bytes, order)?;
        self.layer.wait_receive(0)?;
        let took_ns = self.since(start) - self.timer_ns;
        // With a long gap the send completes after the answer has arrived.
        self.layer.wait_send(0)?;
        Ok(took_ns)
    }

    /// Sends `count` messages in one direction, with as many under way as there are slots. Returns the time
    /// until a small answer to the last message arrives, in nanoseconds.
    pub(super) fn row(&mut self, bytes: usize, count: usize) -> Result<f64, LayerError> {
        let depth = self.layer.depth();
        let start = self.layer.now();
        self.layer.post_receive(0, Order::LEN)?;
        for nth in 0..count {
            let slot = nth % depth;
            if nth >= depth {
                self.layer.wait_send(slot)?;
            }
            let is_last = nth + 1 == count;
            self.layer.post_send(slot, bytes, asking(u8::from(is_last), Order::LEN)?)?;
        }
        self.layer.wait_receive(0)?;
        let took_ns = self.since(start) - self.timer_ns;
        for slot in 0..depth.min(count) {
            self.layer.wait_send(slot)?;
        }
        Ok(took_ns)
    }

    /// Computes `work` between tests, at least `polls` times, and answers each message that arrives. It
    /// keeps `queue` messages under way in each direction (figure 1 of the paper). The time runs from one
    /// arrival to another, so that it contains no partial period.
    pub(super) fn polling(
        &mut self,
        bytes: usize,
        queue: usize,
        work: Work,
        polls: u64,
    ) -> Result<Polled, LayerError> {
        let mut pipe = Pipe { bytes, queue, order: asking(1, bytes)?, head: 0 };
        // The number of polls is limited, because the other process may have ended. The drain then reports
        // that.
        let at_most = 4 * polls;
        for slot in 0..queue {
            self.layer.post_receive(slot, bytes)?;
        }
        for slot in 0..queue {
            self.layer.post_send(slot, bytes, pipe.order)?;
        }
        pipe.poll(self.layer, work, at_most, |_, received| received >= 2 * queue as u64)?;
        let before = self.layer.other_threads_ns();
        let start = self.layer.now();
        let (done, messages) = pipe.poll(self.layer, work, at_most, |done, _| done >= polls)?;
        let took_ns = self.since(start) - self.timer_ns;
        let others_ns = passed(before, self.layer.other_threads_ns());
        pipe.drain(self.layer)?;
        Ok(Polled { polls: done, messages, took_ns, others_ns })
    }

    /// Posts a batch of receives and sends, computes, and waits for the whole batch, `count` times (figure 3
    /// of the paper). The other process sends a batch in every cycle: the last message of one cycle requests the
    /// batch of the next one. The first cycle requests two batches, and the last one none.
    pub(super) fn cycles(
        &mut self,
        MessageBatch { bytes, count: batch }: MessageBatch,
        work: Work,
        count: u32,
    ) -> Result<Cycled, LayerError> {
        let ordering = |answers: usize| asking(u8::try_from(answers).map_err(LayerError::new)?, bytes);
        self.cycle(batch, ordering(2 * batch)?, work)?;
        let order = ordering(batch)?;
        for _ in 0..WARM_UP {
            self.cycle(batch, order, work)?;
        }
        let before = self.layer.other_threads_ns();
        let mut sums = [0; 3];
        for _ in 0..count {
            let times = self.cycle(batch, order, work)?;
            for (sum, pair) in sums.iter_mut().zip(times.windows(2)) {
                *sum += pair[1] - pair[0];
            }
        }
        let others_ns = passed(before, self.layer.other_threads_ns());
        let nothing = self.layer.work(0.0);
        self.cycle(batch, ordering(0)?, nothing)?;
        let count = f64::from(count);
        let [post_ns, work_ns, wait_ns] = sums.map(|ticks| to_ps(self.ns(ticks) / count - self.timer_ns));
        Ok(Cycled { post_ns, work_ns, wait_ns, others_ns: others_ns.map(|ns| to_ps(ns / count)) })
    }

    /// Runs one cycle with `batch` messages in each direction, each as large as those of `order`. Returns the
    /// ticks at its start, after posting, after the work, and after the waiting.
    ///
    /// The last message alone carries the order. Otherwise messages for the next cycle would arrive before all
    /// messages of this one have left. A layer in which messages are received in order could then not receive
    /// the acknowledgements behind them, and would never send the rest.
    #[inline(always)]
    fn cycle(&mut self, batch: usize, order: Order, work: Work) -> Result<[u64; 4], LayerError> {
        let bytes = order.bytes as usize;
        let began = self.layer.now();
        for slot in 0..batch {
            self.layer.post_receive(slot, bytes)?;
        }
        for slot in 0..batch {
            let is_last = slot + 1 == batch;
            self.layer.post_send(slot, bytes, if is_last { order } else { Order::NOTHING })?;
        }
        let posted = self.layer.now();
        self.layer.compute(work);
        let worked = self.layer.now();
        for slot in 0..batch {
            self.layer.wait_receive(slot)?;
        }
        for slot in 0..batch {
            self.layer.wait_send(slot)?;
        }
        Ok([began, posted, worked, self.layer.now()])
    }

    /// Returns the duration of the test that completes a receive, in nanoseconds, as the mean of the middle
    /// 80 % of `count`. Earlier tests find nothing, and `between` is computed before each test. Returns
    /// `None` if no test found a message.
    ///
    /// A message that moves by itself has arrived before that test. A message that moves only inside calls
    /// has moved in the earlier tests. The result is therefore the time of the receive by itself, which no
    /// work can hide.
    pub(super) fn receive_alone(
        &mut self,
        bytes: usize,
        between: Work,
        count: u32,
    ) -> Result<Option<f64>, LayerError> {
        let order = asking(1, bytes)?;
        let mut samples = Vec::new();
        for _ in 0..count {
            self.layer.post_receive(0, bytes)?;
            self.layer.post_send(0, bytes, order)?;
            samples.extend(self.completing_test(between)?);
            self.layer.wait_send(0)?;
        }
        Ok((!samples.is_empty()).then(|| to_ps(trimmed_mean(samples))))
    }

    /// Tests until the receive of the first slot is complete. Returns the duration of the last test in
    /// nanoseconds. Returns `None` if the tests found no message: the function then waits for it, because
    /// only waiting detects that the other process has ended.
    #[inline(always)]
    fn completing_test(&mut self, between: Work) -> Result<Option<f64>, LayerError> {
        for _ in 0..TESTS_AT_MOST {
            self.layer.compute(between);
            let start = self.layer.now();
            let is_complete = self.layer.test_receive(0)?;
            let took_ns = self.since(start) - self.timer_ns;
            if is_complete {
                return Ok(Some(took_ns));
            }
        }
        self.layer.wait_receive(0)?;
        Ok(None)
    }

    /// Returns the duration of the work of cycles without messages, timed in the same way: the mean of
    /// `count`, in nanoseconds.
    pub(super) fn work_alone(&mut self, work: Work, count: u32) -> f64 {
        let mut sum = 0;
        for _ in 0..count {
            let start = self.layer.now();
            self.layer.compute(work);
            sum += self.layer.now() - start;
        }
        to_ps(self.ns(sum) / f64::from(count) - self.timer_ns)
    }
}

/// A queue of messages in each direction, whose slots are used in turn.
struct Pipe {
    bytes: usize,
    queue: usize,
    order: Order,
    /// The slot in which the next message arrives.
    head: usize,
}

impl Pipe {
    /// Polls until a poll finds a message and `is_enough` accepts the numbers of polls and of received
    /// messages, or `at_most` times. Returns both numbers.
    #[inline(always)]
    fn poll<M: Messenger>(
        &mut self,
        layer: &mut M,
        work: Work,
        at_most: u64,
        is_enough: impl Fn(u64, u64) -> bool,
    ) -> Result<(u64, u64), LayerError> {
        let (mut done, mut received) = (0, 0);
        loop {
            layer.compute(work);
            let found = self.answer_arrived(layer)?;
            (done, received) = (done + 1, received + found);
            if (found > 0 && is_enough(done, received)) || done >= at_most {
                return Ok((done, received));
            }
        }
    }

    /// Answers the messages that have arrived. It answers at most the whole queue, because a layer faster
    /// than this loop would keep it from its work. Returns the number of messages.
    #[inline(always)]
    fn answer_arrived<M: Messenger>(&mut self, layer: &mut M) -> Result<u64, LayerError> {
        for found in 0..self.queue {
            let slot = self.head;
            if !layer.test_receive(slot)? {
                return Ok(found as u64);
            }
            // The message of this send has been answered, so that the wait takes almost no time.
            layer.wait_send(slot)?;
            layer.post_receive(slot, self.bytes)?;
            layer.post_send(slot, self.bytes, self.order)?;
            self.head = (slot + 1) % self.queue;
        }
        Ok(self.queue as u64)
    }

    /// Receives the messages that are still under way.
    fn drain<M: Messenger>(&mut self, layer: &mut M) -> Result<(), LayerError> {
        for _ in 0..self.queue {
            layer.wait_receive(self.head)?;
            layer.wait_send(self.head)?;
            self.head = (self.head + 1) % self.queue;
        }
        Ok(())
    }
}

/// Rounds to the picosecond, because records need no more digits.
fn to_ps(ns: f64) -> f64 {
    (ns * 1e3).round() / 1e3
}

/// Returns the difference of two readings.
fn passed(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    Some(after? - before?)
}
