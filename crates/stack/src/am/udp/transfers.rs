//! The state of this side's own transfers over UDP, and the memory that a connection copies them from and to.

use crate::am::bulk::{Destination, Memories, Shared};
use crate::am::call::Call;
use crate::am::transport::Lent;
use netdyno_protocol::frame::memory_key::MemoryKey;
use netdyno_protocol::frame::transfer::Range;
use netdyno_protocol::reliability;
use std::collections::VecDeque;

/// The state of this side's own transfers.
#[derive(Default)]
pub(super) struct Transfers {
    /// Bytes of stores whose caller does not wait, in order.
    pub(super) sources: VecDeque<(u32, Shared)>,
    /// Gets and questions without an answer, in order.
    pub(super) gets: VecDeque<Get>,
    /// The number of the last answered question whether the peer has some memory, and the answer.
    pub(super) attached: Option<(u32, bool)>,
}

pub(super) struct Get {
    pub(super) number: u32,
    /// The destination; `None` if this asks only whether the memory exists.
    pub(super) to: Option<(Destination, Call)>,
}

/// The memory that a connection copies transfers from and to.
pub(super) struct Reach<'a> {
    pub(super) memories: &'a Memories,
    pub(super) transfers: &'a mut Transfers,
    pub(super) lent: Lent<'a>,
}

impl reliability::Memories for Reach<'_> {
    fn source(&mut self, number: u32, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        let at = at as usize;
        let lent = self.lent.filter(|(lent, _)| *lent == number).map(|(_, bytes)| bytes);
        let kept = || self.transfers.sources.front().filter(|(first, _)| *first == number);
        let Some(source) = lent.or_else(|| kept().map(|(_, bytes)| &bytes[..])) else { return false };
        let Some(bytes) = source.get(at..at + len) else { return false };
        out.extend_from_slice(bytes);
        let are_last = at + len == source.len();
        if are_last && lent.is_none() {
            self.transfers.sources.pop_front();
        }
        true
    }

    fn has(&mut self, key: &[u8]) -> bool {
        let id = MemoryKey::parse(key).map(|key| key.id);
        id.ok().and_then(|id| self.memories.get(id)).is_some_and(|memory| memory.key() == key)
    }

    fn read(&mut self, range: &Range, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        let Some((memory, offset, _)) = self.memories.find(range.memory, range.offset, range.len) else {
            return false;
        };
        let begin = out.len();
        out.resize(begin + len, 0);
        memory.bytes().read(offset + at as usize, &mut out[begin..]);
        true
    }

    fn write(&mut self, range: &Range, at: u64, bytes: &[u8]) -> bool {
        let Some((memory, offset, _)) = self.memories.find(range.memory, range.offset, range.len) else {
            return false;
        };
        memory.bytes().write(offset + at as usize, bytes);
        true
    }

    fn fetched(&mut self, number: u32, at: u64, bytes: &[u8]) {
        // The connection ensures that these are no more bytes than the get asked for. It is the first
        // get, unless earlier ones have arrived on a dialled link and are not due.
        let get = self.transfers.gets.iter().find(|get| get.number == number);
        if let Some(Get { to: Some((to, _)), .. }) = get {
            to.memory.bytes().write(to.offset + at as usize, bytes);
        }
    }
}

impl Transfers {
    pub(super) fn reach<'a>(
        &'a mut self,
        memories: &'a Memories,
        lent: Lent<'a>,
    ) -> impl reliability::Memories {
        Reach { memories, transfers: self, lent }
    }
}
