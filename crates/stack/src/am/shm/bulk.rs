//! Transfers between processes that share memory.
//!
//! Memory that the library allocated is mapped by both sides: a store is one copy by the side
//! that stores, and then a message whose slot is released after it; a get is one copy by the
//! side that gets, of which the other one learns nothing.

use super::Arrived;
use super::peer::{Outbox, ShmPeer, header};
use crate::am::Endpoint;
use crate::am::bulk::{Destination, Mapped, Note, Refused, Remote, Source, Stored, Transfer};
use crate::am::config::PeerId;
use crate::am::error::{AttachError, Loss, PeerLost, TransferError};
use crate::am::handlers::{self, Offer};
use netdyno_host::ring::{Extent, Message};
use netdyno_protocol::frame::memory_key::{MemoryKey, Place};
use netdyno_protocol::frame::slot::{Header, Kind};

impl<S> Endpoint<S> {
    pub(in crate::am) fn attach_over_shm(
        &mut self,
        _state: &mut S,
        id: PeerId,
        key: &MemoryKey,
    ) -> Result<Remote, AttachError> {
        let peer = self.shm.peer_mut(id);
        peer.check_connected()?;
        let Place::Segment { pid, fd, nonce } = key.place else { return Err(AttachError::Unsupported) };
        if pid != peer.attached.pid {
            return Err(AttachError::Foreign);
        }
        let mapped = Mapped::open(key, pid, fd, nonce)?.ok_or(AttachError::NotRegistered)?;
        let len = mapped.len();
        let place = peer.attached.insert(mapped);
        Ok(Remote { peer: id, memory: key.id, len, place })
    }

    pub(in crate::am) fn store_over_shm(
        &mut self,
        state: &mut S,
        remote: Remote,
        offset: usize,
        source: Source<'_>,
        note: Note,
    ) -> Result<(), TransferError> {
        self.wait_for_shm_room(state, remote.peer)?;
        self.shm.peer_mut(remote.peer).store(remote, offset, source.bytes(), &note)
    }

    pub(in crate::am) fn get_over_shm(
        &mut self,
        state: &mut S,
        remote: Remote,
        offset: usize,
        to: Destination,
        note: Note,
    ) -> Result<(), TransferError> {
        while self.shm.arrived() >= self.config.window as usize {
            self.poll(state)?;
        }
        let peer = self.shm.peer_mut(remote.peer);
        peer.check_connected()?;
        peer.fetch(remote, offset, &to)?;
        self.shm.arrive(Arrived { peer: remote.peer, to, note });
        Ok(())
    }
}

/// What a peer has that is mapped here.
pub(super) struct Attached {
    pid: u32,
    memories: Vec<Option<Mapped>>,
}

impl Attached {
    pub(super) fn new(pid: u32) -> Self {
        Self { pid, memories: Vec::new() }
    }

    /// Takes a memory; one that is there already takes its place. Returns the place.
    fn insert(&mut self, mapped: Mapped) -> u32 {
        let is_same = |place: &Option<Mapped>| place.as_ref().is_some_and(|other| other.id == mapped.id);
        let place = match self.memories.iter().position(|place| is_same(place) || place.is_none()) {
            Some(place) => place,
            None => {
                self.memories.push(None);
                self.memories.len() - 1
            }
        };
        self.memories[place] = Some(mapped);
        place as u32
    }

    fn place(&mut self, remote: Remote) -> Option<&mut Option<Mapped>> {
        let place = self.memories.get_mut(remote.place as usize)?;
        place.as_ref().is_some_and(|mapped| mapped.id == remote.memory).then_some(place)
    }

    /// The memory, if it is registered. What is not is given up.
    #[inline]
    fn get(&mut self, remote: Remote) -> Result<&Mapped, TransferError> {
        let place = self.place(remote).ok_or(TransferError::Deregistered)?;
        if !place.as_ref().is_some_and(Mapped::is_open) {
            *place = None;
        }
        place.as_ref().ok_or(TransferError::Deregistered)
    }

    pub(super) fn clear(&mut self) {
        self.memories.clear();
    }
}

impl ShmPeer {
    pub(in crate::am) fn detach(&mut self, remote: Remote) {
        if let Some(place) = self.attached.place(remote) {
            *place = None;
        }
    }

    /// Stores bytes that fit; the caller has seen that there is room for a request.
    fn store(
        &mut self,
        remote: Remote,
        offset: usize,
        bytes: &[u8],
        note: &Note,
    ) -> Result<(), TransferError> {
        self.attached.get(remote)?.write(offset, bytes);
        let extent = Extent { memory: remote.memory, offset: offset as u64, len: bytes.len() as u64 };
        self.credits.take();
        let words = note.words();
        self.requests_out.write_with_extent(header(Kind::Store, note.handler, 0, words), words, extent);
        Ok(())
    }

    /// Copies bytes that are there to where there is room for them.
    fn fetch(&mut self, remote: Remote, offset: usize, to: &Destination) -> Result<(), TransferError> {
        let is_sound = self.attached.get(remote)?.read(offset, &to.memory, to.offset, to.len);
        if is_sound { Ok(()) } else { Err(TransferError::Deregistered) }
    }

    /// Takes a request that is no message alone, which the ring has advanced over.
    #[cold]
    #[inline(never)]
    pub(super) fn take_other_request<S>(
        &mut self,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        let Ok((message, extent)) = self.requests_in.reread() else {
            return Err(self.lose(Loss::Misbehaved));
        };
        let Header { handler, kind, .. } = message.header;
        match (kind, offer.handlers.store(handler)) {
            (Kind::Store, Some(on_store)) => {
                self.outbox.ledger.handle();
                let words = message.used_words();
                match offer.memories.find(extent.memory, extent.offset, extent.len) {
                    Some((memory, offset, len)) => {
                        let outbox = handlers::Outbox::Shm(&mut self.outbox);
                        on_store(state, Stored { peer: self.id, words, memory, offset, len, outbox });
                        if self.outbox.ledger.credit_is_due() {
                            self.outbox.credit();
                        }
                    }
                    None => self.outbox.refuse(&message, extent),
                }
                Ok(1)
            }
            _ => Err(self.lose(Loss::Misbehaved)),
        }
    }

    /// Takes what came in the place of a reply, which the ring has advanced over.
    #[cold]
    #[inline(never)]
    pub(super) fn take_other_reply<S>(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        let Ok((message, Extent { memory, offset, len })) = self.replies_in.reread() else {
            return Err(self.lose(Loss::Misbehaved));
        };
        let Header { handler, kind, .. } = message.header;
        match (kind, offer.handlers.refused()) {
            (Kind::Refused, Some(on_refused)) => {
                let (peer, transfer, words) = (self.id, Transfer::Store, message.used_words());
                on_refused(state, Refused { peer, transfer, memory, offset, len, handler, words });
                Ok(1)
            }
            _ => Err(self.lose(Loss::Misbehaved)),
        }
    }
}

impl Outbox {
    /// Says that a transfer cannot be: with everything that the peer said of it.
    fn refuse(&mut self, request: &Message, extent: Extent) {
        let words = &request.words[..usize::from(request.header.words)];
        let header = header(Kind::Refused, request.header.handler, self.ledger.completed(), words);
        self.replies.write_with_extent(header, words, extent);
        self.ledger.told();
    }
}
