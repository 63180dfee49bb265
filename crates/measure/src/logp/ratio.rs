//! Ratios of layers with interleaved launches, paired by launch: drift of the machine cancels.

use super::data::LaunchData;
use super::extract::each_launch;
use crate::pairing::{are_of_one_stratum, ratio_of_pairs};
use crate::record::parameter::Status;
use crate::record::{LayerResult, Ratio};
use std::collections::BTreeMap;

/// Returns the ratios of every signature to the first one, for each parameter that both launches of every
/// pair have. The ratio of plateaus is called `plateau` unless both are a measured `g`.
pub fn ratios(results: &[LayerResult], confidence: f64) -> Vec<Ratio> {
    let mut signatures = results.iter().filter(|result| result.found.logp().is_some());
    let Some(below) = signatures.next() else { return Vec::new() };
    signatures.flat_map(|above| ratio(above, below, confidence)).collect()
}

/// Returns the ratios of one signature to another one of the same interleaved run. Returns none if their
/// launches are of different strata.
pub fn ratio(above: &LayerResult, below: &LayerResult, confidence: f64) -> Vec<Ratio> {
    let (Some(found_above), Some(found_below)) = (above.found.logp(), below.found.logp()) else {
        return Vec::new();
    };
    if !are_of_one_stratum(above, below) {
        return Vec::new();
    }
    let [above_each, below_each] = [found_above, found_below].map(|found| by_launch(&found.launches));
    let is_measured = |result: &LayerResult| result.parameters.g.status == Status::Measured;
    let last = if is_measured(above) && is_measured(below) { "g" } else { "plateau" };
    let mut ratios = Vec::new();
    for (at, parameter) in ["rtt", "o_s", "o_r", last].into_iter().enumerate() {
        let pair = |(launch, above): (&usize, &[f64; 4])| Some((above[at], below_each.get(launch)?[at]));
        let pairs = above_each.iter().filter_map(pair).collect();
        ratios.extend(ratio_of_pairs(above, below, parameter, pairs, confidence));
    }
    ratios
}

/// Returns the figures of each launch, by its index in the order.
fn by_launch(launches: &[LaunchData]) -> BTreeMap<usize, [f64; 4]> {
    launches.iter().map(|launch| launch.launch).zip(each_launch(launches)).collect()
}
