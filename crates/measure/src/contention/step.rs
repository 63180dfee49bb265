//! The joint activity of several processes, and their results.
//!
//! In a step some processes are requesters, and all others answer. No code compares the clocks of different
//! processes. The order of the cues guarantees that all requesters are active while any of them counts:
//!
//! 1. Each requester begins, and reports when it is warm.
//! 2. Once all requesters are warm, each receives the cue to count ([`Cue::Count`]). It times a part of its
//!    activity, reports the result, and continues.
//! 3. Once all requesters have counted, each receives the cue to stop ([`Cue::Stop`]). It waits for its
//!    replies, and reports that it is done.

use super::data::Timed;
use serde::{Deserialize, Serialize};

/// The activity of a requester.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Activity {
    /// Single round trips, several with each peer in turn.
    RoundTrips,
    /// Bursts of requests alone, from quiet.
    Bursts,
    /// Requests to the peers in turn, as fast as the layer accepts them, or with a delay after each.
    Stream {
        /// The delay, in nanoseconds.
        delay_ns: f64,
    },
}

/// The assignment of one requester in a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The ranks of the peers.
    pub peers: Vec<usize>,
    /// The activity.
    pub activity: Activity,
    /// Largest number of outstanding requests to one peer. The layer may allow fewer.
    pub window: usize,
    /// Delay after a reply until the layer is quiet, in nanoseconds.
    pub rest_ns: f64,
    /// Duration of the count, in nanoseconds.
    pub count_ns: f64,
    /// Number of messages that ends the count early; `None` if only the time ends it.
    pub enough: Option<u64>,
}

/// The assignments that run at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The requesters, by rank, with their assignments.
    pub requesters: Vec<(usize, Assignment)>,
}

impl Step {
    /// Returns the ranks of the requesters that send to `rank` in this step.
    pub fn requesters_of(&self, rank: usize) -> Vec<usize> {
        let sends = |(_, assignment): &&(usize, Assignment)| assignment.peers.contains(&rank);
        self.requesters.iter().filter(sends).map(|(requester, _)| *requester).collect()
    }
}

/// A signal to a requester during a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cue {
    /// Start counting.
    Count,
    /// Stop.
    Stop,
}

/// The counts of a requester.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Round trips by peer, in the order of the peers; a single value for bursts and streams.
    pub times: Vec<Timed>,
    /// The largest number of outstanding requests to one peer that the layer allows.
    pub max_window: usize,
    /// Time per message of a stream in polls after which a reply was there: that reply may have come during the
    /// poll, and then waited for its end.
    pub polls_ns: f64,
}
