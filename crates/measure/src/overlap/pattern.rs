//! The procedure of one launch.
//!
//! The first launch chooses the sizes and, for each size, intervals on a logarithmic grid. Poll intervals
//! range from far below a round trip to far beyond the time in which the queue drains. Work intervals range
//! from far below a cycle to far beyond it. Later launches use the same sizes and intervals. Each launch
//! first searches the most work that is free. Then it makes passes over all other measurements (`cells`),
//! until the time is up.

use super::cells::{self, ALONE_AT_LEAST, rise};
use super::data::{
    OverlapLaunch, OverlapShape, OverlapSizeData, OverlapSizeShape, TripData, TripShape, WorkCheck,
    WorkInterval,
};
use super::knee::{BEYOND, FreeWorkSearch};
use super::plan::{Method, OverlapPlan};
use super::worker::MessageBatch;
use crate::bench::{Bench, LONG_NS};
use crate::layer::{LayerError, Messenger};
use crate::order::Order;
use crate::processor_time::MachineTimes;
use crate::stats::median;
use crate::steady;

/// Time for a batch, if it has more than the smallest number of samples.
const BATCH_NS: f64 = 400e3;
/// The smallest and the largest number of round trips in a batch.
const TRIPS: (f64, f64) = (4.0, 50.0);
/// The smallest factor by which a launch with little time shortens its batches and counts.
const LEAST_THRIFT: f64 = 0.1;
/// Work without messages, during which the machine's work is read: its share of the launch's time, and the shortest.
/// Systems count in steps of 10 ms.
const ALONE_SHARE: f64 = 0.1;
const ALONE_NS: f64 = 50e6;
/// Share of the launch's time for one batch of each method and interval.
const PASS_SHARE: f64 = 0.7;
/// The smallest and the largest number of messages in the shorter row.
const ROW: (f64, f64) = (8.0, 128.0);
/// The smallest and the largest number of cycles in a batch. The number is even, because a cycle and the
/// next one share the messages under way.
const CYCLES: (f64, f64) = (8.0, 256.0);
const CYCLES_AT_LEAST: f64 = 2.0;
/// The smallest and the largest number of polls in a batch.
const POLLS: (f64, f64) = (4.0, 65536.0);
/// The queue drains at least this many times in a batch.
const DRAINS: f64 = 6.0;
const DRAINS_AT_LEAST: f64 = 2.0;
/// Poll intervals: their number, the shortest as a share of a round trip, and the longest as a multiple of
/// the time in which the queue drains.
const POLL_INTERVALS: usize = 11;
const SHORTEST_POLL: f64 = 1.0 / 32.0;
const LONGEST_POLL: f64 = 4.0;
/// Work intervals besides zero work: their number, and the shortest and the longest in cycles.
const WORK_INTERVALS: usize = 11;
const SHORTEST_WORK: f64 = 1.0 / 16.0;
const LONGEST_WORK: f64 = 8.0;
/// The longest time for which the worker calls nothing, unless two cycles with long work take longer: a peer that hears
/// nothing for 10 s takes it for lost. Work that shares its processor takes several times as long as asked for.
const QUIET_NS: f64 = 2e9;
/// Work between two tests of the receive that is timed by itself, as a share of a cycle.
const BETWEEN_TESTS: f64 = 1.0 / 32.0;
/// Factor between consecutive sizes of round trips and rows, besides the sizes asked for.
const TRIP_STEP: usize = 4;
/// Amounts of work whose time is checked: their number, the shortest, and the factor between them.
const WORK_CHECKS: usize = 8;
const WORK_FROM_NS: f64 = 500.0;
const WORK_STEP: f64 = 4.0;
/// The largest number of passes.
const PASSES_AT_MOST: usize = 12;

