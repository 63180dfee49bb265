//! The overlap measurements of one launch: the data behind every figure.
//!
//! Every time is in nanoseconds, without the cost of reading the clock. Batches are means over several
//! samples, so that a disturbance affects one batch of many.

use crate::logp::data::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is measured and in which steps, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapShape {
    /// Messages each way that the polling method keeps under way.
    pub queue: usize,
    /// Sizes of round trips and rows, ascending.
    pub trips: Vec<TripShape>,
    /// Sizes of the methods, ascending.
    pub sizes: Vec<OverlapSizeShape>,
}

/// How round trips and rows of one size are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TripShape {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Round trips in a batch.
    pub trips: usize,
    /// Messages in the shorter of two rows; the longer one has twice as many.
    pub row: usize,
    /// What must pass after a round trip until the layer is quiet; 0 where nothing must.
    #[serde(default)]
    pub rest_ns: f64,
}

/// The intervals of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapSizeShape {
    /// Bytes of the message, both ways.
    pub size_bytes: usize,
    /// Of the polling method, ascending.
    pub polling: Vec<WorkInterval>,
    /// Of post-work-wait, ascending, the first without work.
    pub pww: Vec<WorkInterval>,
    /// Cycles in a batch where the most work that is free is searched; 0 where it is not.
    pub knee_cycles: u32,
    /// How the receive by itself is timed: the work between two tests, and how many messages a batch
    /// has; none in records of versions that did not time it.
    #[serde(default)]
    pub receive: WorkInterval,
}

/// An amount of work between two calls, or two rows of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkInterval {
    /// What the work is to take.
    pub asked_ns: f64,
    /// How often it is done in a batch.
    pub repeats: u32,
}

/// Everything that one launch measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapLaunch {
    /// Where in the order of launches it stood.
    pub launch: usize,
    /// What was measured.
    pub shape: OverlapShape,
    /// Cost of one reading of the clock.
    pub timer_ns: f64,
    /// Work without messages: asked for, and taken.
    pub work: Vec<WorkCheck>,
    /// Round trips and rows, ascending by size.
    pub trips: Vec<TripData>,
    /// The methods, ascending by size.
    pub sizes: Vec<OverlapSizeData>,
    /// How long the launch measured.
    pub took_ns: f64,
    /// Times that the system took the processor from the worker, or that others kept it when it was
    /// offered to them, naps because of that among them.
    pub preemptions: Option<u64>,
    /// What happened on the worker's side of the way, where the layer keeps count.
    #[serde(default)]
    pub transport: Option<Transport>,
}

/// An amount of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkCheck {
    /// What it was to take.
    pub asked_ns: f64,
    /// What it took, without messages.
    pub took_ns: f64,
}

/// Round trips and rows of messages of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TripData {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Half of a round trip of that size both ways: value of each batch, the mean of the middle
    /// 80 %.
    pub half_rtt_ns: Vec<f64>,
    /// How many round trips are behind them.
    pub samples: u64,
    /// Time per message of a row one way: the rise from the shorter to the longer, of each batch.
    pub per_message_ns: Vec<f64>,
}

/// What the methods measured with messages of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapSizeData {
    /// Bytes of the message, both ways.
    pub size_bytes: usize,
    /// Batches of the polling method, by interval.
    pub polling: Vec<Vec<PollingBatch>>,
    /// Batches of post-work-wait, by interval.
    pub pww: Vec<Vec<PwwBatch>>,
    /// The search for the most work that is free.
    pub knee: Option<FreeWork>,
    /// The test that completes a receive, after tests in vain: value of each batch.
    #[serde(default)]
    pub receive_ns: Vec<f64>,
}

/// A batch of the polling method, from one arrival to a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PollingBatch {
    /// Poll intervals computed.
    pub polls: u64,
    /// Messages received, and as many sent.
    pub messages: u64,
    /// What all of it took.
    pub took_ns: f64,
    /// One poll interval without messages, measured right before or after.
    pub alone_ns: f64,
    /// Processor time of other threads of the process in it, where that can be told.
    #[serde(default)]
    pub others_ns: Option<f64>,
}

/// A batch of post-work-wait: means over its cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PwwBatch {
    /// To post a receive and a send.
    pub post_ns: f64,
    /// To work, no call made.
    pub work_ns: f64,
    /// To wait for both.
    pub wait_ns: f64,
    /// The same work without messages, measured right before or after.
    pub alone_ns: f64,
    /// Processor time of other threads of the process, where that can be told.
    #[serde(default)]
    pub others_ns: Option<f64>,
}

impl PwwBatch {
    /// Returns the duration of a whole cycle, in nanoseconds.
    pub fn cycle_ns(&self) -> f64 {
        self.post_ns + self.work_ns + self.wait_ns
    }

    /// Returns the part of a cycle inside calls, in nanoseconds.
    pub fn calls_ns(&self) -> f64 {
        self.post_ns + self.wait_ns
    }
}

/// The search for the most work with which a cycle is no longer than without.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FreeWork {
    /// What was looked at, in the order of the search.
    pub looks: Vec<WorkTrial>,
    /// The work that was free: of the least that was not, what its cycle was not longer by.
    pub free_ns: f64,
    /// A cycle without work, over all looks.
    pub base_ns: f64,
    /// Whether looks below and beyond say the same.
    pub is_confirmed: bool,
}

/// A look at cycles with and without work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkTrial {
    /// The work without messages.
    pub work_ns: f64,
    /// A cycle with it.
    pub cycle_ns: f64,
    /// A cycle without it, measured in turn.
    pub base_ns: f64,
    /// The waiting in a cycle with it; null in records of versions that did not keep it.
    #[serde(default)]
    pub wait_ns: Option<f64>,
    /// The waiting in a cycle without it; null likewise.
    #[serde(default)]
    pub base_wait_ns: Option<f64>,
}

impl WorkTrial {
    /// Returns the free part of the work, in nanoseconds: the work less the time by which it lengthened the
    /// cycle.
    pub fn free_ns(&self) -> f64 {
        self.work_ns - (self.cycle_ns - self.base_ns)
    }
}
