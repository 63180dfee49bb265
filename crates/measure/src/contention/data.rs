//! The contention measurements of one launch, step by step: the data behind every figure.
//!
//! Every requester measures time on its own clock; no time here is a difference of two clocks. All times
//! exclude the cost of reading the clock.

use super::places::Bisected;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters of the steps, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrowdShape {
    /// The window of a stream: maximum number of requests to one peer without a reply.
    pub window: usize,
    /// Delay after each request of a delayed stream.
    pub delay_ns: f64,
    /// Time after a reply until the layer is quiet; 0 if it is quiet at once.
    pub rest_ns: f64,
}

/// All measurements of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrowdData {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// Processes.
    pub procs: usize,
    /// The parameters of its steps.
    pub shape: CrowdShape,
    /// Round trips by the rank of the requester, then by that of the replier; null on the
    /// diagonal. One pair at a time.
    pub rtt: Vec<Vec<Option<Timed>>>,
    /// The ranks in the order of their places: those of a host together, and within a host ascending
    /// by processor. Empty in records of earlier versions.
    #[serde(default)]
    pub order: Vec<usize>,
    /// What separates the first half of that order from the second.
    #[serde(default)]
    pub bisected_by: Bisected,
    /// Repetitions of all streams, each in a different order.
    pub rounds: Vec<Round>,
    /// Number of times that the system took the processor from a requester, or that other processes kept it
    /// when a requester yielded it, over all processes. Naps for that reason count.
    #[serde(default)]
    pub preemptions: Option<u64>,
    /// The time in which these could happen: the durations of all steps, each times its number of requesters.
    /// 0 in records of earlier versions.
    #[serde(default)]
    pub requesting_ns: f64,
}

/// A mean time over messages.
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
    /// Time per message of ranks 0 and 1 at half of the window.
    pub half_window: Timed,
    /// All pairs at once: requester 2i and replier 2i + 1.
    pub halves: Vec<PairTimes>,
    /// Time per message of rank 0, which sends to all others in turn.
    pub one_to_many: Timed,
    /// For K from 1 on, the times per message of ranks 1 to K, which all send to rank 0.
    pub many_to_one: Vec<Vec<Timed>>,
    /// Times per message of several pairs at once.
    pub pairs: Vec<PairsAtOnce>,
    /// Times per message of the pairs across the bisection, all at once: place i to place i + P/2.
    /// Empty with fewer than 4 processes, and in records of earlier versions.
    #[serde(default)]
    pub across: Vec<Timed>,
    /// Times per message of the pairs of neighbours, all at once: place 0 to 1, 2 to 3.
    #[serde(default)]
    pub neighbours: Vec<Timed>,
}

/// The times of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairTimes {
    /// Single round trips.
    pub rtt: Timed,
    /// o_s: bursts of requests on a quiet layer.
    pub o_s: Timed,
    /// A stream with delays longer than the idle time: time per message minus the delay, which is
    /// o_s + o_r.
    pub busy: Timed,
    /// A stream without delay: time per message.
    pub stream: Timed,
    /// Time per message of that stream in polls that found nothing, each right before a poll that found a reply.
    /// 0 for several pairs at once, and in records of earlier versions.
    #[serde(default)]
    pub polls_ns: f64,
}

/// Streams of several pairs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairsAtOnce {
    /// Number of pairs.
    pub pairs: usize,
    /// Time per message of each pair.
    pub streams: Vec<Timed>,
}
