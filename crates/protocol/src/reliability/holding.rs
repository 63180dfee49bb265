//! Messages of a dialled link that have arrived and are not due: they are not delivered before, so
//! nothing that they say of requests holds before.

use super::transfers::{Event, Step};
use crate::frame::datagram::Header;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What is held of a message.
#[derive(Debug)]
pub enum What {
    /// All of it.
    Message(Vec<u8>),
    /// What the transfer has come to that it belongs to. Its bytes are in their place.
    Step(Step),
}

/// A message that is held.
#[derive(Debug)]
pub struct Held {
    pub header: Header,
    pub what: What,
    pub due: u64,
    /// Requests that are completed behind it, as others said that are not held.
    pub then_completed: Option<u16>,
}

/// What a message is for that was held until it was due.
#[derive(Debug)]
pub enum Released {
    /// A request or a reply, all of it.
    Message(Vec<u8>),
    /// What came of a transfer.
    Event(Event),
}

/// The messages that are held, in their order.
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

    /// The one that was put last.
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

    /// Memory for what is held.
    pub fn memory_bytes(&self) -> usize {
        let messages = self.held.iter().map(|held| match &held.what {
            What::Message(bytes) => bytes.capacity(),
            What::Step(_) => 0,
        });
        messages.sum::<usize>() + self.held.capacity() * size_of::<Held>()
    }
}
