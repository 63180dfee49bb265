//! The record of the verb `overlap`.

use super::data::{OverlapLaunch, ProgressBy, one_message};
use super::plan::Method;
use crate::figure::Figure;
use crate::record::parameter::Parameter;
use crate::stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The overlap of computation and messages, and the processor time that messages cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    /// The methods of the run.
    pub methods: Vec<Method>,
    /// Number of messages each way that the polling method keeps in flight.
    pub queue: usize,
    /// Number of messages each way in a cycle of post-work-wait; 1 in records of earlier versions.
    #[serde(default = "one_message")]
    pub batch: usize,
    /// Where messages make progress; in calls in records of earlier versions.
    #[serde(default)]
    pub progress_by: ProgressBy,
    /// Time and bandwidth of messages alone, ascending by size.
    pub trips: Vec<Trip>,
    /// Results of the methods, ascending by size.
    pub sizes: Vec<SizeOverlap>,
    /// The data of every launch.
    pub launches: Vec<OverlapLaunch>,
}

/// A figure over launches, in the unit of its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// Median over the launches; null if no launch has a value.
    pub value: Option<f64>,
    /// Its interval; null if there are too few launches.
    pub ci: Option<Interval>,
    /// Number of launches.
    pub launches: usize,
}

impl From<Figure> for Quantity {
    fn from(figure: Figure) -> Self {
        let value = Some(figure.value).filter(|value| value.is_finite());
        Self { value, ci: figure.ci.filter(|_| value.is_some()), launches: figure.launches }
    }
}

/// Messages of one size, without work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trip {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Half of a round trip of that size both ways (figure 4 of the paper).
    pub half_rtt: Parameter,
    /// Bandwidth one way, with as many messages in flight as the layer allows (figure 5).
    pub bandwidth_bytes_per_s: Quantity,
}

/// Results of the methods for messages of one size, sent both ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeOverlap {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// The polling method, ascending by interval (figures 6, 7, 9, 10).
    pub polling: Vec<PollPoint>,
    /// Post-work-wait, ascending by work; the first point has no work (figures 8, 11 to 15).
    pub pww: Vec<WorkPoint>,
    /// The most work that is free; null if it was not searched.
    pub free: Option<Free>,
    /// The conclusion from these results.
    pub finding: Finding,
}

/// The polling method at one interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PollPoint {
    /// The poll interval, as computed without messages.
    pub interval_ns: Quantity,
    /// Time of the work without messages over its time with messages.
    pub availability: Quantity,
    /// Received bytes per second; as many are sent.
    pub bandwidth_bytes_per_s: Quantity,
    /// Processor time of the process's other threads, as a share of the time.
    pub others_share: Quantity,
}

/// Post-work-wait with one amount of work: means over cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkPoint {
    /// Duration of the work without messages.
    pub alone_ns: Quantity,
    /// Time to post the receives and the sends of a cycle.
    pub post_ns: Quantity,
    /// The work with messages.
    pub work_ns: Quantity,
    /// Time to wait for all of them.
    pub wait_ns: Quantity,
    /// Time of a cycle: post, work, wait.
    pub cycle_ns: Quantity,
    /// Time of the work with messages minus its time without, which others took from the processor.
    pub stolen_ns: Quantity,
    /// Time of the work without messages over that of the cycle.
    pub availability: Quantity,
    /// Received bytes per second; as many are sent.
    pub bandwidth_bytes_per_s: Quantity,
    /// Processor time of the process's other threads in a cycle.
    pub others_ns: Quantity,
}

/// The most work that does not lengthen a cycle of post, work, wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Free {
    /// Time of a cycle without work.
    pub cycle_ns: Quantity,
    /// Time of the work.
    pub work_ns: Quantity,
    /// The work as a share of the cycle.
    pub share: Quantity,
    /// Number of launches in which trials with less and with more work confirm it.
    pub confirmed: usize,
}

/// The progress of messages while the program makes no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Messages make progress: the wait is hidden behind work.
    ByItself,
    /// A part of the wait is hidden.
    Partly,
    /// Messages make no progress: work only postpones the wait.
    OnlyInCalls,
    /// The data do not decide.
    CannotTell,
}

/// Where the processor time of a message is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payer {
    /// In the worker, inside the calls to post and to wait.
    Calls,
    /// In the worker, outside the calls: its work takes longer with messages.
    Stolen,
    /// In other threads of the worker's process.
    Others,
}

/// The conclusion from the figures of one size. Costs are those of a cycle of post-work-wait whose work is
/// at least twice as long as a whole cycle without work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The progress of messages while the program makes no call.
    pub progress: Progress,
    /// Share of the wait that is hidden behind work, minus the time that work adds to posting; by the most free
    /// work if post-work-wait was not run.
    pub hidden_share: Quantity,
    /// The receive of a message that has arrived, which no work hides.
    #[serde(default)]
    pub receive_ns: Quantity,
    /// Time of a cycle without work.
    pub cycle_ns: Quantity,
    /// Time inside the calls.
    pub calls_ns: Quantity,
    /// Time of the work with messages minus its time without.
    pub stolen_ns: Quantity,
    /// Processor time of other threads of the process.
    pub others_ns: Quantity,
    /// The places that cost processor time, as far as the intervals decide.
    pub payers: Vec<Payer>,
    /// The places for which the intervals do not decide.
    pub undecided: Vec<Payer>,
    /// For [`Progress::CannotTell`]: the reason, and a measurement that would decide.
    #[serde(default)]
    pub reason: Option<String>,
    /// The conclusion in words.
    pub text: String,
}
