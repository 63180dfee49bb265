//! The breakdown of one launch: the data behind every figure.
//!
//! Every time is in nanoseconds for one operation, without the cost of reading the clock. The value of a batch is the
//! mean of the middle 80 % of its samples.

use super::anatomy::{Anatomy, Run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is measured, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakdownShape {
    /// The runs of the layer, and the operations that follow from them.
    pub anatomy: Anatomy,
    /// The number of operations in each run.
    pub counts: Vec<u64>,
}

impl BreakdownShape {
    /// Returns the number of operations in a run of each probe.
    pub(super) fn counts_by_probe(&self) -> Vec<u64> {
        let of_run = |(run, count): (&Run, &u64)| vec![*count; run.probes.len()];
        self.anatomy.runs.iter().zip(&self.counts).flat_map(of_run).collect()
    }
}

/// All measurements of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakdownLaunch {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// What is measured.
    pub shape: BreakdownShape,
    /// Cost of one reading of the clock.
    pub timer_ns: f64,
    /// The values of the batches of each probe.
    pub probes_ns: Vec<Vec<f64>>,
    /// Duration of the measurement.
    pub took_ns: f64,
    /// Number of times that the system took the processor from the process, or that other processes kept it
    /// when the process yielded it. Naps for that reason count.
    pub preemptions: Option<u64>,
}
