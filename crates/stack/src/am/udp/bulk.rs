//! Bulk transfers over UDP: the source and the destination of their bytes. `Connection` decides when a
//! datagram goes.

use super::peer::UdpPeer;
use super::transfers::Reach;
use crate::am::bulk::{Destination, Fetched, Memories, Placed, Refused, Stored, Transfer};
use crate::am::call::Call;
use crate::am::error::{Loss, PeerLost};
use crate::am::handlers::{Offer, Outbox, ReplySlot};
use crate::am::transport::Lent;
use netdyno_protocol::frame::datagram::Datagram;
use netdyno_protocol::frame::transfer::Range;
use netdyno_protocol::reliability::{self, Event};

impl UdpPeer {
    /// Queues the next message of pending transfers on the connection, if it can be sent now.
    #[inline]
    pub(super) fn feed(&mut self, memories: &Memories, lent: Lent<'_>, now_ns: u64) -> bool {
        let mut reach = Reach { memories, transfers: &mut self.transfers, lent };
        self.outbox.connection.feed(&mut reach, now_ns)
    }

    /// Takes a message that belongs to a transfer.
    pub(super) fn take_transfer<S>(
        &mut self,
        datagram: &Datagram<'_>,
        now_ns: u64,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        let mut reach = Reach { memories: &offer.memories, transfers: &mut self.transfers, lent: None };
        let event = self.outbox.connection.transfer(datagram, &mut reach);
        self.handle_event(event, now_ns, offer, state)
    }

    /// Runs the handler that the outcome of a transfer requires.
    pub(super) fn handle_event<S>(
        &mut self,
        event: Event,
        now_ns: u64,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        match event {
            Event::Nothing => Ok(0),
            Event::Stored(stored) => self.handle_stored(&stored, now_ns, offer, state),
            Event::Fetched(number) => Ok(self.handle_fetched(number, offer, state)),
            Event::GetRefused(range) => Ok(self.handle_get_refused(&range, offer, state)),
            Event::StoreRefused(reliability::Stored { range, handler, words, .. }) => {
                Ok(self.handle_refused(Transfer::Store, &range, handler, words, offer, state))
            }
        }
    }

    fn handle_stored<S>(
        &mut self,
        stored: &reliability::Stored,
        now_ns: u64,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        let reliability::Stored { range, handler, words, .. } = *stored;
        let Some(on_store) = offer.handlers.store(handler) else {
            return Err(self.lose(Loss::Misbehaved));
        };
        let Some((memory, offset, len)) = offer.memories.find(range.memory, range.offset, range.len) else {
            // The memory was registered when its last bytes were placed. On a dialled link that may be
            // long ago.
            self.outbox.refuse(stored, now_ns);
            return Ok(0);
        };
        self.outbox.now_ns = now_ns;
        let slot = ReplySlot(Outbox::Other(&mut self.outbox));
        on_store(state, Stored { peer: self.id, words, bytes: Placed { memory, offset, len }, slot });
        Ok(1)
    }

    fn handle_fetched<S>(&mut self, number: u32, offer: &Offer<S>, state: &mut S) -> usize {
        let Some((to, call)) = self.answered(number, true) else { return 0 };
        let Some(on_fetched) = offer.handlers.fetched(call.handler) else { return 0 };
        on_fetched(state, Fetched { peer: self.id, words: call.words, bytes: to.placed() });
        1
    }

    fn handle_get_refused<S>(&mut self, range: &Range, offer: &Offer<S>, state: &mut S) -> usize {
        let Some((_, Call { handler, words, .. })) = self.answered(range.number, false) else { return 0 };
        self.handle_refused(Transfer::Get, range, handler, words, offer, state)
    }

    /// Removes the first get, which has ended. Returns its destination and its handler.
    fn answered(&mut self, number: u32, is_done: bool) -> Option<(Destination, Call)> {
        let get = self.transfers.gets.pop_front().filter(|get| get.number == number)?;
        if get.to.is_none() {
            self.transfers.attached = Some((number, is_done));
        }
        get.to
    }

    fn handle_refused<S>(
        &mut self,
        transfer: Transfer,
        &Range { memory, offset, len, .. }: &Range,
        handler: u8,
        words: [u64; 4],
        offer: &Offer<S>,
        state: &mut S,
    ) -> usize {
        // Without this handler no transfer is begun.
        let Some(on_refused) = offer.handlers.refused() else { return 0 };
        on_refused(state, Refused { peer: self.id, transfer, memory, offset, len, handler, words });
        1
    }
}
