//! Ratios of the accesses of layers with interleaved launches, paired by launch: drift of the machine cancels.

use super::record::{Access, Pace, RemoteMemory};
use crate::onesided::data::{OnesidedLaunch, TransferShape};
use crate::pairing::{are_of_one_stratum, ratio_of_pairs};
use crate::record::parameter::Status;
use crate::record::{LayerResult, Ratio};
use crate::show::Bytes;
use crate::stats::median;
use std::collections::BTreeMap;

/// Returns the ratios of every layer to the first one, for each access that both layers have measured.
pub fn ratios(results: &[LayerResult], confidence: f64) -> Vec<Ratio> {
    let mut measured = results.iter().filter_map(|result| Some((result, result.found.memory()?)));
    let Some(below) = measured.next() else { return Vec::new() };
    measured.flat_map(|above| of_layers(above, below, confidence)).collect()
}

/// Returns the name of an access in a ratio.
pub fn parameter(access: Access) -> String {
    format!("{} of {}", access.name(), Bytes(access.size_bytes))
}

type Measured<'a> = (&'a LayerResult, &'a RemoteMemory);

fn of_layers(above: Measured<'_>, below: Measured<'_>, confidence: f64) -> Vec<Ratio> {
    if !are_of_one_stratum(above.0, below.0) {
        return Vec::new();
    }
    let ratio = |access| {
        // A bound has no ratio.
        let is_measured =
            |found: &RemoteMemory| found.time(access).is_some_and(|time| time.status == Status::Measured);
        if !(is_measured(above.1) && is_measured(below.1)) {
            return None;
        }
        let [of_above, of_below] = [above.1, below.1].map(|found| by_launch(found, access));
        let pairs = of_above.iter().filter_map(|(launch, ns)| Some((*ns, *of_below.get(launch)?)));
        ratio_of_pairs(above.0, below.0, &parameter(access), pairs.collect(), confidence)
    };
    above.1.rows().into_iter().filter_map(|(access, _)| ratio(access)).collect()
}

/// Returns the time of an access in each launch, by the launch's index in the order.
fn by_launch(found: &RemoteMemory, access: Access) -> BTreeMap<usize, f64> {
    let launches = found.launches.iter();
    launches.filter_map(|launch| Some((launch.launch, launch_time_ns(launch, access)?))).collect()
}

/// Returns the time of an access in one launch, in nanoseconds.
pub fn launch_time_ns(launch: &OnesidedLaunch, access: Access) -> Option<f64> {
    let mut transfers = launch.shape.transfers.iter().zip(&launch.transfers);
    let is_of =
        |shape: &TransferShape| (shape.operation, shape.size_bytes) == (access.operation, access.size_bytes);
    let (_, data) = transfers.find(|(shape, _)| is_of(shape))?;
    let batches = if access.pace == Pace::Blocking { data.complete_ns() } else { &data.gap_ns };
    (!batches.is_empty()).then(|| median(batches.iter().copied()))
}
