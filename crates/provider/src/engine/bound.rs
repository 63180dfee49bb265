//! A bound on the bytes of unexpected messages. Beyond it, peers offer also their short messages, and keep the
//! bytes until a receive takes them. The bytes that are on the way already come in addition, and those of messages
//! that are no longer than their offers.

use super::{Engine, Links, PeerNo, SELF};
use crate::frame::{Header, Kind};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of unexpected messages, and those who were told to keep theirs.
#[derive(Debug)]
pub struct Bound {
    pub(super) most: usize,
    total: Arc<AtomicUsize>,
    told: Vec<PeerNo>,
}

/// The bytes of an unexpected message.
#[derive(Debug)]
pub struct Bytes {
    bytes: Box<[u8]>,
    total: Arc<AtomicUsize>,
}

impl Bound {
    pub fn new(most: usize) -> Self {
        Self { most, total: Arc::default(), told: Vec::new() }
    }

    /// Keeps the bytes of a message.
    pub fn keep(&self, bytes: &[u8]) -> Bytes {
        // Only one thread at a time uses an engine.
        self.total.fetch_add(bytes.len(), Ordering::Relaxed);
        Bytes { bytes: bytes.into(), total: Arc::clone(&self.total) }
    }

    /// Returns the bytes of the unexpected messages that are kept.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl<L: Links> Engine<L> {
    /// Sets the bytes of unexpected messages beyond which peers keep those of further ones.
    pub fn set_most_unexpected(&mut self, bytes: usize) {
        self.unexpected.most = bytes;
    }

    /// Tells the sender of an unexpected message to keep the bytes of the next ones, if there are too many here.
    pub(super) fn hold(&mut self, peer: PeerNo) {
        if self.unexpected.total() > self.unexpected.most
            && !std::mem::replace(&mut self.peer(peer).is_told, true)
        {
            self.unexpected.told.push(peer);
            self.tell_to_hold(peer, true);
        }
    }

    /// Tells peers that they need not keep bytes any more, when half of the room is free.
    pub(super) fn release(&mut self) {
        if self.unexpected.told.is_empty() || self.unexpected.total() > self.unexpected.most / 2 {
            return;
        }
        for peer in std::mem::take(&mut self.unexpected.told) {
            self.peer(peer).is_told = false;
            self.tell_to_hold(peer, false);
        }
    }

    fn tell_to_hold(&mut self, peer: PeerNo, holds: bool) {
        if peer == SELF {
            self.peer(SELF).is_holding = holds;
        } else {
            self.answer(peer, Header::new(if holds { Kind::Hold } else { Kind::Release }), &[]);
        }
    }
}
