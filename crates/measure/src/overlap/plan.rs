//! The plan of one launch, and the methods.

use super::data::{OverlapShape, ProgressBy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way to measure overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Compute, test, answer what has arrived (section 2.1 of the paper).
    Polling,
    /// Post, compute without a call, wait (section 2.2).
    Pww,
    /// The most work that goes behind a message for free.
    Max,
}

/// All methods.
pub const METHODS: [Method; 3] = [Method::Polling, Method::Pww, Method::Max];

/// The plan of one launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverlapPlan {
    /// The index in the order of launches.
    pub launch: usize,
    /// Sizes and intervals, if an earlier launch of the run chose them.
    pub shape: Option<OverlapShape>,
    /// Sizes of messages for the methods, ascending.
    pub sizes: Vec<usize>,
    /// Number of messages that the polling method keeps under way in each direction.
    pub queue: usize,
    /// Number of messages that a cycle of post-work-wait posts in each direction.
    pub batch: usize,
    /// Where messages make progress.
    pub progress_by: ProgressBy,
    /// The methods to run.
    pub methods: Vec<Method>,
    /// Time for the whole launch, on the layer's clock.
    pub budget_ns: f64,
    /// The share by which a cycle may grow before its work counts as not free.
    pub precision: f64,
    /// Seed of the order of all measurements.
    pub seed: u64,
}
