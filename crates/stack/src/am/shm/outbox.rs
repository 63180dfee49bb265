//! The sending side of a connection over shared memory that replies go to.

use crate::am::dial::{Interface, due_there, take_send_overhead};
use netdyno_host::ring::{Extent, Message, Writer};
use netdyno_protocol::am::Ledger;
use netdyno_protocol::frame::slot::{Header, Kind};
use std::sync::Arc;

/// The sending side that replies of handlers go to.
pub(in crate::am) struct ShmOutbox {
    pub(super) replies: Writer,
    pub(super) ledger: Ledger,
    pub(super) medium_bytes: usize,
    /// Present if dials are set.
    pub(super) interface: Option<Arc<Interface>>,
}

impl ShmOutbox {
    /// Stamps the next reply, of `bytes`, as the dials say, if any is set.
    #[inline(always)]
    pub(super) fn depart(&mut self, bytes: usize) {
        if let Some(interface) = &self.interface {
            self.replies.stamp(stamp(interface, bytes).0);
        }
    }

    pub(in crate::am) fn is_dialled(&self) -> bool {
        self.interface.is_some()
    }

    #[inline(always)]
    pub(in crate::am) fn reply(&mut self, handler: u8, words: &[u64]) {
        self.depart(size_of_val(words));
        self.reply_undialled(handler, words);
    }

    /// Replies without a stamp. Over a dialled link the caller has stamped the reply.
    #[inline(always)]
    pub(in crate::am) fn reply_undialled(&mut self, handler: u8, words: &[u64]) {
        let header = header(Kind::Short, handler, self.ledger.completed(), words);
        self.replies.write(self.ledger.answer(), header, words);
    }

    pub(in crate::am) fn reply_medium(&mut self, handler: u8, words: &[u64], payload: &[u8]) {
        self.depart(size_of_val(words) + payload.len());
        let header = header(Kind::Medium, handler, self.ledger.completed(), words);
        self.replies.write_with_payload(self.ledger.answer(), header, words, payload);
    }

    pub(in crate::am) fn medium_bytes(&self) -> usize {
        self.medium_bytes
    }

    /// Sends a credit: tells the peer how many requests were handled. Uses the slot that one of the
    /// peer's unanswered requests reserved.
    pub(super) fn credit(&mut self) {
        let header = header(Kind::Credit, 0, self.ledger.completed(), &[]);
        self.replies.write(self.ledger.answer(), header, &[]);
    }

    /// Refuses a store; repeats all that the peer said of it.
    pub(super) fn refuse(&mut self, request: &Message, extent: Extent) {
        let words = &request.words[..usize::from(request.header.words)];
        self.depart(size_of_val(words));
        let header = header(Kind::Refused, request.header.handler, self.ledger.completed(), words);
        self.replies.write_with_extent(self.ledger.answer(), header, words, extent);
    }

    /// Answers a request that needs no handler.
    pub(super) fn answer(&mut self, kind: Kind, extent: Extent) {
        let header = header(kind, 0, self.ledger.completed(), &[]);
        self.replies.write_with_extent(self.ledger.answer(), header, &[], extent);
    }
}

#[inline(always)]
pub(super) fn header(kind: Kind, handler: u8, completed: u16, words: &[u64]) -> Header {
    // The ring fills in the sequence number.
    Header { sequence: 0, completed, handler, kind, words: words.len() as u8 }
}

/// Spends the send overhead. Returns the stamp of a message of `bytes` that is sent after that, and when
/// the message is due at the peer.
#[cold]
pub(super) fn stamp(interface: &Interface, bytes: usize) -> (u64, u64) {
    let parameters = interface.parameters();
    let stamp = interface.depart(take_send_overhead(&parameters), bytes, &parameters).at;
    (stamp, due_there(stamp, &parameters))
}
