//! The procedure of one launch.
//!
//! The first launch of a run chooses the sizes ([`super::search`]). For each size it chooses bursts longer
//! than the depth of the pipeline and a delay longer than the idle time. Later launches use the same sizes,
//! bursts and delays. Then the launch makes passes over the sizes, each in another order, until every
//! figure is known or the time is up. For each size n a pass measures
//!
//! * round trips with n bytes both ways: T(n);
//! * with n bytes in the direction of the run and few in the other: single transfers; requests alone
//!   (o_s(n)); bursts of 1 to M requests (the surface; its far edge is the steady state, and g(n)); the two
//!   longest with half of the window and with a delay, which show the term that sets the steady state;
//! * with few bytes in the request and n in the reply: a receive after staying away for 1.2 round trips
//!   (o_r(n); Kielmann et al. 2000).
//!
//! A figure that is precise enough is not measured again: the time goes to figures with wide intervals.

use super::data::{BulkLaunch, BulkShape, BulkSizeData, BulkSizeShape, Direction};
use super::search::{self, is_long};
use super::signature::{self, SignaturePlan};
use crate::bench::{Bench, is_known};
use crate::layer::{LayerError, SizedRequester};
use crate::logp::data::Burst;
use crate::logp::send_overhead::send_overhead;
use crate::stats::{median, trimmed_mean};
use crate::steady::{self, Overheads, rises};
use serde::{Deserialize, Serialize};

/// The bytes of the message in the other direction.
const SMALL: usize = 1;
/// The largest number of round trips or receives in a batch, and the time for a batch.
const BATCH: usize = 50;
const BATCH_NS: f64 = 500e3;
/// Round trips after a change of size that are not measured, and the time for them.
const SETTLING_TRIPS: usize = 8;
const SETTLING_NS: f64 = 2e6;
/// The messages in the longest burst: at least, and at most unless the pipeline is deeper.
const LONGEST_AT_LEAST: usize = 8;
const LONGEST_USUALLY: usize = 1024;
/// The messages in the longest burst of long messages, at least.
const LONGEST_OF_LONG: usize = 4;
/// The longest burst lasts about this long.
const BURST_NS: f64 = 1e6;
/// A burst for a deep pipeline lasts at most about this long.
const LONGEST_BURST_NS: f64 = 20e6;
/// The largest number of messages in the longest burst. A deeper pipeline causes a warning, not a longer
/// burst.
const LONGEST_AT_MOST: usize = 1 << 12;
/// The largest numbers of messages and of bursts in a batch of one length, in a launch with enough time.
const MESSAGES_IN_BATCH: usize = 128;
const BURSTS_IN_BATCH: usize = 16;
/// The lengths of the bursts of requests alone, and their longest duration.
const ISSUE_BURSTS: [usize; 5] = [1, 2, 4, 8, 16];
const ISSUE_NS: f64 = 20e3;
/// The requester stays away for this many round trips before it receives the reply.
const AWAY_ROUND_TRIPS: f64 = 1.2;
/// The numbers of passes: before a figure can count as precise, in a launch without time, and at most.
const PASSES_AT_LEAST: usize = 6;
const PASSES_WITHOUT_TIME: usize = 2;
const PASSES_AT_MOST: usize = 60;
/// In real time a launch makes only one pass after this many times its time budget, not counting the
/// search.
const OVERDUE: f64 = 1.5;
/// The number of times that a stream is measured again because its bursts contradict each other.
const BATCHES_IN_VAIN: usize = 2;
/// The number of polls, or of delays, timed together.
const TOGETHER: u32 = 32;

