//! The shares of a layer's round trip, and its ratios to the lean layer on the same path.

use netdyno_measure::record::{LayerResult, Logp, Ratio};
use netdyno_measure::show::{Percent, number, number_and_interval};

/// Returns the ratios of a layer to the lean layer on its path.
pub fn beside<'a>(result: &LayerResult, ratios: &'a [Ratio]) -> Vec<&'a Ratio> {
    let name = result.name();
    ratios.iter().filter(|ratio| ratio.to_reference && ratio.numerator == name).collect()
}

/// Returns the shares of the round trip, as `round trip: o_s 12 % [11, 13], o_r 8 % [7.9, 8.1], L 80 % [79,
/// 81]`.
pub fn shares(logp: &Logp) -> Option<String> {
    let each = logp.shares.as_ref()?.all().map(|(name, share)| {
        let ci = share.ci.map_or(String::new(), |ci| format!(" [{}, {}]", percent(ci.lo), percent(ci.hi)));
        format!("{name} {}{ci}", Percent(share.value))
    });
    Some(format!("round trip: {}", each.join(", ")))
}

/// Returns the ratios in a sentence, as `beside am+shm: rtt 4.51 [4.40, 4.62] times, g 3.02 [2.98, 3.11]
/// times`.
pub fn sentence(ratios: &[&Ratio]) -> Option<String> {
    let first = ratios.first()?;
    let times: Vec<String> = ratios
        .iter()
        .map(|ratio| format!("{} {} times", ratio.parameter, number_and_interval(ratio.value, ratio.ci)))
        .collect();
    Some(format!("beside {}: {}", first.denominator, times.join(", ")))
}

/// Returns a share in percent, without the sign.
fn percent(share: f64) -> String {
    number(100.0 * share)
}
