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
    /// The plateau of the signature, and the term that sets it, which decides the meaning of `g`.
    pub plateau: Plateau,
    /// Figures that check or complete the parameters.
    pub checks: Checks,
    /// The parts of the round trip; null if they are not known, and in records of earlier versions.
    #[serde(default)]
    pub shares: Option<Shares>,
    /// The data of every launch.
    pub launches: Vec<LaunchData>,
}

/// The parameters as shares of the one-way time, half of the round trip 2 (o_s + L + o_r).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the notation of the LogP papers")]
pub struct Shares {
    /// Share of the send overhead.
    pub o_s: Share,
    /// Share of the receive overhead.
    pub o_r: Share,
    /// Share of the latency.
    pub L: Share,
}

impl Shares {
    /// Returns all shares with their names.
    pub fn all(&self) -> [(&'static str, &Share); 3] {
        [("o_s", &self.o_s), ("o_r", &self.o_r), ("L", &self.L)]
    }
}

/// A share, as a fraction of 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Median over the launches.
    pub value: f64,
    /// Interval of that median; null if there are too few launches.
    pub ci: Option<Interval>,
}

/// Figures that check or complete the parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// The first round trip after a pause.
    pub rtt_after_pause: Parameter,
    /// Duration of that pause.
    pub pause_ns: f64,
    /// o_r by the second method: no call for 1.2 round trips, then one timed receive.
    pub o_r_away: Parameter,
    /// Slope of the time per message over the delay D. It is 1 if the method holds, and null if
    /// too few delays were longer than the idle time.
    pub delay_slope: Option<f64>,
    /// Its interval.
    pub delay_slope_ci: Option<Interval>,
    /// Streams that the fit does not use, as predicted and as measured.
    pub streams: Vec<StreamCheck>,
}

/// A stream of messages, as predicted from the parameters and as measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamCheck {
    /// Messages.
    pub messages: usize,
    /// Delay between two messages.
    pub d_ns: f64,
    /// Predicted time from the first issue to the last reply.
    pub predicted_ns: f64,
    /// Measured time: median over the launches.
    pub measured_ns: f64,
    /// Interval of the measured time.
    pub ci_ns: Option<Interval>,
}
