//! The record of the verb `logp`.

use super::data::LaunchData;
use crate::record::parameter::Parameter;
use crate::record::plateau::Plateau;
use crate::stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the LogP signature finds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Logp {
    /// What set the plateau of the signature, and so what `g` is worth.
    pub plateau: Plateau,
    /// Figures that check the parameters or stand beside them.
    pub checks: Checks,
    /// Where the round trip goes; null where that is not known, or not in a record of its version.
    #[serde(default)]
    pub shares: Option<Shares>,
    /// The data behind all of it.
    pub launches: Vec<LaunchData>,
}

/// Where the round trip 2 (o_s + L + o_r) goes: the parameters as shares of half of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the notation of the LogP papers")]
pub struct Shares {
    /// Issuing.
    pub o_s: Share,
    /// Receiving.
    pub o_r: Share,
    /// On the way.
    pub L: Share,
}

impl Shares {
    /// All of them, by name.
    pub fn all(&self) -> [(&'static str, &Share); 3] {
        [("o_s", &self.o_s), ("o_r", &self.o_r), ("L", &self.L)]
    }
}

/// A share of something.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Median over the launches.
    pub value: f64,
    /// Interval of that median; null with too few launches.
    pub ci: Option<Interval>,
}

/// Figures that check the parameters or stand beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// The first round trip after a pause.
    pub rtt_after_pause: Parameter,
    /// Length of that pause.
    pub pause_ns: f64,
    /// o_r by the second method: stay away for 1.2 round trips, then time the receive.
    pub o_r_away: Parameter,
    /// Slope of the time per message over the delay D; 1 where the method holds, null where
    /// too few delays reached beyond the idle time.
    pub delay_slope: Option<f64>,
    /// Its interval.
    pub delay_slope_ci: Option<Interval>,
    /// Streams that were not used in the fit, as predicted and as measured.
    pub streams: Vec<StreamCheck>,
}

/// A stream of messages, as predicted from the parameters and as measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamCheck {
    /// Messages.
    pub messages: usize,
    /// Delay between two of them.
    pub d_ns: f64,
    /// From the first issue to the last reply, as predicted.
    pub predicted_ns: f64,
    /// The same as measured (median over the launches).
    pub measured_ns: f64,
    /// Interval of what was measured.
    pub ci_ns: Option<Interval>,
}
