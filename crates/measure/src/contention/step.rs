//! What processes are asked to do together, and what they answer.
//!
//! In a step some processes are requesters, all others answer. Clocks of processes are never
//! compared; that all requesters are at work while any of them counts follows from the order
//! of what they are told:
//!
//! 1. Each requester begins, and says when it is warm.
//! 2. Once all are warm, each is told to count ([`Cue::Count`]); it times a part of what it
//!    does, says what it found, and goes on doing it.
//! 3. Once all have counted, each is told to stop ([`Cue::Stop`]), waits for its replies, and
//!    says that it is done.

use super::data::Timed;
use serde::{Deserialize, Serialize};

/// What a requester does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Activity {
    /// Single round trips, some with each peer in turn.
    RoundTrips,
    /// Bursts of requests alone, from quiet.
    Bursts,
    /// Requests to the peers in turn, as fast as the layer takes them, or with a delay after
    /// each.
    Stream {
        /// The delay.
        delay_ns: f64,
    },
}

/// What one requester is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Whom it sends to.
    pub peers: Vec<usize>,
    /// What it does.
    pub activity: Activity,
    /// Requests to one peer that may be without a reply, where the layer allows so many.
    pub window: usize,
    /// What must pass after a reply until the layer is quiet.
    pub rest_ns: f64,
    /// How long to count.
    pub count_ns: f64,
    /// Messages after which to stop counting earlier, where so many are enough.
    pub enough: Option<u64>,
}

/// What is done at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The requesters, by rank, and what each does.
    pub requesters: Vec<(usize, Assignment)>,
}

impl Step {
    /// Who sends to `rank` in this step.
    pub fn requesters_of(&self, rank: usize) -> Vec<usize> {
        let sends = |(_, assignment): &&(usize, Assignment)| assignment.peers.contains(&rank);
        self.requesters.iter().filter(sends).map(|(requester, _)| *requester).collect()
    }
}

/// What a requester is told in the course of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cue {
    /// Count.
    Count,
    /// Come to an end.
    Stop,
}

/// What a requester has counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Round trips by peer, in their order; one value for bursts and streams.
    pub times: Vec<Timed>,
    /// The most requests to one peer that the layer allows without a reply.
    pub max_window: usize,
}
