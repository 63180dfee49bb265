//! Bulk transfers over transports other than shared memory, at the side that begins them.

use super::endpoint::{Destination, Source};
use super::remote::{Remote, Target};
use crate::am::Endpoint;
use crate::am::call::Call;
use crate::am::error::{AttachError, TransferError};
use crate::am::peer_id::PeerId;
use crate::am::transport::Lent;
use netdyno_protocol::frame::memory_key::MemoryKey;
use std::sync::Arc;

impl<S> Endpoint<S> {
    pub(super) fn attach_over_other(
        &mut self,
        state: &mut S,
        peer: PeerId,
        key: &MemoryKey,
    ) -> Result<Remote, AttachError> {
        let len = usize::try_from(key.len).map_err(|_| AttachError::NotRegistered)?;
        let mut asked = 0;
        self.until_sent(state, |endpoint| {
            asked = endpoint.others.to_mut(peer).try_attach(peer, key)?;
            Ok(())
        })?;
        self.push(peer, None);
        loop {
            let transport = self.others.to(peer);
            match transport.attached(peer) {
                Some((number, true)) if number == asked => break,
                Some((number, false)) if number == asked => return Err(AttachError::NotRegistered),
                _ => transport.check_connected(peer)?,
            }
            self.poll_or_idle(state)?;
        }
        Ok(Remote { peer, memory: key.id, len, place: 0 })
    }

    pub(super) fn store_over_other(
        &mut self,
        state: &mut S,
        target: Target,
        source: Source<'_>,
        call: &Call,
    ) -> Result<(), TransferError> {
        let (peer, len) = (target.remote.peer, source.bytes().len());
        let mut number = 0;
        self.until_sent(state, |endpoint| {
            number = endpoint.others.to_mut(peer).try_store(target, len, call)?;
            Ok(())
        })?;
        match source {
            Source::Shared(bytes) => {
                self.others.to_mut(peer).keep(peer, number, bytes);
                self.push(peer, None);
                Ok(())
            }
            Source::Lent(bytes) => Lending { endpoint: self, peer, number, bytes }.until_taken(state),
        }
    }

    pub(super) fn get_over_other(
        &mut self,
        state: &mut S,
        target: Target,
        to: &Destination,
        call: &Call,
    ) -> Result<(), TransferError> {
        let peer = target.remote.peer;
        self.until_sent(state, |endpoint| endpoint.others.to_mut(peer).try_get(target, to, call))?;
        self.push(peer, None);
        Ok(())
    }

    fn push(&mut self, peer: PeerId, lent: Lent<'_>) {
        self.others.to_mut(peer).push(peer, &self.offer.memories, lent);
    }
}

/// A store whose caller waits until its bytes are copied.
struct Lending<'a, S> {
    endpoint: &'a mut Endpoint<S>,
    peer: PeerId,
    number: u32,
    bytes: &'a [u8],
}

impl<S> Lending<'_, S> {
    fn until_taken(self, state: &mut S) -> Result<(), TransferError> {
        loop {
            self.endpoint.push(self.peer, Some((self.number, self.bytes)));
            if !self.needs_source() {
                self.endpoint.others.to(self.peer).check_connected(self.peer)?;
                return Ok(());
            }
            self.endpoint.poll_or_idle(state)?;
        }
    }

    fn needs_source(&self) -> bool {
        self.endpoint.others.to(self.peer).needs_source(self.peer, self.number)
    }
}

impl<S> Drop for Lending<'_, S> {
    /// Copies the bytes of the store if the call returns early, because another peer is lost or a
    /// handler panics.
    fn drop(&mut self) {
        if self.needs_source() {
            let bytes = Arc::<[u8]>::from(self.bytes).into();
            self.endpoint.others.to_mut(self.peer).keep(self.peer, self.number, bytes);
        }
    }
}
