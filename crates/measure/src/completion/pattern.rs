//! The procedure of one launch.
//!
//! The first launch chooses the numbers of messages for each size; later launches use the same numbers. Then
//! each launch makes passes over all sizes, in another order every time, until the time is up. Drift in the
//! course of a launch therefore affects all sizes alike.
//!
//! The requester waits by the layer's own way to wait only, and never polls. So ways to wait differ in nothing
//! else. For each size n a pass measures
//!
//! * round trips with n bytes both ways;
//! * two rows of requests with n bytes and small replies, of which one is twice as long. While the window is
//!   full, the requester waits for a reply;
//! * copies of n bytes by the requester's processor, if they are the peak that the stream is compared with.

use super::copy::Copier;
use super::data::{CompletionLaunch, CompletionShape, CompletionSizeData, CompletionSizeShape};
use super::peak::{Peak, PeakSource};
use crate::bench::Bench;
use crate::layer::{LayerError, SizedRequester};
use crate::stats::{median, trimmed_mean};
use crate::{powers, row, steady};
use serde::{Deserialize, Serialize};

/// The bytes of a reply in a stream.
pub(crate) const SMALL: usize = 1;
/// Time for the round trips of a batch, and for its rows.
const BATCH_NS: f64 = 500e3;
/// The least and the largest number of round trips in a batch.
const TRIPS: (f64, f64) = (1.0, 64.0);
/// Round trips of the pilot measurement, after one that is left out.
const PILOTS: usize = 5;
/// The largest number of messages in flight. A deeper pipeline causes a warning.
const WINDOW_AT_MOST: usize = 1024;
/// The shorter row has at least this many windows, because the first window fills the pipeline.
pub(crate) const WINDOWS_AT_LEAST: u64 = 2;
/// The shorter row has this many windows if it lasts for [`LONGEST_ROW_NS`] at most. The first window piles up
/// before the second slowest stage, which sets the pace until it has worked that off. So a slowest stage that is
/// slower by less than the window's share of the row may not show.
const WINDOWS_WANTED: u64 = 100;
/// The longest time of a shorter row of [`WINDOWS_WANTED`] windows.
const LONGEST_ROW_NS: f64 = 10e6;
/// The largest number of messages in the shorter row, unless the windows need more.
const ROW_AT_MOST: f64 = 1024.0;
/// A message is long if it takes longer than this, and holds up the next one for longer than this. A batch has
/// one round trip of it, and its rows have one and two.
const LONG_NS: f64 = 2e6;
/// The largest number of passes.
const PASSES_AT_MOST: usize = 50;

/// The plan of one launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompletionPlan {
    /// The index in the order of launches.
    pub launch: usize,
    /// Numbers of messages, if an earlier launch of the run chose them.
    pub shape: Option<CompletionShape>,
    /// The largest size wanted, in bytes.
    pub largest_bytes: usize,
    /// The peak that the bandwidth is compared with.
    pub peak: Peak,
    /// Time budget of the whole launch, on the layer's clock.
    pub budget_ns: f64,
    /// Seed of the order of the sizes.
    pub seed: u64,
}

/// Runs one launch over `requester`. `progress` receives the share that is done.
///
/// # Errors
/// Returns an error if the layer fails.
pub fn run<R: SizedRequester>(
    requester: &mut R,
    plan: &CompletionPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<CompletionLaunch, LayerError> {
    let largest = plan.largest_bytes.min(requester.largest());
    let mut bench = Bench::new(requester, plan.budget_ns);
    bench.set_sizes(SMALL, SMALL, 0.0)?;
    bench.warm_up()?;
    let shape = match &plan.shape {
        Some(shape) => shape.clone(),
        None => CompletionShape { peak: plan.peak.clone(), ..choose(&mut bench, largest, progress)? },
    };
    let mut data = CompletionLaunch {
        launch: plan.launch,
        timer_ns: bench.timer_ns,
        sizes: vec![CompletionSizeData::default(); shape.sizes.len()],
        shape,
        ..CompletionLaunch::default()
    };
    let mut copier = (data.shape.peak.source == PeakSource::Copy).then(|| Copier::new(largest));
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut cells: Vec<usize> = (0..data.sizes.len()).collect();
    bench.pass_over(&mut cells, PASSES_AT_MOST, &mut random, progress, |bench, &at, _, goes_on| {
        batch(bench, data.shape.sizes[at], &mut data.sizes[at], goes_on)?;
        if let Some(copier) = &mut copier {
            let copy_ns = copier.copy_ns(bench, data.shape.sizes[at].size_bytes);
            data.sizes[at].copy_ns.push(copy_ns);
        }
        Ok(())
    })?;
    data.took_ns = bench.took_ns();
    progress(1.0);
    Ok(data)
}

/// Chooses sizes and numbers of messages for all launches.
fn choose<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    largest: usize,
    progress: &mut dyn FnMut(f64),
) -> Result<CompletionShape, LayerError> {
    let sizes = powers::up_to(largest).into_iter().map(|size| pilot(bench, size, WINDOWS_WANTED, progress));
    Ok(CompletionShape { sizes: sizes.collect::<Result<_, _>>()?, ..CompletionShape::default() })
}

