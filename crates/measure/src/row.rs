//! Rows of operations: the time for each operation of a stream is the rise from one row to one of twice as
//! many.

use crate::layer::LayerError;
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Status};
use crate::show::{counted, sizes_between};
use crate::stats::deviation_of_neighbours;

/// The window may set the pace of a stream if a whole window takes at most this many times the time of a
/// single operation. Operations complete in order, so that those that take longer hold up the others: simulated
/// streams whose times vary by a quarter take 1.6 times as long.
pub(crate) const WINDOW_BOUND: f64 = 2.0;

/// A row shows its pace if a single operation deviates by at most this share of the time that the longer row takes more.
/// The last of twice as many operations ends later, by about half of that deviation, even if the stream had no pace.
const DEVIATION_AT_MOST: f64 = 0.3;

/// Returns the times for each operation of a stream, in nanoseconds. `row_ns` measures a row of as many operations
/// as it is given, up to `N` different events.
pub(crate) fn rise<const N: usize>(
    count: u64,
    mut row_ns: impl FnMut(u64) -> Result<[f64; N], LayerError>,
) -> Result<[f64; N], LayerError> {
    let short_ns = row_ns(count)?;
    let long_ns = row_ns(2 * count)?;
    Ok(std::array::from_fn(|nth| (long_ns[nth] - short_ns[nth]) / count as f64))
}

/// The single operations that a row is compared with.
pub(crate) struct Singles {
    /// The time of a single operation, in nanoseconds.
    pub(crate) time_ns: f64,
    /// Its standard deviation, in nanoseconds.
    pub(crate) deviation_ns: f64,
}

impl Singles {
    /// Returns what the batches of all launches tell, if the time is known. A batch has `per_batch` operations, and a
    /// launch may have only one batch.
    pub(crate) fn of<'a>(
        time: &Parameter,
        launches: impl Iterator<Item = &'a Vec<f64>>,
        per_batch: u64,
    ) -> Option<Self> {
        let batches: Vec<f64> = launches.flatten().copied().collect();
        let deviation_ns = deviation_of_neighbours(&batches) * (per_batch as f64).sqrt();
        Some(Self { time_ns: time.value_ns?, deviation_ns })
    }
}

/// Returns the time for each operation of a stream with its status. The shorter row has `row` operations.
pub(crate) fn judged(mut each: Parameter, row: u64, window: f64, singles: Option<Singles>) -> Parameter {
    let (Some(each_ns), Some(singles)) = (each.value_ns, singles) else { return each };
    // The interval ends at 0 exactly where every launch is positive: such a time is known, but not precisely.
    let is_above_0 = each_ns > 0.0 && each.ci_ns.is_none_or(|ci| ci.lo >= 0.0);
    if !is_above_0 || singles.deviation_ns > DEVIATION_AT_MOST * each_ns * row as f64 {
        return each.without_value();
    }
    if window * each_ns <= WINDOW_BOUND * singles.time_ns {
        each.status = Status::UpperBound;
    }
    each
}

/// The stream of a warning: an operation, the noun for several of them, and the figure with its name in words.
pub(crate) struct Stream<'a> {
    pub(crate) subject: &'a str,
    pub(crate) things: &'a str,
    pub(crate) figure: (&'a str, &'a str),
}

impl Stream<'_> {
    /// Warns if the layer allows too few operations in flight for a stream to show its pace. Each size has its
    /// time for each operation.
    pub(crate) fn window_bound<'p>(
        &self,
        sizes: impl Iterator<Item = (usize, &'p Parameter)>,
    ) -> Option<Doubt> {
        let bound = sizes.filter(|(_, each)| each.status == Status::UpperBound);
        let bound: Vec<usize> = bound.map(|(bytes, _)| bytes).collect();
        let text = format!(
            "{}, {}: the layer has so few {} in flight that a stream waits for their \
             completions, so that the {} is at most what is shown",
            self.subject,
            sizes_between(&bound)?,
            self.things,
            self.figure.1
        );
        Some(Doubt::about("window_bound", self.figure.0, text))
    }

    /// Warns if rows of operations do not show their pace; `name` is the name of the warning.
    pub(crate) fn hidden<'p>(&self, name: &str, each: impl Iterator<Item = &'p Parameter>) -> Option<Doubt> {
        let hidden = each.filter(|each| each.value_ns.is_none()).count();
        (hidden > 0).then(|| {
            let text = format!(
                "{}: at {} a single one varies too much for a row of {} to show its pace, so that no {} is given",
                self.subject,
                counted(hidden, "size", "sizes"),
                self.things,
                self.figure.1
            );
            Doubt::about(name, self.figure.0, text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    /// An interval ends at 0 exactly where every launch has a positive time, which is then known.
    #[test]
    fn a_wide_interval_hides_no_time() {
        let judged_with = |lo: f64| {
            let ci_ns = Some(Interval { lo, hi: 200.0 });
            let status = Status::Measured;
            let each = Parameter { status, value_ns: Some(80.0), ci_ns, ..Parameter::unobservable() };
            judged(each, 1000, f64::INFINITY, Some(Singles { time_ns: 100.0, deviation_ns: 1.0 })).status
        };
        assert_eq!((judged_with(40.0), judged_with(0.0)), (Status::Measured, Status::Measured));
        assert_eq!(judged_with(-1.0), Status::Unobservable);
    }
}
