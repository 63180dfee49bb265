//! Warnings about the figures of one-sided operations, because of the layer, the machine or the run.

use super::data::{Level, Operation, Synchronisation};
use super::missing::missing;
use super::record::{Onesided, OperationFigures, far_apart};
use crate::machine::{coarse_for_some, preempted};
use crate::precision::{self, Timed, Wanted};
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameters, Status};
use crate::row::Stream;
use crate::show::Bytes;
use crate::stats::median;

/// Returns the warnings: a figure has another meaning than its name says, or is not precise.
pub(super) fn find(parameters: &Parameters, found: &Onesided, precision: f64) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    for operation in &found.operations {
        doubts.extend(without_local(operation, found.synchronisation));
        doubts.extend(by_own_fence(operation, found.synchronisation));
        doubts.extend(without_delivery(operation, found.level));
        doubts.extend(about_gap(operation, ("gap", "gap")));
        doubts.extend(bent(operation));
        doubts.extend(paced_by_calls(operation));
    }
    doubts.extend(missing(found, Operation::name));
    doubts.extend(about_launches(&times(found), &wanted(parameters, found, precision), found, precision));
    doubts
}

/// Returns the warnings about the clock, the processor and the precision of `times`, of which `wanted` must be precise.
pub(crate) fn about_launches(
    times: &[Timed],
    wanted: &[Wanted],
    found: &Onesided,
    precision: f64,
) -> impl Iterator<Item = Doubt> {
    let launches = &found.launches;
    let coarse = coarse_for_some(times, median_timer(found));
    let preempted = preempted("initiator", launches.iter().map(|l| (l.preemptions, l.took_ns)));
    coarse.into_iter().chain(preempted).chain(precision::doubt(wanted, launches.len(), precision))
}

/// Warns that the synchronisation hides when the initiator's memory is free again.
fn without_local(operation: &OperationFigures, synchronisation: Option<Synchronisation>) -> Option<Doubt> {
    let is_hidden = !operation.operation.shows_local(synchronisation);
    let text = || {
        format!(
            "{}: between fences the initiator learns only by the closing fence that its memory is free again, as that \
             the bytes are at the target, so that no local is given",
            operation.operation.name()
        )
    };
    is_hidden.then(|| Doubt::about("local_hidden", "local", text()).of(operation.operation.name()))
}

/// Warns that the initiator's own fence ends the time until the bytes are at the target.
fn by_own_fence(operation: &OperationFigures, synchronisation: Option<Synchronisation>) -> Option<Doubt> {
    let is_told = operation.operation.fetches() || synchronisation != Some(Synchronisation::Fence);
    let text = || {
        format!(
            "{}: remote is when the initiator's closing fence returns; MPI promises the bytes at the target when the \
             target's own fence returns, which may be later: --sync post waits for the target's reply",
            operation.operation.name()
        )
    };
    (!is_told).then(|| Doubt::about("remote_by_fence", "remote", text()).of(operation.operation.name()))
}

/// Warns that puts which the network loses count as puts that have arrived.
fn without_delivery(operation: &OperationFigures, level: Option<Level>) -> Option<Doubt> {
    let may_be_lost = !operation.operation.fetches() && level == Some(Level::Unreliable);
    let text = || {
        format!(
            "{}: at level unreliable nobody notices what a network loses: remote, gap and G count it as if it had \
             arrived: use --level delivery",
            operation.operation.name()
        )
    };
    may_be_lost.then(|| Doubt::about("remote_unknown", "remote", text()).of(operation.operation.name()))
}

/// Returns the warnings about the gap of an operation. `figure` is its name, and its name in words.
pub(crate) fn about_gap(
    operation: &OperationFigures,
    figure: (&str, &str),
) -> impl Iterator<Item = Doubt> + use<> {
    let subject = operation.operation.name();
    let stream = Stream { subject, things: "operations", figure };
    let sizes = || operation.sizes.iter().map(|size| (size.size_bytes, &size.gap));
    let bound = stream.window_bound(sizes());
    let hidden = stream.hidden("gap_hidden", sizes().map(|(_, gap)| gap));
    bound.into_iter().chain(hidden).map(move |doubt| doubt.of(subject))
}

/// Warns if the gap per byte is not constant at the largest sizes.
fn bent(operation: &OperationFigures) -> Option<Doubt> {
    let places = far_apart(&operation.sizes)?;
    // Another doubt names gaps that are not measured.
    let is_measured = |at: usize| operation.sizes[at].gap.status == Status::Measured;
    let (first, last) = (&operation.sizes[places[0]], &operation.sizes[places[2]]);
    (operation.G.status == Status::Unobservable && places.into_iter().all(is_measured)).then(|| {
        let text = format!(
            "{}: from {} to {} the gap grows unevenly, or hardly at all, so that no G is given: choose another \
             --largest",
            operation.operation.name(),
            Bytes(first.size_bytes),
            Bytes(last.size_bytes)
        );
        Doubt::about("gap_bends", "G", text).of(operation.operation.name())
    })
}

/// Warns that the initiator's processor sets the gap at the largest size, so that G is a bound.
fn paced_by_calls(operation: &OperationFigures) -> Option<Doubt> {
    let is_bound = operation.G.status == Status::UpperBound && operation.G.value_ns_per_byte.is_some();
    let largest = operation.sizes.last().filter(|_| is_bound)?;
    let text = format!(
        "{}: the call that starts an operation of {} takes as long as the gap, so that the initiator's processor \
         moves the data: G is at most what is shown",
        operation.operation.name(),
        Bytes(largest.size_bytes)
    );
    Some(Doubt::about("processor_bound", "G", text).of(operation.operation.name()))
}

pub(crate) fn median_timer(found: &Onesided) -> f64 {
    median(found.launches.iter().map(|launch| launch.timer_ns))
}

/// Returns all figures with a value, with their names.
fn times(found: &Onesided) -> Vec<Timed> {
    let mut times = Vec::new();
    for OperationFigures { operation, sizes, .. } in &found.operations {
        for size in sizes {
            let together = [1.0, 1.0, 1.0, found.row(*operation, size.size_bytes)];
            times.extend(together.into_iter().zip(size.times()).filter_map(|(together, (name, time))| {
                let name = format!("{name} of {} of {}", operation.name(), Bytes(size.size_bytes));
                Timed::of(name, time, together)
            }));
        }
    }
    times
}

/// Returns all figures, which must be precise to a share of themselves.
pub(crate) fn wanted(_parameters: &Parameters, found: &Onesided, precision: f64) -> Vec<Wanted> {
    precision::to_a_share(times(found), precision, median_timer(found))
}
