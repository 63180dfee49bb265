//! The record of the verb `bulk`.

use super::data::{BulkLaunch, Direction};
use crate::layer::Transfer;
use crate::logp::record::Logp;
use crate::record::parameter::{Parameter, Parameters, PerByte, Status};
use crate::record::plateau::Plateau;
use crate::stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A processor carries the data if it is busy for at least this share of the time that data flow.
pub const CARRIES: f64 = 0.9;
/// A processor is free if it is busy for at most this share of the time that data flow.
pub const IS_FREE: f64 = 0.1;

/// The names of the figures in time of one size, in the order of tables.
pub const TIMES: [&str; 6] = ["T", "transfer", "o_s", "o_r", "g", "L"];

/// The parameters of a layer as functions of the message's size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bulk {
    /// The largest message that the layer carries; larger sizes are not offered.
    pub largest_bytes: Option<usize>,
    /// Bytes of the message in the other direction, if only one direction carries the size.
    pub small_bytes: usize,
    /// The direction of the data of transfers, bursts and streams.
    #[serde(default)]
    pub direction: Direction,
    /// The way in which they move their bytes.
    #[serde(default)]
    pub transfer: Transfer,
    /// The figures of each size, ascending.
    pub sizes: Vec<SizeFigures>,
    /// Ranges of sizes in which time rises in a straight line, ascending. Each but the first
    /// begins where [`Bulk::changes`] has a change.
    pub segments: Vec<Segment>,
    /// Where T(n) departs from the line of smaller sizes: a change of protocol, or of the
    /// memory that holds the data.
    pub changes: Vec<Change>,
    /// The classic fit T0 + n / R∞, and what it says of small messages.
    pub classic: Classic,
    /// The same fit to transfer(n), the T(n) of Culler et al. 1996. Null in records of earlier
    /// versions.
    #[serde(default)]
    pub classic_of_transfer: Option<Classic>,
    /// Whether the processor is free while data moves.
    pub overlap: BulkOverlap,
    /// The signatures of the sizes that were named, ascending.
    #[serde(default)]
    pub signatures: Vec<BulkSignature>,
    /// The data of every launch.
    pub launches: Vec<BulkLaunch>,
}

/// The figures of messages of one size n.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the notation of the LogP papers")]
pub struct SizeFigures {
    /// Bytes of the message.
    pub size_bytes: usize,
    /// T(n): one-way time, half of a round trip of n bytes both ways.
    pub T: Parameter,
    /// Time of a transfer: from the start of a request of n bytes until its small reply is handled,
    /// or, for a get, from the start of a small request until n bytes have come. It is the T(n) of
    /// Culler et al. 1996. Unobservable in records of earlier versions.
    #[serde(default = "Parameter::unobservable")]
    pub transfer: Parameter,
    /// Processor time to issue the message, or the request of a get.
    pub o_s: Parameter,
    /// Processor time to receive the message; an upper bound where a receive had to wait for
    /// a part of it.
    pub o_r: Parameter,
    /// Least time between messages that the layer sustains.
    pub g: Parameter,
    /// T(n) - o_s(n) - o_r(n): time on the way that takes no processor. Unobservable with gets,
    /// whose requester does not see the overhead of sending the data.
    pub L: Parameter,
    /// What set the steady state of a stream of such messages.
    pub plateau: Plateau,
    /// n over the steady time per message of a stream: many messages under way, small replies.
    pub streaming: Bandwidth,
    /// n / T(n): one message at a time.
    pub single: Bandwidth,
    /// n / transfer(n): one transfer at a time, as Culler et al. 1996 define the bandwidth. Null in
    /// records of earlier versions.
    #[serde(default)]
    pub transferred: Option<Bandwidth>,
}

/// Bytes per time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bandwidth {
    /// Median over the launches.
    pub value_bytes_per_s: f64,
    /// Interval of that median; null if there are too few launches.
    pub ci_bytes_per_s: Option<Interval>,
}

/// The signature of transfers of one size: the LogP signature with n bytes in a request, or in a
/// reply, and a small message in the other direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkSignature {
    /// Bytes of a transfer.
    pub size_bytes: usize,
    /// The way in which transfers move their bytes.
    pub transfer: Transfer,
    /// The parameters of the signature. L is unobservable, because half of the round trip is no
    /// one-way time.
    pub parameters: Parameters,
    /// The plateau and the checks. Its launches are empty: the data stand with each launch of `bulk`.
    pub signature: Logp,
}

/// A range of sizes in which time rises in a straight line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the notation of the LogP papers")]
pub struct Segment {
    /// The smallest size measured in it.
    pub from_bytes: usize,
    /// The largest size measured in it.
    pub to_bytes: usize,
    /// Gap per byte: the slope of g(n) where that is measured; what it is at most where g is;
    /// no figure where g cannot be seen.
    pub G: PerByte,
    /// The smallest size from which g(n) is one straight line up to the largest: G is the slope of
    /// that line. Null where g is measured nowhere.
    #[serde(default)]
    pub G_from_bytes: Option<usize>,
    /// T(n) as a line.
    pub T: Linear,
    /// o_s(n) as a line.
    pub o_s: Linear,
    /// o_r(n) as a line.
    pub o_r: Linear,
    /// The steady time per message of a stream as a line, whatever set it.
    pub steady: Linear,
    /// g(n) as a line over the sizes at which it is measured, where there are two of them.
    pub g: Option<Linear>,
}

