//! The record of the verb `registration`.

use super::data::{COSTS, MemorySystem, RegistrationLaunch};
use crate::record::parameter::Parameter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cost of registering memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// Properties of the system's memory.
    pub system: MemorySystem,
    /// The costs of each size, ascending.
    pub sizes: Vec<SizeCosts>,
    /// Costs that do not depend on the size; empty if the layer has none.
    #[serde(default)]
    pub fixed: Vec<FixedCost>,
    /// The data of every launch.
    pub launches: Vec<RegistrationLaunch>,
}

/// The costs of regions of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeCosts {
    /// Bytes of the region.
    pub size_bytes: usize,
    /// Registering memory that was never touched.
    pub first_touch: Parameter,
    /// Registering touched memory for the first time.
    pub touched: Parameter,
    /// Registering it again after its deregistration.
    pub again: Parameter,
    /// Registering it while it is registered: a hit if the library has a cache.
    pub cached: Parameter,
    /// Deregistering its only registration.
    pub deregister: Parameter,
    /// `mlock` of memory that was never touched.
    pub lock_first_touch: Parameter,
    /// `mlock` of touched memory.
    pub lock: Parameter,
    /// `munlock`.
    pub unlock: Parameter,
}

/// A cost that does not depend on the size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixedCost {
    /// What it is, as in `create VI`.
    pub name: String,
    /// What it costs.
    pub cost: Parameter,
}

impl SizeCosts {
    /// Returns the costs by name, in the order of tables.
    pub fn times(&self) -> [(&'static str, &Parameter); COSTS] {
        [
            ("first_touch", &self.first_touch),
            ("touched", &self.touched),
            ("again", &self.again),
            ("cached", &self.cached),
            ("deregister", &self.deregister),
            ("lock_first_touch", &self.lock_first_touch),
            ("lock", &self.lock),
            ("unlock", &self.unlock),
        ]
    }
}
