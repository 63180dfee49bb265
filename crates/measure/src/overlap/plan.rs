//! What a launch is to run.

use super::data::OverlapShape;
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

/// All of them.
pub const METHODS: [Method; 3] = [Method::Polling, Method::Pww, Method::Max];

/// How a launch is to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverlapPlan {
    /// Where in the order of launches it stands.
    pub launch: usize,
    /// Sizes and intervals, where an earlier launch of the run has chosen them.
    pub shape: Option<OverlapShape>,
    /// Sizes of messages for the methods, ascending.
    pub sizes: Vec<usize>,
    /// Messages each way that the polling method keeps under way.
    pub queue: usize,
    /// What is to be measured.
    pub methods: Vec<Method>,
    /// Time for the whole launch, on the layer's clock.
    pub budget_ns: f64,
    /// Share by which a cycle may grow before work in it counts as not free.
    pub precision: f64,
    /// Seed of the order in which everything is run.
    pub seed: u64,
}
