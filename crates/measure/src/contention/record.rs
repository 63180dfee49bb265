//! The record of the verb `contention`.

use super::data::CrowdData;
use crate::record::parameter::Parameter;
use crate::record::plateau::Plateau;
use crate::stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What contention does to a layer. A pair *alone* is one whose peers communicate while all
/// other processes only wait for requests; the `parameters` of the result are those of ranks 0
/// and 1 alone. Ratios are paired: both figures are of one launch, in which their repetitions
/// were interleaved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// Processes.
    pub procs: usize,
    /// What sets the time per message of one pair alone.
    pub plateau: Plateau,
    /// Round trips of every pair, one pair at a time.
    pub pairs: Pairs,
    /// Half of the processes as requesters, half as repliers, all at once.
    pub halves: Halves,
    /// One requester that sends to all others in turn.
    pub one_to_many: OneToMany,
    /// K requesters that send to one replier, for K from 1 on.
    pub many_to_one: Vec<ManyToOne>,
    /// Messages that several pairs exchange together.
    pub rates: Vec<Rate>,
    /// The data behind all of it.
    pub launches: Vec<CrowdData>,
}

/// A ratio of two figures of the same launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quotient {
    /// Median over the launches.
    pub value: f64,
    /// Its interval; null with too few launches.
    pub ci: Option<Interval>,
    /// CrowdLaunches behind it.
    pub launches: usize,
}

/// Round trips of every pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pairs {
    /// Median over the launches, by the rank of the requester, then by that of the replier;
    /// null on the diagonal.
    pub rtt_ns: Vec<Vec<Option<f64>>>,
    /// The pair with the shortest.
    pub least: PairTrip,
    /// The pair with the longest.
    pub most: PairTrip,
    /// The longest over the shortest.
    pub most_over_least: Quotient,
}

/// The round trip of one pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairTrip {
    /// Rank of the requester.
    pub requester: usize,
    /// Rank of the replier.
    pub replier: usize,
    /// The round trip.
    pub rtt: Parameter,
}

/// A pair alone against the same pair while all others do what it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Halves {
    /// Pairs at once.
    pub pairs: usize,
    /// By parameter: rtt, o_s, o_r, g, L; g stands for the time per message, whatever sets it.
    pub compared: Vec<Compared>,
}

/// A parameter of one pair alone and in the crowd.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Which one.
    pub parameter: String,
    /// One pair alone.
    pub alone: Parameter,
    /// The same pair in the crowd.
    pub crowd: Parameter,
    /// In the crowd over alone; null where either is not above 0 in every launch.
    pub ratio: Option<Quotient>,
    /// In the crowd less alone: median over the launches, in nanoseconds.
    pub difference_ns: Quotient,
    /// The pair in the crowd with the least: its median over the launches.
    pub least_ns: f64,
    /// The pair in the crowd with the most.
    pub most_ns: f64,
}

/// One requester, many repliers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneToMany {
    /// Repliers.
    pub repliers: usize,
    /// Time per message of the requester.
    pub gap: Parameter,
    /// The same over that with one replier.
    pub ratio: Quotient,
}

/// Many requesters, one replier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManyToOne {
    /// Requesters, K.
    pub requesters: usize,
    /// Time per message of a requester, g(K): K over the sum of their rates.
    pub gap: Parameter,
    /// g(K) / g(1).
    pub ratio: Quotient,
    /// What that ratio is by the LogP model: K, for the receiver takes a message in a gap.
    pub model: f64,
    /// Time per message of the slowest requester over that of the fastest.
    pub slowest_over_fastest: Quotient,
}

/// What several pairs exchange together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Pairs at once.
    pub pairs: usize,
    /// Requests that are answered in a second, over all pairs.
    pub messages_per_s: Quotient,
    /// The same over that of one pair.
    pub ratio: Quotient,
    /// What that ratio is by the LogP model: the number of pairs.
    pub model: f64,
}
