//! Warnings about the figures of accesses, because of the layer, the machine or the run.

use super::record::{Access, Pace, RemoteMemory, operation_name};
use crate::onesided::doubts::{about_gap, about_launches, median_timer};
use crate::onesided::missing::missing;
use crate::precision::{self, Timed, Wanted};
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Parameters};
use crate::show::Bytes;

/// Returns the warnings: a figure has another meaning than its name says, or is not precise.
pub(super) fn find(found: &RemoteMemory, precision: f64) -> Vec<Doubt> {
    let paces = found.operations.iter().flat_map(|operation| {
        let doubts = about_gap(operation, ("pipelined", "pipelined time"));
        doubts.map(|doubt| doubt.of(operation_name(operation.operation)))
    });
    let wanted = wanted(&Parameters::unobservable(), found, precision);
    let missing = missing(found, operation_name);
    paces.chain(missing).chain(about_launches(&times(found), &wanted, found, precision)).collect()
}

/// Returns all figures with a value, with their names.
fn times(found: &RemoteMemory) -> Vec<Timed> {
    let timed = |(access, time): (Access, &Parameter)| {
        let together = match access.pace {
            Pace::Blocking => 1.0,
            Pace::Pipelined => found.row(access.operation, access.size_bytes),
        };
        Timed::of(format!("{} of {}", access.name(), Bytes(access.size_bytes)), time, together)
    };
    found.rows().into_iter().filter_map(timed).collect()
}

/// Returns all figures, which must be precise to a share of themselves.
pub(crate) fn wanted(_parameters: &Parameters, found: &RemoteMemory, precision: f64) -> Vec<Wanted> {
    precision::to_a_share(times(found), precision, median_timer(found))
}
