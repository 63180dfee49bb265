//! Transfers by datagrams.

use crate::am::Endpoint;
use crate::am::bulk::{Destination, Note, Remote, Source};
use crate::am::config::PeerId;
use crate::am::error::{AttachError, TransferError};
use netdyno_protocol::frame::memory_key::MemoryKey;

impl<S> Endpoint<S> {
    pub(in crate::am) fn attach_over_udp(
        &mut self,
        _state: &mut S,
        _peer: PeerId,
        _key: &MemoryKey,
    ) -> Result<Remote, AttachError> {
        Err(AttachError::Unsupported)
    }

    pub(in crate::am) fn detach_over_udp(&mut self, _remote: Remote) {}

    pub(in crate::am) fn store_over_udp(
        &mut self,
        _state: &mut S,
        _remote: Remote,
        _offset: usize,
        _source: Source<'_>,
        _note: Note,
    ) -> Result<(), TransferError> {
        Err(TransferError::Unsupported)
    }

    pub(in crate::am) fn get_over_udp(
        &mut self,
        _state: &mut S,
        _remote: Remote,
        _offset: usize,
        _to: Destination,
        _note: Note,
    ) -> Result<(), TransferError> {
        Err(TransferError::Unsupported)
    }
}
