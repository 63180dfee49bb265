//! Messages that the program sends.

use super::{Completion, Engine, Links, Op, PAYLOAD, Payload, PeerNo, Refused, Role, Transfer};
use crate::abi;
use crate::frame::{HAS_DATA, Header, IS_AWAITED, Kind, TAGGED, encode_segments};
use crate::memory::Memory;

/// An endpoint of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The peer.
    pub peer: PeerNo,
    /// The number of the endpoint there.
    pub endpoint: u16,
}

/// What the program wants to know of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Whether a successful operation has an entry in the completion queue.
    pub is_reported: bool,
    /// Whether it is complete only when the peer has taken it.
    pub is_delivery: bool,
    /// Whether the memory may be used again at once.
    pub is_injected: bool,
}

/// A message to be sent.
#[derive(Clone, Debug)]
pub struct Send {
    /// The receiver.
    pub to: Target,
    /// The tag, if it has one.
    pub tag: Option<u64>,
    /// Remote completion data.
    pub data: Option<u64>,
    /// The bytes.
    pub memory: Memory,
    /// The context of the operation.
    pub context: usize,
    /// What the program wants to know.
    pub wants: Wants,
}

impl<L: Links> Engine<L> {
    /// Sends a message.
    ///
    /// # Errors
    /// Returns an error if the operation was not begun.
    pub fn send(&mut self, endpoint: u16, send: Send) -> Result<(), Refused> {
        let Send { to, tag, data, memory, context, wants } = send;
        self.check(to.peer)?;
        let flags = (u8::from(tag.is_some()) * TAGGED) | (u8::from(data.is_some()) * HAS_DATA);
        let header = Header {
            flags,
            to: to.endpoint,
            from: endpoint,
            len: memory.len() as u64,
            tag: tag.unwrap_or(0),
            data: data.unwrap_or(0),
            ..Header::new(Kind::Message)
        };
        let completion =
            Completion::new(context, abi::SEND | if tag.is_some() { abi::TAGGED } else { abi::MSG });
        if memory.len() > PAYLOAD {
            if wants.is_injected {
                return Err(Refused::TooLong);
            }
            let offer = Header { kind: Kind::Offer, ..header };
            return self.offer(endpoint, to.peer, offer, memory, (Op::Send, completion, wants.is_reported));
        }
        self.send_eager(endpoint, to.peer, header, memory, (Op::Send, completion, wants))
    }

    /// Returns an error if nothing can be sent to a peer now.
    pub(super) fn check(&mut self, peer: PeerNo) -> Result<(), Refused> {
        let state = self.peer(peer);
        if state.is_lost {
            return Err(Refused::PeerLost);
        }
        // Answers go first, so that a program that keeps sending does not hold them up.
        if state.answers.is_empty() { Ok(()) } else { Err(Refused::Again) }
    }

    /// Sends a message together with its bytes.
    pub(super) fn send_eager(
        &mut self,
        endpoint: u16,
        peer: PeerNo,
        mut header: Header,
        memory: Memory,
        (op, completion, wants): (Op, Completion, Wants),
    ) -> Result<(), Refused> {
        let is_reported = wants.is_reported;
        let number = wants.is_delivery.then(|| {
            let role = Role::Awaited { op, completion, is_reported, memory: Memory::default() };
            self.transfers.insert(Transfer { peer, endpoint, role })
        });
        if let Some(number) = number {
            header.flags |= IS_AWAITED;
            header.transfer = number as u32;
        }
        if !self.try_send(peer, header, Payload::Part(&memory, 0, memory.len())) {
            number.map(|number| self.transfers.remove(number));
            return Err(Refused::Again);
        }
        if number.is_none() {
            self.report(endpoint, op, completion, is_reported);
        }
        Ok(())
    }

    /// Offers bytes to a peer.
    pub(super) fn offer(
        &mut self,
        endpoint: u16,
        peer: PeerNo,
        header: Header,
        memory: Memory,
        (op, completion, is_reported): (Op, Completion, bool),
    ) -> Result<(), Refused> {
        let segments = encode_segments(memory.segments());
        let role = Role::Awaited { op, completion, is_reported, memory };
        let number = self.transfers.insert(Transfer { peer, endpoint, role });
        if !self.try_send(peer, Header { transfer: number as u32, ..header }, Payload::Bytes(&segments)) {
            self.transfers.remove(number);
            return Err(Refused::Again);
        }
        Ok(())
    }
}
