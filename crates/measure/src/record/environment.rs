//! The host of a run: its system, its processors and its clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a run took place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Name of the host.
    pub host: String,
    /// Operating system and kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu_model: String,
    /// Processors this process may use.
    pub cpus_allowed: Vec<usize>,
    /// Whether a hypervisor is underneath.
    pub virtualised: bool,
    /// Frequency governor of the first processor used, where one can be read.
    pub governor: Option<String>,
    /// The clock that times.
    pub clock: ClockReading,
    /// Load average over one minute when measuring began.
    pub load_1min: Option<f64>,
    /// What interrupted a processor that did nothing else.
    pub detours: Option<Detours>,
}

/// The clock that times, as calibrated in this run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReading {
    /// `tsc`, `cntvct` or `clock_gettime`.
    pub source: String,
    /// Length of a tick.
    pub tick_ns: f64,
    /// Cost of one reading (median).
    pub cost_ns: f64,
    /// Smallest difference seen between two readings that differ.
    pub resolution_ns: f64,
    /// Whether the processor says that it counts at one rate and never stops.
    #[serde(default)]
    pub is_constant: Option<bool>,
}

/// Interruptions of a processor that only read its clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Detours {
    /// How long it read.
    pub observed_ns: f64,
    /// Gaps between two readings of more than a microsecond.
    pub count: u64,
    /// Share of the time lost in them.
    pub lost_share: f64,
    /// The longest of them.
    pub longest_ns: f64,
}
