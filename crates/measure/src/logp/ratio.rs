//! Ratios of layers whose launches were interleaved: paired by launch, so that what
//! drifts with the machine falls out.

use super::extract::each_launch;
use crate::record::{LayerResult, Ratio, Status};
use crate::stats::{median_interval_of_sorted, quantile_of_sorted, sorted};

/// The ratio of every signature to the first one, for each parameter for which every pair of
/// launches has one. Of plateaus that are not both a measured `g` it is called `plateau`.
pub fn ratios(results: &[LayerResult], confidence: f64) -> Vec<Ratio> {
    let mut signatures = results.iter().filter_map(|result| Some((result, result.logp()?)));
    let Some((below, found_below)) = signatures.next() else { return Vec::new() };
    let below_each = each_launch(&found_below.launches);
    let mut ratios = Vec::new();
    for (above, found_above) in signatures {
        let is_measured = |result: &LayerResult| result.parameters.g.status == Status::Measured;
        let last = if is_measured(above) && is_measured(below) { "g" } else { "plateau" };
        let above_each = each_launch(&found_above.launches);
        for (at, parameter) in ["rtt", "o_s", "o_r", last].into_iter().enumerate() {
            let pairs = above_each.iter().zip(&below_each).map(|(above, below)| (above[at], below[at]));
            // Ratios of figures around 0 say nothing, and leaving pairs out would choose.
            if !pairs.clone().all(|(above, below)| above > 0.0 && below > 0.0) {
                continue;
            }
            let values = sorted(pairs.map(|(above, below)| above / below));
            ratios.push(Ratio {
                numerator: above.name(),
                denominator: below.name(),
                parameter: parameter.to_owned(),
                value: quantile_of_sorted(&values, 0.5),
                ci: median_interval_of_sorted(&values, confidence),
                pairs: values.len(),
            });
        }
    }
    ratios
}