/// The plan of a launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BulkPlan {
    /// The index in the order of launches.
    pub launch: usize,
    /// Sizes and bursts, if an earlier launch of the run chose them.
    pub shape: Option<BulkShape>,
    /// The largest size wanted.
    pub largest_bytes: usize,
    /// The direction of the data of transfers.
    pub direction: Direction,
    /// The sizes whose whole signature is measured, ascending.
    pub signatures: Vec<SignaturePlan>,
    /// The time for the launch without signatures, and for each signature, on the layer's clock.
    pub budget_ns: f64,
    /// A figure is precise at this half-width, a share of the value.
    pub precision: f64,
    /// The confidence of that half-width.
    pub confidence: f64,
    /// The seed of the order of the sizes.
    pub seed: u64,
}

impl BulkPlan {
    /// Returns the size of the largest message, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.signatures.iter().map(|of| of.size_bytes).fold(self.largest_bytes, usize::max)
    }
}

/// Runs one launch over `requester`. `progress` receives the share that is done.
pub fn run<R: SizedRequester>(
    requester: &mut R,
    plan: &BulkPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<BulkLaunch, LayerError> {
    let largest = plan.largest_bytes.min(requester.largest());
    for of in &plan.signatures {
        signature::check_time(requester, (plan.direction, SMALL), of)?;
    }
    let mut bench = Bench::new(requester, plan.budget_ns);
    let share = 1.0 / (1 + plan.signatures.len()) as f64;
    let every_size: &mut dyn FnMut(f64) = &mut |done| progress(share * done);
    bench.set_sizes(SMALL, SMALL, 0.0)?;
    bench.warm_up()?;
    let (shape, search_ns) = match &plan.shape {
        Some(shape) => (shape.clone(), Vec::new()),
        None => choose(&mut bench, plan.direction, largest, every_size)?,
    };
    let mut data = BulkLaunch {
        launch: plan.launch,
        search_ns,
        timer_ns: bench.timer_ns,
        sizes: shape.sizes.iter().map(BulkSizeData::empty).collect(),
        shape,
        ..BulkLaunch::default()
    };
    passes(&mut bench, plan, &mut data, every_size)?;
    for (nth, of) in plan.signatures.iter().enumerate() {
        bench.drain()?;
        let BulkPlan { launch, budget_ns, precision, confidence, seed, .. } = *plan;
        let own = signature::plan(launch, of.shape.clone(), (budget_ns, seed), (precision, confidence));
        let way = (data.shape.direction, SMALL);
        let mut goes_on = |done: f64| progress(share * ((1 + nth) as f64 + done));
        data.signatures.push(signature::measure(bench.layer, way, of, own, &mut goes_on)?);
    }
    data.took_ns = bench.took_ns();
    progress(1.0);
    Ok(data)
}

impl BulkSizeData {
    fn empty(shape: &BulkSizeShape) -> Self {
        let bursts = |lengths: &[usize]| -> Vec<Burst> {
            let per_batch = |m: usize| (shape.messages / m).clamp(1, BURSTS_IN_BATCH);
            lengths.iter().map(|&m| Burst { m, per_batch: per_batch(m), ..Burst::default() }).collect()
        };
        let longest = &shape.bursts[shape.bursts.len().saturating_sub(2)..];
        let half_window = match shape.bursts.last() {
            Some(&longest) if shape.window > 1 => {
                bursts(&steady::pair(longest, steady::smaller_window(shape.window)))
            }
            _ => Vec::new(),
        };
        Self {
            size_bytes: shape.size_bytes,
            stream: bursts(&shape.bursts),
            half_window,
            delayed: bursts(longest),
            issue: bursts(&shape.issue),
            ..Self::default()
        }
    }
}

/// Chooses the sizes and the bursts of each, for all launches.
fn choose<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    direction: Direction,
    largest: usize,
    progress: &mut dyn FnMut(f64),
) -> Result<(BulkShape, Vec<(usize, f64)>), LayerError> {
    let found = search::sizes(bench, largest, || progress(0.0))?;
    progress(0.1);
    bench.set_sizes(SMALL, SMALL, found.rest_ns)?;
    let o_r_small_ns = pilot_receive(bench)?;
    let o_poll_ns = few(bench, |bench| bench.empty_poll(TOGETHER))?;
    let mut sizes = Vec::with_capacity(found.sizes.len());
    for (nth, &size) in found.sizes.iter().enumerate() {
        let done = 0.1 + 0.1 * nth as f64 / found.sizes.len() as f64;
        let pilot = BulkPilot { direction, rest_ns: found.rest_ns, o_r_small_ns, o_poll_ns };
        sizes.push(choose_for(bench, size, &pilot, || progress(done))?);
    }
    progress(0.2);
    let transfer = bench.layer.set_transfer(direction.transfer());
    Ok((BulkShape { small_bytes: SMALL, direction, transfer, sizes }, found.seen_ns))
}

