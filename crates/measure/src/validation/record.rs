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
    /// The data behind all of it.
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
    /// How it is turned, as on the command line.
    pub setting: String,
    /// What the operation takes on the link as it is: median over the launches.
    pub link_ns: Option<f64>,
    /// What the dial is to add to that, or what the operation is to take where it is a gap.
    pub wanted_ns: f64,
    /// What was observed of that: median over pairs of launches, with the dial and without it.
    pub observed_ns: Option<f64>,
    /// Interval of that.
    pub ci_ns: Option<Interval>,
    /// The difference of the two.
    pub error_ns: Option<f64>,
    /// Whether that is at most 1 % of what was wanted, or 150 ns.
    pub is_met: Option<bool>,
    /// Pairs of launches behind it.
    pub samples: usize,
}

/// A dial and the values that it was turned to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// The dial, as on the command line.
    pub dial: String,
    /// The parameter that it turns: L, o_s, o_r, g_s, g_r, or G' of a whole message.
    pub parameter: String,
    /// Bytes of a message.
    pub size_bytes: usize,
    /// Whether what is wanted is added to what the link has; otherwise the link is set to it.
    pub adds: bool,
    /// The link as it is: medians over the blocks of no dial.
    pub link: Vec<Figure>,
    /// By rising value.
    pub rows: Vec<Row>,
}

/// A figure of one of the parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Which parameter.
    pub name: String,
    /// The median; null where nothing was measured.
    pub value_ns: Option<f64>,
    /// How much more it is than with the link as it is; in a row alone.
    #[serde(default)]
    pub shift_ns: Option<f64>,
    /// Interval of that.
    #[serde(default)]
    pub shift_ci_ns: Option<Interval>,
    /// Whether the model demands that the dial moves it.
    #[serde(default)]
    pub is_demanded: bool,
    /// Whether it stayed where it was, within 2 % or 100 ns; null where it is demanded to move.
    #[serde(default)]
    pub is_steady: Option<bool>,
}

/// One value of a dial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// What was wanted.
    pub wanted_ns: f64,
    /// What was observed: median over the blocks; null where nothing was.
    pub observed_ns: Option<f64>,
    /// Interval of that.
    pub ci_ns: Option<Interval>,
    /// The difference of the two.
    pub error_ns: Option<f64>,
    /// Whether that is at most 1 % of what was wanted, or 150 ns; null where the link itself has
    /// more than was wanted.
    pub is_met: Option<bool>,
    /// Blocks behind it.
    pub samples: usize,
    /// All parameters, as they are with this value.
    pub figures: Vec<Figure>,
}

/// What a dial does to a parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossTalk {
    /// The dial.
    pub dial: String,
    /// The parameter.
    pub parameter: String,
    /// How far the parameter moves for each unit that the dial is turned by.
    pub slope: Option<f64>,
    /// Whether the model demands that it does.
    pub is_demanded: bool,
}
