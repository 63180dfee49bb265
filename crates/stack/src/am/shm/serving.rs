//! Bulk transfers over shared memory at the side that owns the memory, and the answers at the other
//! side.

use super::bulk::last_chunk;
use super::peer::ShmPeer;
use super::transfers::{Fetch, Get};
use crate::am::bulk::{Fetched, Placed, Refused, Stored, Transfer};
use crate::am::error::{Loss, PeerLost};
use crate::am::handlers::{Offer, Outbox, ReplySlot};
use netdyno_host::bounce::CELL;
use netdyno_host::ring::{Extent, Message};
use netdyno_protocol::frame::slot::Kind;

/// The peer wrote a message that no correct peer writes.
struct Misbehaved;

impl ShmPeer {
    /// Takes a request of a transfer, which the ring has advanced over.
    #[cold]
    #[inline(never)]
    pub(super) fn take_other_request<S>(
        &mut self,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        self.outbox.ledger.handle();
        let taken = match self.requests_in.reread() {
            Err(_) => Err(Misbehaved),
            Ok((message, extent)) => match message.header.kind {
                Kind::Store | Kind::StagedStore => self.take_store(&message, extent, offer, state),
                Kind::Chunk => self.take_chunk(extent, offer),
                Kind::Fetch => self.take_fetch(extent, offer),
                Kind::Ask => {
                    let memory = offer.memories.get(extent.memory);
                    let is_there = memory.is_some_and(|memory| memory.len() as u64 == extent.len);
                    self.outbox.answer(if is_there { Kind::Granted } else { Kind::Denied }, extent);
                    Ok(())
                }
                _ => Err(Misbehaved),
            },
        };
        taken.map_err(|Misbehaved| self.lose(Loss::Misbehaved))?;
        Ok(1)
    }

    /// Runs the handler of a store, or refuses the store.
    fn take_store<S>(
        &mut self,
        message: &Message,
        extent: Extent,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<(), Misbehaved> {
        let on_store = offer.handlers.store(message.header.handler).ok_or(Misbehaved)?;
        let is_staged = message.header.kind == Kind::StagedStore;
        let Some((memory, offset, len)) = offer.memories.find(extent.memory, extent.offset, extent.len)
        else {
            if is_staged {
                self.bulk.stored_in.skip();
            }
            self.outbox.refuse(message, extent);
            return Ok(());
        };
        if is_staged {
            let last = last_chunk(len);
            self.bulk.stored_in.empty_into(memory.bytes(), offset + last, len - last);
        }
        let (peer, words) = (self.id, message.used_words());
        let slot = ReplySlot(Outbox::Shm(&mut self.outbox));
        on_store(state, Stored { peer, words, bytes: Placed { memory, offset, len }, slot });
        // The peer wants the bounce-buffer slot back.
        if self.outbox.ledger.credit_is_due() || is_staged && self.outbox.ledger.is_owing() {
            self.outbox.credit();
        }
        Ok(())
    }

    /// Copies one chunk of a store to its place. If that is not possible, the store itself is refused
    /// later.
    fn take_chunk<S>(&mut self, extent: Extent, offer: &Offer<S>) -> Result<(), Misbehaved> {
        if extent.len > CELL as u64 {
            return Err(Misbehaved);
        }
        match offer.memories.find(extent.memory, extent.offset, extent.len) {
            Some((memory, offset, len)) => self.bulk.stored_in.empty_into(memory.bytes(), offset, len),
            None => self.bulk.stored_in.skip(),
        }
        self.outbox.credit();
        Ok(())
    }

    /// Copies the requested bytes into a bounce-buffer slot.
    fn take_fetch<S>(&mut self, extent: Extent, offer: &Offer<S>) -> Result<(), Misbehaved> {
        if extent.len > CELL as u64 {
            return Err(Misbehaved);
        }
        let kind = match offer.memories.find(extent.memory, extent.offset, extent.len) {
            Some((memory, offset, len)) => {
                self.bulk.fetched_out.granted_cell().fill_from(memory.bytes(), offset, len);
                Kind::Fetched
            }
            None => {
                self.bulk.fetched_out.skip();
                Kind::NotFetched
            }
        };
        self.outbox.answer(kind, extent);
        Ok(())
    }

    /// Takes an answer that is not a plain reply, which the ring has advanced over.
    #[cold]
    #[inline(never)]
    pub(super) fn take_other_reply<S>(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        let taken = match self.replies_in.reread() {
            Err(_) => Err(Misbehaved),
            Ok((message, extent)) => match message.header.kind {
                Kind::Refused => self.take_refusal(&message, extent, offer, state),
                Kind::Fetched => self.take_fetched(true, offer, state),
                Kind::NotFetched => self.take_fetched(false, offer, state),
                Kind::Granted => self.take_answer(true),
                Kind::Denied => self.take_answer(false),
                _ => Err(Misbehaved),
            },
        };
        taken.map_err(|Misbehaved| self.lose(Loss::Misbehaved))?;
        Ok(1)
    }

    fn take_refusal<S>(
        &mut self,
        message: &Message,
        extent: Extent,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<(), Misbehaved> {
        // Without this handler no transfer was begun that the peer could refuse.
        let on_refused = offer.handlers.refused().ok_or(Misbehaved)?;
        let (peer, transfer, words) = (self.id, Transfer::Store, message.used_words());
        let Extent { memory, offset, len } = extent;
        let handler = message.header.handler;
        on_refused(state, Refused { peer, transfer, memory, offset, len, handler, words });
        Ok(())
    }

    /// Copies the next chunk of a get out of its bounce-buffer slot. Runs the handler with the last
    /// chunk.
    fn take_fetched<S>(&mut self, is_there: bool, offer: &Offer<S>, state: &mut S) -> Result<(), Misbehaved> {
        let part = self.bulk.fetches.pop_front().ok_or(Misbehaved)?;
        let Fetch { memory, offset, len, whole, .. } = part;
        if is_there {
            self.bulk.fetched_in.empty_into(memory.bytes(), offset, len);
        } else {
            self.bulk.fetched_in.skip();
        }
        let Some(Get { from, to, call }) = whole else { return Ok(()) };
        let (peer, words, handler) = (self.id, call.words, call.handler);
        // The get began only because both handlers exist.
        if is_there {
            let on_fetched = offer.handlers.fetched(handler).ok_or(Misbehaved)?;
            on_fetched(state, Fetched { peer, words, bytes: to.placed() });
        } else {
            let on_refused = offer.handlers.refused().ok_or(Misbehaved)?;
            let (transfer, Extent { memory, offset, len }) = (Transfer::Get, from);
            on_refused(state, Refused { peer, transfer, memory, offset, len, handler, words });
        }
        Ok(())
    }

    fn take_answer(&mut self, is_granted: bool) -> Result<(), Misbehaved> {
        let position = self.bulk.asked.pop_front().ok_or(Misbehaved)?;
        self.bulk.granted = Some((position, is_granted));
        Ok(())
    }
}
