//! The record of the verb `registration`.

use super::data::{COSTS, MemorySystem, RegistrationLaunch};
use crate::record::parameter::Parameter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What it costs to have a layer know memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// What the system says about memory.
    pub system: MemorySystem,
    /// The costs of each size, ascending.
    pub sizes: Vec<SizeCosts>,
    /// What costs the same whatever the size; empty where the layer has nothing of the kind.
    #[serde(default)]
    pub fixed: Vec<FixedCost>,
    /// The data behind all of it.
    pub launches: Vec<RegistrationLaunch>,
}

/// What becomes of a region of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeCosts {
    /// Bytes of the region.
    pub size_bytes: usize,
    /// Registering memory that nothing has touched.
    pub first_touch: Parameter,
    /// Registering memory that was touched, for the first time.
    pub touched: Parameter,
    /// Registering it once more after it has been deregistered.
    pub again: Parameter,
    /// Registering it while it is registered: a hit, where the library has a cache.
    pub cached: Parameter,
    /// Taking its only registration back.
    pub deregister: Parameter,
    /// `mlock` of memory that nothing has touched.
    pub lock_first_touch: Parameter,
    /// `mlock` of memory that was touched.
    pub lock: Parameter,
    /// `munlock`.
    pub unlock: Parameter,
}

/// What costs the same whatever the size.
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
