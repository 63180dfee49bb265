//! A requester of messages of any size, with what is needed to time it.

use crate::layer::{LayerError, SizedRequester, Work};
use crate::logp::data::Burst;
use crate::stats::{median_interval_of_sorted, quantile_of_sorted, sorted, trimmed_mean};

/// Ticks that a burst took.
pub(super) struct Ticks {
    pub(super) issue: u64,
    pub(super) done: u64,
}

pub(super) struct Bench<'a, R> {
    pub(super) requester: &'a mut R,
    pub(super) timer_ns: f64,
    tick_ns: f64,
    began: u64,
    budget_ns: f64,
    /// What must pass after a reply until the layer is quiet, where anything must.
    rest: Option<Work>,
}

impl<'a, R: SizedRequester> Bench<'a, R> {
    pub(super) fn new(requester: &'a mut R, budget_ns: f64) -> Self {
        let (tick_ns, began) = (requester.tick_ns(), requester.now());
        let mut bench = Self { requester, timer_ns: 0.0, tick_ns, began, budget_ns, rest: None };
        bench.timer_ns = trimmed_mean((0..2000).map(|_| {
            let start = bench.requester.now();
            bench.since(start)
        }));
        bench
    }

    /// Nanoseconds, to the picosecond: records need no more digits.
    pub(super) fn ns(&self, ticks: u64) -> f64 {
        (ticks as f64 * self.tick_ns * 1e3).round() / 1e3
    }

    /// Nanoseconds from `start` to now.
    #[inline(always)]
    fn since(&mut self, start: u64) -> f64 {
        let end = self.requester.now();
        self.ns(end - start)
    }

    /// Share of the launch's time that has passed.
    pub(super) fn elapsed(&mut self) -> f64 {
        let began = self.began;
        self.since(began) / self.budget_ns
    }

    pub(super) fn took_ns(&mut self) -> f64 {
        let began = self.began;
        self.since(began)
    }

    /// Sets the sizes of both messages, and what must pass between measurements.
    pub(super) fn set_sizes(&mut self, request: usize, reply: usize, rest_ns: f64) -> Result<(), LayerError> {
        self.drain()?;
        self.requester.set_sizes(request, reply)?;
        self.rest = (rest_ns > 0.0).then(|| self.requester.work(rest_ns));
        Ok(())
    }

    #[inline(always)]
    pub(super) fn issue(&mut self) -> Result<(), LayerError> {
        while !self.requester.issue()? {
            self.requester.wait()?;
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), LayerError> {
        while self.requester.in_flight() > 0 {
            self.requester.wait()?;
        }
        Ok(())
    }

    /// Waits until nothing of what went before slows down what comes next.
    pub(super) fn settle(&mut self) -> Result<(), LayerError> {
        self.drain()?;
        if let Some(rest) = self.rest {
            self.requester.compute(rest);
        }
        Ok(())
    }

    /// One round trip from quiet, the clock's cost taken off.
    pub(super) fn round_trip(&mut self) -> Result<f64, LayerError> {
        self.settle()?;
        let start = self.requester.now();
        self.issue()?;
        self.requester.wait()?;
        Ok(self.since(start) - self.timer_ns)
    }

    /// Time to issue `m` requests from quiet, with no poll between them.
    pub(super) fn requests_alone(&mut self, m: usize) -> Result<f64, LayerError> {
        self.settle()?;
        let start = self.requester.now();
        for _ in 0..m {
            self.issue()?;
        }
        Ok(self.since(start))
    }

    /// Cost of a receive after computing for `away`, the clock's taken off, and whether it had
    /// to wait for a part of the reply.
    pub(super) fn receive_after(&mut self, away: Work) -> Result<(f64, bool), LayerError> {
        self.settle()?;
        self.issue()?;
        self.requester.compute(away);
        let start = self.requester.now();
        let had_to_wait = !self.requester.poll()?;
        if had_to_wait {
            self.requester.wait()?;
        }
        Ok((self.since(start) - self.timer_ns, had_to_wait))
    }

    /// One burst of the signature: M times poll, issue, compute; then drain.
    pub(super) fn burst(&mut self, m: usize, work: Option<Work>) -> Result<Ticks, LayerError> {
        self.settle()?;
        let start = self.requester.now();
        for _ in 0..m {
            self.requester.poll()?;
            self.issue()?;
            if let Some(work) = work {
                self.requester.compute(work);
            }
        }
        let issued = self.requester.now();
        self.drain()?;
        let done = self.requester.now();
        Ok(Ticks { issue: issued - start, done: done - start })
    }

    /// Adds a batch to each of `bursts`.
    pub(super) fn batch_of_each(
        &mut self,
        bursts: &mut [Burst],
        work: Option<Work>,
    ) -> Result<(), LayerError> {
        for burst in bursts {
            let (mut issue, mut done) = (Vec::new(), Vec::new());
            for _ in 0..burst.per_batch {
                let ticks = self.burst(burst.m, work)?;
                issue.push(self.ns(ticks.issue));
                done.push(self.ns(ticks.done));
            }
            burst.issue_ns.push(trimmed_mean(issue));
            burst.done_ns.push(trimmed_mean(done));
        }
        Ok(())
    }

    /// What a delay costs without messages, so that its error is not taken for overhead.
    pub(super) fn measured_delay(&mut self, work: Work, repeats: u32) -> f64 {
        let start = self.requester.now();
        for _ in 0..repeats {
            self.requester.compute(work);
        }
        (self.since(start) - self.timer_ns) / f64::from(repeats)
    }

    /// Cost of a poll that finds nothing.
    pub(super) fn empty_poll(&mut self, repeats: u32) -> Result<f64, LayerError> {
        self.settle()?;
        let start = self.requester.now();
        for _ in 0..repeats {
            self.requester.poll()?;
        }
        Ok((self.since(start) - self.timer_ns) / f64::from(repeats))
    }
}

/// Whether the median of `values` is known to `precision`, as a share of `whole`.
pub(super) fn is_known(values: &[f64], whole: f64, precision: f64, confidence: f64) -> bool {
    let values = sorted(values.iter().copied());
    median_interval_of_sorted(&values, confidence)
        .is_some_and(|interval| interval.half_width() <= precision * whole.abs())
}

/// The median of unsorted values, with a robust standard error of it: from the distance
/// between the quartiles.
pub(super) fn median_and_error(values: Vec<f64>) -> (f64, f64) {
    let values = sorted(values);
    let quartiles = quantile_of_sorted(&values, 0.75) - quantile_of_sorted(&values, 0.25);
    // For a normal distribution the quartiles are 1.35 deviations apart, and the median's
    // error is 1.25 times the mean's.
    (quantile_of_sorted(&values, 0.5), 1.25 * quartiles / 1.35 / (values.len() as f64).sqrt())
}
