//! The messages of a dialled link that have arrived and are not due. They are delivered when they are due, so
//! their completion counts do not hold before.

use super::transfers::{Event, Step};
use crate::frame::datagram::Header;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The held part of a message.
#[derive(Debug)]
pub enum What {
    /// All of the message.
    Message(Vec<u8>),
    /// The next step of the transfer to which the message belongs. Its bytes are in place already.
    Step(Step),
}

/// A held message.
#[derive(Debug)]
pub struct Held {
    pub header: Header,
    pub what: What,
    pub due: u64,
    /// The completion count of later datagrams that are not held. It holds from the release of this message.
    pub then_completed: Option<u16>,
}

/// The content of a message that was held until it was due.
#[derive(Debug)]
pub enum Released {
    /// A complete request or reply.
    Message(Vec<u8>),
    /// The outcome for a transfer.
    Event(Event),
}

/// The held messages, in their order.
#[derive(Debug, Default)]
pub struct Holding {
    held: VecDeque<Held>,
}

impl Holding {
    pub fn len(&self) -> usize {
        self.held.len()
    }

    pub fn put(&mut self, header: Header, what: What, due: u64) {
        self.held.push_back(Held { header, what, due, then_completed: None });
    }

    /// Returns the message that was put last.
    pub fn last(&mut self) -> Option<&mut Held> {
        self.held.back_mut()
    }

    pub fn take(&mut self) -> Option<Held> {
        self.held.pop_front()
    }

    pub fn next_due(&self) -> Option<u64> {
        self.held.front().map(|held| held.due)
    }

    pub fn clear(&mut self) {
        self.held.clear();
    }

    /// Returns the memory of the held messages, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let messages = self.held.iter().map(|held| match &held.what {
            What::Message(bytes) => bytes.capacity(),
            What::Step(_) => 0,
        });
        messages.sum::<usize>() + self.held.capacity() * size_of::<Held>()
    }
}
