//! The measurements of one launch, batch by batch: the data behind every figure.
//!
//! Every time is in nanoseconds. It includes the cost of one clock reading ([`LaunchData::timer_ns`]),
//! except where a field says otherwise. The value of a batch is the mean of its middle 80 %.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bursts and delays of a signature, the same in all launches of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Burst sizes M, ascending; the last is twice the one before. The last two hold whole
    /// windows where the window is shorter.
    pub bursts: Vec<usize>,
    /// Delays D between messages, ascending, the first 0.
    pub delays_ns: Vec<f64>,
    /// The window: maximum number of requests without a reply.
    pub window: usize,
    /// Time after a reply until the layer is quiet; 0 if it is quiet at once.
    #[serde(default)]
    pub rest_ns: f64,
    /// Number of requests that a burst issues before its first poll, if polls that find nothing are
    /// costly. At most half of the burst.
    #[serde(default)]
    pub unpolled: usize,
}

/// All measurements of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchData {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// The signature's bursts and delays.
    pub shape: Shape,
    /// Cost of one reading of the clock.
    pub timer_ns: f64,
    /// Round trips.
    pub rtt: RoundTrips,
    /// Duration of the pause before each of the following round trips.
    pub pause_ns: f64,
    /// The first round trips after a pause, without the cost of the clock.
    pub rtt_after_pause_ns: Vec<f64>,
    /// Cost of a poll that finds nothing: value of each batch, without the cost of the clock.
    pub o_poll_ns: Vec<f64>,
    /// Bursts of requests on a quiet layer, without a poll in between.
    pub issue: Vec<Burst>,
    /// Receives of a reply that arrived some time ago: value of each batch, without
    /// the cost of the clock.
    pub o_r_away_ns: Vec<f64>,
    /// Number of replies that arrived later. No batch includes them.
    #[serde(default)]
    pub o_r_away_late: u64,
    /// The signature: one curve per delay.
    pub signature: Vec<Curve>,
    /// The two longest bursts without delay, at half of the window.
    pub half_window: Vec<Burst>,
    /// Streams that the fit does not use.
    pub streams: Vec<Stream>,
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

/// The counters of one end of a connection. `sent` and `retransmitted` count datagrams
/// that carry a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transport {
    /// First transmissions of messages.
    pub sent: u64,
    /// Retransmissions.
    pub retransmitted: u64,
    /// Acknowledgements without a message.
    pub acknowledgements: u64,
    /// Received duplicates.
    pub duplicates: u64,
    /// Received datagrams that are damaged or forged.
    pub malformed: u64,
    /// Received datagrams that belong to no peer.
    pub foreign: u64,
    /// Datagrams that the system refused to send.
    pub refused: u64,
    /// Datagrams that the kernel's protocols have sent, over a layer that passes them by.
    #[serde(default)]
    pub by_kernel: u64,
    /// Memory of the connection at the end, in bytes.
    pub memory_bytes: usize,
}

/// Single round trips.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrips {
    /// Value of each batch of consecutive round trips, without the cost of the clock.
    pub batches_ns: Vec<f64>,
    /// All round trips without the cost of the clock, as pairs of value (to 0.1 %) and count.
    pub histogram_ns: Vec<(f64, u64)>,
    /// Number of round trips.
    pub samples: u64,
    /// The shortest, without the cost of the clock.
    #[serde(default)]
    pub min_ns: f64,
    /// The longest, without the cost of the clock.
    #[serde(default)]
    pub max_ns: f64,
}

/// A burst of M requests, repeated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Burst {
    /// Requests in the burst.
    pub m: usize,
    /// Bursts in each batch.
    pub per_batch: usize,
    /// Time to issue the whole burst: value of each batch.
    pub issue_ns: Vec<f64>,
    /// Time until the last reply was handled: value of each batch.
    pub done_ns: Vec<f64>,
}

/// One curve of the signature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Nominal delay.
    pub d_ns: f64,
    /// Delay as measured without messages: value of each batch, without the cost of the clock.
    pub d_measured_ns: Vec<f64>,
    /// One entry per burst size.
    pub bursts: Vec<Burst>,
}

/// A stream that the fit does not use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// Number of requests.
    pub messages: usize,
    /// Nominal delay.
    pub d_ns: f64,
    /// Delay as measured without messages: value of each batch, without the cost of the clock.
    pub d_measured_ns: Vec<f64>,
    /// Time from the first issue to the last reply.
    pub done_ns: Vec<f64>,
}
