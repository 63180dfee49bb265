//! The host of a run: its system, its processors and its clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The system on which a run took place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Name of the host.
    pub host: String,
    /// Operating system and kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu_model: String,
    /// The processors that this process may use.
    pub cpus_allowed: Vec<usize>,
    /// The number of processors of the machine, whose load `load_1min` is.
    #[serde(default)]
    pub cpus_online: Option<usize>,
    /// True on a virtual machine.
    pub virtualised: bool,
    /// Frequency governor of the first processor used; null if the system shows none.
    pub governor: Option<String>,
    /// The clock of all times.
    pub clock: ClockReading,
    /// Load average over one minute when measuring began.
    pub load_1min: Option<f64>,
    /// Interruptions of a processor that only read its clock.
    pub detours: Option<Detours>,
}

/// The clock of all times, as calibrated in this run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReading {
    /// `tsc`, `cntvct` or `clock_gettime`.
    pub source: String,
    /// Duration of a tick.
    pub tick_ns: f64,
    /// Cost of one reading (median).
    pub cost_ns: f64,
    /// Smallest difference between two consecutive readings that differ.
    pub resolution_ns: f64,
    /// True if the processor reports a clock of constant rate that never stops.
    #[serde(default)]
    pub is_constant: Option<bool>,
}

/// Interruptions of a processor that only read its clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Detours {
    /// Duration of the observation.
    pub observed_ns: f64,
    /// Number of gaps of more than a microsecond between two readings.
    pub count: u64,
    /// Share of the time lost in these gaps.
    pub lost_share: f64,
    /// The longest gap.
    pub longest_ns: f64,
}
