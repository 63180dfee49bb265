//! Memory of this process that peers may map for reading, so that messages from it are copied only once.

use crate::vi::agent::{Agent, Conn};
use netdyno_host::loan::Loan;
use netdyno_protocol::frame::vi_lending::Lending;
use netdyno_protocol::vi::Segment;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// All such memory that exists.
#[derive(Default)]
pub(super) struct Lent {
    /// By the address of its first byte: the identifier that peers use, and the memory.
    memory: BTreeMap<u64, (u64, Weak<Loan>)>,
    named: u64,
}

impl Lent {
    /// Offers memory to peers, for as long as it exists.
    pub(super) fn offer(&mut self, memory: &Arc<Loan>) {
        self.memory.retain(|_, (_, memory)| memory.strong_count() > 0);
        self.named += 1;
        let base = memory.base().addr().get() as u64;
        self.memory.insert(base, (self.named, Arc::downgrade(memory)));
    }

    /// Returns the memory that contains the whole segment, and its identifier.
    pub(super) fn find(&self, segment: &Segment) -> Option<(u64, Arc<Loan>)> {
        let (base, (name, memory)) = self.memory.range(..=segment.address).next_back()?;
        let memory = memory.upgrade()?;
        let end = segment.address - base + u64::from(segment.len);
        (end <= memory.len() as u64).then_some((*name, memory))
    }

    /// Returns whether the memory with this identifier still exists.
    pub(super) fn has(&self, name: u64) -> bool {
        self.memory.values().any(|(known, memory)| *known == name && memory.strong_count() > 0)
    }
}

/// The means by which a link maps memory into its peer.
#[derive(Clone, Copy)]
pub(super) struct Lender<'a> {
    pub lent: &'a Lent,
    pub agent: &'a Agent,
}

impl Lender<'_> {
    /// Passes memory to the peer of the connection with this number. Returns whether the message was
    /// sent.
    pub(super) fn lend(self, conn: Conn, number: u64, id: u64, memory: &Loan) -> bool {
        let lending = Lending { number, id, len: Some(memory.len() as u64) };
        self.agent.say(conn, &lending.encode(), Some(memory.as_fd()))
    }

    /// Tells the peer to unmap memory. Returns whether the message was sent.
    pub(super) fn take_back(self, conn: Conn, number: u64, id: u64) -> bool {
        self.agent.say(conn, &Lending { number, id, len: None }.encode(), None)
    }
}