/// Returns the time of a receive at the current sizes, after staying away.
fn pilot_receive<R: SizedRequester>(bench: &mut Bench<'_, R>) -> Result<f64, LayerError> {
    few(bench, |bench| {
        let away = bench.round_trip()?;
        let away = bench.layer.work(AWAY_ROUND_TRIPS * away);
        Ok(bench.receive_after(away)?.0)
    })
}

/// Prepares transfers of `bytes`.
fn aim<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    direction: Direction,
    bytes: usize,
    rest_ns: f64,
) -> Result<(), LayerError> {
    let (request, reply) = direction.sizes(bytes, SMALL);
    bench.set_transfer(direction.transfer(), (request, reply), rest_ns)
}

/// Returns the median of a few values, or of fewer long ones.
fn few<'a, R: SizedRequester>(
    bench: &mut Bench<'a, R>,
    mut one: impl FnMut(&mut Bench<'a, R>) -> Result<f64, LayerError>,
) -> Result<f64, LayerError> {
    let mut values = Vec::new();
    while values.len() < 5 && !is_long(bench, values.iter().sum()) {
        values.push(one(bench)?);
    }
    Ok(median(values))
}

/// The figures of a layer from which the bursts of a size are chosen.
struct BulkPilot {
    direction: Direction,
    rest_ns: f64,
    /// o_r of the smallest reply.
    o_r_small_ns: f64,
    o_poll_ns: f64,
}

fn choose_for<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    size_bytes: usize,
    &BulkPilot { direction, rest_ns, o_r_small_ns, o_poll_ns }: &BulkPilot,
    mut goes_on: impl FnMut(),
) -> Result<BulkSizeShape, LayerError> {
    bench.set_sizes(size_bytes, size_bytes, rest_ns)?;
    goes_on();
    let both_ways_ns = few(bench, |bench| bench.round_trip())?;
    goes_on();
    aim(bench, direction, size_bytes, rest_ns)?;
    let window = bench.layer.max_window();
    let rtt_ns = few(bench, |bench| bench.round_trip())?;
    let o_s_ns = few(bench, |bench| Ok(bench.requests_alone(1)? - bench.timer_ns))?.max(steady::SHORTEST_NS);
    let o_r_ns = match direction {
        Direction::Store => o_r_small_ns,
        Direction::Get => pilot_receive(bench)?,
    };
    goes_on();
    let most = LONGEST_AT_MOST / steady::BURST_OVER_DEPTH;
    // A message takes at least the time to issue it, even if noise reduces the measured rise.
    let plateau_ns = bench.pilot_plateau(rtt_ns, most, LONGEST_BURST_NS, goes_on)?.max(o_s_ns);
    let depth = steady::depth(rtt_ns, plateau_ns, window);
    let busy_ns = o_s_ns + o_r_ns;
    let overheads = Overheads { o_s_ns, o_r_ns };
    let unpolled = steady::unpolled(o_poll_ns, overheads, plateau_ns, depth);
    let least = if is_long(bench, plateau_ns) { LONGEST_OF_LONG } else { LONGEST_AT_LEAST };
    let usual = ((BURST_NS / plateau_ns) as usize).clamp(least, LONGEST_USUALLY);
    let deep = (steady::BURST_OVER_DEPTH * depth.max(unpolled)).min(LONGEST_AT_MOST);
    let longest = (1 << usual.ilog2()).max(deep.next_power_of_two());
    // With a delay of o_s + o_r, the requests issued before the first reply are no more than fit on the
    // way.
    let d_ns = 2.0 * (plateau_ns - busy_ns).max(busy_ns / 2.0);
    Ok(BulkSizeShape {
        size_bytes,
        bursts: steady::bursts(longest, window),
        issue: ISSUE_BURSTS
            .into_iter()
            .filter(|&m| m == 1 || (m <= window && m as f64 * o_s_ns <= ISSUE_NS))
            .collect(),
        window,
        d_ns: (d_ns * 1e3).round() / 1e3,
        rest_ns,
        unpolled: unpolled.min(longest / steady::BURST_OVER_DEPTH),
        messages: ((BATCH_NS / plateau_ns) as usize).clamp(1, MESSAGES_IN_BATCH),
        trips: ((BATCH_NS / both_ways_ns.max(1.0)) as usize).clamp(1, BATCH),
    })
}

