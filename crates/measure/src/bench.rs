//! A requester with what is needed to time it: what the patterns of all verbs are made of.

use crate::layer::{LayerError, Requester, SizedRequester, Work};
use crate::logp::data::Burst;
use crate::stats::{median, median_interval_of_sorted, quantile_of_sorted, sorted, trimmed_mean};

/// Ticks that a burst took.
pub(crate) struct Ticks {
    pub(crate) issue: u64,
    pub(crate) done: u64,
}

pub(crate) struct Bench<'a, R> {
    pub(crate) requester: &'a mut R,
    pub(crate) timer_ns: f64,
    tick_ns: f64,
    began: u64,
    budget_ns: f64,
    /// What must pass after a reply until the layer is quiet, where anything must.
    rest: Option<Work>,
}

impl<'a, R: Requester> Bench<'a, R> {
    pub(crate) fn new(requester: &'a mut R, budget_ns: f64) -> Self {
        let (tick_ns, began) = (requester.tick_ns(), requester.now());
        let mut bench = Self { requester, timer_ns: 0.0, tick_ns, began, budget_ns, rest: None };
        bench.timer_ns = trimmed_mean((0..2000).map(|_| {
            let start = bench.requester.now();
            bench.since(start)
        }));
        bench
    }

    /// Nanoseconds, to the picosecond: records need no more digits.
    pub(crate) fn ns(&self, ticks: u64) -> f64 {
        (ticks as f64 * self.tick_ns * 1e3).round() / 1e3
    }

    /// Nanoseconds from `start` to now.
    #[inline(always)]
    fn since(&mut self, start: u64) -> f64 {
        let end = self.requester.now();
        self.ns(end - start)
    }

    /// Share of the launch's time that has passed.
    pub(crate) fn elapsed(&mut self) -> f64 {
        let began = self.began;
        self.since(began) / self.budget_ns
    }

    pub(crate) fn took_ns(&mut self) -> f64 {
        let began = self.began;
        self.since(began)
    }

    /// Sets what must pass between measurements.
    pub(crate) fn set_rest(&mut self, rest_ns: f64) {
        self.rest = (rest_ns > 0.0).then(|| self.requester.work(rest_ns));
    }

    /// Whether anything must.
    pub(crate) fn rests(&self) -> bool {
        self.rest.is_some()
    }

    /// Round trips until caches, branches and clocks have warmed up.
    pub(crate) fn warm_up(&mut self) -> Result<(), LayerError> {
        let mut trips = 0;
        while trips < 20 || (trips < 100_000 && self.elapsed() < 0.02) {
            self.trip()?;
            trips += 1;
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn issue(&mut self) -> Result<(), LayerError> {
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
    pub(crate) fn settle(&mut self) -> Result<(), LayerError> {
        self.drain()?;
        if let Some(rest) = self.rest {
            self.requester.compute(rest);
        }
        Ok(())
    }

    /// One round trip.
    #[inline(always)]
    pub(crate) fn trip(&mut self) -> Result<(), LayerError> {
        self.issue()?;
        self.requester.wait()
    }

    /// The same from quiet, the clock's cost taken off.
    pub(crate) fn round_trip(&mut self) -> Result<f64, LayerError> {
        self.settle()?;
        let start = self.requester.now();
        self.trip()?;
        Ok(self.since(start) - self.timer_ns)
    }

    /// Time to issue `m` requests from quiet, with no poll between them.
    pub(crate) fn requests_alone(&mut self, m: usize) -> Result<f64, LayerError> {
        self.settle()?;
        let start = self.requester.now();
        for _ in 0..m {
            self.issue()?;
        }
        Ok(self.since(start))
    }

    /// Cost of a receive after computing for `away`, the clock's taken off, and whether it had
    /// to wait for a part of the reply.
    pub(crate) fn receive_after(&mut self, away: Work) -> Result<(f64, bool), LayerError> {
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

    /// Time per message between two bursts of M/2 and M.
    pub(crate) fn pilot_plateau(&mut self, m: usize) -> Result<f64, LayerError> {
        let mut slopes = Vec::new();
        for _ in 0..3 {
            let (half, whole) = (self.burst(m / 2, None)?.done, self.burst(m, None)?.done);
            slopes.push((whole as f64 - half as f64) * self.tick_ns / (m - m / 2) as f64);
        }
        Ok(median(slopes))
    }

    /// One burst of the signature: M times poll, issue, compute; then drain.
    pub(crate) fn burst(&mut self, m: usize, work: Option<Work>) -> Result<Ticks, LayerError> {
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
    pub(crate) fn batch_of_each(
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
    pub(crate) fn measured_delay(&mut self, work: Work, repeats: u32) -> f64 {
        let start = self.requester.now();
        for _ in 0..repeats {
            self.requester.compute(work);
        }
        (self.since(start) - self.timer_ns) / f64::from(repeats)
    }

    /// Cost of a poll that finds nothing.
    pub(crate) fn empty_poll(&mut self, repeats: u32) -> Result<f64, LayerError> {
        self.settle()?;
        let start = self.requester.now();
        for _ in 0..repeats {
            self.requester.poll()?;
        }
        Ok((self.since(start) - self.timer_ns) / f64::from(repeats))
    }
}

impl<R: SizedRequester> Bench<'_, R> {
    /// Sets the sizes of both messages, and what must pass between measurements.
    pub(crate) fn set_sizes(&mut self, request: usize, reply: usize, rest_ns: f64) -> Result<(), LayerError> {
        self.drain()?;
        self.requester.set_sizes(request, reply)?;
        self.set_rest(rest_ns);
        Ok(())
    }
}

/// Whether the median of `values` is known to `precision`, as a share of `whole`.
pub(crate) fn is_known(values: &[f64], whole: f64, precision: f64, confidence: f64) -> bool {
    let values = sorted(values.iter().copied());
    median_interval_of_sorted(&values, confidence)
        .is_some_and(|interval| interval.half_width() <= precision * whole.abs())
}

/// The median of unsorted values, with a robust standard error of it: from the distance
/// between the quartiles.
pub(crate) fn median_and_error(values: Vec<f64>) -> (f64, f64) {
    let values = sorted(values);
    let quartiles = quantile_of_sorted(&values, 0.75) - quantile_of_sorted(&values, 0.25);
    // For a normal distribution the quartiles are 1.35 deviations apart, and the median's
    // error is 1.25 times the mean's.
    (quantile_of_sorted(&values, 0.5), 1.25 * quartiles / 1.35 / (values.len() as f64).sqrt())
}
