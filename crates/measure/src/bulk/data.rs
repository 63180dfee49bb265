//! The measurements of one launch, size by size: the data behind every figure of `bulk`.
//!
//! Every time is in nanoseconds. The value of a batch is the mean of the middle 80 % of its samples. The
//! times of bursts include the cost of one clock reading; all other times exclude it.

use crate::layer::Transfer;
use crate::logp::data::{Burst, LaunchData, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The direction of the data of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the requester to the replier, which answers with a small reply.
    #[default]
    Store,
    /// From the replier to the requester, which asks with a small request.
    Get,
}

impl Direction {
    /// Returns the sizes of the request and of the reply of a transfer of `bytes`, if the message in the other
    /// direction has `small` bytes.
    pub(super) fn sizes(self, bytes: usize, small: usize) -> (usize, usize) {
        match self {
            Self::Store => (bytes, small),
            Self::Get => (small, bytes),
        }
    }

    /// Returns the way in which a transfer moves its bytes at every size, if the layer has that way. Stores of
    /// few bytes may be short messages.
    pub(super) fn transfer(self) -> Transfer {
        match self {
            Self::Store => Transfer::Request,
            Self::Get => Transfer::Get,
        }
    }
}

/// The sizes of a run and their measurement, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkShape {
    /// Bytes of the message in the other direction, if only one direction carries the size.
    pub small_bytes: usize,
    /// The direction of the data of transfers, bursts and streams.
    #[serde(default)]
    pub direction: Direction,
    /// The way in which they move their bytes.
    #[serde(default)]
    pub transfer: Transfer,
    /// Ascending by size.
    pub sizes: Vec<BulkSizeShape>,
}

/// The measurement of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkSizeShape {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Lengths M of the bursts, ascending; the last is twice the one before. The last two hold
    /// whole windows where the window is shorter.
    pub bursts: Vec<usize>,
    /// Lengths of the bursts of requests alone, ascending.
    pub issue: Vec<usize>,
    /// The window: maximum number of requests without a reply.
    pub window: usize,
    /// Delay after each message of the delayed bursts, longer than the idle time.
    pub d_ns: f64,
    /// Time after a reply until the layer is quiet; 0 if it is quiet at once.
    pub rest_ns: f64,
    /// Number of requests that a burst issues before its first poll, if polls that find nothing are
    /// costly. At most half of the burst.
    #[serde(default)]
    pub unpolled: usize,
    /// Number of messages in a batch of bursts of one length; a longer burst is a batch of its own.
    pub messages: usize,
    /// Number of round trips in a batch.
    pub trips: usize,
}

/// All measurements of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkLaunch {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// The sizes, and their measurement.
    pub shape: BulkShape,
    /// If this launch chose the shape: half a round trip of each size of the
    /// search for changes, in the order of the search.
    #[serde(default)]
    pub search_ns: Vec<(usize, f64)>,
    /// Cost of one reading of the clock.
    pub timer_ns: f64,
    /// Polls that find nothing: value of each batch.
    pub o_poll_ns: Vec<f64>,
    /// One entry per size, ascending.
    pub sizes: Vec<BulkSizeData>,
    /// The signatures of the sizes that were named, ascending. Each has a time budget of its own.
    #[serde(default)]
    pub signatures: Vec<SignatureLaunch>,
    /// Duration of the measurement.
    #[serde(default)]
    pub took_ns: f64,
    /// Number of times that the system took the processor from the requester, or that other processes kept it
    /// when the requester yielded it. Naps for that reason count.
    pub preemptions: Option<u64>,
    /// Counters of the requester's end of the connection; null if the layer counts nothing.
    #[serde(default)]
    pub transport: Option<Transport>,
}

/// The signature of one size in one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignatureLaunch {
    /// Bytes of a transfer.
    pub size_bytes: usize,
    /// The way in which transfers move their bytes.
    pub transfer: Transfer,
    /// The measurements. Round trips, and bursts and their replies, are those of transfers.
    pub data: LaunchData,
}

/// The data of one launch for messages of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkSizeData {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// Round trips with that size both ways: value of each batch.
    pub rtt_ns: Vec<f64>,
    /// Number of round trips.
    pub rtt_samples: u64,
    /// Round trips with that size in one direction and a small message in the other: value of each
    /// batch. Empty in records of earlier versions.
    #[serde(default)]
    pub transfer_ns: Vec<f64>,
    /// Number of these round trips.
    #[serde(default)]
    pub transfer_samples: u64,
    /// Bursts of requests of that size on a quiet layer, without polls; small replies.
    pub issue: Vec<Burst>,
    /// Bursts of requests of that size without delay; small replies.
    pub stream: Vec<Burst>,
    /// The two longest bursts at half of the window; empty if the window is 1.
    pub half_window: Vec<Burst>,
    /// The two longest bursts with a delay after each request.
    pub delayed: Vec<Burst>,
    /// That delay as measured without messages: value of each batch.
    pub d_measured_ns: Vec<f64>,
    /// Receives of a reply of that size to a small request, after staying away for 1.2 round
    /// trips: value of each batch.
    pub o_r_ns: Vec<f64>,
    /// Number of receives.
    pub o_r_samples: u64,
    /// Number of receives that waited for a part of the reply.
    pub o_r_waited: u64,
}
