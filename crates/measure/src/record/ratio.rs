//! The ratio of a parameter of two layers.

use crate::stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A ratio of two layers' parameters, paired by launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The layer above the fraction bar.
    pub numerator: String,
    /// The layer below the fraction bar.
    pub denominator: String,
    /// The parameter: `rtt`, `o_s`, `o_r`; `g` if both are measured, otherwise `plateau`. Of `memory` an access, as in
    /// `read.blocking of 8 B`.
    pub parameter: String,
    /// Median of the ratios of the paired launches.
    pub value: f64,
    /// Its interval.
    pub ci: Option<Interval>,
    /// Number of pairs.
    pub pairs: usize,
    /// True if the denominator is the lean layer on the path of the numerator.
    #[serde(default)]
    pub to_reference: bool,
}
