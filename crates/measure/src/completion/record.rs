//! The record of the verb `completion`.

use super::data::CompletionLaunch;
use super::peak::Peak;
use crate::overlap::record::Quantity;
use crate::record::parameter::Parameter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latency and bandwidth by size, by one way to wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Completion {
    /// The largest message of the layer, bytes; null if the layer carries all sizes that were asked for.
    #[serde(default)]
    pub largest_bytes: Option<usize>,
    /// The peak that the bandwidth is compared with, and how it was found.
    #[serde(default)]
    pub peak: Peak,
    /// Ascending by size.
    pub sizes: Vec<CompletionTimes>,
    /// The data of every launch.
    pub launches: Vec<CompletionLaunch>,
}

/// The times of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionTimes {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Half of a round trip of that size both ways: the latency one way.
    pub half_rtt: Parameter,
    /// Time for each message of a stream with small replies; an upper bound if too few messages are in flight.
    pub per_message: Parameter,
    /// The peak for messages of that size; without an interval if it was not measured.
    #[serde(default)]
    pub peak_bytes_per_s: Quantity,
    /// Bandwidth of a stream over the peak; no value unless `per_message` is measured and a peak is known.
    #[serde(default)]
    pub share_of_peak: Quantity,
}

/// The names of the times, in the order of tables.
pub const COMPLETION_TIMES: [&str; 2] = ["half_rtt", "per_message"];

impl CompletionTimes {
    /// Returns the times by name, in the order of [`COMPLETION_TIMES`].
    pub fn times(&self) -> [(&'static str, &Parameter); COMPLETION_TIMES.len()] {
        let times = [&self.half_rtt, &self.per_message];
        std::array::from_fn(|nth| (COMPLETION_TIMES[nth], times[nth]))
    }

    /// Returns the time of a message at the peak (Speight et al. 1999, figure 4: the wire time), if a peak is
    /// known.
    pub fn ideal_ns(&self) -> Option<f64> {
        let peak = self.peak_bytes_per_s.value.filter(|&peak| peak > 0.0)?;
        Some(self.size_bytes as f64 / peak * 1e9)
    }

    /// Returns the bytes per second of a stream.
    pub fn bandwidth(&self) -> Option<f64> {
        let each_ns = self.per_message.value_ns.filter(|&each_ns| each_ns > 0.0);
        each_ns.map(|each_ns| self.size_bytes as f64 / each_ns * 1e9)
    }
}

/// The times to spin before blocking of one layer, against polling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpinTimes {
    /// The layer.
    pub layer: String,
    /// The way to poll.
    pub polling: String,
    /// The times that were measured, ascending.
    pub tried: Vec<SpinTime>,
    /// The index of the best one; null if none is near polling at the smallest size.
    pub best: Option<usize>,
}

/// A time to spin before blocking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpinTime {
    /// The way to wait, such as `spin:20us`, or `block`.
    pub wait: String,
    /// The time to spin; 0 if the way blocks at once.
    pub spin_ns: f64,
    /// The smallest size that was measured.
    pub from_bytes: usize,
    /// From the smallest size up to this one every size is near polling; null if the smallest one is not.
    pub near_to_bytes: Option<usize>,
    /// The largest upper end of an interval of the ratio to polling, over these sizes.
    pub near_ratio_at_most: Option<f64>,
    /// The largest median of the ratio to polling, over all larger sizes; null if there are none.
    pub ratio_above: Option<f64>,
}

impl SpinTimes {
    /// Returns the best time to spin, if one is near polling.
    pub fn best(&self) -> Option<&SpinTime> {
        self.tried.get(self.best?)
    }
}
