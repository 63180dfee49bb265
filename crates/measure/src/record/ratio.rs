//! The ratio of a parameter of two layers.

use crate::stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A ratio of two layers' parameters, paired by launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Layer above the line.
    pub numerator: String,
    /// Layer below the line.
    pub denominator: String,
    /// What is compared: `rtt`, `o_s`, `o_r`; `g` where both are measured, else `plateau`.
    pub parameter: String,
    /// Median of the ratios of paired launches.
    pub value: f64,
    /// Its interval.
    pub ci: Option<Interval>,
    /// Pairs behind it.
    pub pairs: usize,
    /// Whether the layer below the line is the lean layer on the path that the one above takes.
    #[serde(default)]
    pub to_reference: bool,
}
