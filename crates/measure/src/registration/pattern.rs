//! The procedure of one launch.
//!
//! The first launch chooses the number of samples in a batch for each size; later launches use the same
//! numbers. Then each launch makes passes over all sizes and operations, in another order every time, until
//! the time is up. Drift in the course of a launch therefore affects all operations alike.
//!
//! Every sample has memory of its own, so that no library knows it from an earlier sample. Touching a large
//! region evicts everything else from the caches. The layer therefore registers a page of other memory
//! before each sample. Otherwise large regions would be measured with cold caches and small regions with
//! warm ones.

use super::data::{FixedData, RegionData, RegionShape, RegistrationLaunch, RegistrationShape};
use crate::bench::Bench;
use crate::layer::{LayerError, Purpose, Registrar};
use crate::powers;
use crate::stats::trimmed_mean;
use serde::{Deserialize, Serialize};

/// Time for a batch, if more than one sample fits into it.
const BATCH_NS: f64 = 500e3;
/// The largest number of samples in a batch.
const SAMPLES_AT_MOST: u64 = 32;
/// The number of samples in a batch of an operation whose cost does not depend on a size.
const FIXED_SAMPLES: u64 = 8;
/// The largest number of passes.
const PASSES_AT_MOST: usize = 50;
/// The number of samples before measurement begins. They absorb the start-up work that a library does once
/// in a process.
const WARM_UP: u64 = 8;

/// The plan of one launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RegistrationPlan {
    /// The index in the order of launches.
    pub launch: usize,
    /// Sizes and samples, if an earlier launch of the run chose them.
    pub shape: Option<RegistrationShape>,
    /// Size of the largest region, in bytes.
    pub largest_bytes: usize,
    /// Time budget of the whole launch, on the layer's clock.
    pub budget_ns: f64,
    /// Seed of the order of all measurements.
    pub seed: u64,
}

/// One operation to measure.
#[derive(Clone, Copy, Debug)]
enum CostCell {
    /// Registers untouched memory.
    Untouched(usize),
    /// Registers touched memory: for the first time, a second time while it is registered, and again after
    /// deregistering.
    Touched(usize),
    /// Locks untouched memory.
    LockUntouched(usize),
    /// Locks and unlocks touched memory.
    Lock(usize),
    /// An operation whose cost does not depend on a size.
    Fixed(usize),
}

