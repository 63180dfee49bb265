//! Long messages in pieces, or by RDMA writes into a window of the receiver.

use super::peer::{Origin, Stream};
use super::{Engine, Failure, Links, PAYLOAD, Payload, PeerNo, Role, Transfer};
use crate::frame::{Header, Kind, parse_window};
use crate::memory::{Memory, Window};
use std::collections::VecDeque;

impl<L: Links> Engine<L> {
    /// Sends bytes to a peer, into a window of it if there is one, else in pieces.
    pub(super) fn stream(
        &mut self,
        peer: PeerNo,
        memory: Memory,
        transfer: u32,
        origin: Origin,
        window: Option<Window>,
    ) {
        self.peer(peer).streams.push_back(Stream { memory, sent: 0, transfer, origin, window });
        self.list(peer);
    }

    /// Sends the next bytes of a stream. Returns whether there was room, and whether that was all.
    pub(super) fn send_next(&mut self, peer: PeerNo, stream: &mut Stream) -> (bool, bool) {
        let left = stream.memory.len() - stream.sent;
        if left > 0
            && let Some(window) = &stream.window
        {
            let written = self.links.try_write(peer, &stream.memory, stream.sent, window);
            stream.sent += written;
            return (written > 0, false);
        }
        let len = PAYLOAD.min(left);
        let offset = stream.sent as u64;
        let header = Header { transfer: stream.transfer, offset, ..Header::new(Kind::Piece) };
        let is_sent = self.try_send(peer, header, Payload::Part(&stream.memory, stream.sent, len));
        stream.sent += if is_sent { len } else { 0 };
        (is_sent, is_sent && stream.sent == stream.memory.len())
    }

    /// Ends the streams from memory that is closed. Their receivers get an error.
    pub(super) fn end_streams(&mut self, failure: Failure, is_it: impl Fn(Origin) -> bool) {
        for peer in 0..self.peers.len() {
            let streams = std::mem::take(&mut self.peers[peer].streams);
            let (ended, kept): (Vec<_>, Vec<_>) =
                streams.into_iter().partition(|stream| is_it(stream.origin));
            self.peers[peer].streams = VecDeque::from(kept);
            if ended.iter().any(|stream| stream.window.is_some()) {
                self.links.finish_writes(peer);
            }
            for Stream { transfer, .. } in ended {
                self.answer_done(peer, transfer, Some(failure));
            }
        }
    }

    /// Handles the consent of a receiver to a long message. Returns false if it is malformed.
    pub(super) fn on_accept(&mut self, peer: PeerNo, header: &Header, payload: &[u8]) -> bool {
        let Some(window) = parse_window(payload) else { return false };
        if !window.parts.is_empty() && window.len() != header.len {
            return false;
        }
        let Some(Transfer { endpoint, role: Role::Awaited { memory, is_accepted, .. }, .. }) =
            self.transfer(peer, header.transfer)
        else {
            return false;
        };
        if std::mem::replace(is_accepted, true) {
            return false;
        }
        let (endpoint, len) = (*endpoint, usize::try_from(header.len).unwrap_or(usize::MAX));
        if memory.len() < len {
            // The endpoint was closed.
            self.answer_done(peer, header.other, Some(Failure::NoEndpoint));
            return true;
        }
        let memory = memory.part(0, len);
        let origin = Origin::Message { endpoint, transfer: header.transfer };
        let window = (!window.parts.is_empty()).then_some(window);
        self.stream(peer, memory, header.other, origin, window);
        true
    }

    /// Handles bytes of a long message. Returns false if they are malformed.
    pub(super) fn on_piece(&mut self, peer: PeerNo, header: &Header, payload: &[u8]) -> bool {
        let offset = usize::try_from(header.offset).unwrap_or(usize::MAX);
        let Some(transfer) = self.transfer(peer, header.transfer) else { return false };
        let (is_whole, theirs) = match &mut transfer.role {
            Role::Awaited { .. } => return false,
            // The peer has written all bytes.
            Role::Landing { window: Some(_), got, wanted, theirs, failure, .. } => {
                if offset != *wanted || !payload.is_empty() {
                    return false;
                }
                *got = *wanted;
                (true, Some((*theirs, *failure)))
            }
            // Pieces come in order.
            Role::Landing { got, .. } | Role::Reading { got, .. } if *got != offset => return false,
            Role::Landing { got, wanted, .. } | Role::Reading { got, wanted, .. }
                if payload.len() > *wanted - *got =>
            {
                return false;
            }
            Role::Landing { landing, got, wanted, theirs, failure, .. } => {
                landing.memory().write(offset, payload);
                *got += payload.len();
                (*got == *wanted, Some((*theirs, *failure)))
            }
            Role::Reading { memory, got, wanted, .. } => {
                memory.write(offset, payload);
                *got += payload.len();
                (*got == *wanted, None)
            }
        };
        if is_whole {
            let transfer = self.transfers.remove(header.transfer as usize);
            let (theirs, failure) = theirs.unzip();
            if let Some(theirs) = theirs {
                self.answer_done(peer, theirs, failure.flatten());
            }
            self.end(transfer, failure.flatten());
        }
        true
    }
}
