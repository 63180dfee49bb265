//! The bench: a layer with its clock, its window and its time budget. It provides the timed operations of
//! which the patterns of all verbs consist.

use crate::layer::{LayerError, Requester, SizedRequester, Time, Transfer, Work};
use crate::logp::data::Burst;
use crate::stats::{median, median_interval_of_sorted, quantile_of_sorted, sorted, trimmed_mean};

/// A time in real time is long from here on: what takes so long is measured less often, and the launch says that it
/// goes on.
pub(crate) const LONG_NS: f64 = 20e6;
/// Window of the first stream of a pilot measurement, and of long messages.
const PILOT_WINDOW: usize = 4;
const PILOT_WINDOW_OF_LONG: usize = 2;
/// Streams of each window of a pilot measurement. Long messages have one.
const PILOT_STREAMS: usize = 3;
/// The last pilot stream has a window of at least this many times the messages that fit on the way.
const PILOT_OVER_DEPTH: f64 = 4.0;

/// Duration of a burst, in ticks of the layer's clock.
pub(crate) struct Ticks {
    pub(crate) issue: u64,
    pub(crate) done: u64,
}

pub(crate) struct Bench<'a, L> {
    pub(crate) layer: &'a mut L,
    pub(crate) timer_ns: f64,
    tick_ns: f64,
    began: u64,
    budget_ns: f64,
    /// Delay after a reply until the layer is quiet; `None` if the layer needs no delay.
    rest: Option<Work>,
    /// Largest number of outstanding requests (requests without a reply).
    window: usize,
    /// Number of requests that a burst issues before its first poll.
    unpolled: usize,
}

impl<'a, L: Time> Bench<'a, L> {
    pub(crate) fn new(layer: &'a mut L, budget_ns: f64) -> Self {
        let (tick_ns, began) = (layer.tick_ns(), layer.now());
        let mut bench = Self {
            layer,
            timer_ns: 0.0,
            tick_ns,
            began,
            // A launch without any time would have no elapsed share of it.
            budget_ns: budget_ns.max(1.0),
            rest: None,
            window: usize::MAX,
            unpolled: 0,
        };
        bench.timer_ns = trimmed_mean((0..2000).map(|_| {
            let start = bench.layer.now();
            bench.since(start)
        }));
        bench
    }

    /// Converts ticks to nanoseconds, rounded to the picosecond, because records need no more digits.
    pub(crate) fn ns(&self, ticks: u64) -> f64 {
        (ticks as f64 * self.tick_ns * 1e3).round() / 1e3
    }

    /// Returns the nanoseconds from `start` to now.
    #[inline(always)]
    pub(crate) fn since(&mut self, start: u64) -> f64 {
        let end = self.layer.now();
        self.ns(end - start)
    }

    /// Returns the elapsed share of the launch's time budget.
    pub(crate) fn elapsed(&mut self) -> f64 {
        let began = self.began;
        self.since(began) / self.budget_ns
    }

    /// Returns how many operations of `each_ns` fit into `share` of the time budget, between `least` and
    /// `most`. Returns `most` in virtual time, because virtual time costs the user nothing.
    pub(crate) fn fitting(&self, each_ns: f64, share: f64, (least, most): (usize, usize)) -> usize {
        if self.layer.is_virtual() {
            return most;
        }
        ((share * self.budget_ns / each_ns.max(1.0)) as usize).clamp(least, most)
    }

    /// Returns `share` of the time budget, in nanoseconds. Returns infinity in virtual time, because
    /// virtual time costs the user nothing.
    pub(crate) fn time_ns(&self, share: f64) -> f64 {
        if self.layer.is_virtual() { f64::INFINITY } else { share * self.budget_ns }
    }

    /// Reports that `times` the time budget has passed in real time. The launch then measures only the
    /// minimum.
    pub(crate) fn is_overdue(&mut self, times: f64) -> bool {
        !self.layer.is_virtual() && self.elapsed() >= times
    }

    pub(crate) fn took_ns(&mut self) -> f64 {
        let began = self.began;
        self.since(began)
    }

    /// Sets the delay between measurements. Zero means none.
    pub(crate) fn set_rest(&mut self, rest_ns: f64) {
        self.rest = (rest_ns > 0.0).then(|| self.layer.work(rest_ns));
    }

    /// Waits for the delay between measurements.
    pub(crate) fn rest(&mut self) {
        if let Some(rest) = self.rest {
            self.layer.compute(rest);
        }
    }

    /// Returns the duration of a delay without messages, in nanoseconds. Callers subtract it, so that the
    /// error of the delay does not count as overhead.
    pub(crate) fn measured_delay(&mut self, work: Work, repeats: u32) -> f64 {
        let start = self.layer.now();
        for _ in 0..repeats {
            self.layer.compute(work);
        }
        (self.since(start) - self.timer_ns) / f64::from(repeats)
    }

