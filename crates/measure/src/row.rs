//! Rows of operations: the time for each operation of a stream is the rise from one row to one of twice as
//! many.

use crate::layer::LayerError;
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Status};
use crate::show::{counted, sizes_between};

/// The window may set the pace of a stream if a whole window takes at most this many times the time of a
/// single operation. Operations complete in order, so that those that take longer hold up the others: simulated
/// streams whose times vary by a quarter take 1.6 times as long.
pub(crate) const WINDOW_BOUND: f64 = 2.0;

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

/// Returns the time for each operation of a stream with its status. `single_ns` is the time of a single operation.
pub(crate) fn judged(mut each: Parameter, window: f64, single_ns: Option<f64>) -> Parameter {
    let (Some(each_ns), Some(single_ns)) = (each.value_ns, single_ns) else { return each };
    if each_ns <= 0.0 || each.ci_ns.is_some_and(|ci| ci.lo <= 0.0) {
        // A single operation varies by more than the row is long.
        return each.without_value();
    }
    if window * each_ns <= WINDOW_BOUND * single_ns {
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
                "{}: at {} a single one varies by more than a row of {} takes, so that no {} is given",
                self.subject,
                counted(hidden, "size", "sizes"),
                self.things,
                self.figure.1
            );
            Doubt::about(name, self.figure.0, text)
        })
    }
}
