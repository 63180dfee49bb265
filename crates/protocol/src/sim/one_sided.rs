//! One-sided operations in virtual time: a processor puts bytes into the memory of another one, and gets bytes
//! from there. The target's interface serves both without its processor.
//!
//! ```text
//! put:  processor ─ o_s ─▶ send stage (g + G) ─ L ─▶ memory ─ L ─▶ acknowledged ─ o_r ─▶ processor
//! get:  processor ─ o_s ─▶ send stage (g) ─ L ─▶ target's send stage (g + G) ─ L ─▶ here ─ o_r ─▶ processor
//! ```
//!
//! The bytes of a put are free again when they have left the send stage. A fetching atomic operation is a get
//! of a word. Operations complete in the order in which they were started.

use super::interface::Stuck;
use super::truth::Truth;
use super::values::Ps;
use crate::random::Random;
use alloc::collections::VecDeque;

/// Bytes of the word of a fetching atomic operation.
const WORD: usize = 8;

/// A one-sided operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Puts bytes into the target's memory.
    Put,
    /// Gets bytes from the target's memory.
    Get,
    /// Fetches a word and adds to it.
    FetchAdd,
}

/// When an operation is complete.
#[derive(Clone, Copy, Debug)]
struct Completion {
    /// The initiator's memory is free again; `None` if the operation brings bytes, which are complete only once
    /// the initiator has received them.
    local_ps: Option<Ps>,
    /// The target's acknowledgement, or its bytes, have arrived.
    arrives_ps: Ps,
}

/// The initiator of one-sided operations, and the interface of their target.
#[derive(Clone, Debug)]
pub struct OneSided {
    truth: Truth,
    random: Random,
    now_ps: Ps,
    /// When the send stage of the initiator is free.
    stage_ps: Ps,
    /// When the send stage of the target is free.
    target_stage_ps: Ps,
    /// The operations that the initiator does not know to be complete, the oldest first.
    started: VecDeque<Completion>,
    /// The latest completion of any operation.
    latest_ps: Ps,
}

impl OneSided {
    /// Creates an idle initiator at time 0. `seed` seeds the noise.
    pub fn new(truth: Truth, seed: u64) -> Self {
        Self {
            truth,
            random: Random::new(seed),
            now_ps: 0,
            stage_ps: 0,
            target_stage_ps: 0,
            started: VecDeque::new(),
            latest_ps: 0,
        }
    }

    /// Returns the virtual time, ps.
    pub fn now_ps(&self) -> Ps {
        self.now_ps
    }

    /// Keeps the processor busy for `ps`.
    pub fn compute(&mut self, ps: Ps) {
        self.now_ps += ps;
    }

    /// Starts an operation of `bytes` bytes. Waits first, while as many operations are started as the window
    /// has.
    pub fn start(&mut self, access: Access, bytes: usize) {
        while self.started.len() >= self.truth.window {
            if let Some(oldest) = self.started.pop_front() {
                self.now_ps = self.now_ps.max(oldest.arrives_ps);
            }
        }
        let sent = if access == Access::Put { bytes } else { 1 };
        let o_s = self.draw(self.truth.o_s_of(sent));
        self.now_ps += o_s;
        let departs_ps = self.now_ps.max(self.stage_ps);
        let (sending_ps, gap_ps) = (self.draw(self.truth.data_of(sent)), self.draw(self.truth.g_ps));
        self.stage_ps = departs_ps + gap_ps + sending_ps;
        let sent_ps = departs_ps + sending_ps;
        let there_ps = sent_ps + self.draw(self.truth.l_of(sent));
        let completion = match access {
            Access::Put => {
                let arrives_ps = there_ps + self.draw(self.truth.l_ps);
                Completion { local_ps: Some(sent_ps), arrives_ps: arrives_ps.max(self.latest_ps) }
            }
            Access::Get => self.answered(there_ps, bytes),
            Access::FetchAdd => self.answered(there_ps, WORD),
        };
        self.latest_ps = completion.arrives_ps;
        self.started.push_back(completion);
    }

    /// Returns the completion of an operation whose request reaches the target at `there_ps`, and which the
    /// target answers with `bytes` bytes.
    fn answered(&mut self, there_ps: Ps, bytes: usize) -> Completion {
        let departs_ps = there_ps.max(self.target_stage_ps);
        let (sending_ps, gap_ps) = (self.draw(self.truth.data_of(bytes)), self.draw(self.truth.g_ps));
        self.target_stage_ps = departs_ps + gap_ps + sending_ps;
        let here_ps = departs_ps + sending_ps + self.draw(self.truth.l_of(bytes));
        Completion { local_ps: None, arrives_ps: here_ps.max(self.latest_ps) }
    }

    /// Waits until the memory of all started operations is free, or has the bytes.
    ///
    /// # Errors
    /// Nothing was started.
    pub fn wait_local(&mut self) -> Result<(), Stuck> {
        match self.started.back().ok_or(Stuck)?.local_ps {
            Some(local_ps) => self.now_ps = self.now_ps.max(local_ps),
            None => self.flush()?,
        }
        Ok(())
    }

    /// Waits until all started operations are known to be complete at the target.
    ///
    /// # Errors
    /// Nothing was started.
    pub fn flush(&mut self) -> Result<(), Stuck> {
        let latest = *self.started.back().ok_or(Stuck)?;
        self.started.clear();
        self.now_ps = self.now_ps.max(latest.arrives_ps) + self.draw(self.truth.o_r_ps);
        Ok(())
    }

    /// Draws a duration around `mean_ps`.
    fn draw(&mut self, mean_ps: Ps) -> Ps {
        self.truth.noise.around(mean_ps, &mut self.random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initiator(rest: &str) -> OneSided {
        let truth = alloc::format!("o_s=1us,o_r=2us,g=5us,L=7us{rest}");
        OneSided::new(truth.parse().unwrap(), 1)
    }

    #[test]
    fn a_put_leaves_and_is_acknowledged() {
        let mut put = initiator(",G=1ns/B");
        put.start(Access::Put, 1001);
        assert_eq!(put.now_ps(), 1_000_000);
        put.wait_local().unwrap();
        assert_eq!(put.now_ps(), 2_000_000);
        put.flush().unwrap();
        assert_eq!(put.now_ps(), (1 + 1 + 7 + 7 + 2) * 1_000_000);
        assert_eq!(put.flush(), Err(Stuck));
    }

    #[test]
    fn a_get_brings_its_bytes() {
        for (access, bytes, data_ps) in [(Access::Get, 1001, 1_000_000), (Access::FetchAdd, 1, 7_000)] {
            let mut get = initiator(",G=1ns/B");
            get.start(access, bytes);
            get.wait_local().unwrap();
            assert_eq!(get.now_ps(), (1 + 7 + 7 + 2) * 1_000_000 + data_ps);
        }
    }

    #[test]
    fn a_stream_takes_the_gap_or_the_share_of_the_window() {
        for (rest, each_ps) in [("", 5_000_000), (",window=2", 7_500_000)] {
            let took_ps = |count: usize| {
                let mut puts = initiator(rest);
                (0..count).for_each(|_| puts.start(Access::Put, 1));
                puts.flush().unwrap();
                puts.now_ps()
            };
            assert_eq!((took_ps(40) - took_ps(20)) / 20, each_ps, "{rest}");
        }
    }
}
