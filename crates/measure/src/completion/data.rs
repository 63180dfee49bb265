//! The measurements of one launch of `completion`: the data behind every figure.
//!
//! Every time is in nanoseconds, without the cost of reading the clock. The value of a batch is the mean of
//! the middle 80 % of its samples.

use super::peak::{Peak, PeakSource};
use crate::logp::data::Transport;
use crate::stats::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sizes of a run and their measurement, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionShape {
    /// Ascending by size.
    pub sizes: Vec<CompletionSizeShape>,
    /// The peak that the bandwidth is compared with.
    #[serde(default)]
    pub peak: Peak,
}

/// The measurement of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionSizeShape {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Round trips in a batch.
    pub trips: u64,
    /// Messages in the shorter of two rows; the longer one has twice as many.
    pub row: u64,
    /// Messages of a row that are in flight at most.
    pub window: usize,
    /// Time after a reply until the layer is quiet; 0 if it is quiet at once.
    pub rest_ns: f64,
}

/// All measurements of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionLaunch {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// The steps of the measurement.
    pub shape: CompletionShape,
    /// Cost of one reading of the clock.
    pub timer_ns: f64,
    /// One entry for each of [`CompletionShape::sizes`].
    pub sizes: Vec<CompletionSizeData>,
    /// Duration of the measurement.
    pub took_ns: f64,
    /// Number of times that the system took the processor from the requester, or that other processes kept it
    /// when the requester yielded it. Naps for that reason count.
    pub preemptions: Option<u64>,
    /// Counters of the requester's end of the connection; null if the layer counts nothing.
    #[serde(default)]
    pub transport: Option<Transport>,
}

/// The values of batches of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionSizeData {
    /// Half of a round trip of that size both ways.
    pub half_rtt_ns: Vec<f64>,
    /// Round trip of a message of that size with a small reply.
    pub alone_ns: Vec<f64>,
    /// Time to issue each message of a stream with small replies: the rise from the shorter row to the longer one.
    pub issue_ns: Vec<f64>,
    /// Time for each message of a stream until the last reply: the same rise.
    pub done_ns: Vec<f64>,
    /// Time of one copy of a block of that size by the requester's processor; empty unless it is the peak.
    #[serde(default)]
    pub copy_ns: Vec<f64>,
}

impl CompletionLaunch {
    /// Returns the least time of a message by the peak (its wire time), for the size at this index.
    pub fn ideal_ns(&self, at: usize) -> Option<f64> {
        let Peak { source, peak_bytes_per_s, .. } = self.shape.peak;
        let ideal_ns = match (source, peak_bytes_per_s) {
            (PeakSource::Copy, _) => median(self.sizes.get(at)?.copy_ns.iter().copied()),
            (_, Some(peak)) => self.shape.sizes.get(at)?.size_bytes as f64 / peak * 1e9,
            (_, None) => return None,
        };
        Some(ideal_ns).filter(|ns| ns.is_finite() && *ns > 0.0)
    }

    /// Returns the bandwidth of a stream as a share of the peak, for the size at this index.
    pub fn share_of_peak(&self, at: usize) -> Option<f64> {
        let each_ns = median(self.sizes.get(at)?.per_message_ns().iter().copied());
        Some(self.ideal_ns(at)? / each_ns).filter(|share| share.is_finite())
    }
}

impl CompletionSizeData {
    /// Returns the time for each message of a stream: the larger of both rises. In the steady state both are the
    /// same. If the requester's processor and the rest of the layer are about equally fast, a row ends before the
    /// slower one shows in both.
    pub fn per_message_ns(&self) -> &[f64] {
        let of = |batches: &[f64]| median(batches.iter().copied());
        if of(&self.issue_ns) > of(&self.done_ns) { &self.issue_ns } else { &self.done_ns }
    }
}
