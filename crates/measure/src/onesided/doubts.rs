//! Warnings about the figures of one-sided operations, because of the layer, the machine or the run.

use super::record::{Onesided, OperationFigures, TransferTimes, far_apart};
use crate::machine::{coarse_for_some, preempted};
use crate::precision::{self, Wanted};
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Parameters, Status};
use crate::show::{Bytes, counted};
use crate::stats::median;

/// Returns the warnings: a figure has another meaning than its name says, or is not precise.
pub(super) fn find(parameters: &Parameters, found: &Onesided, precision: f64) -> Vec<Doubt> {
    let launches = &found.launches;
    let mut doubts = Vec::new();
    for operation in &found.operations {
        doubts.extend(window_bound(operation));
        doubts.extend(hidden(operation));
        doubts.extend(bent(operation));
    }
    doubts.extend(coarse_for_some(&times(found), median_timer(found)));
    doubts.extend(preempted("initiator", launches.iter().map(|l| (l.preemptions, l.took_ns))));
    doubts.extend(precision::doubt(&wanted(parameters, found, precision), launches.len(), precision));
    doubts
}

/// Warns if the layer allows too few operations in flight for a stream to show its gap.
fn window_bound(operation: &OperationFigures) -> Option<Doubt> {
    let is_bound = |size: &&TransferTimes| size.gap.status == Status::UpperBound;
    let bound: Vec<&TransferTimes> = operation.sizes.iter().filter(is_bound).collect();
    let (first, last) = (bound.first()?, bound.last()?);
    let text = format!(
        "{}, {} from {} to {}: the layer has so few operations in flight that a stream waits for their \
         completions, so that the gap is at most what is shown",
        operation.operation.name(),
        counted(bound.len(), "size", "sizes"),
        Bytes(first.size_bytes),
        Bytes(last.size_bytes)
    );
    Some(Doubt::about("window_bound", "gap", text))
}

/// Warns if rows of operations do not show the gap.
fn hidden(operation: &OperationFigures) -> Option<Doubt> {
    let hidden = operation.sizes.iter().filter(|size| size.gap.value_ns.is_none()).count();
    (hidden > 0).then(|| {
        let text = format!(
            "{}: at {} a single operation varies by more than a row of operations takes, so that no gap is given",
            operation.operation.name(),
            counted(hidden, "size", "sizes")
        );
        Doubt::about("gap_hidden", "gap", text)
    })
}

/// Warns if the gap per byte is not constant at the largest sizes.
fn bent(operation: &OperationFigures) -> Option<Doubt> {
    let [first, _, last] = far_apart(&operation.sizes)?;
    let is_known = |size: &TransferTimes| size.gap.value_ns.is_some();
    let (first, last) = (&operation.sizes[first], &operation.sizes[last]);
    (operation.G.status == Status::Unobservable && operation.sizes.iter().all(is_known)).then(|| {
        let text = format!(
            "{}: from {} to {} the gap grows unevenly, or hardly at all, so that no G is given: choose another \
             --largest",
            operation.operation.name(),
            Bytes(first.size_bytes),
            Bytes(last.size_bytes)
        );
        Doubt::about("gap_bends", "G", text)
    })
}

fn median_timer(found: &Onesided) -> f64 {
    median(found.launches.iter().map(|launch| launch.timer_ns))
}

/// Returns all figures with a value, with their names.
fn times(found: &Onesided) -> Vec<(String, &Parameter)> {
    let of_size = |operation: &'static str, size| {
        TransferTimes::times(size)
            .map(|(name, time)| (format!("{name} of {operation} of {}", Bytes(size.size_bytes)), time))
    };
    let operations = found.operations.iter();
    let all =
        operations.flat_map(|one| one.sizes.iter().flat_map(|size| of_size(one.operation.name(), size)));
    all.filter(|(_, time)| time.value_ns.is_some()).collect()
}

/// Returns all figures, which must be precise to a share of themselves.
pub(crate) fn wanted(_parameters: &Parameters, found: &Onesided, precision: f64) -> Vec<Wanted> {
    precision::to_a_share(times(found), precision, median_timer(found))
}
