//! The figures computed from several launches. Each is the median of the values of the launches, with its
//! distribution-free interval. The value of a launch is the median of its batches. No figure is clamped.

use super::data::{OnesidedLaunch, TransferData, TransferShape};
use super::doubts;
use super::record::{Onesided, OperationFigures, TransferTimes, far_apart};
use crate::figure::Figure;
use crate::reading::Reading;
use crate::record::parameter::{Parameter, Parameters, PerByte, Status};
use crate::row::{self, Singles};
use crate::stats::{Confidence, median};

/// The gap per byte is constant if it differs by at most this share between the three largest sizes.
const CONSTANT: f64 = 0.25;
/// The gap per byte shows if the last step of sizes makes at least this share of the largest gap. A smaller rise may
/// be chance.
const SHOWS: f64 = 0.1;
/// From this share of the gap on, the call that starts an operation may set the gap.
const CALLS: f64 = 0.9;

/// Computes figures and warnings from launches. Returns `None` if the launches measured nothing, or differ
/// in their shapes.
pub fn extract(
    data: &[OnesidedLaunch],
    confidence: impl Into<Confidence>,
    precision: f64,
) -> Option<Reading<Onesided>> {
    let (parameters, found) = (Parameters::unobservable(), figures(data, confidence)?);
    let doubts = doubts::find(&parameters, &found, precision);
    Some(Reading { parameters, found, doubts })
}

/// Computes the figures alone.
pub(crate) fn figures(data: &[OnesidedLaunch], confidence: impl Into<Confidence>) -> Option<Onesided> {
    let first = data.first().filter(|first| !first.shape.transfers.is_empty())?;
    let shape = &first.shape;
    // A record is a file that others may have written: its launches may differ in their shapes.
    let is_like = |launch: &OnesidedLaunch| {
        launch.level == first.level
            && launch.synchronisation == first.synchronisation
            && launch.memory == first.memory
            && launch.shape == *shape
            && launch.transfers.len() == shape.transfers.len()
    };
    if !data.iter().all(is_like) {
        return None;
    }
    let launches = OnesidedLaunches { data, confidence: confidence.into() };
    let transfers = &shape.transfers;
    let rows: Vec<(usize, &TransferShape)> = transfers.iter().enumerate().collect();
    let operations = rows.chunk_by(|(_, one), (_, other)| one.operation == other.operation);
    Some(Onesided {
        level: first.level,
        synchronisation: first.synchronisation,
        memory: first.memory,
        operations: operations.map(|rows| launches.operation(rows)).collect(),
        launches: data.to_vec(),
    })
}

/// Several launches of the same shape.
struct OnesidedLaunches<'a> {
    data: &'a [OnesidedLaunch],
    confidence: Confidence,
}

impl OnesidedLaunches<'_> {
    /// Returns the figures of an operation. `rows` are its sizes, each with its place in the data.
    fn operation(&self, rows: &[(usize, &TransferShape)]) -> OperationFigures {
        let sizes: Vec<TransferTimes> = rows.iter().map(|&(at, shape)| self.times(at, shape)).collect();
        OperationFigures { operation: rows[0].1.operation, G: self.gap_per_byte(rows, &sizes), sizes }
    }

    fn times(&self, at: usize, shape: &TransferShape) -> TransferTimes {
        let start = self.time(at, shape.singles, |data| &data.start_ns);
        let local = self.time(at, shape.singles, |data| &data.local_ns);
        let remote = self.time(at, shape.singles, |data| &data.remote_ns);
        let gap = self.time(at, shape.row.saturating_mul(3), |data| &data.gap_ns);
        let mut times = TransferTimes { size_bytes: shape.size_bytes, start, local, remote, gap };
        let launches = self.data.iter().map(|launch| launch.transfers[at].complete_ns());
        let singles = Singles::of(times.complete(), launches, shape.singles);
        times.gap = row::judged(times.gap, shape.row, shape.window as f64, singles);
        times
    }

    /// Returns a time from its batches, each of `samples` samples.
    fn time(&self, at: usize, samples: u64, of: impl Fn(&TransferData) -> &Vec<f64>) -> Parameter {
        let batches = self.data.iter().map(|launch| &of(&launch.transfers[at])[..]);
        Figure::of_batches(batches, samples, self.confidence)
    }

    /// Returns the gap per byte between the largest size and one that is far smaller. A third size, smaller
    /// again, tells whether it is constant there.
    fn gap_per_byte(&self, rows: &[(usize, &TransferShape)], sizes: &[TransferTimes]) -> PerByte {
        let Some([small_at, middle_at, large_at]) = far_apart(sizes) else { return PerByte::unobservable() };
        let [small, middle, large] = [small_at, middle_at, large_at].map(|at| rows[at].1);
        let [of_small, of_middle, of_large] = [small_at, middle_at, large_at].map(|at| &sizes[at]);
        let [small_at, middle_at, large_at] = [small_at, middle_at, large_at].map(|at| rows[at].0);
        let gap_ns = |times: &TransferTimes| {
            times.gap.value_ns.filter(|_| times.gap.status == Status::Measured).unwrap_or(f64::NAN)
        };
        let slope = |less_ns: f64, more_ns: f64, less: &TransferShape, more: &TransferShape| {
            (more_ns - less_ns) / (more.size_bytes as f64 - less.size_bytes as f64)
        };
        let before = slope(gap_ns(of_small), gap_ns(of_middle), small, middle);
        let last = slope(gap_ns(of_middle), gap_ns(of_large), middle, large);
        let shows = gap_ns(of_large) - gap_ns(of_middle) >= SHOWS * gap_ns(of_large);
        // A comparison with an unknown slope is false.
        let is_constant = (before - last).abs() <= CONSTANT * last;
        if !(shows && self.is_clear(small_at, middle_at) && is_constant) {
            return PerByte::unobservable();
        }
        let of_launch =
            |launch: &OnesidedLaunch| slope(launch.gap_ns(middle_at), launch.gap_ns(large_at), middle, large);
        let samples: usize = self.data.iter().map(|launch| launch.transfers[large_at].gap_ns.len()).sum();
        let status = if is_paced_by_calls(of_large) { Status::UpperBound } else { Status::Measured };
        Figure::over(self.data.iter().map(of_launch), self.confidence).per_byte(status, samples as u64)
    }

    /// Reports that a gap is longer than another beyond its interval. Otherwise a slope between them is chance, and so is
    /// its likeness to another slope.
    fn is_clear(&self, less: usize, more: usize) -> bool {
        let [less, more] = [less, more].map(|at| {
            Figure::over(self.data.iter().map(|launch| launch.gap_ns(at)), self.confidence.in_the_median()).ci
        });
        less.zip(more).is_none_or(|(less, more)| less.hi < more.lo)
    }
}

impl OnesidedLaunch {
    /// Returns the gap of a transfer in this launch.
    fn gap_ns(&self, at: usize) -> f64 {
        median(self.transfers[at].gap_ns.iter().copied())
    }
}

/// Reports that the calls that start operations take as long as the gap: then the initiator's processor may set
/// the gap, and the layer may be faster.
fn is_paced_by_calls(times: &TransferTimes) -> bool {
    let (start, gap) = (times.start.value_ns, times.gap.value_ns);
    start.zip(gap).is_some_and(|(start_ns, gap_ns)| start_ns >= CALLS * gap_ns)
}
