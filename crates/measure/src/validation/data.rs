//! What a launch runs, and what it measured, block by block.

use crate::logp::data::LaunchData;
use crate::logp::extract::each_launch;
use crate::logp::pattern::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One launch, of one dial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Planned {
    /// Which dial: its place in the tables.
    pub dial: usize,
    /// Bytes of a message.
    pub size_bytes: usize,
    /// What is put in force before each block, and how far the dial is turned then: 0 for the link
    /// as it is.
    pub blocks: Vec<(u32, f64)>,
    /// How each block is measured.
    pub plan: Plan,
}

/// What a launch measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dialled {
    /// Where in the order of launches it stood.
    pub launch: usize,
    /// Which dial: its place in the tables.
    pub dial: usize,
    /// The blocks, in their order.
    pub blocks: Vec<Block>,
    /// Times that the system took the processor from the requester, where it did not give it away
    /// itself.
    pub preemptions: Option<u64>,
}

/// What was read off one signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the names of the field")]
pub struct Block {
    /// How far the dial was turned; 0 for the link as it is.
    pub wanted_ns: f64,
    /// Round trip. This and what follows is null where the signature did not show it.
    pub rtt_ns: Option<f64>,
    /// Send overhead.
    pub o_s_ns: Option<f64>,
    /// Receive overhead.
    pub o_r_ns: Option<f64>,
    /// The plateau of the signature: g, or what hides it.
    pub g_ns: Option<f64>,
    /// Half of the round trip less the overheads.
    pub L_ns: Option<f64>,
    /// How long the block measured.
    pub took_ns: f64,
}

impl Block {
    /// Reads a signature.
    pub fn of(data: &LaunchData, wanted_ns: f64) -> Self {
        let [rtt, o_s, o_r, g] =
            each_launch(std::slice::from_ref(data)).first().copied().unwrap_or([f64::NAN; 4]);
        let seen = |ns: f64| ns.is_finite().then_some(ns);
        Self {
            wanted_ns,
            rtt_ns: seen(rtt),
            o_s_ns: seen(o_s),
            o_r_ns: seen(o_r),
            g_ns: seen(g),
            L_ns: seen(rtt / 2.0 - o_s - o_r),
            took_ns: data.took_ns,
        }
    }

    /// Its figures, in the order of [`NAMES`]; `NaN` where there is none.
    pub fn figures(&self) -> [f64; 5] {
        [self.o_s_ns, self.o_r_ns, self.g_ns, self.L_ns, self.rtt_ns].map(|ns| ns.unwrap_or(f64::NAN))
    }
}

/// What the figures of a block are called.
pub const NAMES: [&str; 5] = ["o_s", "o_r", "g", "L", "rtt"];
