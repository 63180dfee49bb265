//! Completions: entries of completion queues, and counts of counters.

use crate::abi;
use slab::Slab;
use std::collections::VecDeque;

/// An operation whose completion is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A message was sent.
    Send,
    /// A message was received.
    Receive,
    /// Memory of a peer was read.
    Read,
    /// Memory of a peer was written.
    Write,
    /// A peer has read memory of this process.
    RemoteRead,
    /// A peer has written memory of this process.
    RemoteWrite,
}

impl Op {
    /// Returns whether a peer has begun it, so that this process knows no context of it.
    const fn is_of_peer(self) -> bool {
        matches!(self, Self::RemoteRead | Self::RemoteWrite)
    }
}

/// Number of operations.
pub const OPS: usize = 6;

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Failure {
    /// The message was longer than the receive.
    Truncated = 1,
    /// The program has cancelled it.
    Cancelled,
    /// The peer has ended.
    PeerLost,
    /// The peer has no such endpoint.
    NoEndpoint,
    /// The peer has no such memory, or does not allow the access.
    NoMemory,
    /// The system does not copy the bytes.
    NotCopied,
    /// No message matches.
    NoMessage,
}

impl Failure {
    /// Returns the failure of a number in a header; `None` for 0.
    pub fn of(number: u32) -> Option<Self> {
        let all = [Self::NoEndpoint, Self::NoMemory, Self::NotCopied];
        if number == 0 {
            return None;
        }
        Some(all.into_iter().find(|failure| *failure as u32 == number).unwrap_or(Self::NotCopied))
    }
}

/// An entry of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The context of the operation.
    pub context: usize,
    /// What it was, as flags of libfabric.
    pub flags: u64,
    /// Number of bytes received.
    pub len: usize,
    /// Address of the bytes received.
    pub buffer: u64,
    /// Remote completion data.
    pub data: u64,
    /// The tag.
    pub tag: u64,
    /// The sender: its peer number and endpoint.
    pub source: u64,
    /// The endpoint that reports it.
    pub endpoint: u16,
    /// Why it failed, and the number of bytes that found no room.
    pub failure: Option<(Failure, usize)>,
}

impl Completion {
    /// Returns the completion of an operation that received nothing.
    pub const fn new(context: usize, flags: u64) -> Self {
        Self {
            context,
            flags,
            len: 0,
            buffer: 0,
            data: 0,
            tag: 0,
            source: u64::MAX,
            endpoint: 0,
            failure: None,
        }
    }

    /// Returns the completion with remote completion data, if there is any.
    pub fn with_data(self, data: Option<u64>) -> Self {
        match data {
            None => self,
            Some(data) => Self { flags: self.flags | abi::REMOTE_CQ_DATA, data, ..self },
        }
    }
}

/// A counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter {
    /// Number of complete operations.
    pub value: u64,
    /// Number of failed operations.
    pub errors: u64,
}

impl Counter {
    /// Returns the number of operations that have ended.
    pub const fn ended(&self) -> u64 {
        self.value.wrapping_add(self.errors)
    }
}

/// The queue and the counters of an endpoint for its operations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reports {
    /// The queue of each operation.
    pub queues: [Option<usize>; OPS],
    /// The counter of each operation.
    pub counters: [Option<usize>; OPS],
}

/// All completion queues and counters of a domain.
#[derive(Debug, Default)]
pub struct Completions {
    /// The entries of each queue, in order. Failed operations stand among the others.
    pub queues: Slab<VecDeque<Completion>>,
    /// The counters.
    pub counters: Slab<Counter>,
    /// Whether something was reported since [`Completions::take_news`].
    has_news: bool,
}

impl Completions {
    /// Reports the end of an operation: counts it, and makes an entry if one `is_wanted`, or if it is an own operation
    /// that has failed.
    pub fn report(&mut self, reports: &Reports, op: Op, completion: Completion, is_wanted: bool) {
        let is_failed = completion.failure.is_some();
        if let Some(counter) = reports.counters[op as usize] {
            self.count(counter, is_failed);
        }
        if is_wanted || is_failed && !op.is_of_peer() {
            self.push(reports, op, completion);
        }
    }

    /// Returns whether something was reported since the last call.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Counts the end of an operation.
    pub fn count(&mut self, counter: usize, is_failed: bool) {
        self.has_news = true;
        if let Some(counter) = self.counters.get_mut(counter) {
            if is_failed {
                counter.errors += 1;
            } else {
                counter.value += 1;
            }
        }
    }

    /// Makes an entry.
    pub fn push(&mut self, reports: &Reports, op: Op, completion: Completion) {
        if let Some(queue) = reports.queues[op as usize].and_then(|number| self.queues.get_mut(number)) {
            queue.push_back(completion);
            self.has_news = true;
        }
    }
}
