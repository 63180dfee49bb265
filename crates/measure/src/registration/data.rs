//! The registration measurements of one launch: the data behind every figure.
//!
//! Every time is in nanoseconds, without the cost of reading the clock. The value of a batch is the mean of
//! the middle 80 % of its samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sizes of a run and their measurement, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegistrationShape {
    /// Ascending by size.
    pub sizes: Vec<RegionShape>,
}

/// The measurement of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionShape {
    /// Bytes of the region.
    pub size_bytes: usize,
    /// Samples in a batch, each of memory of its own.
    pub samples: u64,
}

/// Properties of the system's memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySystem {
    /// Bytes of a page.
    pub page_bytes: usize,
    /// The most bytes that a process may lock (`RLIMIT_MEMLOCK`); null where there is no limit.
    pub lock_limit_bytes: Option<u64>,
    /// Where transparent huge pages are used: `always`, `madvise` or `never`; null where that is not
    /// known.
    pub huge_pages: Option<String>,
}

/// All measurements of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegistrationLaunch {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// The steps of the measurement.
    pub shape: RegistrationShape,
    /// What the system said about memory.
    pub system: MemorySystem,
    /// Cost of one reading of the clock.
    pub timer_ns: f64,
    /// One entry per size, ascending.
    pub sizes: Vec<RegionData>,
    /// A cost that does not depend on the size.
    pub fixed: Vec<FixedData>,
    /// Duration of the measurement.
    pub took_ns: f64,
    /// Times that the system took the processor from the process, or that others kept it when it was
    /// when the requester yielded it. Naps for that reason count.
    pub preemptions: Option<u64>,
}

/// Regions of one size: values of batches. Those of locking are empty where the system refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionData {
    /// Bytes of the region.
    pub size_bytes: usize,
    /// Registering memory that nothing had touched.
    pub first_touch_ns: Vec<f64>,
    /// Registering touched memory for the first time.
    pub touched_ns: Vec<f64>,
    /// Registering it while it is registered.
    pub cached_ns: Vec<f64>,
    /// Deregistering its only registration.
    pub deregister_ns: Vec<f64>,
    /// Registering it once more after that.
    pub again_ns: Vec<f64>,
    /// Locking memory that nothing had touched.
    pub lock_first_touch_ns: Vec<f64>,
    /// Locking memory that was touched.
    pub lock_ns: Vec<f64>,
    /// Unlocking it.
    pub unlock_ns: Vec<f64>,
}

/// A cost that does not depend on the size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixedData {
    /// What it is, as in `create VI`.
    pub name: String,
    /// Value of each batch.
    pub batches_ns: Vec<f64>,
    /// Samples in a batch.
    pub samples: u64,
}

/// The number of costs of one size in the record.
pub const COSTS: usize = 8;

impl RegionData {
    /// Returns the batches of each cost, in the order of [`super::record::SizeCosts::times`].
    pub fn batches(&self) -> [&[f64]; COSTS] {
        [
            &self.first_touch_ns,
            &self.touched_ns,
            &self.again_ns,
            &self.cached_ns,
            &self.deregister_ns,
            &self.lock_first_touch_ns,
            &self.lock_ns,
            &self.unlock_ns,
        ]
    }
}