    /// Measures all cells in passes, each in a random order. Makes at least one pass and at most `most`, and stops
    /// once the full time budget has passed since the call. A cell that takes long calls its last argument between
    /// its parts, because a launch that says nothing for a minute counts as dead.
    pub(crate) fn pass_over<C>(
        &mut self,
        cells: &mut [C],
        most: usize,
        random: &mut fastrand::Rng,
        progress: &mut dyn FnMut(f64),
        mut measure: impl FnMut(&mut Self, &C, &mut fastrand::Rng, &mut dyn FnMut()) -> Result<(), LayerError>,
    ) -> Result<(), LayerError> {
        // The search and the choice of cells before this call have a budget of their own.
        let began = self.elapsed();
        for pass in 0..most {
            random.shuffle(cells);
            for (nth, cell) in cells.iter().enumerate() {
                let by_time = self.elapsed() - began;
                if pass > 0 && by_time >= 1.0 {
                    return Ok(());
                }
                let by_passes = pass as f64 + nth as f64 / cells.len() as f64;
                let done = by_time.min(by_passes).min(1.0);
                progress(done);
                measure(self, cell, random, &mut || progress(done))?;
            }
        }
        Ok(())
    }
}

impl<R: Requester> Bench<'_, R> {
    /// Limits the number of outstanding requests.
    pub(crate) fn set_window(&mut self, window: usize) {
        self.layer.set_window(window);
        self.window = window;
    }

    /// Sets the number of requests that a burst issues before its first poll.
    pub(crate) fn set_unpolled(&mut self, unpolled: usize) {
        self.unpolled = unpolled;
    }

    /// Reports that the layer needs a delay between measurements.
    pub(crate) fn rests(&self) -> bool {
        self.rest.is_some()
    }

    /// Makes round trips until caches, branch predictors and clock frequency have warmed up.
    pub(crate) fn warm_up(&mut self) -> Result<(), LayerError> {
        let mut trips = 0;
        while trips < 3
            || (trips < 20 && !self.is_overdue(0.05))
            || (trips < 100_000 && self.elapsed() < 0.02)
        {
            self.trip()?;
            trips += 1;
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn issue(&mut self) -> Result<(), LayerError> {
        while !self.layer.issue()? {
            self.layer.wait()?;
        }
        Ok(())
    }

    /// Waits for the replies to all requests.
    pub(crate) fn drain(&mut self) -> Result<(), LayerError> {
        while self.layer.in_flight() > 0 {
            self.layer.wait()?;
        }
        Ok(())
    }

    /// Waits until no earlier message can slow down the next measurement.
    pub(crate) fn settle(&mut self) -> Result<(), LayerError> {
        self.drain()?;
        self.rest();
        Ok(())
    }

    /// Makes one round trip.
    #[inline(always)]
    pub(crate) fn trip(&mut self) -> Result<(), LayerError> {
        self.issue()?;
        self.layer.wait()
    }

    /// Returns the time of one round trip from a quiet layer, in nanoseconds, without the cost of the
    /// clock.
    pub(crate) fn round_trip(&mut self) -> Result<f64, LayerError> {
        self.settle()?;
        let start = self.layer.now();
        self.trip()?;
        Ok(self.since(start) - self.timer_ns)
    }

    /// Returns the time to issue `m` requests from a quiet layer without polls between them, in
    /// nanoseconds.
    pub(crate) fn requests_alone(&mut self, m: usize) -> Result<f64, LayerError> {
        self.settle()?;
        let start = self.layer.now();
        for _ in 0..m {
            self.issue()?;
        }
        Ok(self.since(start))
    }

    /// Returns the cost of a receive after computing for `away`, in nanoseconds, without the cost of the
    /// clock. Also returns whether the receive had to wait for a part of the reply.
    pub(crate) fn receive_after(&mut self, away: Work) -> Result<(f64, bool), LayerError> {
        self.settle()?;
        self.issue()?;
        self.layer.compute(away);
        let start = self.layer.now();
        let had_to_wait = !self.layer.poll()?;
        if had_to_wait {
            self.layer.wait()?;
        }
        Ok((self.since(start) - self.timer_ns, had_to_wait))
    }

    /// Returns the time per message of a stream with a full window, in nanoseconds.
    ///
    /// The window doubles until a window lasts far longer than a round trip. It stops earlier at `most`, at
    /// the layer's own window, or once a window lasts `limit_ns`. The streams make no empty polls.
    /// Afterwards the layer's own window is in force. Calls `goes_on` before each stream, and before each message that
    /// takes so long by itself.
    pub(crate) fn pilot_plateau(
        &mut self,
        rtt_ns: f64,
        most: usize,
        limit_ns: f64,
        mut goes_on: impl FnMut(),
    ) -> Result<f64, LayerError> {
        let most = most.min(self.layer.max_window());
        let is_long = rtt_ns >= limit_ns;
        let mut window = if is_long { PILOT_WINDOW_OF_LONG } else { PILOT_WINDOW }.min(most);
        let streams = if is_long { 1 } else { PILOT_STREAMS };
        let plateau_ns = loop {
            let mut runs = Vec::with_capacity(streams);
            for _ in 0..streams {
                goes_on();
                runs.push(self.windowed_stream(window, || {
                    if is_long {
                        goes_on()
                    }
                })?);
            }
            let plateau_ns = median(runs);
            let lasts_ns = window as f64 * plateau_ns;
            if window >= most || lasts_ns >= PILOT_OVER_DEPTH * rtt_ns || lasts_ns >= limit_ns {
                break plateau_ns;
            }
            window = (2 * window).min(most);
        };
        self.set_window(self.layer.max_window());
        Ok(plateau_ns)
    }

    /// Returns the time per message of a stream that keeps its window full, measured over two windows. Calls `before_each`
    /// before each message.
    fn windowed_stream(&mut self, window: usize, mut before_each: impl FnMut()) -> Result<f64, LayerError> {
        self.settle()?;
        self.set_window(window);
        for _ in 0..window {
            self.issue()?;
        }
        // The first window fills the pipeline.
        self.keep_full(window, &mut before_each)?;
        let start = self.layer.now();
        self.keep_full(2 * window, &mut before_each)?;
        Ok((self.since(start) - self.timer_ns) / (2 * window) as f64)
    }

    /// Waits for a reply and issues a request, `messages` times.
    #[inline(always)]
    fn keep_full(&mut self, messages: usize, before_each: &mut impl FnMut()) -> Result<(), LayerError> {
        for _ in 0..messages {
            before_each();
            self.layer.wait()?;
            self.issue()?;
        }
        Ok(())
    }

    /// Performs one burst of the signature: M times poll, issue, compute; then drain. With a full window it
    /// waits instead of polling, because it can issue nothing before the next reply.
    pub(crate) fn burst(&mut self, m: usize, work: Option<Work>) -> Result<Ticks, LayerError> {
        self.settle()?;
        let start = self.layer.now();
        let unpolled = self.unpolled.min(m / 2);
        for nth in 0..m {
            if nth >= unpolled && self.layer.in_flight() < self.window {
                self.layer.poll()?;
            }
            self.issue()?;
            if let Some(work) = work {
                self.layer.compute(work);
            }
        }
        let issued = self.layer.now();
        self.drain()?;
        let done = self.layer.now();
        Ok(Ticks { issue: issued - start, done: done - start })
    }

    /// Adds a batch to each of `bursts`. Calls `goes_on` before each batch, because it may take long on a busy machine, and
    /// after each long burst.
    pub(crate) fn batch_of_each(
        &mut self,
        bursts: &mut [Burst],
        work: Option<Work>,
        mut goes_on: impl FnMut(),
    ) -> Result<(), LayerError> {
        for burst in bursts {
            goes_on();
            let (mut issue, mut done) = (Vec::new(), Vec::new());
            for _ in 0..burst.per_batch {
                let ticks = self.burst(burst.m, work)?;
                if self.ns(ticks.done) > LONG_NS {
                    goes_on();
                }
                issue.push(self.ns(ticks.issue));
                done.push(self.ns(ticks.done));
            }
            burst.issue_ns.push(trimmed_mean(issue));
            burst.done_ns.push(trimmed_mean(done));
        }
        Ok(())
    }

    /// Returns the cost of a poll that finds nothing, in nanoseconds.
    pub(crate) fn empty_poll(&mut self, repeats: u32) -> Result<f64, LayerError> {
        self.settle()?;
        let start = self.layer.now();
        for _ in 0..repeats {
            self.layer.poll()?;
        }
        Ok((self.since(start) - self.timer_ns) / f64::from(repeats))
    }
}

impl<R: SizedRequester> Bench<'_, R> {
    /// Sets the sizes of both messages, and the delay between measurements.
    pub(crate) fn set_sizes(&mut self, request: usize, reply: usize, rest_ns: f64) -> Result<(), LayerError> {
        self.set_transfer(Transfer::Request, (request, reply), rest_ns)
    }

    /// Sets the way in which requests move their bytes, the sizes of the request and of the reply, and the
    /// delay between measurements.
    pub(crate) fn set_transfer(
        &mut self,
        transfer: Transfer,
        (request, reply): (usize, usize),
        rest_ns: f64,
    ) -> Result<(), LayerError> {
        self.drain()?;
        self.layer.set_transfer(transfer);
        self.layer.set_sizes(request, reply)?;
        self.window = self.layer.max_window();
        self.set_rest(rest_ns);
        Ok(())
    }
}

/// Reports that the half-width of the median's interval is at most `precision`, as a share of `whole`.
pub(crate) fn is_known(values: &[f64], whole: f64, precision: f64, confidence: f64) -> bool {
    let values = sorted(values.iter().copied());
    median_interval_of_sorted(&values, confidence)
        .is_some_and(|interval| interval.half_width() <= precision * whole.abs())
}

/// Returns the median of unsorted values and its standard error, estimated robustly from the interquartile
/// range.
pub(crate) fn median_and_error(values: Vec<f64>) -> (f64, f64) {
    let values = sorted(values);
    let quartiles = quantile_of_sorted(&values, 0.75) - quantile_of_sorted(&values, 0.25);
    // In a normal distribution the interquartile range is 1.35 standard deviations. The standard error of
    // the median is 1.25 times that of the mean.
    (quantile_of_sorted(&values, 0.5), 1.25 * quartiles / 1.35 / (values.len() as f64).sqrt())
}
