//! An endpoint: its posted receives, its unexpected messages, and where its completions go.

use super::bound::Bytes;
use super::completion::Reports;
use super::links::PeerNo;
use crate::matching::Matcher;
use crate::memory::{Memory, Segment};
use rustc_hash::FxHashMap;
use slab::Slab;
use smallvec::SmallVec;

/// A posted receive.
#[derive(Debug)]
pub enum Receive {
    /// A receive of one message.
    Once {
        /// The memory.
        memory: Memory,
        /// The context of the operation.
        context: usize,
        /// Whether a completion is wanted.
        is_reported: bool,
    },
    /// A buffer of several messages, by its number.
    Several(usize),
}

/// A buffer that takes several messages, one behind the other.
#[derive(Debug)]
pub struct Buffer {
    pub memory: Memory,
    pub context: usize,
    pub is_reported: bool,
    /// Number of bytes that are taken.
    pub used: usize,
    /// Number of messages whose bytes are still coming.
    pub pending: usize,
    /// It takes no further message.
    pub is_full: bool,
}

/// A message that no receive wanted when it arrived.
#[derive(Debug)]
pub struct Unexpected {
    pub arrival: Arrival,
    pub body: Body,
}

/// What is known of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub source: u64,
    pub peer: PeerNo,
    pub is_tagged: bool,
    pub tag: u64,
    pub data: Option<u64>,
    /// Its length in bytes.
    pub len: usize,
}

/// The bytes of an unexpected message.
#[derive(Debug)]
pub enum Body {
    /// They are here. The sender may wait until they are taken: its transfer.
    Here(Bytes, Option<u32>),
    /// The sender keeps them until they are taken.
    Offered {
        /// The sender's transfer.
        transfer: u32,
        /// The sender's memory.
        segments: SmallVec<[Segment; 1]>,
    },
}

/// An endpoint.
#[derive(Debug, Default)]
pub struct Endpoint {
    pub reports: Reports,
    pub tagged: Matcher<Receive, Unexpected>,
    pub untagged: Matcher<Receive, Unexpected>,
    pub buffers: Slab<Buffer>,
    /// A buffer of several messages is full when it has less room than this, in bytes.
    pub least_room: usize,
    /// Messages that the program has claimed, by context.
    pub claimed: FxHashMap<usize, Unexpected>,
}

/// The endpoints of a process, by number. A number that was given back is given again after all others: messages to the
/// closed endpoint may be under way, and a peer may not know that it is closed.
#[derive(Debug, Default)]
pub struct Endpoints {
    /// Boxed, because a program that opens and closes many leaves as many places.
    places: Vec<Option<Box<Endpoint>>>,
    /// The number that is given next, unless it is in use.
    next: u16,
}

impl Endpoints {
    /// Adds an endpoint. Returns its number; `None` if all numbers are in use.
    pub fn insert(&mut self, endpoint: Endpoint) -> Option<u16> {
        // The highest number stands for no endpoint.
        let mut numbers = (self.next..u16::MAX).chain(0..self.next);
        let number = numbers.find(|number| self.get(*number).is_none())?;
        if self.places.len() <= number.into() {
            self.places.resize_with(usize::from(number) + 1, || None);
        }
        self.places[usize::from(number)] = Some(Box::new(endpoint));
        self.next = number + 1;
        Some(number)
    }

    pub fn get(&self, number: u16) -> Option<&Endpoint> {
        self.places.get(usize::from(number))?.as_deref()
    }

    pub fn get_mut(&mut self, number: u16) -> Option<&mut Endpoint> {
        self.places.get_mut(usize::from(number))?.as_deref_mut()
    }

    pub fn remove(&mut self, number: u16) -> Option<Endpoint> {
        self.places.get_mut(usize::from(number))?.take().map(|endpoint| *endpoint)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Endpoint> {
        self.places.iter().flatten().map(Box::as_ref)
    }
}

impl Endpoint {
    pub fn matcher(&mut self, is_tagged: bool) -> &mut Matcher<Receive, Unexpected> {
        if is_tagged { &mut self.tagged } else { &mut self.untagged }
    }

    /// Takes all unexpected messages away.
    pub fn take_messages(&mut self) -> Vec<Unexpected> {
        let Self { tagged, untagged, claimed, .. } = self;
        let claimed = claimed.drain().map(|(_, message)| message);
        tagged.drain_messages().chain(untagged.drain_messages()).chain(claimed).collect()
    }

    /// Takes a posted receive away by its context. Returns it, and whether it was tagged; `None` if it is not posted.
    pub fn unpost(&mut self, context: usize) -> Option<(Receive, bool)> {
        let Self { tagged, untagged, buffers, .. } = self;
        let is_it = |receive: &Receive| match receive {
            Receive::Once { context: other, .. } => *other == context,
            Receive::Several(number) => buffers.get(*number).is_some_and(|buffer| buffer.context == context),
        };
        Some(match tagged.find_receive_by(is_it) {
            Some(id) => (tagged.take_receive(id), true),
            None => (untagged.take_receive(untagged.find_receive_by(is_it)?), false),
        })
    }
}
