//! The measurements of one launch, size by size: the data behind every figure of `bulk`.
//!
//! Every time is in nanoseconds. The value of a batch is the mean of the middle 80 % of its samples. The
//! times of bursts include the cost of one clock reading; all other times exclude it.

use crate::logp::data::{Burst, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sizes of a run and how each is measured, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkShape {
    /// Bytes of the message that goes the other way where only one way carries the size.
    pub small_bytes: usize,
    /// Ascending by size.
    pub sizes: Vec<BulkSizeShape>,
}

/// How one size is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkSizeShape {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Lengths M of the bursts, ascending; the last is twice the one before. The last two hold
    /// whole windows where the window is shorter.
    pub bursts: Vec<usize>,
    /// Lengths of the bursts of requests alone, ascending.
    pub issue: Vec<usize>,
    /// Requests that may be without a reply.
    pub window: usize,
    /// Delay after each message of the delayed bursts, beyond the idle time.
    pub d_ns: f64,
    /// What must pass after a reply until the layer is quiet; 0 where nothing must.
    pub rest_ns: f64,
    /// Requests that a burst issues before its first poll, where polls that find nothing are
    /// costly; half of the burst at most.
    #[serde(default)]
    pub unpolled: usize,
    /// Messages in the bursts of one length that make a batch, or one longer burst.
    pub messages: usize,
    /// Round trips in a batch.
    pub trips: usize,
}

/// Everything that one launch measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkLaunch {
    /// Where in the order of launches it stood.
    pub launch: usize,
    /// The sizes, and how each was measured.
    pub shape: BulkShape,
    /// Where the shape was chosen in this launch: half a round trip of each size that was
    /// looked at in search of changes, in the order of the search.
    #[serde(default)]
    pub search_ns: Vec<(usize, f64)>,
    /// Cost of one reading of the clock.
    pub timer_ns: f64,
    /// Polls that find nothing: value of each batch.
    pub o_poll_ns: Vec<f64>,
    /// One entry per size, ascending.
    pub sizes: Vec<BulkSizeData>,
    /// How long the launch measured.
    #[serde(default)]
    pub took_ns: f64,
    /// Times that the system took the processor from the requester, or that others kept it when it was
    /// offered to them, naps because of that among them.
    pub preemptions: Option<u64>,
    /// What happened on the requester's side of the way, where the layer keeps count.
    #[serde(default)]
    pub transport: Option<Transport>,
}

/// What one launch measured with messages of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkSizeData {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Round trips with that size both ways: value of each batch.
    pub rtt_ns: Vec<f64>,
    /// How many round trips are behind them.
    pub rtt_samples: u64,
    /// Requests of that size alone, from quiet, replies small.
    pub issue: Vec<Burst>,
    /// Bursts of requests of that size, replies small, no delay: one row of the surface.
    pub stream: Vec<Burst>,
    /// The two longest of them with half of the window; empty where the window is 1.
    pub half_window: Vec<Burst>,
    /// The two longest of them with a delay after each request.
    pub delayed: Vec<Burst>,
    /// That delay as measured without messages, in each batch.
    pub d_measured_ns: Vec<f64>,
    /// Receives of a reply of that size to a small request, after staying away for 1.2 round
    /// trips: value of each batch.
    pub o_r_ns: Vec<f64>,
    /// How many receives are behind them.
    pub o_r_samples: u64,
    /// Those among them that had to wait for a part of the reply.
    pub o_r_waited: u64,
}
