//! The overlap measurements of one launch: the data behind every figure.
//!
//! Every time is in nanoseconds, without the cost of reading the clock. Batches are means over several
//! samples, so that a disturbance affects one batch of many.

use crate::logp::data::Transport;
use crate::processor_time::MachineTimes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The steps of the measurement, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapShape {
    /// Number of messages each way that the polling method keeps in flight.
    pub queue: usize,
    /// Number of messages each way in a cycle of post-work-wait; 1 in records of earlier versions.
    #[serde(default = "one_message")]
    pub batch: usize,
    /// Where messages make progress; in calls in records of earlier versions.
    #[serde(default)]
    pub progress_by: ProgressBy,
    /// Shapes of round trips and rows, ascending by size.
    pub trips: Vec<TripShape>,
    /// Shapes of the methods, ascending by size.
    pub sizes: Vec<OverlapSizeShape>,
}

/// Where messages make progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgressBy {
    /// In the worker's calls, and wherever the layer itself makes progress.
    #[default]
    Calls,
    /// In a thread of the layer as well, which the kernel wakes.
    Thread,
}

/// The batch of records that do not state it.
pub(super) fn one_message() -> usize {
    1
}

/// The measurement of round trips and rows of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TripShape {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Number of round trips in a batch.
    pub trips: usize,
    /// Number of messages in the shorter of two rows; the longer row has twice as many.
    pub row: usize,
    /// Time after a round trip until the layer is quiet; 0 if it is quiet at once.
    #[serde(default)]
    pub rest_ns: f64,
}

/// The intervals of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapSizeShape {
    /// Bytes of the message, both ways.
    pub size_bytes: usize,
    /// Intervals of the polling method, ascending.
    pub polling: Vec<WorkInterval>,
    /// Intervals of post-work-wait, ascending; the first has no work.
    pub pww: Vec<WorkInterval>,
    /// Number of cycles in a batch of the search for the most work that is free; 0 without a search.
    pub knee_cycles: u32,
    /// The timing of a receive by itself: the work between two tests, and the number of messages in a batch;
    /// 0 in records of earlier versions.
    #[serde(default)]
    pub receive: WorkInterval,
}

/// An amount of work between two calls, or two rows of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkInterval {
    /// Nominal duration of the work.
    pub asked_ns: f64,
    /// Number of repetitions in a batch.
    pub repeats: u32,
}

/// All measurements of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverlapLaunch {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// The steps of the measurement.
    pub shape: OverlapShape,
    /// Cost of one reading of the clock.
    pub timer_ns: f64,
    /// Nominal and actual durations of work without messages.
    pub work: Vec<WorkCheck>,
    /// Round trips and rows, ascending by size.
    pub trips: Vec<TripData>,
    /// The methods, ascending by size.
    pub sizes: Vec<OverlapSizeData>,
    /// Duration of the measurement.
    pub took_ns: f64,
    /// Number of times that the system took the processor from the worker, or that other processes kept it
    /// when the requester yielded it. Naps for that reason count.
    pub preemptions: Option<u64>,
    /// The work of the worker's machine while the methods ran. Kernel work elsewhere is that on other processors than
    /// the worker's. Null if the system does not tell it, and in records of earlier versions.
    #[serde(default)]
    pub machine: Option<MachineTimes>,
    /// The same while the worker worked without messages. The other process was there and waited. Null in records of
    /// earlier versions.
    #[serde(default)]
    pub machine_alone: Option<MachineTimes>,
    /// Counters of the worker's end of the connection; null if the layer counts nothing.
    #[serde(default)]
    pub transport: Option<Transport>,
}

/// An amount of work and its duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkCheck {
    /// Nominal duration.
    pub asked_ns: f64,
    /// Actual duration without messages.
    pub took_ns: f64,
}

/// Round trips and rows of messages of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TripData {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Half of a round trip with that size both ways: value of each batch, the mean of the middle
    /// 80 %.
    pub half_rtt_ns: Vec<f64>,
    /// Number of round trips.
    pub samples: u64,
    /// Time per message of a row one way: rise from the shorter to the longer row, of each batch.
    pub per_message_ns: Vec<f64>,
}

/// The data of the methods for messages of one size.
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
    /// Time of the test that completes a receive, after tests in vain: value of each batch.
    #[serde(default)]
    pub receive_ns: Vec<f64>,
}

/// A batch of the polling method, from one arrival to a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PollingBatch {
    /// Number of poll intervals.
    pub polls: u64,
    /// Number of received messages; as many are sent.
    pub messages: u64,
    /// Duration of the batch.
    pub took_ns: f64,
    /// Duration of one poll interval without messages, measured right before or after.
    pub alone_ns: f64,
    /// Processor time of other threads of the process in the batch; null if the system does not report it.
    #[serde(default)]
    pub others_ns: Option<f64>,
}

/// Several cycles of post-work-wait: means over the cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PwwBatch {
    /// Time to post the receives and the sends of a cycle.
    pub post_ns: f64,
    /// Time of the work, without a call.
    pub work_ns: f64,
    /// Time to wait for all of them.
    pub wait_ns: f64,
    /// Duration of the same work without messages, measured right before or after.
    pub alone_ns: f64,
    /// Processor time of other threads of the process; null if the system does not report it.
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

/// The search for the most work that does not lengthen a cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FreeWork {
    /// The trials, in the order of the search.
    pub looks: Vec<WorkTrial>,
    /// The free work: of the smallest work that was not free, the part that did not lengthen its cycle.
    pub free_ns: f64,
    /// Time of a cycle without work, over all trials.
    pub base_ns: f64,
    /// True if trials with less and with more work confirm it.
    pub is_confirmed: bool,
}

/// A trial: cycles with and without work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkTrial {
    /// Duration of the work without messages.
    pub work_ns: f64,
    /// Time of a cycle with the work.
    pub cycle_ns: f64,
    /// Time of a cycle without work, measured in turn.
    pub base_ns: f64,
    /// The wait in a cycle with the work; null in records of earlier versions.
    #[serde(default)]
    pub wait_ns: Option<f64>,
    /// The wait in a cycle without work; null in records of earlier versions.
    #[serde(default)]
    pub base_wait_ns: Option<f64>,
    /// The time to post in a cycle with the work; null in records of earlier versions.
    #[serde(default)]
    pub post_ns: Option<f64>,
    /// The time to post in a cycle without work; null in records of earlier versions.
    #[serde(default)]
    pub base_post_ns: Option<f64>,
}

impl WorkTrial {
    /// Returns the free part of the work, in nanoseconds: the work less the time by which it lengthened the
    /// cycle.
    pub fn free_ns(&self) -> f64 {
        self.work_ns - (self.cycle_ns - self.base_ns)
    }
}
