//! The plan of a launch and its measurements, block by block.

use crate::logp::pattern::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of the signature of a block. They are below the usual ones, because a launch measures many
/// signatures.
const LONGEST_BURST: usize = 128;
const BATCH_MESSAGES: usize = 64;

/// The plan of one launch, which measures one dial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DialledPlan {
    /// The index in the order of launches.
    pub launch: usize,
    /// The index of the dial in the tables.
    pub dial: usize,
    /// Bytes of a message.
    pub size_bytes: usize,
    /// The blocks in their order. Each has the index of the dial setting in force, and the value of the
    /// dial: 0 for the unmodified link.
    pub blocks: Vec<(u32, f64)>,
    /// Maximum time for measuring a block, in nanoseconds.
    pub block_budget_ns: f64,
    /// Relative half-width of an interval at which a figure counts as precise.
    pub precision: f64,
    /// Confidence level of that interval.
    pub confidence: f64,
    /// Seed of the random choices.
    pub seed: u64,
}

impl DialledPlan {
    /// Returns the plan of the signature of the block at index `nth`.
    pub fn of_block(&self, nth: usize) -> Plan {
        Plan {
            launch: self.launch,
            shape: None,
            budget_ns: self.block_budget_ns,
            precision: self.precision,
            confidence: self.confidence,
            seed: self.seed.wrapping_add(nth as u64),
            longest_burst: LONGEST_BURST,
            batch_messages: BATCH_MESSAGES,
        }
    }
}

/// The data of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dialled {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// Index of the dial in the tables.
    pub dial: usize,
    /// The blocks, in their order.
    pub blocks: Vec<Block>,
    /// Number of times that the system took the processor from the requester without a yield of its
    /// own.
    pub preemptions: Option<u64>,
}

/// The figures of one signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the notation of the LogP papers")]
pub struct Block {
    /// Value of the dial; 0 for the unmodified link.
    pub wanted_ns: f64,
    /// Round trip. This and the following fields are null if the signature did not show them.
    pub rtt_ns: Option<f64>,
    /// Send overhead.
    pub o_s_ns: Option<f64>,
    /// Receive overhead.
    pub o_r_ns: Option<f64>,
    /// The plateau of the signature: g, or the term that hides it.
    pub g_ns: Option<f64>,
    /// Half of the round trip minus the overheads.
    pub L_ns: Option<f64>,
    /// Duration of the block.
    pub took_ns: f64,
}

impl Block {
    /// Returns the figures in the order of [`NAMES`]; `NaN` for a missing one.
    pub fn figures(&self) -> [f64; 5] {
        [self.o_s_ns, self.o_r_ns, self.g_ns, self.L_ns, self.rtt_ns].map(|ns| ns.unwrap_or(f64::NAN))
    }
}

/// The names of the figures of a block.
pub const NAMES: [&str; 5] = ["o_s", "o_r", "g", "L", "rtt"];
