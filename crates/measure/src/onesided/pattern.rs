//! The procedure of one launch.
//!
//! The first launch chooses the numbers of operations for each size; later launches use the same numbers.
//! Then each launch makes passes over all operations and sizes, in another order every time, until the time
//! is up. Drift in the course of a launch therefore affects all of them alike.
//!
//! A single operation begins on a quiet layer and shows how long it takes until it is complete. Two rows, of
//! which one is twice as long, show the time for each operation of a stream. If the layer has epochs, a single operation
//! and a row are in an epoch each. Its opening is not timed, and its closing is.

use super::data::{Access, OnesidedLaunch, OnesidedShape, Operation, TransferData, TransferShape};
use crate::bench::Bench;
use crate::layer::{Initiator, LayerError};
use crate::stats::{median, trimmed_mean};
use crate::{powers, row, steady};
use serde::{Deserialize, Serialize};

/// Time for the single operations of a batch, and for its rows.
const BATCH_NS: f64 = 500e3;
/// The least and the largest number of single operations in a batch.
const SINGLES: (f64, f64) = (1.0, 64.0);
/// The least and the largest number of operations in the shorter row.
const ROW: (f64, f64) = (1.0, 1024.0);
/// The longer row takes at least this many times as long as a single operation, if it may be so long. The
/// variation of a single operation then matters less.
const OVER_SINGLE: f64 = 4.0;
/// An operation is long if it takes longer than this, and holds up the next one for longer than this. A batch has
/// one of them, and its rows have one and two.
const LONG_NS: f64 = 2e6;
/// Single operations of the pilot measurement, after one that is left out.
const PILOTS: usize = 4;
/// Operations in the first row of the pilot measurement.
const PILOT_ROW: u64 = 4;
/// The longer of the last two rows of the pilot measurement has so many operations, or takes as long as a batch.
const PILOT_ROW_AT_LEAST: u64 = 64;
/// Bytes of the word of a fetching atomic operation.
pub(crate) const WORD: usize = 8;
/// The largest number of passes.
const PASSES_AT_MOST: usize = 50;

/// The plan of one launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OnesidedPlan {
    /// The index in the order of launches.
    pub launch: usize,
    /// Numbers of operations, if an earlier launch of the run chose them.
    pub shape: Option<OnesidedShape>,
    /// How the target's memory is reached.
    pub access: Access,
    /// The largest size, in bytes.
    pub largest_bytes: usize,
    /// Time budget of the whole launch, on the layer's clock.
    pub budget_ns: f64,
    /// Seed of the order of all measurements.
    pub seed: u64,
}