/// Runs one launch over `messenger`. `progress` receives the share that is done.
pub fn run<M: Messenger>(
    messenger: &mut M,
    plan: &OverlapPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<OverlapLaunch, LayerError> {
    let mut bench = Bench::new(messenger, plan.budget_ns);
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let shape = match &plan.shape {
        Some(shape) => shape.clone(),
        None => choose(&mut bench, plan, &mut || progress(0.0))?,
    };
    let mut data = OverlapLaunch {
        launch: plan.launch,
        timer_ns: bench.timer_ns,
        trips: shape
            .trips
            .iter()
            .map(|trip| TripData { size_bytes: trip.size_bytes, ..TripData::default() })
            .collect(),
        sizes: shape.sizes.iter().map(OverlapSizeData::empty).collect(),
        work: work_checks(&mut bench),
        shape,
        ..OverlapLaunch::default()
    };
    let count = data.shape.sizes.len().max(1) as f64;
    for (at, size) in data.shape.sizes.iter().enumerate().filter(|(_, size)| size.knee_cycles > 0) {
        let messages = MessageBatch { bytes: size.size_bytes, count: data.shape.batch };
        let search = FreeWorkSearch { messages, cycles: size.knee_cycles, precision: plan.precision };
        let done = 0.1 + 0.2 * at as f64 / count;
        data.sizes[at].knee = Some(search.run(&mut bench, &mut random, &mut || progress(done))?);
    }
    let alone_ns = (ALONE_SHARE * plan.budget_ns).clamp(ALONE_NS, QUIET_NS);
    if bench.layer.machine().is_some() {
        data.machine_alone = machine_during(&mut bench, |bench| {
            let work = bench.layer.work(alone_ns);
            bench.measured_delay(work, 1);
            Ok(())
        })?;
    }
    data.machine = machine_during(&mut bench, |bench| passes(bench, &mut data, &mut random, progress))?;
    data.took_ns = bench.took_ns();
    progress(1.0);
    Ok(data)
}

/// Calls `act`, and returns the work of the machine meanwhile; `None` if the system does not tell it.
fn machine_during<M: Messenger>(
    bench: &mut Bench<'_, M>,
    act: impl FnOnce(&mut Bench<'_, M>) -> Result<(), LayerError>,
) -> Result<Option<MachineTimes>, LayerError> {
    let before = bench.layer.machine();
    act(bench)?;
    Ok(before.zip(bench.layer.machine()).and_then(|((before, cpu), (after, last_cpu))| {
        // A worker that is not pinned may have moved.
        after.since(&before, &[cpu, last_cpu])
    }))
}

impl OverlapSizeData {
    fn empty(shape: &OverlapSizeShape) -> Self {
        Self {
            size_bytes: shape.size_bytes,
            polling: vec![Vec::new(); shape.polling.len()],
            pww: vec![Vec::new(); shape.pww.len()],
            knee: None,
            receive_ns: Vec::new(),
        }
    }
}

fn passes<M: Messenger>(
    bench: &mut Bench<'_, M>,
    data: &mut OverlapLaunch,
    random: &mut fastrand::Rng,
    progress: &mut dyn FnMut(f64),
) -> Result<(), LayerError> {
    let mut cells = cells::all(data);
    let mut progress = |done| progress(0.3 + 0.7 * done);
    bench.pass_over(&mut cells, PASSES_AT_MOST, random, &mut progress, |bench, cell, random, _| {
        cell.measure(bench, data, random.bool())
    })
}

/// Chooses sizes and intervals for all launches. Calls `goes_on` between the parts of each size.
fn choose<M: Messenger>(
    bench: &mut Bench<'_, M>,
    plan: &OverlapPlan,
    goes_on: &mut dyn FnMut(),
) -> Result<OverlapShape, LayerError> {
    let largest = bench.layer.largest();
    let sizes: Vec<usize> = plan.sizes.iter().copied().filter(|&size| size <= largest).collect();
    let Some(&last) = sizes.last() else {
        return Err(LayerError(format!("no message is larger than {largest} bytes, and all sizes are")));
    };
    let slots = |wanted: usize| wanted.clamp(1, bench.layer.depth());
    let wanted = Wanted { queue: slots(plan.queue), batch: slots(plan.batch), methods: &plan.methods };
    let mut paced =
        |sizes: Vec<usize>, bench: &mut Bench<'_, M>| -> Result<Vec<(usize, PilotPace)>, LayerError> {
            sizes.into_iter().map(|size| Ok((size, PilotPace::of(bench, size, goes_on)?))).collect()
        };
    let trips = paced(trip_sizes(&sizes, last), bench)?;
    // Without a method, only messages alone are measured.
    let sizes = if plan.methods.is_empty() { Vec::new() } else { paced(sizes, bench)? };
    let pass_ns: f64 = sizes.iter().map(|(_, pace)| pace.pass_ns(&wanted)).sum();
    let thrift = if bench.layer.is_virtual() {
        1.0
    } else {
        (PASS_SHARE * plan.budget_ns / pass_ns.max(1.0)).clamp(LEAST_THRIFT, 1.0)
    };
    let thrifty = |(size, pace): (usize, PilotPace)| (size, PilotPace { thrift, ..pace });
    Ok(OverlapShape {
        queue: wanted.queue,
        batch: wanted.batch,
        progress_by: plan.progress_by,
        trips: trips.into_iter().map(thrifty).map(|(size, pace)| pace.trip_shape(size)).collect(),
        sizes: sizes.into_iter().map(thrifty).map(|(size, pace)| pace.size_shape(size, &wanted)).collect(),
    })
}

/// Returns the smallest size of the measured round trips, if `sizes` are asked for.
pub fn smallest_trip(sizes: &[usize]) -> usize {
    let last = sizes.last().copied().unwrap_or(Order::LEN);
    trip_sizes(sizes, last).first().copied().unwrap_or(last)
}

/// Returns the sizes asked for, and powers below the largest of them.
fn trip_sizes(sizes: &[usize], last: usize) -> Vec<usize> {
    let powers = (0..).map(|power| 2 * Order::LEN * TRIP_STEP.pow(power)).take_while(|&size| size < last);
    let mut all: Vec<usize> = powers.chain(sizes.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The methods of a launch, and the messages that they keep under way.
struct Wanted<'a> {
    /// Number of messages in each direction in the polling method.
    queue: usize,
    /// Number of messages in each direction in a cycle of post-work-wait.
    batch: usize,
    methods: &'a [Method],
}

impl Wanted<'_> {
    fn has(&self, method: Method) -> bool {
        self.methods.contains(&method)
    }
}

/// The approximate times of messages of one size, from a short pilot measurement.
struct PilotPace {
    rtt_ns: f64,
    /// Time per message in one direction.
    gap_ns: f64,
    /// The factor of the usual time for each batch: 1, or less if the launch has little time.
    thrift: f64,
    /// The longest time for which the worker may call nothing.
    quiet_ns: f64,
}

impl PilotPace {
    fn of<M: Messenger>(
        bench: &mut Bench<'_, M>,
        bytes: usize,
        goes_on: &mut dyn FnMut(),
    ) -> Result<Self, LayerError> {
        // The first messages after a change of size are not representative.
        let is_long = bench.exchange(bytes)? > LONG_NS;
        let mut some = |count: usize, one: &mut dyn FnMut() -> Result<f64, LayerError>| {
            goes_on();
            let mut values = Vec::with_capacity(count);
            for _ in 0..count {
                if is_long {
                    goes_on();
                }
                values.push(one()?);
            }
            Ok::<_, LayerError>(values)
        };
        let trips = some(9, &mut || bench.exchange(bytes))?;
        let rises = some(3, &mut || rise(bench, bytes, ROW.0 as usize))?;
        let rtt_ns = median(trips).max(1.0);
        let quiet_ns = if bench.layer.is_virtual() { f64::INFINITY } else { QUIET_NS };
        // A disturbed row may give a time per message beyond the round trip.
        Ok(Self { rtt_ns, gap_ns: median(rises).clamp(0.0, rtt_ns), thrift: 1.0, quiet_ns })
    }

    /// Returns the approximate duration of a cycle without work, with `batch` messages in each direction, in
    /// nanoseconds: the first message takes its time, and each further one follows after the gap.
    fn cycle_ns(&self, batch: usize) -> f64 {
        (self.rtt_ns / 2.0).max(self.gap_ns) + (batch - 1) as f64 * self.gap_ns
    }

    fn batch_ns(&self) -> f64 {
        BATCH_NS * self.thrift
    }

    /// Returns the work intervals besides zero work, for a cycle of `cycle_ns`.
    fn work_grid(&self, cycle_ns: f64) -> Vec<f64> {
        let longest = self.bearable(LONGEST_WORK * cycle_ns).max(BEYOND * cycle_ns);
        grid(SHORTEST_WORK * cycle_ns, longest, WORK_INTERVALS)
    }

    fn poll_grid(&self, drain_ns: f64) -> Vec<f64> {
        let shortest = SHORTEST_POLL * self.rtt_ns;
        grid(shortest, self.bearable(LONGEST_POLL * drain_ns).max(2.0 * shortest), POLL_INTERVALS)
    }

    /// Returns the interval, or a shorter one: without messages the worker is quiet for as many as are measured at least.
    fn bearable(&self, interval_ns: f64) -> f64 {
        interval_ns.min(self.quiet_ns / f64::from(ALONE_AT_LEAST))
    }

    /// Returns the time in which the queue drains, in nanoseconds.
    fn drain_ns(&self, queue: usize) -> f64 {
        self.rtt_ns.max(queue as f64 * self.gap_ns)
    }

    /// Returns the approximate duration of a pass over all intervals, half of it without messages, in
    /// nanoseconds.
    fn pass_ns(&self, wanted: &Wanted<'_>) -> f64 {
        let wants = |method| f64::from(u8::from(wanted.has(method)));
        let polling = POLL_INTERVALS as f64 * BATCH_NS.max(DRAINS * self.drain_ns(wanted.queue));
        let cycle_ns = self.cycle_ns(wanted.batch);
        let pww: f64 = self
            .work_grid(cycle_ns)
            .into_iter()
            .map(|work_ns| BATCH_NS.max(CYCLES.0 * (cycle_ns + work_ns)))
            .sum();
        2.0 * (wants(Method::Polling) * polling + wants(Method::Pww) * pww)
    }

    fn trip_shape(&self, size_bytes: usize) -> TripShape {
        let fit =
            |each_ns: f64, (least, most): (f64, f64)| (self.batch_ns() / each_ns).clamp(least, most) as usize;
        TripShape {
            size_bytes,
            trips: fit(self.rtt_ns, TRIPS),
            row: fit(self.gap_ns.max(1.0), ROW),
            rest_ns: grid_point(steady::rest_ns(self.gap_ns, self.rtt_ns)),
        }
    }

    fn size_shape(&self, size_bytes: usize, wanted: &Wanted<'_>) -> OverlapSizeShape {
        let drain_ns = self.drain_ns(wanted.queue);
        let cycle_ns = self.cycle_ns(wanted.batch);
        let drains = (DRAINS * self.thrift).max(DRAINS_AT_LEAST);
        let cycles_at_least = (CYCLES.0 * self.thrift).max(CYCLES_AT_LEAST);
        let polling = |asked_ns: f64| {
            let repeats = (self.batch_ns().max(drains * drain_ns) / asked_ns).ceil().clamp(POLLS.0, POLLS.1);
            WorkInterval { asked_ns, repeats: repeats as u32 }
        };
        let cycles = |work_ns: f64| {
            let cycles = (self.batch_ns() / (cycle_ns + work_ns)).clamp(cycles_at_least, CYCLES.1) as u32;
            cycles + cycles % 2
        };
        let pww = |asked_ns: f64| WorkInterval { asked_ns, repeats: cycles(asked_ns) };
        // The search does the work of all cycles in a row, without messages.
        let bearable = (self.quiet_ns / (BEYOND * cycle_ns)).clamp(CYCLES_AT_LEAST, CYCLES.1) as u32;
        let knee_cycles = cycles(cycle_ns).min(bearable - bearable % 2);
        let (poll_grid, work_grid) = (self.poll_grid(drain_ns), self.work_grid(cycle_ns));
        let wants = |method| wanted.has(method);
        OverlapSizeShape {
            size_bytes,
            polling: poll_grid.into_iter().filter(|_| wants(Method::Polling)).map(polling).collect(),
            pww: [0.0].into_iter().chain(work_grid).filter(|_| wants(Method::Pww)).map(pww).collect(),
            knee_cycles: if wants(Method::Max) { knee_cycles } else { 0 },
            receive: match wants(Method::Pww) || wants(Method::Max) {
                true => WorkInterval {
                    // Each of these messages is alone, whatever the batch.
                    asked_ns: grid_point(BETWEEN_TESTS * self.cycle_ns(1)),
                    repeats: (BATCH_NS / self.rtt_ns).clamp(TRIPS.0, TRIPS.1) as u32,
                },
                false => WorkInterval::default(),
            },
        }
    }
}

/// Returns `count` values from `from` to `to` at a constant ratio, rounded to the picosecond.
fn grid(from: f64, to: f64, count: usize) -> Vec<f64> {
    let factor = (to / from).powf(1.0 / (count - 1) as f64);
    (0..count).map(|nth| grid_point(from * factor.powi(nth as i32))).collect()
}

/// Rounds to the picosecond, because records need no more digits.
fn grid_point(ns: f64) -> f64 {
    (ns * 1e3).round() / 1e3
}

/// Measures how long amounts of work take without messages.
fn work_checks<M: Messenger>(bench: &mut Bench<'_, M>) -> Vec<WorkCheck> {
    let check = |nth: usize| {
        let asked_ns = WORK_FROM_NS * WORK_STEP.powi(nth as i32);
        let work = bench.layer.work(asked_ns);
        let repeats = (BATCH_NS / asked_ns / 16.0).clamp(1.0, 64.0) as u32;
        let took_ns = median((0..5).map(|_| bench.measured_delay(work, repeats)));
        WorkCheck { asked_ns, took_ns }
    };
    (0..WORK_CHECKS).map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer that hears nothing for 10 s takes the worker for lost.
    #[test]
    fn a_worker_with_slow_messages_is_not_quiet_for_long() {
        let wanted = Wanted { queue: 4, batch: 1, methods: &[Method::Polling, Method::Pww, Method::Max] };
        for cycle_ns in [1e6, 30e6, 100e6, 230e6, 400e6, 600e6, 2e9] {
            let pace =
                PilotPace { rtt_ns: 2.0 * cycle_ns, gap_ns: cycle_ns, thrift: 1.0, quiet_ns: QUIET_NS };
            let shape = pace.size_shape(1_000_000, &wanted);
            // Two cycles with work that is long enough for a finding are the least.
            let allowed_ns = QUIET_NS.max(2.0 * BEYOND * cycle_ns);
            for interval in shape.pww.iter().chain(&shape.polling) {
                let quiet_ns = interval.asked_ns * f64::from(ALONE_AT_LEAST);
                assert!(quiet_ns <= 1.000_001 * allowed_ns, "quiet for {quiet_ns} ns of {allowed_ns}");
            }
            assert!(
                shape.pww.iter().any(|interval| interval.asked_ns >= 2.0 * cycle_ns),
                "no finding at {cycle_ns} ns"
            );
            assert!(f64::from(shape.knee_cycles) * BEYOND * cycle_ns <= allowed_ns, "cycle of {cycle_ns} ns");
        }
    }
}
