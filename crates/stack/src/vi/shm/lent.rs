//! Memory of this process that peers may be let read.

use crate::vi::agent::{Agent, Conn};
use netdyno_host::loan::Loan;
use netdyno_protocol::frame::vi_lending::Lending;
use netdyno_protocol::vi::Segment;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// All of it that is there.
#[derive(Default)]
pub(super) struct Lent {
    /// By the address of its first byte, with the name by which peers know it.
    memory: BTreeMap<u64, (u64, Weak<Loan>)>,
    named: u64,
}

impl Lent {
    /// Peers may be let read this from now on, for as long as it is there.
    pub(super) fn offer(&mut self, memory: &Arc<Loan>) {
        self.memory.retain(|_, (_, memory)| memory.strong_count() > 0);
        self.named += 1;
        let base = memory.base().addr().get() as u64;
        self.memory.insert(base, (self.named, Arc::downgrade(memory)));
    }

    /// The memory in which a segment lies whole, and its name.
    pub(super) fn find(&self, segment: &Segment) -> Option<(u64, Arc<Loan>)> {
        let (base, (name, memory)) = self.memory.range(..=segment.address).next_back()?;
        let memory = memory.upgrade()?;
        let end = segment.address - base + u64::from(segment.len);
        (end <= memory.len() as u64).then_some((*name, memory))
    }

    /// Whether memory of that name is still there.
    pub(super) fn has(&self, name: u64) -> bool {
        self.memory.values().any(|(known, memory)| *known == name && memory.strong_count() > 0)
    }
}

/// How a link lends memory to its peer.
#[derive(Clone, Copy)]
pub(super) struct Lender<'a> {
    pub lent: &'a Lent,
    pub agent: &'a Agent,
}

impl Lender<'_> {
    /// Passes memory to the peer of the connection of that number. Whether that could be done now.
    pub(super) fn lend(self, conn: Conn, number: u64, id: u64, memory: &Loan) -> bool {
        let lending = Lending { number, id, len: Some(memory.len() as u64) };
        self.agent.say(conn, &lending.encode(), Some(memory.as_fd()))
    }

    /// Tells the peer that it needs it no more. Whether that could be done now.
    pub(super) fn take_back(self, conn: Conn, number: u64, id: u64) -> bool {
        self.agent.say(conn, &Lending { number, id, len: None }.encode(), None)
    }
}
