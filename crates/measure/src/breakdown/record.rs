//! The record of the verb `breakdown`.

use super::anatomy::Table;
use super::data::BreakdownLaunch;
use crate::overlap::record::Quantity;
use crate::record::parameter::Parameter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the nanoseconds of a message go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Breakdown {
    /// The operations, by table.
    pub operations: Vec<OperationCosts>,
    /// The data of every launch.
    pub launches: Vec<BreakdownLaunch>,
}

/// An operation and its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationCosts {
    /// The table in which it stands.
    pub table: Table,
    /// What it does, as in `send request`.
    pub name: String,
    /// The operation as a whole.
    pub whole: Parameter,
    /// Its steps, in the order in which they are made.
    pub steps: Vec<StepCost>,
    /// The part of the whole that no step explains. Negative where the steps take longer by themselves than within the
    /// operation.
    pub unexplained: Parameter,
    /// That part as a share of the whole.
    pub unexplained_share: Quantity,
}

/// A step of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepCost {
    /// What it does, as in `checksum`.
    pub name: String,
    /// What it costs.
    pub cost: Parameter,
}
