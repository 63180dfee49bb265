//! Bulk transfers over UDP: the source and the destination of their bytes. `Connection` decides when a
//! datagram goes.

use super::UdpPeers;
use super::peer::UdpPeer;
use super::transfers::{Get, Lent, Reach};
use crate::am::Endpoint;
use crate::am::bulk::{
    Destination, Fetched, Memories, Note, Placed, Refused, Remote, Shared, Source, Stored, Transfer,
};
use crate::am::endpoint::SLEEP_AT_MOST;
use crate::am::error::{AttachError, Loss, PeerLost, RequestError, TransferError};
use crate::am::handlers::{self, Offer};
use crate::am::peer_id::PeerId;
use netdyno_protocol::frame::datagram::Datagram;
use netdyno_protocol::frame::memory_key::MemoryKey;
use netdyno_protocol::frame::transfer::Range;
use netdyno_protocol::reliability::{self, Event, Full};
use std::sync::Arc;

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
        let outbox = handlers::Outbox::Udp(&mut self.outbox);
        on_store(state, Stored { peer: self.id, words, bytes: Placed { memory, offset, len }, outbox });
        Ok(1)
    }

    fn handle_fetched<S>(&mut self, number: u32, offer: &Offer<S>, state: &mut S) -> usize {
        let Some((to, note)) = self.answered(number, true) else { return 0 };
        let Some(on_fetched) = offer.handlers.fetched(note.handler) else { return 0 };
        on_fetched(state, Fetched { peer: self.id, words: note.words, bytes: to.placed() });
        1
    }

    fn handle_get_refused<S>(&mut self, range: &Range, offer: &Offer<S>, state: &mut S) -> usize {
        let Some((_, Note { handler, words, .. })) = self.answered(range.number, false) else { return 0 };
        self.handle_refused(Transfer::Get, range, handler, words, offer, state)
    }

    /// Removes the first get, which has ended. Returns its destination and its handler.
    fn answered(&mut self, number: u32, is_done: bool) -> Option<(Destination, Note)> {
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

impl UdpPeers {
    /// Begins a store, if there is room in the window. Returns its number.
    fn try_store(
        &mut self,
        remote: Remote,
        offset: usize,
        len: usize,
        note: &Note,
    ) -> Result<u32, RequestError> {
        let now_ns = self.clock.now_ns();
        let peer = &mut self.peers[remote.peer.place()];
        peer.check_connected()?;
        let range = [remote.memory, offset as u64, len as u64];
        peer.depart(len, 0, now_ns)?;
        let store = peer.outbox.connection.store(note.handler, note.words(), range, now_ns);
        store.map_err(|Full| RequestError::Full)
    }

    /// Begins a get, if there is room in the window.
    fn try_get(&mut self, id: PeerId, range: [u64; 3], to: &(Destination, Note)) -> Result<(), RequestError> {
        let now_ns = self.clock.now_ns();
        let peer = &mut self.peers[id.place()];
        peer.check_connected()?;
        peer.depart(0, range[2] as usize, now_ns)?;
        let number = peer.outbox.connection.get(range, now_ns).map_err(|Full| RequestError::Full)?;
        peer.transfers.gets.push_back(Get { number, to: Some(to.clone()) });
        Ok(())
    }

    /// Asks the peer whether it has some memory, if there is room in the window. Returns the question's
    /// number.
    fn try_attach(&mut self, id: PeerId, key: &MemoryKey) -> Result<u32, RequestError> {
        let now_ns = self.clock.now_ns();
        let peer = &mut self.peers[id.place()];
        peer.check_connected()?;
        peer.depart(0, 0, now_ns)?;
        let number =
            peer.outbox.connection.attach(&key.encode(), now_ns).map_err(|Full| RequestError::Full)?;
        peer.transfers.gets.push_back(Get { number, to: None });
        Ok(number)
    }

    /// Sends all that the connection of this peer can send now.
    fn push(&mut self, id: PeerId, memories: &Memories, lent: Lent<'_>) {
        let now_ns = self.clock.now_ns();
        self.transmit_all(id.place(), now_ns, memories, lent);
    }

    /// Returns whether the connection still has to copy bytes of that store.
    fn needs_source(&self, id: PeerId, number: u32) -> bool {
        self.peer(id).outbox.connection.needs_source(number)
    }

    /// Keeps the bytes of a store until the connection has copied them.
    fn keep(&mut self, id: PeerId, number: u32, bytes: Shared) {
        self.peers[id.place()].transfers.sources.push_back((number, bytes));
    }
}

impl<S> Endpoint<S> {
    pub(in crate::am) fn attach_over_udp(
        &mut self,
        state: &mut S,
        id: PeerId,
        key: &MemoryKey,
    ) -> Result<Remote, AttachError> {
        let len = usize::try_from(key.len).map_err(|_| AttachError::NotRegistered)?;
        let mut asked = 0;
        self.until_sent(state, |endpoint| {
            asked = endpoint.udp_mut().try_attach(id, key)?;
            Ok(())
        })?;
        self.push(id, None);
        loop {
            match self.udp().peer(id).transfers.attached {
                Some((number, true)) if number == asked => break,
                Some((number, false)) if number == asked => return Err(AttachError::NotRegistered),
                _ => {}
            }
            self.udp().peer(id).check_connected()?;
            if self.poll(state)? == 0 {
                self.idle(SLEEP_AT_MOST);
            }
        }
        Ok(Remote { peer: id, memory: key.id, len, place: 0 })
    }

    pub(in crate::am) fn store_over_udp(
        &mut self,
        state: &mut S,
        remote: Remote,
        offset: usize,
        source: Source<'_>,
        note: Note,
    ) -> Result<(), TransferError> {
        let (id, len) = (remote.peer, source.bytes().len());
        let mut number = 0;
        self.until_sent(state, |endpoint| {
            number = endpoint.udp_mut().try_store(remote, offset, len, &note)?;
            Ok(())
        })?;
        match source {
            Source::Shared(bytes) => {
                self.udp_mut().keep(id, number, bytes);
                self.push(id, None);
                Ok(())
            }
            Source::Lent(bytes) => Lending { endpoint: self, id, number, bytes }.until_taken(state),
        }
    }

    pub(in crate::am) fn get_over_udp(
        &mut self,
        state: &mut S,
        remote: Remote,
        offset: usize,
        to: Destination,
        note: Note,
    ) -> Result<(), TransferError> {
        let range = [remote.memory, offset as u64, to.len as u64];
        let to = (to, note);
        self.until_sent(state, |endpoint| endpoint.udp_mut().try_get(remote.peer, range, &to))?;
        self.push(remote.peer, None);
        Ok(())
    }

    fn push(&mut self, id: PeerId, lent: Lent<'_>) {
        if let Some(udp) = &mut self.udp {
            udp.push(id, &self.offer.memories, lent);
        }
    }
}

/// A store whose caller waits until its bytes are copied.
struct Lending<'a, S> {
    endpoint: &'a mut Endpoint<S>,
    id: PeerId,
    number: u32,
    bytes: &'a [u8],
}

impl<S> Lending<'_, S> {
    fn until_taken(self, state: &mut S) -> Result<(), TransferError> {
        loop {
            self.endpoint.push(self.id, Some((self.number, self.bytes)));
            if !self.endpoint.udp().needs_source(self.id, self.number) {
                self.endpoint.udp().peer(self.id).check_connected()?;
                return Ok(());
            }
            if self.endpoint.poll(state)? == 0 {
                self.endpoint.idle(SLEEP_AT_MOST);
            }
        }
    }
}

impl<S> Drop for Lending<'_, S> {
    /// Copies the bytes of the store if the call returns early, because another peer is lost or a
    /// handler panics.
    fn drop(&mut self) {
        if self.endpoint.udp().needs_source(self.id, self.number) {
            self.endpoint.udp_mut().keep(self.id, self.number, Arc::<[u8]>::from(self.bytes).into());
        }
    }
}
