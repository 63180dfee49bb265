//! The plateau: the steady time per message of a stream without delay, and the term that sets it.

use crate::stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The term that sets the plateau of the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The slowest stage of the layer: the plateau is g.
    Gap,
    /// The requester's processor: g is at most the plateau.
    Processor,
    /// The window: g cannot be seen.
    Window,
    /// Unknown, because no burst was long enough to become steady, or its times
    /// contradict each other. g cannot be seen.
    Unknown,
}

/// The steady state of the signature without delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plateau {
    /// The term that sets it.
    pub limited_by: Limit,
    /// Time per message.
    pub value_ns: f64,
    /// Its interval.
    pub ci_ns: Option<Interval>,
    /// The window: maximum number of requests without a reply.
    pub window: usize,
    /// Time per message with half of that window; null if the window is 1.
    pub half_window_ns: Option<f64>,
    /// Idle time of the requester's processor per message, plateau - o_s - o_r; null
    /// if no delay was longer than it.
    pub idle_ns: Option<f64>,
}
