//! The state of the transfers of one connection over shared memory.

use super::attached::Attached;
use super::port::Layout;
use crate::am::bulk::{Destination, Memory};
use crate::am::call::Call;
use netdyno_host::bounce::{BounceReader, BounceWriter};
use netdyno_host::region::Region;
use netdyno_host::ring::Extent;
use std::collections::VecDeque;
use std::sync::Arc;

/// The state of one connection's transfers.
pub(super) struct Bulk {
    pub(super) attached: Attached,
    /// The bounce buffers of stores: by this side, and by the peer.
    pub(super) stored_out: BounceWriter,
    pub(super) stored_in: BounceReader,
    /// The bounce buffers of gets: by the peer, and by this side.
    pub(super) fetched_out: BounceWriter,
    pub(super) fetched_in: BounceReader,
    /// Chunks that this side requested and that have not arrived, in order.
    pub(super) fetches: VecDeque<Fetch>,
    /// The positions of the requests that ask for a memory and are not answered, in order. An `attach` that
    /// another peer's loss has interrupted leaves its own.
    pub(super) asked: VecDeque<u64>,
    /// The latest answer, with the position of its request.
    pub(super) granted: Option<(u64, bool)>,
}

/// A chunk of a get that this side has requested.
pub(super) struct Fetch {
    /// The position of its request.
    pub(super) position: u64,
    pub(super) memory: Memory,
    pub(super) offset: usize,
    pub(super) len: usize,
    /// The whole get, if this is its last chunk.
    pub(super) whole: Option<Get>,
}

pub(super) struct Get {
    pub(super) from: Extent,
    pub(super) to: Destination,
    pub(super) call: Call,
}

impl Bulk {
    /// # Safety
    /// `inbox` is laid out as `ours` and `their_inbox` as `theirs`, and nothing else on this side uses
    /// the bounce buffers in them.
    pub(super) unsafe fn new(
        inbox: &Arc<Region>,
        ours: Layout,
        their_inbox: &Arc<Region>,
        theirs: Layout,
    ) -> Self {
        // SAFETY: as the caller promised, only this value uses the bounce buffers on this side, and each
        // lies where its layout says.
        unsafe {
            Self {
                attached: Attached::default(),
                stored_out: BounceWriter::new(their_inbox, theirs.stored()),
                stored_in: BounceReader::new(inbox, ours.stored()),
                fetched_out: BounceWriter::new(their_inbox, theirs.fetched()),
                fetched_in: BounceReader::new(inbox, ours.fetched()),
                fetches: VecDeque::new(),
                asked: VecDeque::new(),
                granted: None,
            }
        }
    }

    /// Returns whether the peer has completed `completed` requests but skipped one that it has to
    /// answer.
    pub(super) fn is_cheated(&self, completed: u64) -> bool {
        let is_passed_by = |position: u64| position < completed;
        self.fetches.front().is_some_and(|fetch| is_passed_by(fetch.position))
            || self.asked.front().copied().is_some_and(is_passed_by)
    }

    /// Discards the pending transfers, and unmaps the peer's memory.
    pub(super) fn clear(&mut self) {
        self.attached.clear();
        self.fetches.clear();
        self.asked.clear();
    }
}
