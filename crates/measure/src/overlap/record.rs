//! The record of the verb `overlap`.

use super::data::OverlapLaunch;
use super::plan::Method;
use crate::figure::Figure;
use crate::record::parameter::Parameter;
use crate::stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much computation goes behind messages, and who pays for that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    /// The methods that were run.
    pub methods: Vec<Method>,
    /// Messages each way that the polling method kept under way.
    pub queue: usize,
    /// Time and bandwidth of messages alone, ascending by size.
    pub trips: Vec<Trip>,
    /// What the methods say, ascending by size.
    pub sizes: Vec<SizeOverlap>,
    /// The data behind all of it.
    pub launches: Vec<OverlapLaunch>,
}

/// A figure over launches, in the unit of its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// Median over the launches; null where none has a value.
    pub value: Option<f64>,
    /// Its interval; null with too few launches.
    pub ci: Option<Interval>,
    /// OverlapLaunches behind it.
    pub launches: usize,
}

impl From<Figure> for Quantity {
    fn from(figure: Figure) -> Self {
        let value = Some(figure.value).filter(|value| value.is_finite());
        Self { value, ci: figure.ci.filter(|_| value.is_some()), launches: figure.launches }
    }
}

/// Messages of one size, with no work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trip {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Half of a round trip of that size both ways (figure 4 of the paper).
    pub half_rtt: Parameter,
    /// One way, as many messages under way as the layer allows (figure 5).
    pub bandwidth_bytes_per_s: Quantity,
}

/// What the methods say about messages of one size, sent both ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeOverlap {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// The polling method, ascending by interval (figures 6, 7, 9, 10).
    pub polling: Vec<PollPoint>,
    /// Post-work-wait, ascending by work, the first without any (figures 8, 11 to 15).
    pub pww: Vec<WorkPoint>,
    /// The most work that is free; null where it was not searched.
    pub free: Option<Free>,
    /// What all of that means.
    pub finding: Finding,
}

/// The polling method at one interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PollPoint {
    /// The poll interval, as computed without messages.
    pub interval_ns: Quantity,
    /// Time of the work without messages over that with them.
    pub availability: Quantity,
    /// Bytes received a second; as many were sent.
    pub bandwidth_bytes_per_s: Quantity,
    /// Processor time of the process's other threads, as a share of the time.
    pub others_share: Quantity,
}

/// Post-work-wait with one amount of work: means over cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkPoint {
    /// The work without messages.
    pub alone_ns: Quantity,
    /// To post a receive and a send.
    pub post_ns: Quantity,
    /// The work with messages.
    pub work_ns: Quantity,
    /// To wait for both.
    pub wait_ns: Quantity,
    /// All three.
    pub cycle_ns: Quantity,
    /// Work with messages less work without: what somebody else took of the processor.
    pub stolen_ns: Quantity,
    /// Work without messages over the cycle.
    pub availability: Quantity,
    /// Bytes received a second; as many were sent.
    pub bandwidth_bytes_per_s: Quantity,
    /// Processor time of the process's other threads in a cycle.
    pub others_ns: Quantity,
}

/// The most work with which a cycle of post, work, wait is no longer than without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Free {
    /// The cycle without work.
    pub cycle_ns: Quantity,
    /// The work.
    pub work_ns: Quantity,
    /// The work as a share of the cycle.
    pub share: Quantity,
    /// OverlapLaunches in which looks below and beyond confirmed it.
    pub confirmed: usize,
}

/// Whether messages make progress while no call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// They do: waiting goes behind work.
    ByItself,
    /// A part of waiting does.
    Partly,
    /// None of it: work only postpones it.
    OnlyInCalls,
    /// The data do not say.
    CannotTell,
}

/// Whose processor time a message costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payer {
    /// The worker, inside the calls to post and to wait.
    Calls,
    /// The worker, whose work takes longer with messages.
    Stolen,
    /// Other threads of the worker's process.
    Others,
}

/// What the figures of one size mean. Costs are those of a cycle of post-work-wait whose work is
/// at least twice as long as a whole cycle without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Whether messages make progress while no call is made.
    pub progress: Progress,
    /// Share of the waiting that goes behind work, less what work adds to posting; by the most free
    /// work where post-work-wait was not run.
    pub hidden_share: Quantity,
    /// What is left to wait for when a message is there: the receive by itself, which no work hides.
    #[serde(default)]
    pub receive_ns: Quantity,
    /// A cycle without work.
    pub cycle_ns: Quantity,
    /// Time inside the calls.
    pub calls_ns: Quantity,
    /// Work with messages less work without.
    pub stolen_ns: Quantity,
    /// Processor time of other threads of the process.
    pub others_ns: Quantity,
    /// Who pays processor time, as far as intervals decide.
    pub payers: Vec<Payer>,
    /// Of whom that is not decided.
    pub undecided: Vec<Payer>,
    /// Where [`Progress::CannotTell`]: why, and what would tell.
    #[serde(default)]
    pub reason: Option<String>,
    /// The finding in words.
    pub text: String,
}
