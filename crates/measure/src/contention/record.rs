//! The record of the verb `contention`.

use super::data::CrowdData;
use super::places::Bisected;
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
    /// Time per message of one pair alone, and the term that sets it.
    pub plateau: Plateau,
    /// Round trips of every pair, one pair at a time.
    pub pairs: Pairs,
    /// Half of the processes are requesters, half are repliers; all pairs communicate at once.
    pub halves: Halves,
    /// One requester, which sends to all others in turn.
    pub one_to_many: OneToMany,
    /// K requesters, which send to one replier, for K from 1 on.
    pub many_to_one: Vec<ManyToOne>,
    /// Rates of several pairs at once.
    pub rates: Vec<Rate>,
    /// Pairs across the bisection against pairs of neighbours. Null with fewer than 4 processes, and in
    /// records of earlier versions.
    #[serde(default)]
    pub bisection: Option<Bisection>,
    /// The data of every launch.
    pub launches: Vec<CrowdData>,
}

/// A ratio of two figures of the same launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quotient {
    /// Median over the launches.
    pub value: f64,
    /// Its interval; null if there are too few launches.
    pub ci: Option<Interval>,
    /// Number of launches.
    pub launches: usize,
}

/// Round trips of every pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pairs {
    /// Median over the launches, by the rank of the requester, then by that of the replier;
    /// null on the diagonal.
    pub rtt_ns: Vec<Vec<Option<f64>>>,
    /// The pair with the shortest round trip.
    pub least: PairTrip,
    /// The pair with the longest round trip.
    pub most: PairTrip,
    /// The longest round trip over the shortest.
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

/// A pair alone, and the same pair while all other pairs do the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Halves {
    /// Number of pairs at once.
    pub pairs: usize,
    /// By parameter: rtt, o_s, o_r, g, L. Here g is the time per message, whichever term sets it.
    pub compared: Vec<Compared>,
}

/// A parameter of one pair alone and in the crowd.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Name of the parameter.
    pub parameter: String,
    /// Value of one pair alone.
    pub alone: Parameter,
    /// Value of the same pair in the crowd.
    pub crowd: Parameter,
    /// The crowd over alone; null unless both are above 0 in every launch.
    pub ratio: Option<Quotient>,
    /// The crowd minus alone: median over the launches, in nanoseconds.
    pub difference_ns: Quotient,
    /// The smallest value of a pair in the crowd: median over the launches.
    pub least_ns: f64,
    /// The largest value of a pair in the crowd: median over the launches.
    pub most_ns: f64,
}

/// One requester, many repliers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneToMany {
    /// Repliers.
    pub repliers: usize,
    /// Time per message of the requester.
    pub gap: Parameter,
    /// That time over the time with one replier.
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
    /// The ratio by the LogP model: K, because the receiver takes one message per gap.
    pub model: f64,
    /// Time per message of the slowest requester over that of the fastest.
    pub slowest_over_fastest: Quotient,
}

/// The rate of several pairs at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Number of pairs at once.
    pub pairs: usize,
    /// Answered requests per second, over all pairs.
    pub messages_per_s: Quotient,
    /// That rate over the rate of one pair.
    pub ratio: Quotient,
    /// The ratio by the LogP model: the number of pairs.
    pub model: f64,
}

/// The rates of two patterns of the same processes: pairs with one end in each half, and pairs of
/// neighbours. The ratio shows whether the middle of the network carries less than its ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bisection {
    /// Number of pairs at once, in each pattern.
    pub pairs: usize,
    /// What separates the halves.
    pub by: Bisected,
    /// Answered requests per second of all pairs across: place i to place i + P/2.
    pub across_per_s: Quotient,
    /// Answered requests per second of all pairs of neighbours: place 0 to 1, 2 to 3.
    pub neighbours_per_s: Quotient,
    /// The rate across over that of neighbours.
    pub ratio: Quotient,
    /// The ratio by the LogP model: 1, because pairs do not notice each other.
    pub model: f64,
}
