//! Chooses the sizes to measure: one per octave, and two sizes that closely enclose every departure of T(n)
//! from its line.
//!
//! Kielmann et al. 2000 and Netgauge refine a size whose time differs from the extrapolation of smaller
//! sizes. This search fits lines through the sizes on both sides instead. It therefore detects a change of
//! slope as well as a jump, and one wrong time does not mislead it.

use super::fit::{FitPoint, NOISE, segments};
use crate::bench::{Bench, LONG_NS, median_and_error};
use crate::layer::{LayerError, SizedRequester};
use crate::steady;

/// The search always finds a change at which T departs by more than this share.
pub const DEPARTURE: f64 = 0.1;
/// Two sizes closely enclose a change if they differ by at most this share of the smaller one, or by one
/// byte.
pub const STEP: f64 = 1.0 / 64.0;
/// The largest number of sizes probed to enclose changes.
const LOOKS_AT_MOST: usize = 40;
/// In real time the search stops after this many times the launch's time budget.
const OVERDUE: f64 = 4.0;
/// The smallest and the largest number of round trips of a probed size, and the time for them.
const TRIPS: (usize, usize) = (9, 250);
const TRIPS_NS: f64 = 4e6;
/// The smallest number of long round trips, and of all once the launch's time budget has passed.
const TRIPS_OVERDUE: usize = 3;

/// Largest window of the pilot streams, which compare the gap of the smallest size with its round trip.
const PILOT_WINDOW_AT_MOST: usize = 64;
/// Share of the launch's time budget for one window of a pilot stream.
const PILOT_SHARE: f64 = 0.01;

/// The result of the search.
pub(super) struct FoundBurst {
    /// Sizes to measure, ascending.
    pub(super) sizes: Vec<usize>,
    /// Delay after a reply of the smallest size until the layer is quiet.
    pub(super) rest_ns: f64,
    /// Half a round trip of each probed size, in the order of the search.
    pub(super) seen_ns: Vec<(usize, f64)>,
}

/// Searches sizes from 1 byte to `largest`. Calls `goes_on` before each probe, and before each of its long round trips.
pub(super) fn sizes<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    largest: usize,
    mut goes_on: impl FnMut(),
) -> Result<FoundBurst, LayerError> {
    let rest_ns = rest_of_smallest(bench, &mut goes_on)?;
    let mut search = BurstSearch { bench, rest_ns, points: Vec::new(), seen_ns: Vec::new() };
    let mut sizes = octaves(largest);
    for &size in &sizes {
        search.look(size, &mut goes_on)?;
    }
    for _ in 0..LOOKS_AT_MOST {
        if search.bench.is_overdue(OVERDUE) {
            break;
        }
        let Some(middle) = search.changes().into_iter().find_map(|(below, beyond)| middle(below, beyond))
        else {
            break;
        };
        search.look(middle, &mut goes_on)?;
    }
    let changes = search.changes();
    sizes.extend(changes.iter().flat_map(|&(below, beyond)| [below, beyond]));
    // A line needs two sizes, and the last octave may contain only one.
    if let Some(&(_, beyond)) = changes.last() {
        sizes.push(beyond.midpoint(largest));
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(FoundBurst { sizes, rest_ns, seen_ns: search.seen_ns })
}

/// Returns the powers of two below `largest`, the midpoint between the last of them and `largest`, and
/// `largest`.
fn octaves(largest: usize) -> Vec<usize> {
    let powers = (0..usize::BITS).map(|log| 1 << log).take_while(|&size| size < largest);
    let mut sizes: Vec<usize> = powers.collect();
    sizes.extend(sizes.last().map(|last: &usize| last.midpoint(largest)));
    sizes.push(largest);
    sizes.dedup();
    sizes
}

/// Returns a size between two sizes that do not yet closely enclose a change.
fn middle(below: usize, beyond: usize) -> Option<usize> {
    let is_wide = (beyond - below) as f64 > STEP * below as f64;
    Some(below.midpoint(beyond)).filter(|&size| is_wide && size != below)
}

/// Returns the delay between measurements of the smallest size, in nanoseconds. A larger size needs no
/// longer delay, because its additional bytes lengthen the round trip by as much as the gap.
fn rest_of_smallest<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    mut goes_on: impl FnMut(),
) -> Result<f64, LayerError> {
    bench.set_sizes(1, 1, 0.0)?;
    let rtt_ns = trips(bench, &mut goes_on)?.0;
    let limit_ns = bench.time_ns(PILOT_SHARE);
    let plateau_ns = bench.pilot_plateau(rtt_ns, PILOT_WINDOW_AT_MOST, limit_ns, goes_on)?;
    Ok(steady::rest_ns(plateau_ns, rtt_ns))
}

/// Returns the median round trip at the current sizes and its standard error, in nanoseconds.
fn trips<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    goes_on: &mut impl FnMut(),
) -> Result<(f64, f64), LayerError> {
    goes_on();
    // The first round trip after a change of sizes is not representative.
    let first = bench.round_trip()?;
    let is_long = is_long(bench, first);
    let is_short_of_time = bench.is_overdue(1.0) || is_long;
    let least = if is_short_of_time { TRIPS_OVERDUE } else { TRIPS.0 };
    let count = ((TRIPS_NS / first.max(1.0)) as usize).clamp(least, TRIPS.1);
    let mut trips = Vec::with_capacity(count);
    for _ in 0..count {
        if is_long {
            goes_on();
        }
        trips.push(bench.round_trip()?);
    }
    Ok(median_and_error(trips))
}

/// Reports whether a time is so long that what takes it is measured less often.
pub(super) fn is_long<R: SizedRequester>(bench: &Bench<'_, R>, ns: f64) -> bool {
    !bench.layer.is_virtual() && ns > LONG_NS
}

struct BurstSearch<'b, 'a, R> {
    bench: &'b mut Bench<'a, R>,
    rest_ns: f64,
    /// T of the probed sizes, ascending by size.
    points: Vec<FitPoint>,
    /// T of the probed sizes, in the order of the search.
    seen_ns: Vec<(usize, f64)>,
}

impl<R: SizedRequester> BurstSearch<'_, '_, R> {
    fn look(&mut self, size: usize, goes_on: &mut impl FnMut()) -> Result<(), LayerError> {
        self.bench.set_sizes(size, size, self.rest_ns)?;
        let (rtt, error) = trips(self.bench, goes_on)?;
        let (one_way, error) = (rtt / 2.0, error / 2.0);
        self.seen_ns.push((size, one_way));
        let at = self.points.partition_point(|point| point.bytes < size as f64);
        self.points.insert(at, FitPoint::new(size, one_way, error.max(NOISE * one_way)));
        Ok(())
    }

    /// Returns the sizes below and beyond each change found so far.
    fn changes(&self) -> Vec<(usize, usize)> {
        let begins = segments(&self.points, 1);
        let size = |at: usize| self.points[at].bytes as usize;
        begins.iter().skip(1).map(|&at| (size(at - 1), size(at))).collect()
    }
}
