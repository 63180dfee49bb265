//! The record of the verb `validate`: a table for each dial, and the effect of each dial on every
//! parameter.

use super::data::Dialled;
use crate::stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found, with the data behind it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// One for each dial, as the paper's tables 1 to 6.
    pub tables: Vec<Table>,
    /// What each dial does to each parameter, for each unit that it is turned by.
    pub cross_talk: Vec<CrossTalk>,
    /// By how much plain MPI programs grow, which know nothing of the dials.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// The data of every launch.
    pub launches: Vec<Dialled>,
}

/// An operation of a plain MPI program under a dial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// The operation: pingpong (half a round trip), exchange, allreduce, barrier or stream (one message
    /// of a one-way flood).
    pub pattern: String,
    /// Bytes of a message.
    pub size_bytes: usize,
    /// The dial, as on the command line.
    pub dial: String,
    /// The dial setting, as on the command line.
    pub setting: String,
    /// Time of the operation on the unmodified link: median over the launches.
    pub link_ns: Option<f64>,
    /// The time that the dial should add; for a gap, the time that the operation should take.
    pub wanted_ns: f64,
    /// The observed value: median over pairs of launches, with the dial and without it.
    pub observed_ns: Option<f64>,
    /// Its interval.
    pub ci_ns: Option<Interval>,
    /// Observed minus wanted value.
    pub error_ns: Option<f64>,
    /// True if the error is at most 1 % of the wanted value, or 150 ns.
    pub is_met: Option<bool>,
    /// Number of pairs of launches.
    pub samples: usize,
}

/// A dial and its values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// The dial, as on the command line.
    pub dial: String,
    /// The parameter that the dial sets: L, o_s, o_r, g_s, g_r, or G' of a whole message.
    pub parameter: String,
    /// Bytes of a message.
    pub size_bytes: usize,
    /// True if the dial adds its value to the link's own; otherwise it sets the link to the value.
    pub adds: bool,
    /// The unmodified link: medians over its blocks.
    pub link: Vec<Figure>,
    /// Ascending by value.
    pub rows: Vec<Row>,
}

/// A figure of one parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Name of the parameter.
    pub name: String,
    /// The median; null if nothing was measured.
    pub value_ns: Option<f64>,
    /// Difference to the unmodified link; only in a row.
    #[serde(default)]
    pub shift_ns: Option<f64>,
    /// Its interval.
    #[serde(default)]
    pub shift_ci_ns: Option<Interval>,
    /// True if the dial should move the parameter by the model.
    #[serde(default)]
    pub is_demanded: bool,
    /// True if the parameter moved by at most 2 % or 100 ns; null if the dial should move it.
    #[serde(default)]
    pub is_steady: Option<bool>,
}

/// One value of a dial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The wanted value.
    pub wanted_ns: f64,
    /// The observed value: median over the blocks; null if there is none.
    pub observed_ns: Option<f64>,
    /// Its interval.
    pub ci_ns: Option<Interval>,
    /// Observed minus wanted value.
    pub error_ns: Option<f64>,
    /// True if the error is at most 1 % of the wanted value, or 150 ns; null if the link itself has
    /// more than the wanted value.
    pub is_met: Option<bool>,
    /// Number of blocks.
    pub samples: usize,
    /// All parameters at this value of the dial.
    pub figures: Vec<Figure>,
}

/// The effect of a dial on a parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossTalk {
    /// The dial.
    pub dial: String,
    /// The parameter.
    pub parameter: String,
    /// Change of the parameter per unit of the dial.
    pub slope: Option<f64>,
    /// True if the dial should move the parameter by the model.
    pub is_demanded: bool,
}
