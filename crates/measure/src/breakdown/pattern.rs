//! The procedure of one launch.
//!
//! The first launch chooses the number of operations in each run; later launches use the same numbers. Then each
//! launch makes passes over all runs, in another order every time, until the time is up. So an operation with a step
//! and the operation without it are measured in turn, and drift affects both alike.

use super::data::{BreakdownLaunch, BreakdownShape};
use crate::bench::Bench;
use crate::layer::{Dissected, LayerError};
use crate::stats::{median, trimmed_mean};
use serde::{Deserialize, Serialize};

/// Time for one run.
const RUN_NS: f64 = 20e3;
/// Runs in a batch.
const RUNS: usize = 20;
/// Runs of the pilot measurement, and the operations in each.
const PILOTS: usize = 5;
const PILOT: u64 = 4;
/// Runs before anything is measured: caches and branch predictors learn the way.
const WARM_UP: usize = 20;
/// The largest number of passes.
const PASSES_AT_MOST: usize = 50;

/// The plan of one launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BreakdownPlan {
    /// The index in the order of launches.
    pub launch: usize,
    /// Runs and operations, if an earlier launch of the run chose them.
    pub shape: Option<BreakdownShape>,
    /// Time budget of the whole launch, on the layer's clock.
    pub budget_ns: f64,
    /// Seed of the order of all measurements.
    pub seed: u64,
}

/// Runs one launch with `layer`. `progress` receives the share that is done.
///
/// # Errors
/// Returns an error if the layer fails.
pub fn run<L: Dissected>(
    layer: &mut L,
    plan: &BreakdownPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<BreakdownLaunch, LayerError> {
    let mut bench = Bench::new(layer, plan.budget_ns);
    let shape = match &plan.shape {
        Some(shape) => shape.clone(),
        None => choose(&mut bench)?,
    };
    let mut data = BreakdownLaunch {
        launch: plan.launch,
        timer_ns: bench.timer_ns,
        probes_ns: vec![Vec::new(); shape.anatomy.probes()],
        shape,
        ..BreakdownLaunch::default()
    };
    let firsts = firsts(&data.shape);
    for nth in 0..data.shape.counts.len() {
        for _ in 0..WARM_UP {
            bench.layer.make(nth, data.shape.counts[nth])?;
        }
    }
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut cells: Vec<usize> = (0..data.shape.counts.len()).collect();
    bench.pass_over(&mut cells, PASSES_AT_MOST, &mut random, progress, |bench, &nth, _, _| {
        for (at, value) in batch(bench, nth, data.shape.counts[nth])?.into_iter().enumerate() {
            data.probes_ns[firsts[nth] + at].push(value);
        }
        Ok(())
    })?;
    data.took_ns = bench.took_ns();
    progress(1.0);
    Ok(data)
}

/// Returns the index of the first probe of each run.
fn firsts(shape: &BreakdownShape) -> Vec<usize> {
    let next = |first: &mut usize, probes: usize| {
        let this = *first;
        *first += probes;
        Some(this)
    };
    shape.anatomy.runs.iter().map(|run| run.probes.len()).scan(0, next).collect()
}

/// Chooses the numbers of operations for all launches.
fn choose<L: Dissected>(bench: &mut Bench<'_, L>) -> Result<BreakdownShape, LayerError> {
    let anatomy = bench.layer.anatomy().clone();
    let mut counts = Vec::new();
    for (nth, run) in anatomy.runs.iter().enumerate() {
        let pilot = PILOT.min(run.most);
        let sums = (0..PILOTS)
            .map(|_| Ok(once(bench, nth, pilot)?.into_iter().sum::<f64>()))
            .collect::<Result<Vec<_>, LayerError>>()?;
        let fitting = (RUN_NS / median(sums).max(1.0)) as u64;
        counts.push(fitting.clamp(1, run.most));
    }
    Ok(BreakdownShape { anatomy, counts })
}

/// Returns the times of one run for one operation, by probe, in nanoseconds without the cost of the clock.
fn once<L: Dissected>(bench: &mut Bench<'_, L>, nth: usize, count: u64) -> Result<Vec<f64>, LayerError> {
    let ticks = bench.layer.make(nth, count)?;
    Ok(ticks.into_iter().map(|ticks| (bench.ns(ticks) - bench.timer_ns) / count as f64).collect())
}

/// Returns the values of a batch of runs, by probe.
fn batch<L: Dissected>(bench: &mut Bench<'_, L>, nth: usize, count: u64) -> Result<Vec<f64>, LayerError> {
    let runs = (0..RUNS).map(|_| once(bench, nth, count)).collect::<Result<Vec<_>, _>>()?;
    let probes = runs.first().map_or(0, Vec::len);
    Ok((0..probes).map(|at| trimmed_mean(runs.iter().map(|run| run[at]))).collect())
}

/// The samples behind each value of a probe.
pub(super) fn samples(count: u64) -> u64 {
    count.saturating_mul(RUNS as u64)
}