fn passes<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    plan: &BulkPlan,
    data: &mut BulkLaunch,
    progress: &mut dyn FnMut(f64),
) -> Result<(), LayerError> {
    let BulkLaunch { shape, sizes, timer_ns, o_poll_ns, .. } = data;
    // The search has a budget of its own.
    let began = bench.elapsed();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    let mut random = fastrand::Rng::with_seed(plan.seed);
    for pass in 1..=PASSES_AT_MOST {
        random.shuffle(&mut order);
        bench.set_sizes(SMALL, SMALL, shape.sizes.first().map_or(0.0, |size| size.rest_ns))?;
        o_poll_ns.push(bench.empty_poll(TOGETHER)?);
        let mut all_known = true;
        for (nth, &at) in order.iter().enumerate() {
            let by_time = bench.elapsed() - began;
            // If the time is up, the launch aborts a pass that it does not need.
            let is_overdue = pass > 1 && bench.is_overdue(began + OVERDUE);
            if is_overdue || (pass > PASSES_WITHOUT_TIME && by_time >= 1.0) {
                return Ok(());
            }
            let by_passes =
                ((pass - 1) as f64 + nth as f64 / order.len() as f64) / PASSES_WITHOUT_TIME as f64;
            let done = 0.2 + 0.8 * by_time.max(by_passes / 2.0).min(by_passes).min(1.0);
            progress(done);
            let (direction, timer_ns) = (shape.direction, *timer_ns);
            let size = SizeRun { direction, shape: &shape.sizes[at], data: &mut sizes[at], plan, timer_ns };
            all_known &= size.measure(bench, pass, &mut || progress(done))?;
        }
        if all_known && pass >= PASSES_AT_LEAST {
            return Ok(());
        }
    }
    Ok(())
}

/// One size in the course of a launch.
struct SizeRun<'a> {
    direction: Direction,
    shape: &'a BulkSizeShape,
    data: &'a mut BulkSizeData,
    plan: &'a BulkPlan,
    timer_ns: f64,
}

