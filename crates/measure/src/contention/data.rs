//! The contention measurements of one launch, step by step: the data behind every figure.
//!
//! Every requester measures time on its own clock; no time here is a difference of two clocks. All times
//! exclude the cost of reading the clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the steps of a run are made, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrowdShape {
    /// Requests to one peer that a stream may have without a reply.
    pub window: usize,
    /// Delay after each request of a delayed stream.
    pub delay_ns: f64,
    /// What must pass after a reply until the layer is quiet; 0 where nothing must.
    pub rest_ns: f64,
}

/// Everything that one launch measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrowdData {
    /// Where in the order of launches it stood.
    pub launch: usize,
    /// Processes.
    pub procs: usize,
    /// How its steps were made.
    pub shape: CrowdShape,
    /// Round trips by the rank of the requester, then by that of the replier; null on the
    /// diagonal. One pair at a time.
    pub rtt: Vec<Vec<Option<Timed>>>,
    /// Repetitions of all streams, each in another order.
    pub rounds: Vec<Round>,
    /// Times that the system took the processor from a requester, over all processes, or that
    /// others kept it when it was offered to them, naps because of that among them.
    #[serde(default)]
    pub preemptions: Option<u64>,
}

/// A time and how many messages it is the mean of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timed {
    /// The time.
    pub ns: f64,
    /// Messages.
    pub samples: u64,
}

/// One repetition of all streams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Ranks 0 and 1 alone.
    pub alone: PairTimes,
    /// Their time per message with half of the window.
    pub half_window: Timed,
    /// All pairs at once: requester 2i and replier 2i + 1.
    pub halves: Vec<PairTimes>,
    /// Time per message of rank 0, which sends to all others in turn.
    pub one_to_many: Timed,
    /// For K from 1 on, the times per message of ranks 1 to K, which all send to rank 0.
    pub many_to_one: Vec<Vec<Timed>>,
    /// Times per message of several pairs at once.
    pub pairs: Vec<PairsAtOnce>,
}

/// The times of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairTimes {
    /// Single round trips.
    pub rtt: Timed,
    /// Bursts of requests alone, from quiet: o_s.
    pub o_s: Timed,
    /// A stream with delays beyond the idle time: time per message less the delay, which is
    /// o_s + o_r.
    pub busy: Timed,
    /// A stream without delay: time per message.
    pub stream: Timed,
}

/// Streams of several pairs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairsAtOnce {
    /// How many pairs.
    pub pairs: usize,
    /// Time per message of each.
    pub streams: Vec<Timed>,
}
