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
    /// Requests that may be without a reply.
    pub window: usize,
    /// What must pass after a reply until the layer is quiet; 0 where nothing must.
    #[serde(default)]
    pub rest_ns: f64,
    /// Requests that a burst issues before its first poll, where polls that find nothing are
    /// costly; half of the burst at most.
    #[serde(default)]
    pub unpolled: usize,
}

/// Everything that one launch measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchData {
    /// Where in the order of launches it stood.
    pub launch: usize,
    /// The signature's bursts and delays.
    pub shape: Shape,
    /// Cost of one reading of the clock.
    pub timer_ns: f64,
    /// Round trips.
    pub rtt: RoundTrips,
    /// Length of the pause before each of the next.
    pub pause_ns: f64,
    /// First round trips after a pause.
    pub rtt_after_pause_ns: Vec<f64>,
    /// Polls that find nothing: cost, value of each batch, the clock's taken off.
    pub o_poll_ns: Vec<f64>,
    /// Bursts of requests alone, from quiet, with no poll between them.
    pub issue: Vec<Burst>,
    /// Receives of a reply that has been there for a while: value of each batch, the
    /// clock's cost taken off.
    pub o_r_away_ns: Vec<f64>,
    /// Replies that were later than that, and are in none of the batches.
    #[serde(default)]
    pub o_r_away_late: u64,
    /// The signature: one curve per delay.
    pub signature: Vec<Curve>,
    /// The two longest bursts without delay, with half of the window.
    pub half_window: Vec<Burst>,
    /// Streams kept out of the fit.
    pub streams: Vec<Stream>,
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

/// What happened on the way, seen from one end. `sent` and `retransmitted` are datagrams
/// that carry a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transport {
    /// Messages sent for the first time.
    pub sent: u64,
    /// Messages sent again.
    pub retransmitted: u64,
    /// Acknowledgements that travelled alone.
    pub acknowledgements: u64,
    /// Messages that had arrived before.
    pub duplicates: u64,
    /// Datagrams that came damaged, or were made by somebody else.
    pub malformed: u64,
    /// Datagrams of nobody.
    pub foreign: u64,
    /// Datagrams that the system would not send.
    pub refused: u64,
    /// Memory that the connection held in the end, in bytes.
    pub memory_bytes: usize,
}

/// Single round trips.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrips {
    /// Value of each batch of consecutive round trips, the clock's cost taken off.
    pub batches_ns: Vec<f64>,
    /// All of them, the clock's cost taken off, as pairs of value (to 0.1 %) and count.
    pub histogram_ns: Vec<(f64, u64)>,
    /// How many.
    pub samples: u64,
    /// The shortest.
    #[serde(default)]
    pub min_ns: f64,
    /// The longest.
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
    /// Delay asked for.
    pub d_ns: f64,
    /// Delay as measured without messages, in each batch.
    pub d_measured_ns: Vec<f64>,
    /// One entry per burst size.
    pub bursts: Vec<Burst>,
}

/// A stream kept out of the fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// Requests in it.
    pub messages: usize,
    /// Delay asked for.
    pub d_ns: f64,
    /// Delay as measured without messages, in each batch.
    pub d_measured_ns: Vec<f64>,
    /// Time from the first issue to the last reply.
    pub done_ns: Vec<f64>,
}