impl SizeRun<'_> {
    /// Measures the figures that are not precise yet. Returns true if all are. Calls `goes_on` before each batch.
    fn measure<R: SizedRequester>(
        mut self,
        bench: &mut Bench<'_, R>,
        pass: usize,
        goes_on: &mut dyn FnMut(),
    ) -> Result<bool, LayerError> {
        let may_skip = pass > PASSES_AT_LEAST;
        let one_way = |data: &BulkSizeData| median(data.rtt_ns.iter().copied()) / 2.0;
        let knows = |size: &Self, values: &[f64], whole: f64| {
            may_skip && is_known(values, whole, size.plan.precision / 2.0, size.plan.confidence)
        };
        let mut all_known = true;
        if !knows(&self, &self.data.rtt_ns, 2.0 * one_way(self.data)) {
            all_known = false;
            self.round_trips(bench, goes_on)?;
        }
        if !knows(&self, &self.data.transfer_ns, median(self.data.transfer_ns.iter().copied())) {
            all_known = false;
            self.transfers(bench, goes_on)?;
        }
        let whole = one_way(self.data);
        let issue = self.longest_alone();
        if !knows(&self, &issue, whole) {
            all_known = false;
            self.requests_alone(bench, goes_on)?;
        }
        let steady = rises(&self.data.stream, done_ns);
        if !knows(&self, &steady, median(steady.iter().copied())) {
            all_known = false;
            self.bursts(bench, goes_on)?;
        }
        if !knows(&self, &self.data.o_r_ns, whole) {
            all_known = false;
            self.receives(bench, goes_on)?;
        }
        Ok(all_known)
    }

    /// Returns the batches of o_s, from the burst length from which o_s is computed.
    fn longest_alone(&self) -> Vec<f64> {
        let m = send_overhead(&self.data.issue, self.timer_ns).m;
        let burst = self.data.issue.iter().find(|burst| burst.m == m);
        burst.map(|burst| burst.issue_ns.iter().map(|ns| ns / m as f64).collect()).unwrap_or_default()
    }

    fn aim<R: SizedRequester>(&self, bench: &mut Bench<'_, R>) -> Result<(), LayerError> {
        aim(bench, self.direction, self.shape.size_bytes, self.shape.rest_ns)
    }

    fn round_trips<R: SizedRequester>(
        &mut self,
        bench: &mut Bench<'_, R>,
        goes_on: &mut dyn FnMut(),
    ) -> Result<(), LayerError> {
        let BulkSizeShape { size_bytes, rest_ns, trips, .. } = *self.shape;
        bench.set_sizes(size_bytes, size_bytes, rest_ns)?;
        self.data.rtt_samples += settled_round_trips(bench, trips, &mut self.data.rtt_ns, goes_on)?;
        Ok(())
    }

    fn transfers<R: SizedRequester>(
        &mut self,
        bench: &mut Bench<'_, R>,
        goes_on: &mut dyn FnMut(),
    ) -> Result<(), LayerError> {
        self.aim(bench)?;
        let trips = self.shape.trips;
        self.data.transfer_samples += settled_round_trips(bench, trips, &mut self.data.transfer_ns, goes_on)?;
        Ok(())
    }

    fn requests_alone<R: SizedRequester>(
        &mut self,
        bench: &mut Bench<'_, R>,
        goes_on: &mut dyn FnMut(),
    ) -> Result<(), LayerError> {
        self.aim(bench)?;
        goes_on();
        bench.round_trip()?;
        for burst in &mut self.data.issue {
            goes_on();
            burst.per_batch = self.shape.trips.min(BATCH / burst.m).max(1);
            let batch: Vec<f64> =
                (0..burst.per_batch).map(|_| bench.requests_alone(burst.m)).collect::<Result<_, _>>()?;
            burst.issue_ns.push(trimmed_mean(batch));
        }
        Ok(())
    }

    /// Measures a row of the surface, and the bursts that show which term sets its far edge.
    fn bursts<R: SizedRequester>(
        &mut self,
        bench: &mut Bench<'_, R>,
        goes_on: &mut dyn FnMut(),
    ) -> Result<(), LayerError> {
        self.aim(bench)?;
        bench.set_unpolled(self.shape.unpolled);
        self.stream(bench, goes_on)?;
        if !self.data.half_window.is_empty() {
            bench.set_window(steady::smaller_window(self.shape.window));
            let result = bench.batch_of_each(&mut self.data.half_window, None, &mut *goes_on);
            bench.set_window(self.shape.window);
            result?;
        }
        let work = bench.layer.work(self.shape.d_ns);
        let repeats = ((BATCH_NS / self.shape.d_ns.max(1.0)) as u32).clamp(1, 8 * TOGETHER);
        self.data.d_measured_ns.push(bench.measured_delay(work, repeats));
        bench.batch_of_each(&mut self.data.delayed, Some(work), goes_on)
    }

    /// Measures a batch of the stream, again if its bursts contradict each other.
    fn stream<R: SizedRequester>(
        &mut self,
        bench: &mut Bench<'_, R>,
        goes_on: &mut dyn FnMut(),
    ) -> Result<(), LayerError> {
        for _ in 0..BATCHES_IN_VAIN {
            bench.batch_of_each(&mut self.data.stream, None, &mut *goes_on)?;
            let whole =
                self.data.stream.last().and_then(|burst| Some(burst.done_ns.last()? / burst.m as f64));
            let rise = rises(&self.data.stream, done_ns).last().copied();
            let is_sound = rise.zip(whole).is_none_or(|(rise, whole)| !steady::contradict(rise, whole / 2.0));
            if is_sound {
                return Ok(());
            }
            for burst in &mut self.data.stream {
                burst.issue_ns.pop();
                burst.done_ns.pop();
            }
        }
        bench.batch_of_each(&mut self.data.stream, None, goes_on)
    }

    fn receives<R: SizedRequester>(
        &mut self,
        bench: &mut Bench<'_, R>,
        goes_on: &mut dyn FnMut(),
    ) -> Result<(), LayerError> {
        let BulkSizeShape { size_bytes, rest_ns, trips, .. } = *self.shape;
        match self.direction {
            Direction::Store => bench.set_sizes(SMALL, size_bytes, rest_ns)?,
            Direction::Get => self.aim(bench)?,
        }
        let away = bench.layer.work(AWAY_ROUND_TRIPS * median(self.data.rtt_ns.iter().copied()));
        goes_on();
        bench.receive_after(away)?;
        goes_on();
        let mut batch = Vec::with_capacity(trips);
        for _ in 0..trips {
            let (ns, had_to_wait) = bench.receive_after(away)?;
            batch.push(ns);
            self.data.o_r_samples += 1;
            self.data.o_r_waited += u64::from(had_to_wait);
        }
        self.data.o_r_ns.push(trimmed_mean(batch));
        Ok(())
    }
}