/// Runs one launch with `registrar`. `progress` receives the share that is done.
///
/// # Errors
/// Returns an error if the layer fails, or if the system has no memory.
pub fn run<R: Registrar>(
    registrar: &mut R,
    plan: &RegistrationPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<RegistrationLaunch, LayerError> {
    let mut bench = Bench::new(registrar, plan.budget_ns);
    for _ in 0..WARM_UP {
        touched(&mut bench, 1)?;
    }
    let shape = match &plan.shape {
        Some(shape) => shape.clone(),
        None => choose(&mut bench, plan.largest_bytes)?,
    };
    let of_size = |size: &RegionShape| RegionData { size_bytes: size.size_bytes, ..RegionData::default() };
    let of_name =
        |name: &&str| FixedData { name: (*name).into(), batches_ns: Vec::new(), samples: FIXED_SAMPLES };
    let mut data = RegistrationLaunch {
        launch: plan.launch,
        system: bench.layer.system(),
        timer_ns: bench.timer_ns,
        sizes: shape.sizes.iter().map(of_size).collect(),
        fixed: bench.layer.fixed().iter().map(of_name).collect(),
        shape,
        ..RegistrationLaunch::default()
    };
    passes(&mut bench, &mut data, plan.seed, progress)?;
    data.took_ns = bench.took_ns();
    progress(1.0);
    Ok(data)
}

/// Chooses sizes and numbers of samples for all launches.
fn choose<R: Registrar>(bench: &mut Bench<'_, R>, largest: usize) -> Result<RegistrationShape, LayerError> {
    let choose = |size_bytes: usize| {
        let start = bench.layer.now();
        touched(bench, size_bytes)?;
        let samples = (BATCH_NS / bench.since(start).max(1.0)) as u64;
        Ok(RegionShape { size_bytes, samples: samples.clamp(1, SAMPLES_AT_MOST) })
    };
    Ok(RegistrationShape {
        sizes: powers::up_to(largest).into_iter().map(choose).collect::<Result<_, LayerError>>()?,
    })
}

fn passes<R: Registrar>(
    bench: &mut Bench<'_, R>,
    data: &mut RegistrationLaunch,
    seed: u64,
    progress: &mut dyn FnMut(f64),
) -> Result<(), LayerError> {
    let mut random = fastrand::Rng::with_seed(seed);
    let of_size = |at| {
        [CostCell::Untouched(at), CostCell::Touched(at), CostCell::LockUntouched(at), CostCell::Lock(at)]
    };
    let mut cells: Vec<CostCell> = (0..data.sizes.len()).flat_map(of_size).collect();
    cells.extend((0..data.fixed.len()).map(CostCell::Fixed));
    bench.pass_over(&mut cells, PASSES_AT_MOST, &mut random, progress, |bench, cell, _, _| {
        cell.measure(bench, data)
    })
}

impl CostCell {
    /// Adds a batch to `data`.
    fn measure<R: Registrar>(
        self,
        bench: &mut Bench<'_, R>,
        data: &mut RegistrationLaunch,
    ) -> Result<(), LayerError> {
        let shape = |at: usize| data.shape.sizes[at];
        match self {
            Self::Untouched(at) => {
                let [first_touch] = batch(shape(at), |bytes| untouched(bench, bytes).map(Some))?;
                data.sizes[at].first_touch_ns.extend(first_touch);
            }
            Self::Touched(at) => {
                let [touched, cached, deregister, again] =
                    batch(shape(at), |bytes| touched(bench, bytes).map(Some))?;
                let size = &mut data.sizes[at];
                size.touched_ns.extend(touched);
                size.cached_ns.extend(cached);
                size.deregister_ns.extend(deregister);
                size.again_ns.extend(again);
            }
            Self::LockUntouched(at) => {
                let [first_touch] = batch(shape(at), |bytes| lock_untouched(bench, bytes))?;
                data.sizes[at].lock_first_touch_ns.extend(first_touch);
            }
            Self::Lock(at) => {
                let [lock, unlock] = batch(shape(at), |bytes| lock(bench, bytes))?;
                data.sizes[at].lock_ns.extend(lock);
                data.sizes[at].unlock_ns.extend(unlock);
            }
            Self::Fixed(nth) => {
                let fixed = &mut data.fixed[nth];
                let samples: Vec<f64> = (0..fixed.samples)
                    .map(|_| Ok(bench.layer.perform(nth).map(|ticks| bench.ns(ticks))? - bench.timer_ns))
                    .collect::<Result<_, LayerError>>()?;
                fixed.batches_ns.push(trimmed_mean(samples));
            }
        }
        Ok(())
    }
}

/// Returns the values of a batch of samples, each of which gives `N` times. Returns `None` for each value
/// if the system refuses the operation.
fn batch<const N: usize>(
    shape: RegionShape,
    mut sample: impl FnMut(usize) -> Result<Option<[f64; N]>, LayerError>,
) -> Result<[Option<f64>; N], LayerError> {
    let mut samples = Vec::new();
    for _ in 0..shape.samples {
        match sample(shape.size_bytes)? {
            Some(times) => samples.push(times),
            None => return Ok([None; N]),
        }
    }
    Ok(std::array::from_fn(|nth| Some(trimmed_mean(samples.iter().map(|times| times[nth])))))
}

/// Returns the duration of a call in nanoseconds, without the cost of the clock, and the result of the
/// call.
#[inline(always)]
fn timed<R: Registrar, T>(
    bench: &mut Bench<'_, R>,
    call: impl FnOnce(&mut R) -> Result<T, LayerError>,
) -> Result<(f64, T), LayerError> {
    let start = bench.layer.now();
    let returned = call(bench.layer)?;
    Ok((bench.since(start) - bench.timer_ns, returned))
}

fn untouched<R: Registrar>(bench: &mut Bench<'_, R>, bytes: usize) -> Result<[f64; 1], LayerError> {
    bench.layer.renew(Purpose::Register, bytes)?;
    bench.layer.warm_up()?;
    let (first_touch, ()) = timed(bench, R::register)?;
    bench.layer.deregister()?;
    Ok([first_touch])
}

/// Registers for the first time, registers while registered, deregisters, and registers again. Returns
/// these times in nanoseconds.
fn touched<R: Registrar>(bench: &mut Bench<'_, R>, bytes: usize) -> Result<[f64; 4], LayerError> {
    bench.layer.renew(Purpose::Register, bytes)?;
    bench.layer.touch();
    bench.layer.warm_up()?;
    let (touched, ()) = timed(bench, R::register)?;
    let (cached, ()) = timed(bench, R::register)?;
    bench.layer.deregister()?;
    let (deregister, ()) = timed(bench, R::deregister)?;
    let (again, ()) = timed(bench, R::register)?;
    bench.layer.deregister()?;
    Ok([touched, cached, deregister, again])
}

fn lock_untouched<R: Registrar>(
    bench: &mut Bench<'_, R>,
    bytes: usize,
) -> Result<Option<[f64; 1]>, LayerError> {
    bench.layer.renew(Purpose::Lock, bytes)?;
    let (first_touch, is_locked) = timed(bench, R::lock)?;
    if !is_locked {
        return Ok(None);
    }
    bench.layer.unlock()?;
    Ok(Some([first_touch]))
}

/// Locks and unlocks touched memory. Returns both times in nanoseconds, or `None` if the system refuses.
fn lock<R: Registrar>(bench: &mut Bench<'_, R>, bytes: usize) -> Result<Option<[f64; 2]>, LayerError> {
    bench.layer.renew(Purpose::Lock, bytes)?;
    bench.layer.touch();
    let (lock, is_locked) = timed(bench, R::lock)?;
    if !is_locked {
        return Ok(None);
    }
    let (unlock, ()) = timed(bench, R::unlock)?;
    Ok(Some([lock, unlock]))
}