/// Runs one launch with `initiator`, at every size. `progress` receives the share that is done.
///
/// # Errors
/// Returns an error if the layer fails.
pub fn run<I: Initiator>(
    initiator: &mut I,
    plan: &OnesidedPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<OnesidedLaunch, LayerError> {
    run_at(initiator, plan, every_size, progress)
}

/// Returns the sizes of an operation up to the largest one.
fn every_size(operation: Operation, largest: usize) -> Vec<usize> {
    match operation {
        Operation::FetchAdd => vec![WORD],
        _ => powers::up_to(largest),
    }
}

/// Runs one launch with `initiator`, at the sizes that `sizes` returns for an operation and the largest size.
///
/// # Errors
/// Returns an error if the layer fails.
pub(crate) fn run_at<I: Initiator>(
    initiator: &mut I,
    plan: &OnesidedPlan,
    sizes: fn(Operation, usize) -> Vec<usize>,
    progress: &mut dyn FnMut(f64),
) -> Result<OnesidedLaunch, LayerError> {
    let mut bench = Bench::new(initiator, plan.budget_ns);
    let shape = match &plan.shape {
        Some(shape) => shape.clone(),
        None => choose(&mut bench, plan.largest_bytes, sizes, progress)?,
    };
    let mut data = OnesidedLaunch {
        launch: plan.launch,
        level: bench.layer.level(),
        synchronisation: bench.layer.synchronisation(),
        memory: bench.layer.memory(),
        timer_ns: bench.timer_ns,
        transfers: vec![TransferData::default(); shape.transfers.len()],
        shape,
        ..OnesidedLaunch::default()
    };
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut cells: Vec<usize> = (0..data.transfers.len()).collect();
    bench.pass_over(&mut cells, PASSES_AT_MOST, &mut random, progress, |bench, &at, _, goes_on| {
        batch(bench, data.shape.transfers[at], &mut data.transfers[at], goes_on)
    })?;
    data.took_ns = bench.took_ns();
    progress(1.0);
    Ok(data)
}

/// Chooses sizes and numbers of operations for all launches.
fn choose<I: Initiator>(
    bench: &mut Bench<'_, I>,
    largest: usize,
    sizes: fn(Operation, usize) -> Vec<usize>,
    progress: &mut dyn FnMut(f64),
) -> Result<OnesidedShape, LayerError> {
    let mut transfers = Vec::new();
    for operation in Operation::ALL {
        if !bench.layer.operations().contains(&operation) {
            continue;
        }
        for size_bytes in sizes(operation, largest.min(bench.layer.largest())) {
            transfers.push(pilot(bench, operation, size_bytes)?);
            progress(0.0);
        }
    }
    Ok(OnesidedShape { transfers })
}

/// Chooses the numbers for one operation at one size, from a short measurement.
fn pilot<I: Initiator>(
    bench: &mut Bench<'_, I>,
    operation: Operation,
    size_bytes: usize,
) -> Result<TransferShape, LayerError> {
    bench.set_rest(0.0);
    bench.layer.choose(operation, size_bytes)?;
    let window = bench.layer.window() as u64;
    let first_ns = bench.single(operation)?.complete_ns();
    // A long way alone makes no operation long: the next one follows soon.
    if !bench.layer.is_virtual() && first_ns > LONG_NS && bench.rise(operation, 1)? > LONG_NS {
        return Ok(TransferShape { operation, size_bytes, singles: 1, row: 1, window, rest_ns: 0.0 });
    }
    let [_, hurried_ns] = pilot_single(bench, operation)?;
    let pace = pilot_pace(bench, operation, hurried_ns)?;
    // A stage may still be busy with the operation before, if the gap is longer than the operation.
    bench.set_rest(steady::rest_ns(pace.mean_ns, 0.0));
    let [start_ns, complete_ns] = pilot_single(bench, operation)?;
    // A processor cannot start operations faster than one after the other.
    let gap_ns = pace.rise_ns.max(start_ns);
    let singles = (BATCH_NS / complete_ns).clamp(SINGLES.0, SINGLES.1) as u64;
    let row_ns = (BATCH_NS / 3.0).max(OVER_SINGLE / 2.0 * complete_ns);
    let row = (row_ns / gap_ns).clamp(ROW.0, ROW.1) as u64;
    // A stream that waits for the window proceeds in steps of whole windows.
    let row = if 2 * row > window { row.next_multiple_of(window.max(1)) } else { row };
    // Both vary, so that a gap of half of the operation may outlast it.
    let rest_ns = steady::rest_ns(pace.mean_ns, complete_ns / 2.0);
    Ok(TransferShape { operation, size_bytes, singles, row, window, rest_ns })
}

/// Returns the approximate times to start and to complete a single operation, in nanoseconds.
fn pilot_single<I: Initiator>(
    bench: &mut Bench<'_, I>,
    operation: Operation,
) -> Result<[f64; 2], LayerError> {
    let singles = (0..PILOTS).map(|_| bench.single(operation)).collect::<Result<Vec<_>, _>>()?;
    let start_ns = median(singles.iter().map(|single| single.start_ns)).max(steady::SHORTEST_NS);
    Ok([start_ns, median(singles.iter().map(Single::complete_ns)).max(steady::SHORTEST_NS)])
}

/// The approximate time for each operation of a stream.
struct Pace {
    /// The rise from a row to one of twice as many: the gap, with the variation of both rows.
    rise_ns: f64,
    /// The time of both rows over their operations: the gap and a share of a single operation. It varies far less than
    /// the rise. A rest after a rise that is too short by chance is too short: an operation then waits for the one
    /// before.
    mean_ns: f64,
}

/// Returns the approximate pace of a stream. The row becomes longer until it takes much longer than a single operation
/// and averages over many.
fn pilot_pace<I: Initiator>(
    bench: &mut Bench<'_, I>,
    operation: Operation,
    complete_ns: f64,
) -> Result<Pace, LayerError> {
    let mut row = PILOT_ROW;
    loop {
        let long_ns = bench.stream(operation, 2 * row)?;
        let is_many = 2 * row >= PILOT_ROW_AT_LEAST || long_ns >= BATCH_NS;
        if (is_many && long_ns >= OVER_SINGLE * complete_ns) || 2 * row > ROW.1 as u64 {
            let paces = (0..3).map(|_| bench.pace(operation, row)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Pace {
                rise_ns: median(paces.iter().map(|pace| pace.rise_ns)),
                mean_ns: median(paces.iter().map(|pace| pace.mean_ns)),
            });
        }
        row *= 2;
    }
}

/// Adds a batch to `data`.
fn batch<I: Initiator>(
    bench: &mut Bench<'_, I>,
    shape: TransferShape,
    data: &mut TransferData,
    goes_on: &mut dyn FnMut(),
) -> Result<(), LayerError> {
    let TransferShape { operation, size_bytes, singles, row, rest_ns, .. } = shape;
    bench.layer.choose(operation, size_bytes)?;
    bench.set_rest(rest_ns);
    // The first operation after a change of size is not representative.
    bench.single(operation)?;
    goes_on();
    let singles = (0..singles).map(|_| bench.single(operation)).collect::<Result<Vec<_>, _>>()?;
    data.start_ns.push(trimmed_mean(singles.iter().map(|single| single.start_ns)));
    let mean = |of: fn(&Single) -> Option<f64>| {
        let times: Vec<f64> = singles.iter().filter_map(of).collect();
        (!times.is_empty()).then(|| trimmed_mean(times))
    };
    data.local_ns.extend(mean(|single| single.local_ns));
    data.remote_ns.extend(mean(|single| single.remote_ns));
    goes_on();
    data.gap_ns.push(bench.rise(operation, row)?);
    Ok(())
}

/// The times of a single operation from a quiet layer.
struct Single {
    start_ns: f64,
    local_ns: Option<f64>,
    remote_ns: Option<f64>,
}

impl Single {
    /// Returns the time until the operation is complete everywhere.
    fn complete_ns(&self) -> f64 {
        self.remote_ns.or(self.local_ns).unwrap_or(self.start_ns)
    }
}

impl<I: Initiator> Bench<'_, I> {
    /// Makes a single operation from a quiet layer.
    #[inline(always)]
    fn single(&mut self, operation: Operation) -> Result<Single, LayerError> {
        let shows_local = operation.shows_local(self.layer.synchronisation());
        self.layer.open_epoch()?;
        self.rest();
        let start = self.layer.now();
        self.layer.start()?;
        let started = self.layer.now();
        // A reading interrupts the processor's work for longer than it takes itself, so that none is in vain.
        let mut local = None;
        if shows_local {
            self.layer.wait_local()?;
            local = Some(self.layer.now());
        }
        let mut remote = None;
        if !operation.fetches() {
            self.layer.flush()?;
            remote = Some(self.layer.now());
        }
        let ns = |until, readings: u8| self.ns(until - start) - f64::from(readings) * self.timer_ns;
        Ok(Single {
            start_ns: ns(started, 1),
            local_ns: local.map(|local| ns(local, 2)),
            remote_ns: remote.map(|remote| ns(remote, 2 + u8::from(shows_local))),
        })
    }

    /// Returns the time for each operation of a stream, in nanoseconds: the rise from a row of `count` to one
    /// of twice as many.
    fn rise(&mut self, operation: Operation, count: u64) -> Result<f64, LayerError> {
        Ok(self.pace(operation, count)?.rise_ns)
    }

    /// Returns the pace of a row of `count` operations and one of twice as many.
    fn pace(&mut self, operation: Operation, count: u64) -> Result<Pace, LayerError> {
        let mut both_ns = 0.0;
        let [rise_ns] = row::rise(count, |count| {
            let row_ns = self.stream(operation, count)?;
            both_ns += row_ns;
            Ok([row_ns])
        })?;
        Ok(Pace { rise_ns, mean_ns: both_ns / (3 * count) as f64 })
    }

    /// Returns the time of a row of `count` operations until all of them are complete, in nanoseconds.
    fn stream(&mut self, operation: Operation, count: u64) -> Result<f64, LayerError> {
        self.layer.open_epoch()?;
        self.rest();
        let start = self.layer.now();
        for _ in 0..count {
            self.layer.start()?;
        }
        if operation.fetches() {
            self.layer.wait_local()?;
        } else {
            self.layer.flush()?;
        }
        Ok(self.since(start) - self.timer_ns)
    }
}