/// Chooses the numbers for one size, from a short measurement. A row has up to `windows` windows, as far as its
/// time allows.
pub(crate) fn pilot<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    size_bytes: usize,
    windows: u64,
    progress: &mut dyn FnMut(f64),
) -> Result<CompletionSizeShape, LayerError> {
    progress(0.0);
    bench.set_sizes(size_bytes, SMALL, 0.0)?;
    let most = bench.layer.max_window().min(WINDOW_AT_MOST);
    let first_ns = bench.round_trip()?;
    // A long way alone makes no message long: the next one follows soon.
    if !bench.layer.is_virtual()
        && first_ns > LONG_NS
        && row::rise(1, |count| stream(bench, count))?[1] > LONG_NS
    {
        return Ok(CompletionSizeShape { size_bytes, trips: 1, row: 1, window: most, rest_ns: 0.0 });
    }
    let hurried_ns = pilot_trip(bench)?;
    let each_ns = bench.pilot_plateau(hurried_ns, most, LONG_NS, || progress(0.0))?;
    // Both vary, so that a message of half of the round trip may outlast it.
    let rest_ns = steady::rest_ns(each_ns, hurried_ns / 2.0);
    bench.set_rest(rest_ns);
    let alone_ns = pilot_trip(bench)?;
    let each_ns = each_ns.max(steady::SHORTEST_NS);
    let depth = steady::depth(alone_ns, each_ns, most).max(1);
    let window = (steady::BURST_OVER_DEPTH * depth).min(most);
    bench.set_sizes(size_bytes, size_bytes, rest_ns)?;
    let both_ways_ns = pilot_trip(bench)?;
    let trips = (BATCH_NS / both_ways_ns).clamp(TRIPS.0, TRIPS.1) as u64;
    Ok(CompletionSizeShape {
        size_bytes,
        trips,
        row: row_of(each_ns, window as u64, windows),
        window,
        rest_ns,
    })
}

/// Returns the approximate time of a round trip, in nanoseconds.
fn pilot_trip<R: SizedRequester>(bench: &mut Bench<'_, R>) -> Result<f64, LayerError> {
    bench.round_trip()?;
    let trips = (0..PILOTS).map(|_| bench.round_trip()).collect::<Result<Vec<_>, _>>()?;
    Ok(median(trips).max(steady::SHORTEST_NS))
}

/// Returns the number of messages in the shorter row: whole windows, because a stream that waits for the window
/// proceeds in steps of them.
fn row_of(each_ns: f64, window: u64, windows: u64) -> u64 {
    let messages = (BATCH_NS / 3.0 / each_ns).min(ROW_AT_MOST) as u64;
    let wanted = (windows * window).min((LONGEST_ROW_NS / each_ns) as u64);
    messages.max(wanted).max(WINDOWS_AT_LEAST * window).next_multiple_of(window)
}

/// Adds a batch to `data`.
fn batch<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    shape: CompletionSizeShape,
    data: &mut CompletionSizeData,
    goes_on: &mut dyn FnMut(),
) -> Result<(), LayerError> {
    let CompletionSizeShape { size_bytes, trips, row, window, rest_ns } = shape;
    // The first round trip after a change of size is not representative.
    bench.set_sizes(size_bytes, size_bytes, rest_ns)?;
    bench.round_trip()?;
    goes_on();
    let trips = (0..trips).map(|_| bench.round_trip()).collect::<Result<Vec<_>, _>>()?;
    data.half_rtt_ns.push(trimmed_mean(trips) / 2.0);
    goes_on();
    bench.set_sizes(size_bytes, SMALL, rest_ns)?;
    // The layer of the launch that the shape comes from may have had another window.
    bench.set_window(window.clamp(1, bench.layer.max_window()));
    bench.round_trip()?;
    data.alone_ns.push(bench.round_trip()?);
    goes_on();
    let [issue_ns, done_ns] = row::rise(row, |count| stream(bench, count))?;
    data.issue_ns.push(issue_ns);
    data.done_ns.push(done_ns);
    Ok(())
}

/// Returns the time of a row of `count` requests until all of them are issued, and until all have replies, in
/// nanoseconds.
fn stream<R: SizedRequester>(bench: &mut Bench<'_, R>, count: u64) -> Result<[f64; 2], LayerError> {
    bench.settle()?;
    let start = bench.layer.now();
    for _ in 0..count {
        bench.issue()?;
    }
    let issued = bench.layer.now();
    bench.drain()?;
    Ok([bench.ns(issued - start) - bench.timer_ns, bench.since(start) - 2.0 * bench.timer_ns])
}
