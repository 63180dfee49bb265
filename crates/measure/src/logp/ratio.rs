//! Ratios of layers whose launches were interleaved: paired by launch, so that what
//! drifts with the machine falls out.

use super::data::LaunchData;
use super::extract::{Extracted, extract};
use crate::record::Ratio;
use crate::stats::{median_interval_of_sorted, quantile_of_sorted, sorted};

/// The ratio of every layer to the first one, for each parameter that both have.
pub fn ratios(layers: &[(&str, &[LaunchData])], confidence: f64) -> Vec<Ratio> {
    let Some(((denominator, below), others)) = layers.split_first() else { return Vec::new() };
    let below = each_launch(below, confidence);
    others
        .iter()
        .flat_map(|(numerator, above)| {
            let pairs: Vec<_> = each_launch(above, confidence).into_iter().zip(&below).collect();
            ["rtt", "o_s", "o_r", "g"]
                .into_iter()
                .filter_map(move |parameter| {
                    let values = sorted(pairs.iter().filter_map(|(above, below)| {
                        Some(value(above, parameter)? / value(below, parameter)?)
                    }));
                    (!values.is_empty()).then(|| Ratio {
                        numerator: (*numerator).to_owned(),
                        denominator: (*denominator).to_owned(),
                        parameter: parameter.to_owned(),
                        value: quantile_of_sorted(&values, 0.5),
                        ci: median_interval_of_sorted(&values, confidence),
                        pairs: values.len(),
                    })
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

fn each_launch(launches: &[LaunchData], confidence: f64) -> Vec<Extracted> {
    launches.iter().filter_map(|launch| extract(std::slice::from_ref(launch), confidence, 1.0)).collect()
}

fn value(extracted: &Extracted, parameter: &str) -> Option<f64> {
    let (_, found) = extracted.parameters.times().into_iter().find(|(name, _)| *name == parameter)?;
    found.value_ns.filter(|value| *value > 0.0)
}
