//! Which sizes are measured: one per octave, and both sides of every departure of T(n) from
//! the line of the sizes below, brought together until they enclose it narrowly.
//!
//! Kielmann et al. 2000 refine in the same way, where a point is 20 % off.

use super::bench::{Bench, median_and_error};
use super::fit::{NOISE, Point, Straight};
use crate::layer::{LayerError, SizedRequester};

/// A time so far from the line of the sizes below, as a share of it, departs.
pub const DEPARTURE: f64 = 0.1;
/// It must also be so many times its own error, and the line's, away.
const ERRORS: f64 = 4.0;
/// Two sizes enclose a change narrowly where they are no farther apart than this share of
/// the smaller one, or one byte.
pub const STEP: f64 = 1.0 / 64.0;
/// Round trips of a size that is looked at, and time for them.
const TRIPS: (usize, usize) = (9, 250);
const TRIPS_NS: f64 = 4e6;

/// What the search found.
pub(super) struct Found {
    /// Sizes to measure, ascending.
    pub(super) sizes: Vec<usize>,
    /// What must pass after a reply of the smallest size until the layer is quiet.
    pub(super) rest_ns: f64,
    /// Half a round trip of each size that was looked at, in the order of the search.
    pub(super) seen_ns: Vec<(usize, f64)>,
}

/// Searches sizes from 1 byte to `largest`.
pub(super) fn sizes<R: SizedRequester>(
    bench: &mut Bench<'_, R>,
    largest: usize,
) -> Result<Found, LayerError> {
    let rest_ns = rest_of_smallest(bench)?;
    let mut search = Search { bench, rest_ns, seen: Vec::new() };
    let mut sizes: Vec<usize> = Vec::new();
    let mut line: Vec<Point> = Vec::new();
    for size in octaves(largest) {
        let point = search.look(size)?;
        if departs(&line, point) && departs(&line, search.look(size)?) {
            let (below, beyond) = search.enclose(&line, sizes[sizes.len() - 1], point)?;
            line = vec![beyond];
            let between = if size == largest { halfway(beyond.bytes as usize, size) } else { None };
            sizes.extend([below, beyond.bytes as usize].into_iter().chain(between));
        }
        line.push(point);
        sizes.push(size);
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(Found { sizes, rest_ns, seen_ns: search.seen })
}

/// Powers of two, and `largest`.
fn octaves(largest: usize) -> impl Iterator<Item = usize> {
    let powers = (0..usize::BITS).map(|log| 1 << log).take_while(move |&size| size < largest);
    powers.chain([largest])
}

/// A size between two, where there is one: a line needs two points.
fn halfway(below: usize, beyond: usize) -> Option<usize> {
    Some(below.midpoint(beyond)).filter(|&size| size != below && size != beyond)
}

fn departs(line: &[Point], point: Point) -> bool {
    let Some(straight) = Straight::through(line) else { return false };
    let expected = straight.at(point.bytes);
    let error = f64::hypot(Straight::error_at(line, point.bytes), point.scale_ns);
    (point.ns - expected).abs() > (DEPARTURE * expected.abs()).max(ERRORS * error)
}

/// Where the gap is longer than a round trip, the stage that takes it is still busy when the
/// reply is there, and round trips in a row come a gap apart. Then, and only then, round
/// trips after a rest of that length are shorter.
fn rest_of_smallest<R: SizedRequester>(bench: &mut Bench<'_, R>) -> Result<f64, LayerError> {
    let mut rest_ns = 0.0;
    // Noise alone hardly ever shortens them five times in a row.
    for _ in 0..5 {
        bench.set_sizes(1, 1, 0.0)?;
        rest_ns = trips(bench)?.0;
        bench.set_sizes(1, 1, rest_ns)?;
        if trips(bench)?.0 >= 0.98 * rest_ns {
            return Ok(0.0);
        }
    }
    Ok(rest_ns)
}

/// The median round trip at the sizes that are set, and its error.
fn trips<R: SizedRequester>(bench: &mut Bench<'_, R>) -> Result<(f64, f64), LayerError> {
    let mut trips = vec![bench.round_trip()?];
    // The first one after a change of sizes is not like the others.
    let count = ((TRIPS_NS / trips[0].max(1.0)) as usize).clamp(TRIPS.0, TRIPS.1);
    trips.clear();
    for _ in 0..count {
        trips.push(bench.round_trip()?);
    }
    Ok(median_and_error(trips))
}

struct Search<'b, 'a, R> {
    bench: &'b mut Bench<'a, R>,
    rest_ns: f64,
    seen: Vec<(usize, f64)>,
}

impl<R: SizedRequester> Search<'_, '_, R> {
    /// T of a size.
    fn look(&mut self, size: usize) -> Result<Point, LayerError> {
        self.bench.set_sizes(size, size, self.rest_ns)?;
        let (rtt, error) = trips(self.bench)?;
        let one_way = rtt / 2.0;
        self.seen.push((size, one_way));
        // What a quarter of the noise that is taken for granted cannot show is not known.
        Ok(Point::new(size, one_way, (error / 2.0).max(NOISE / 4.0 * one_way)))
    }

    /// The largest size found on `line` and the smallest one beyond, from `below`, which is on
    /// it, and `beyond`, which is not.
    fn enclose(
        &mut self,
        line: &[Point],
        mut below: usize,
        mut beyond: Point,
    ) -> Result<(usize, Point), LayerError> {
        while let Some(middle) = halfway(below, beyond.bytes as usize)
            && beyond.bytes - below as f64 > STEP * below as f64
        {
            let point = self.look(middle)?;
            if departs(line, point) { beyond = point } else { below = middle }
        }
        Ok((below, beyond))
    }
}