/// Adds batches of `trips` round trips at the current sizes to `batches_ns`, once the data have settled.
/// Measures for at least as long as settling took. Returns the number of round trips.
fn settled_round_trips<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    trips: usize,
    batches_ns: &mut Vec<f64>,
    goes_on: &mut dyn FnMut(),
) -> Result<u64, LayerError> {
    goes_on();
    let settling_ns = settle(bench)?;
    let (mut measured_ns, mut samples) = (0.0, 0);
    loop {
        goes_on();
        let batch: Vec<f64> = (0..trips).map(|_| bench.round_trip()).collect::<Result<_, _>>()?;
        measured_ns += batch.iter().sum::<f64>();
        batches_ns.push(trimmed_mean(batch));
        samples += trips as u64;
        if measured_ns >= settling_ns {
            return Ok(samples);
        }
    }
}

/// Makes round trips until the data are in the caches where they will stay. Measurements of other sizes
/// have evicted the data of large messages, and the first round trips take twice the time. Returns the time
/// spent, in nanoseconds.
fn settle<R: SizedRequester>(bench: &mut Bench<'_, R>) -> Result<f64, LayerError> {
    let mut spent_ns = 0.0;
    for _ in 0..SETTLING_TRIPS {
        spent_ns += bench.round_trip()?;
        if spent_ns > SETTLING_NS {
            break;
        }
    }
    Ok(spent_ns)
}

/// Returns the times to the last reply. Their rises decide whether the stream is measured again.
fn done_ns(burst: &Burst) -> &Vec<f64> {
    &burst.done_ns
}
