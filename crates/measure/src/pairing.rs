//! The ratio of a figure of two layers with interleaved launches, paired by launch.

use crate::figure::Figure;
use crate::record::{LayerResult, Ratio};
use crate::strata::MOVED;

/// Reports whether the figures of two results are of launches whose processors were equally far apart. Launches of
/// different strata differ in more than the layer. Launches with moved processors have no distance.
pub(crate) fn are_of_one_stratum(above: &LayerResult, below: &LayerResult) -> bool {
    let [above, below] = [above, below].map(|result| result.headline().map(|stratum| stratum.name.as_str()));
    above == below && above != Some(MOVED)
}

/// Returns the ratio of a parameter from its values in each pair of launches. Returns `None` without a pair, or if a
/// value is not above 0.
pub(crate) fn ratio_of_pairs(
    above: &LayerResult,
    below: &LayerResult,
    parameter: &str,
    pairs: Vec<(f64, f64)>,
    confidence: f64,
) -> Option<Ratio> {
    // Ratios of figures near 0 mean nothing, and omitting single pairs would select by the outcome.
    let are_positive = pairs.iter().all(|&(above, below)| above > 0.0 && below > 0.0);
    if pairs.is_empty() || !are_positive {
        return None;
    }
    let ratio = Figure::over(pairs.into_iter().map(|(above, below)| above / below), confidence);
    Some(Ratio {
        numerator: above.name(),
        denominator: below.name(),
        parameter: parameter.to_owned(),
        value: ratio.value,
        ci: ratio.ci,
        pairs: ratio.launches,
        to_reference: false,
    })
}
