//! The measurements of one launch of `utilisation`: the data behind every figure.

use crate::completion::data::CompletionSizeShape;
use crate::logp::data::Transport;
use crate::processor_time::{Counters, MachineTimes, ProcessTimes};
use crate::row::WINDOW_BOUND;
use crate::stats::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stream is to last for this many round trips, so that its start and its end hardly count. Its window has the
/// messages of four round trips, and the replies to all of them may come after its last message.
pub(super) const STEADY_TRIPS: f64 = 600.0;
/// A stream is steady if it lasts for this many round trips: its end is then 1 % of it at most.
pub(super) const STEADY_TRIPS_AT_LEAST: f64 = 400.0;
/// The windows of both sides may differ in length by this share. Otherwise the replier's figures are not of the
/// same messages.
const ALIKE: f64 = 0.02;

/// The sizes of a run and their measurement, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UtilisationShape {
    /// Ascending by size. The round trips of a batch are made between two looks at the clock, and so are the
    /// messages of a row. `rest_ns` is not used, because a rest would take processor time.
    pub sizes: Vec<CompletionSizeShape>,
}

/// All measurements of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UtilisationLaunch {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// The steps of the measurement.
    pub shape: UtilisationShape,
    /// True if both processes read the accounts of one machine, whatever its names. Its work is then counted once.
    pub one_machine: bool,
    /// The step of the times of threads in the kernel and outside of it, at the requester and at the replier.
    pub tick_ns: [f64; 2],
    /// The reason why some counters of a thread could not be read, at the requester or at the replier.
    pub refused: Option<String>,
    /// Windows in which nothing was sent and the requester slept.
    pub idle: Vec<Window>,
    /// One entry for each of [`UtilisationShape::sizes`].
    pub sizes: Vec<UtilisationSizeData>,
    /// Duration of the measurement.
    pub took_ns: f64,
    /// Number of times that the system took the processor from the requester, or that other processes kept it
    /// when the requester yielded it. Naps for that reason count.
    pub preemptions: Option<u64>,
    /// Counters of the requester's end of the connection; null if the layer counts nothing.
    #[serde(default)]
    pub transport: Option<Transport>,
}

/// The windows of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UtilisationSizeData {
    /// Round trip of a message of that size with a small reply, one for each window of a stream.
    pub alone_ns: Vec<f64>,
    /// Windows of round trips with that size both ways.
    pub round_trips: Vec<Window>,
    /// Windows of a stream of that size with small replies.
    pub stream: Vec<Window>,
}

/// The processor time of a window. A side's window ends when its accounts are read, so that the windows of the
/// sides differ by little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Requests, each with its reply.
    pub messages: u64,
    /// The requester's process.
    pub requester: ProcessTimes,
    /// The replier's process.
    pub replier: ProcessTimes,
    /// The counters of the requester's thread.
    pub requester_counters: Counters,
    /// The counters of the replier's thread.
    pub replier_counters: Counters,
    /// The requester's machine; null if its accounts cannot be read.
    pub machine: Option<MachineTimes>,
    /// The replier's machine if it is another one.
    pub replier_machine: Option<MachineTimes>,
}

impl Window {
    /// Returns the machines by side. The requester's machine has both sides if there is no other.
    pub(super) fn machines(&self) -> [Option<MachineTimes>; 2] {
        [self.machine, self.replier_machine]
    }
}

impl UtilisationSizeData {
    /// Reports whether the streams lasted long enough to be steady.
    pub fn is_steady(&self) -> bool {
        let lengths = self.stream.iter().map(|window| window.requester.elapsed_ns);
        let shortest_ns = lengths.fold(f64::INFINITY, f64::min);
        shortest_ns >= STEADY_TRIPS_AT_LEAST * median(self.alone_ns.iter().copied())
    }

    /// Reports whether the streams wait for replies because no more than `in_flight` messages are in flight.
    pub(super) fn is_window_bound(&self, in_flight: usize) -> bool {
        let each_ns = self.stream.iter().map(|window| window.requester.elapsed_ns / window.messages as f64);
        in_flight as f64 * median(each_ns) <= WINDOW_BOUND * median(self.alone_ns.iter().copied())
    }
}

/// Reports whether the windows of both sides are equally long.
pub fn are_alike(windows: &[Window]) -> bool {
    let length = |side: fn(&Window) -> &ProcessTimes| -> f64 {
        windows.iter().map(|window| side(window).elapsed_ns).sum()
    };
    let (requester_ns, replier_ns) = (length(|window| &window.requester), length(|window| &window.replier));
    (replier_ns / requester_ns - 1.0).abs() <= ALIKE
}