/// A straight line `base + slope · n` through the figures of some sizes n. Each size counts
/// by its relative distance from the line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Linear {
    /// Its value at 0 bytes.
    pub base_ns: f64,
    /// Its interval.
    pub base_ci_ns: Option<Interval>,
    /// Its rise.
    pub slope_ns_per_byte: f64,
    /// Its interval.
    pub slope_ci_ns_per_byte: Option<Interval>,
    /// The largest distance of a figure from it, as a share of T(n).
    pub largest_residual: f64,
}

/// A departure of T(n) from the line of the sizes below.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The largest size still on the line.
    pub above_bytes: usize,
    /// The smallest size measured beyond it: what changes does so above the one, and at the
    /// latest here.
    pub at_most_bytes: usize,
    /// T at that size, by the line of the sizes below.
    pub extrapolated_ns: f64,
    /// T at that size.
    pub measured_ns: f64,
}

/// The classic model T(n) = T0 + n / R∞, fitted by least squares to all sizes. T(n) is half of a
/// round trip, or transfer(n).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the notation of the LogP papers")]
pub struct Classic {
    /// Start-up time: where the line meets 0 bytes. It may come out negative.
    pub T0_ns: f64,
    /// Its interval.
    pub T0_ci_ns: Option<Interval>,
    /// Peak rate: the inverse of the line's slope; null where time does not rise with the size.
    pub R_inf: Option<Bandwidth>,
    /// Half-performance length of the model: T0 times R∞; null where that is.
    pub n_half_bytes: Option<f64>,
    /// Its interval.
    pub n_half_ci_bytes: Option<Interval>,
    /// The size at which n / T(n) reaches half of its largest measured value, as measured;
    /// null where the smallest size is beyond it.
    pub n_half_measured_bytes: Option<f64>,
    /// Its interval.
    pub n_half_measured_ci_bytes: Option<Interval>,
    /// The smallest size measured.
    pub small_bytes: usize,
    /// T at that size by the model.
    pub small_predicted_ns: f64,
    /// T at that size as measured.
    pub small_measured_ns: f64,
}

/// How much of the time that data take to move the processor could compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlaps {
    /// None: the processor carries the data itself.
    Nothing,
    /// A part of it.
    Partly,
    /// All of it: the overhead does not depend on the size.
    Fully,
    /// The data do not decide.
    Unknown,
}

impl Overlaps {
    /// Decides from the interval of the share that a processor carries. The result is unknown without an
    /// interval, and if the interval contains [`IS_FREE`] or [`CARRIES`].
    pub fn of(share: Option<Interval>) -> Self {
        match share {
            Some(ci) if ci.lo >= CARRIES => Self::Nothing,
            Some(ci) if ci.hi <= IS_FREE => Self::Fully,
            Some(ci) if ci.lo > IS_FREE && ci.hi < CARRIES => Self::Partly,
            _ => Self::Unknown,
        }
    }
}

/// Whether the processor is free while data moves, as the slope of the overhead over the
/// size says (Culler et al. 1996, figure 10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkOverlap {
    /// On the side that sends.
    pub sending: Carried,
    /// On the side that receives.
    pub receiving: Carried,
    /// The finding, in words.
    pub finding: String,
}

/// How much of the data one side's processor carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// What that leaves to compute in.
    pub overlaps: Overlaps,
    /// Processor time per byte: the slope of the overhead.
    pub per_byte: PerByte,
    /// That over the steady time per byte of a stream: 1 where the processor does nothing
    /// else while data flows, 0 where it is free.
    pub share: Option<f64>,
    /// Its interval.
    pub share_ci: Option<Interval>,
    /// The sizes over which both slopes are taken.
    pub from_bytes: usize,
    /// The largest of them.
    pub to_bytes: usize,
}

impl Bulk {
    /// Returns the figures of messages of `size_bytes`, if that size was measured.
    pub fn at(&self, size_bytes: usize) -> Option<&SizeFigures> {
        self.sizes.iter().find(|figures| figures.size_bytes == size_bytes)
    }
}

impl SizeFigures {
    /// Returns the figures in time by name, in the order of [`TIMES`].
    pub fn times(&self) -> [(&'static str, &Parameter); TIMES.len()] {
        let times = [&self.T, &self.transfer, &self.o_s, &self.o_r, &self.g, &self.L];
        std::array::from_fn(|at| (TIMES[at], times[at]))
    }

    /// Reports that g(n) is measured, and not only bounded.
    pub fn g_is_measured(&self) -> bool {
        self.g.status == Status::Measured
    }
}
