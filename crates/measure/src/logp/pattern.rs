//! The procedure of one launch.
//!
//! The order is: warm-up; the cost of a clock reading; single round trips; empty polls; bursts of requests
//! alone; receives after staying away. Then come passes over the signature, each with its half-window
//! bursts and its streams. They end once the plateau and the busy line are known, or the time is up. Round
//! trips after a pause are last.

use super::data::{Burst, Curve, LaunchData, RoundTrips, Shape, Stream};
use super::estimate::issue_rises;
use super::send_overhead::send_overhead;
use crate::bench::{Bench, is_known};
use crate::layer::{LayerError, Requester, Work};
use crate::stats::{median, trimmed_mean};
use crate::steady::{self, Overheads};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Length of the longest burst of a signature for a run of `logp`. A deep pipeline needs a longer burst,
/// and a launch with little time makes a shorter one.
pub const LONGEST_BURST: usize = 1024;
/// The messages of short bursts in a batch, for a run of `logp`.
pub const BATCH_MESSAGES: usize = 256;
/// Largest length of the longest burst. A deeper pipeline causes a warning, not a longer burst.
pub const LONGEST_BURST_AT_MOST: usize = 1 << 15;
/// The lengths of the bursts of requests alone.
const ISSUE_BURSTS: [usize; 5] = [1, 2, 4, 8, 16];
/// The number of consecutive samples in a batch (50, as in Culler et al.), and in a short launch.
pub(super) const BATCH: usize = 50;
const BATCH_AT_LEAST: usize = 10;
/// The share of the launch's time for one window of the pilot stream.
const PILOT_SHARE: f64 = 0.01;
/// The share of the launch's time for as many round trips as one batch of each phase has.
const BATCH_SHARE: f64 = 1.0 / 300.0;
/// The share of the launch's time for the round trips of a batch of bursts: a pass has about 50 batches.
const BURSTS_SHARE: f64 = 0.02;
/// The share of the launch's time for the smallest number of batches of the bursts of one length.
const ISSUE_SHARE: f64 = 0.1;
/// The largest and the smallest number of batches of each small measurement.
const BATCHES: usize = 24;
const BATCHES_AT_LEAST: usize = 3;
/// The number of empty polls timed together.
const POLLS: u32 = 32;
/// The number of delays timed together.
const DELAYS: u32 = 256;
/// The time of these delays without messages, in nanoseconds, if one is not longer. In real time the other process
/// waits for acknowledgements meanwhile, and takes this one for lost if it is silent for long.
const DELAYS_NS: f64 = 4e6;
/// The numbers of passes over the signature: before a figure can count as precise, in a launch without
/// time, and at most.
const PASSES_AT_LEAST: usize = 8;
const PASSES_WITHOUT_TIME: usize = 3;
const PASSES_AT_MOST: usize = 40;
/// A launch begins no further pass after this many times its time budget, because other programs need the
/// processor.
const OVERDUE: f64 = 8.0;
/// The same limit for a launch in real time, for which a user waits.
const OVERDUE_IN_REAL_TIME: f64 = 1.5;
/// The pause before a cold round trip, and the smallest and the largest number of pauses.
const PAUSE_NS: f64 = 2e6;
const PAUSES: (usize, usize) = (3, 10);
/// The share of the launch's time for the pauses.
const PAUSES_SHARE: f64 = 0.2;
/// The longest burst of a signature in a launch without time.
const SHORTEST_SIGNATURE: usize = 8;
/// The number of bursts of that length that a delay takes in a launch without time.
const LENGTHS_IN_CURVES: f64 = 4.0 * PASSES_WITHOUT_TIME as f64;
/// The delays of a signature, in units of the idle time or of half of the busy time.
const DELAYS_IN_UNITS: [f64; 6] = [0.0, 0.5, 1.25, 1.75, 2.5, 3.5];
/// The requester stays away for this many round trips before it receives the reply.
const AWAY_ROUND_TRIPS: f64 = 1.2;

/// The plan of a launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The index in the order of launches.
    pub launch: usize,
    /// Bursts and delays, if an earlier launch of the run chose them.
    pub shape: Option<Shape>,
    /// The time for the whole launch, on the layer's clock.
    pub budget_ns: f64,
    /// A figure is precise at this half-width, a share of the value.
    pub precision: f64,
    /// The confidence of that half-width.
    pub confidence: f64,
    /// The seed of the order of the curves.
    pub seed: u64,
    /// Length of the longest burst of the signature. A deep pipeline needs a longer one.
    pub longest_burst: usize,
    /// The messages of short bursts in a batch: fewer are quicker and noisier.
    pub batch_messages: usize,
}

