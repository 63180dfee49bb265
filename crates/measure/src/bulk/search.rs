//! Which sizes are measured: one per octave, and both sides of every place where T(n) leaves
//! its line, brought together until they enclose it narrowly.
//!
//! Kielmann et al. 2000 and Netgauge refine where a time is off what smaller sizes
//! extrapolate to. Here the lines are laid through what lies on both sides, which sees a
//! change of slope as well as a jump, and is not misled by a single bad time.

use super::fit::{NOISE, Point, segments};
use crate::bench::{Bench, median_and_error};
use crate::layer::{LayerError, SizedRequester};
use crate::steady;

/// A change by which T departs by more than this share is always found.
pub const DEPARTURE: f64 = 0.1;
/// Two sizes enclose a change narrowly where they are no farther apart than this share of
/// the smaller one, or one byte.
pub const STEP: f64 = 1.0 / 64.0;
/// Sizes looked at to enclose changes, at most.
const LOOKS_AT_MOST: usize = 40;
/// Times the launch's time after which nothing is searched any more, where somebody waits.
const OVERDUE: f64 = 4.0;
/// Round trips of a size that is looked at, and time for them.
const TRIPS: (usize, usize) = (9, 250);
const TRIPS_NS: f64 = 4e6;
/// The least of them where the launch's time is up.
const TRIPS_OVERDUE: usize = 3;

/// The gap of the smallest size is compared with its round trip by streams of this window.
const PILOT_WINDOW_AT_MOST: usize = 64;
/// Share of the launch's time for one window of them.
const PILOT_SHARE: f64 = 0.01;

/// What the search found.
pub(super) struct Found {
    /// Sizes to measure, ascending.
    pub(super) sizes: Vec<usize>,
    /// What must pass after a reply of the smallest size until the layer is quiet.
    pub(super) rest_ns: f64,
    /// Half a round trip of each size that was looked at, in the order of the search.
    pub(super) seen_ns: Vec<(usize, f64)>,
}

/// Searches sizes from 1 byte to `largest`. Calls `goes_on` before each that it looks at.
pub(super) fn sizes<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    largest: usize,
    mut goes_on: impl FnMut(),
) -> Result<Found, LayerError> {
    let rest_ns = rest_of_smallest(bench, &mut goes_on)?;
    let mut search = Search { bench, rest_ns, points: Vec::new(), seen_ns: Vec::new() };
    let mut sizes = octaves(largest);
    for &size in &sizes {
        goes_on();
        search.look(size)?;
    }
    for _ in 0..LOOKS_AT_MOST {
        if search.bench.is_overdue(OVERDUE) {
            break;
        }
        let Some(middle) = search.changes().into_iter().find_map(|(below, beyond)| middle(below, beyond))
        else {
            break;
        };
        goes_on();
        search.look(middle)?;
    }
    let changes = search.changes();
    sizes.extend(changes.iter().flat_map(|&(below, beyond)| [below, beyond]));
    // A line needs two sizes, and the last one may have but one of an octave.
    if let Some(&(_, beyond)) = changes.last() {
        sizes.push(beyond.midpoint(largest));
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(Found { sizes, rest_ns, seen_ns: search.seen_ns })
}

/// Powers of two, `largest`, and one between the last two.
fn octaves(largest: usize) -> Vec<usize> {
    let powers = (0..usize::BITS).map(|log| 1 << log).take_while(|&size| size < largest);
    let mut sizes: Vec<usize> = powers.collect();
    sizes.extend(sizes.last().map(|last: &usize| last.midpoint(largest)));
    sizes.push(largest);
    sizes.dedup();
    sizes
}

/// A size between two that do not yet enclose a change narrowly.
fn middle(below: usize, beyond: usize) -> Option<usize> {
    let is_wide = (beyond - below) as f64 > STEP * below as f64;
    Some(below.midpoint(beyond)).filter(|&size| is_wide && size != below)
}

/// What must pass between measurements of the smallest size. A larger one needs no more: its bytes
/// take as long in the round trip as in the gap.
fn rest_of_smallest<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    goes_on: impl FnMut(),
) -> Result<f64, LayerError> {
    bench.set_sizes(1, 1, 0.0)?;
    let rtt_ns = trips(bench)?.0;
    let limit_ns = bench.time_ns(PILOT_SHARE);
    let plateau_ns = bench.pilot_plateau(rtt_ns, PILOT_WINDOW_AT_MOST, limit_ns, goes_on)?;
    Ok(steady::rest_ns(plateau_ns, rtt_ns))
}

/// The median round trip at the sizes that are set, and its error.
fn trips<R: SizedRequester>(bench: &mut Bench<'_, R>) -> Result<(f64, f64), LayerError> {
    // The first one after a change of sizes is not like the others.
    let first = bench.round_trip()?;
    let least = if bench.is_overdue(1.0) { TRIPS_OVERDUE } else { TRIPS.0 };
    let count = ((TRIPS_NS / first.max(1.0)) as usize).clamp(least, TRIPS.1);
    let trips: Vec<f64> = (0..count).map(|_| bench.round_trip()).collect::<Result<_, _>>()?;
    Ok(median_and_error(trips))
}

struct Search<'b, 'a, R> {
    bench: &'b mut Bench<'a, R>,
    rest_ns: f64,
    /// T of the sizes looked at, ascending.
    points: Vec<Point>,
    /// The same, in the order of the search.
    seen_ns: Vec<(usize, f64)>,
}

impl<R: SizedRequester> Search<'_, '_, R> {
    fn look(&mut self, size: usize) -> Result<(), LayerError> {
        self.bench.set_sizes(size, size, self.rest_ns)?;
        let (rtt, error) = trips(self.bench)?;
        let (one_way, error) = (rtt / 2.0, error / 2.0);
        self.seen_ns.push((size, one_way));
        let at = self.points.partition_point(|point| point.bytes < size as f64);
        self.points.insert(at, Point::new(size, one_way, error.max(NOISE * one_way)));
        Ok(())
    }

    /// The sizes on both sides of each change, as far as is known.
    fn changes(&self) -> Vec<(usize, usize)> {
        let begins = segments(&self.points, 1);
        let size = |at: usize| self.points[at].bytes as usize;
        begins.iter().skip(1).map(|&at| (size(at - 1), size(at))).collect()
    }
}
