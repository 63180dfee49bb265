//! A message that is sent, behind the mark that makes a record of it on a stream.

use netdyno_protocol::frame::rpc_record::{MARK_LEN, whole};

/// Bytes of the transaction id, with which a message begins.
const XID_LEN: usize = 4;

/// A message that is sent. It is never empty.
pub(super) struct Outgoing {
    /// The mark, and behind it the message.
    record: Vec<u8>,
}

impl Outgoing {
    /// Returns a message that `encode` appends to the buffer.
    pub(super) fn new(encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut outgoing = Self { record: Vec::new() };
        outgoing.write(encode);
        outgoing
    }

    /// Replaces the message by what `encode` appends to the buffer.
    #[inline(always)]
    pub(super) fn write(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        self.record.clear();
        self.record.extend_from_slice(&[0; MARK_LEN]);
        encode(&mut self.record);
        let mark = whole(self.message().len());
        self.record[..MARK_LEN].copy_from_slice(&mark);
    }

    /// Sets the transaction id. Every message begins with one.
    #[inline(always)]
    pub(super) fn set_xid(&mut self, xid: u32) {
        self.record[MARK_LEN..MARK_LEN + XID_LEN].copy_from_slice(&xid.to_be_bytes());
    }

    /// Returns the message, as a datagram carries it.
    #[inline(always)]
    pub(super) fn message(&self) -> &[u8] {
        &self.record[MARK_LEN..]
    }

    /// Returns the record, as a stream carries it.
    #[inline(always)]
    pub(super) fn record(&self) -> &[u8] {
        &self.record
    }
}