/// Runs one launch over `requester`. `progress` receives the share that is done.
pub fn run<R: Requester>(
    requester: &mut R,
    plan: &Plan,
    progress: &mut dyn FnMut(f64),
) -> Result<LaunchData, LayerError> {
    let mut launch = Launch { bench: Bench::new(requester, plan.budget_ns), plan, batch: BATCH, progress };
    launch.bench.set_window(launch.bench.layer.max_window());
    launch.bench.warm_up()?;
    launch.choose_batch()?;
    let plateau_ns = match &plan.shape {
        Some(_) => f64::NAN,
        None => launch.pilot_plateau()?,
    };
    let rest_ns = match &plan.shape {
        Some(shape) => shape.rest_ns,
        None => steady::rest_ns(plateau_ns, launch.pilot_round_trip()?),
    };
    launch.bench.set_rest(rest_ns);
    let rtt = launch.round_trips()?;
    let rtt_ns = median(rtt.batches_ns.iter().copied());
    let o_poll_ns = launch.empty_polls()?;
    let issue = launch.issue_bursts(rtt_ns)?;
    let (o_r_away_ns, o_r_away_late) = launch.receives_after_staying_away(rtt_ns)?;
    let shape = match &plan.shape {
        Some(shape) => shape.clone(),
        None => {
            let o_s_ns = send_overhead(&issue, launch.bench.timer_ns).value_ns;
            let pilot = SignaturePilot {
                rtt_ns,
                plateau_ns,
                o_s_ns,
                o_r_ns: Some(median(o_r_away_ns.iter().copied()))
                    .filter(|ns| ns.is_finite())
                    .unwrap_or(o_s_ns),
                o_poll_ns: median(o_poll_ns.iter().copied()),
                rest_ns,
            };
            launch.choose_shape(&pilot)
        }
    };
    launch.bench.set_unpolled(shape.unpolled);
    let in_batch = InBatch {
        messages: batch_messages(plan, &shape),
        bursts: launch.bench.fitting(rtt_ns, BURSTS_SHARE, (1, BATCH)),
    };
    let mut data = LaunchData {
        launch: plan.launch,
        timer_ns: launch.bench.timer_ns,
        rtt,
        pause_ns: PAUSE_NS,
        o_poll_ns,
        issue,
        o_r_away_ns,
        o_r_away_late,
        signature: shape.delays_ns.iter().map(|&d_ns| Curve::empty(d_ns, &shape.bursts, &in_batch)).collect(),
        half_window: half_window_bursts(&shape, &in_batch),
        streams: streams(&shape),
        shape,
        ..LaunchData::default()
    };
    launch.passes(&mut data)?;
    data.rtt_after_pause_ns = launch.round_trips_after_pause()?;
    data.took_ns = launch.bench.took_ns();
    (launch.progress)(1.0);
    Ok(data)
}

/// Returns the messages of short bursts in a batch: fewer if the longest burst is shorter than planned.
fn batch_messages(plan: &Plan, shape: &Shape) -> usize {
    let longest = shape.bursts.last().copied().unwrap_or(plan.longest_burst);
    if longest < plan.longest_burst { plan.batch_messages.min(longest / 2) } else { plan.batch_messages }
}

impl Curve {
    fn empty(d_ns: f64, bursts: &[usize], in_batch: &InBatch) -> Self {
        Self { d_ns, d_measured_ns: Vec::new(), bursts: empty_bursts(bursts, in_batch) }
    }
}

/// What a batch of bursts has: so many messages, so that short bursts are many, and bursts at most, because each takes a
/// round trip however short it is.
struct InBatch {
    messages: usize,
    bursts: usize,
}

/// Returns bursts without times.
fn empty_bursts(sizes: &[usize], in_batch: &InBatch) -> Vec<Burst> {
    let per_batch = |m: usize| (in_batch.messages / m).clamp(1, in_batch.bursts);
    sizes.iter().map(|&m| Burst { m, per_batch: per_batch(m), ..Burst::default() }).collect()
}

/// Returns the bursts that show whether the window sets the plateau.
fn half_window_bursts(shape: &Shape, in_batch: &InBatch) -> Vec<Burst> {
    match shape.bursts.last() {
        Some(&longest) if shape.window > 1 => {
            empty_bursts(&steady::pair(longest, steady::smaller_window(shape.window)), in_batch)
        }
        _ => Vec::new(),
    }
}

/// Returns two streams whose length and delay are not among those of the fit.
fn streams(shape: &Shape) -> Vec<Stream> {
    let longest = shape.bursts[shape.bursts.len() - 1];
    let [.., before_last, last] = shape.delays_ns[..] else { return Vec::new() };
    [(longest / 4 * 3, 0.0), (longest / 8 * 5, (before_last + last) / 2.0)]
        .into_iter()
        .map(|(messages, d_ns)| Stream {
            // Whole windows, if the window is shorter.
            messages: (messages / shape.window * shape.window).max(messages % shape.window),
            d_ns,
            ..Stream::default()
        })
        .collect()
}

/// The figures of a layer from which bursts and delays are chosen.
struct SignaturePilot {
    rtt_ns: f64,
    plateau_ns: f64,
    o_s_ns: f64,
    o_r_ns: f64,
    o_poll_ns: f64,
    rest_ns: f64,
}

/// One launch in progress.
struct Launch<'a, R> {
    bench: Bench<'a, R>,
    plan: &'a Plan,
    /// Consecutive samples in a batch.
    batch: usize,
    /// Receives the share that is done between any two batches, because a batch may take long on a busy
    /// machine.
    progress: &'a mut dyn FnMut(f64),
}

impl<R: Requester> Launch<'_, R> {
    /// Chooses the number of samples in a batch. It is smaller if the smallest number of batches would take
    /// too long.
    fn choose_batch(&mut self) -> Result<(), LayerError> {
        if self.bench.layer.is_virtual() {
            return Ok(());
        }
        let trips: Vec<f64> = (0..3).map(|_| self.bench.round_trip()).collect::<Result<_, _>>()?;
        self.batch = self.bench.fitting(median(trips), BATCH_SHARE, (BATCH_AT_LEAST, BATCH));
        Ok(())
    }

    /// Reports whether another batch is due after `batches`. The phase ends once `share` of the launch's
    /// time has passed.
    fn goes_on(&mut self, batches: usize, share: f64) -> bool {
        let elapsed = self.bench.elapsed();
        (self.progress)(elapsed.min(share));
        batches < BATCHES_AT_LEAST || (batches < BATCHES && elapsed < share)
    }

    /// Reports that the half-width of the median of `values` is at most half of the precision asked for.
    fn is_known(&self, values: &[f64]) -> bool {
        is_known(values, median(values.iter().copied()), self.plan.precision / 2.0, self.plan.confidence)
    }

    /// Returns the time per message of a stream in nanoseconds. It determines the bursts, the delays and
    /// the rest.
    fn pilot_plateau(&mut self) -> Result<f64, LayerError> {
        let rtt_ns = self.pilot_round_trip()?;
        let most = LONGEST_BURST_AT_MOST / steady::BURST_OVER_DEPTH;
        let limit_ns = self.bench.time_ns(PILOT_SHARE);
        let plateau_ns = self.bench.pilot_plateau(rtt_ns, most, limit_ns, || (self.progress)(0.0))?;
        Ok(plateau_ns.max(steady::SHORTEST_NS))
    }

    fn pilot_round_trip(&mut self) -> Result<f64, LayerError> {
        let trips: Vec<f64> = (0..self.batch).map(|_| self.bench.round_trip()).collect::<Result<_, _>>()?;
        Ok(median(trips))
    }

    /// Measures single round trips, with one clock reading for each.
    fn round_trips(&mut self) -> Result<RoundTrips, LayerError> {
        let mut trips = RoundTrips::default();
        let mut histogram = Histogram::<u64>::new(3).map_err(LayerError::new)?;
        let mut batch = Vec::with_capacity(self.batch);
        let (mut least, mut most) = (u64::MAX, 0);
        while self.goes_on(trips.batches_ns.len(), 0.1)
            || (trips.batches_ns.len() < 200
                && self.bench.elapsed() < 0.1
                && !self.is_known(&trips.batches_ns))
        {
            batch.clear();
            let mut before = self.bench.layer.now();
            for _ in 0..self.batch {
                self.bench.trip()?;
                let after = self.bench.layer.now();
                batch.push(after - before);
                before = after;
                if self.bench.rests() {
                    self.bench.settle()?;
                    before = self.bench.layer.now();
                }
            }
            let values: Vec<f64> =
                batch.iter().map(|&ticks| self.bench.ns(ticks) - self.bench.timer_ns).collect();
            for &ticks in &batch {
                (least, most) = (least.min(ticks), most.max(ticks));
                histogram.record(ticks).map_err(LayerError::new)?;
            }
            trips.batches_ns.push(trimmed_mean(values));
        }
        trips.samples = histogram.len();
        trips.histogram_ns = histogram
            .iter_recorded()
            .map(|v| (self.bench.ns(v.value_iterated_to()) - self.bench.timer_ns, v.count_at_value()))
            .collect();
        (trips.min_ns, trips.max_ns) =
            (self.bench.ns(least) - self.bench.timer_ns, self.bench.ns(most) - self.bench.timer_ns);
        Ok(trips)
    }

    fn empty_polls(&mut self) -> Result<Vec<f64>, LayerError> {
        let mut batches = Vec::with_capacity(BATCHES);
        while self.goes_on(batches.len(), 0.12) {
            let batch: Vec<f64> =
                (0..self.batch / 2).map(|_| self.bench.empty_poll(POLLS)).collect::<Result<_, _>>()?;
            batches.push(trimmed_mean(batch));
        }
        Ok(batches)
    }

    fn issue_bursts(&mut self, rtt_ns: f64) -> Result<Vec<Burst>, LayerError> {
        let window = self.bench.layer.max_window();
        let of_one = (BATCHES_AT_LEAST * self.batch) as f64 * rtt_ns;
        let longest = self.bench.fitting(of_one, ISSUE_SHARE, (1, ISSUE_BURSTS[ISSUE_BURSTS.len() - 1]));
        let mut bursts: Vec<Burst> = ISSUE_BURSTS
            .into_iter()
            .filter(|&m| m <= window && m <= longest)
            .map(|m| Burst { m, per_batch: self.batch, ..Burst::default() })
            .collect();
        while self.goes_on(bursts[0].issue_ns.len(), 0.2) {
            for burst in &mut bursts {
                let batch: Vec<f64> = (0..burst.per_batch)
                    .map(|_| self.bench.requests_alone(burst.m))
                    .collect::<Result<_, _>>()?;
                burst.issue_ns.push(trimmed_mean(batch));
            }
        }
        Ok(bursts)
    }

    /// Measures receives after staying away. Also counts the late replies, which are not part of the
    /// figure.
    fn receives_after_staying_away(&mut self, rtt_ns: f64) -> Result<(Vec<f64>, u64), LayerError> {
        let away = self.bench.layer.work(AWAY_ROUND_TRIPS * rtt_ns);
        let mut batches = Vec::with_capacity(BATCHES);
        let mut batch = Vec::with_capacity(self.batch);
        let (mut rounds, mut late) = (0, 0);
        while self.goes_on(rounds, 0.25) {
            rounds += 1;
            batch.clear();
            for _ in 0..self.batch {
                let (ns, had_to_wait) = self.bench.receive_after(away)?;
                if had_to_wait {
                    late += 1;
                } else {
                    batch.push(ns);
                }
            }
            if !batch.is_empty() {
                batches.push(trimmed_mean(batch.iter().copied()));
            }
        }
        Ok((batches, late))
    }

    /// Chooses bursts longer than the depth of the pipeline, as far as the launch has time, and delays on
    /// both sides of the idle time.
    fn choose_shape(&self, pilot: &SignaturePilot) -> Shape {
        let window = self.bench.layer.max_window();
        let depth = steady::depth(pilot.rtt_ns, pilot.plateau_ns, window);
        let busy_ns = pilot.o_s_ns + pilot.o_r_ns;
        let overheads = Overheads { o_s_ns: pilot.o_s_ns, o_r_ns: pilot.o_r_ns };
        let unpolled = steady::unpolled(pilot.o_poll_ns, overheads, pilot.plateau_ns, depth);
        let unit_ns = (pilot.plateau_ns - busy_ns).max(busy_ns / 2.0);
        let delays_ns = DELAYS_IN_UNITS.map(|share| (share * unit_ns * 1e3).round() / 1e3).to_vec();
        let curves_ns: f64 = delays_ns.iter().map(|delay_ns| pilot.plateau_ns.max(busy_ns + delay_ns)).sum();
        let planned = self.plan.longest_burst;
        let fitting = self.bench.fitting(
            LENGTHS_IN_CURVES * curves_ns,
            1.0,
            (SHORTEST_SIGNATURE.min(planned), planned),
        );
        // A long burst is of no use if the pipeline is too deep for any burst.
        let is_too_deep = steady::BURST_OVER_DEPTH * depth > LONGEST_BURST_AT_MOST;
        let deep = if is_too_deep { 0 } else { steady::BURST_OVER_DEPTH * depth.max(unpolled) };
        let longest = deep.next_power_of_two().clamp(1 << fitting.ilog2(), LONGEST_BURST_AT_MOST);
        Shape {
            bursts: steady::bursts(longest, window),
            delays_ns,
            window,
            rest_ns: pilot.rest_ns,
            unpolled: unpolled.min(longest / steady::BURST_OVER_DEPTH),
        }
    }

    fn passes(&mut self, data: &mut LaunchData) -> Result<(), LayerError> {
        let began = self.bench.elapsed();
        // Leave time for the pauses at the end.
        let share = |elapsed: f64| (elapsed - began) / (0.95 - began).max(0.05);
        let told = |share: f64| 0.2 + 0.75 * share.min(1.0);
        let mut order: Vec<usize> = (0..data.signature.len()).collect();
        let mut random = fastrand::Rng::with_seed(self.plan.seed);
        for pass in 1..=PASSES_AT_MOST {
            random.shuffle(&mut order);
            for (nth, &curve) in order.iter().enumerate() {
                let by_passes = ((pass - 1) as f64 + nth as f64 / order.len() as f64) / PASSES_AT_MOST as f64;
                let done = told(share(self.bench.elapsed()).max(by_passes));
                self.curve(&mut data.signature[curve], done)?;
            }
            let done = told(share(self.bench.elapsed()));
            self.half_window(data, done)?;
            for stream in &mut data.streams {
                let work = self.delay(stream.d_ns);
                stream.d_measured_ns.push(self.measured_delay(stream.d_ns, work));
                let done = self.bench.burst(stream.messages, work)?.done;
                stream.done_ns.push(self.bench.ns(done));
            }
            let elapsed = self.bench.elapsed();
            let is_late = elapsed >= OVERDUE
                || self.bench.is_overdue(OVERDUE_IN_REAL_TIME)
                || (pass >= PASSES_WITHOUT_TIME && share(elapsed) >= 1.0);
            if is_late || (pass >= PASSES_AT_LEAST && self.passes_suffice(data)) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the measured length of a delay of about `d_ns` in nanoseconds.
    fn measured_delay(&mut self, d_ns: f64, work: Option<Work>) -> f64 {
        let most = if self.bench.layer.is_virtual() { f64::INFINITY } else { DELAYS_NS / d_ns };
        let repeats = most.clamp(1.0, f64::from(DELAYS)) as u32;
        work.map_or(0.0, |work| self.bench.measured_delay(work, repeats))
    }

    fn delay(&self, d_ns: f64) -> Option<Work> {
        (d_ns > 0.0).then(|| self.bench.layer.work(d_ns))
    }

    /// Measures a batch of each burst of a curve. `done` is the share that was done before.
    fn curve(&mut self, curve: &mut Curve, done: f64) -> Result<(), LayerError> {
        let work = self.delay(curve.d_ns);
        curve.d_measured_ns.push(self.measured_delay(curve.d_ns, work));
        self.bench.batch_of_each(&mut curve.bursts, work, || (self.progress)(done))
    }

    fn half_window(&mut self, data: &mut LaunchData, done: f64) -> Result<(), LayerError> {
        if data.half_window.is_empty() {
            return Ok(());
        }
        self.bench.set_window(steady::smaller_window(data.shape.window));
        let result = self.bench.batch_of_each(&mut data.half_window, None, || (self.progress)(done));
        self.bench.set_window(data.shape.window);
        result
    }

    fn passes_suffice(&self, data: &LaunchData) -> bool {
        data.signature.iter().all(|curve| self.is_known(&issue_rises(&curve.bursts)))
    }

    fn round_trips_after_pause(&mut self) -> Result<Vec<f64>, LayerError> {
        let pause = self.bench.layer.work(PAUSE_NS);
        let count = self.bench.fitting(PAUSE_NS, PAUSES_SHARE, PAUSES);
        let mut trips = Vec::with_capacity(count);
        for _ in 0..count {
            self.bench.layer.compute(pause);
            trips.push(self.bench.round_trip()?);
        }
        Ok(trips)
    }
}
