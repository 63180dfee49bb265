//! Messages that the program sends.

use super::{
    Completion, Engine, LEAST_COPIED, Links, MOST_WAITING, Op, PAYLOAD, Payload, PeerNo, Pending, Refused,
    Role, SELF,
};
use crate::abi;
use crate::frame::{Header, IS_AWAITED, Kind, TAGGED, UNTIL_MATCHED, encode_segments};
use crate::memory::{Memory, Segment};

/// Longest message in bytes that always travels with its bytes: its offer would take as much memory of the peer.
const NEVER_HELD: usize = 128;

/// An endpoint of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The peer.
    pub peer: PeerNo,
    /// The number of the endpoint there.
    pub endpoint: u16,
}

/// When a message is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// Its memory may be used again.
    #[default]
    Sent,
    /// It is on its way, and arrives though this process ends.
    Transmitted,
    /// The peer has it.
    Delivered,
    /// A receive of the peer has taken it.
    Matched,
}

/// What the program wants to know of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Whether a successful operation has an entry in the completion queue.
    pub is_reported: bool,
    /// When it is complete.
    pub until: Until,
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
        let header = Header {
            flags: u8::from(tag.is_some()) * TAGGED,
            to: to.endpoint,
            from: endpoint,
            len: memory.len() as u64,
            tag: tag.unwrap_or(0),
            ..Header::new(Kind::Message)
        };
        let kind = if tag.is_some() { abi::TAGGED } else { abi::MSG };
        let completion = Completion::new(context, abi::SEND | kind);
        let pending = Pending { op: Op::Send, completion, is_reported: wants.is_reported };
        self.transmit(to.peer, header.with_data(data), Kind::Offer, memory, (pending, wants))
    }

    /// Returns an error if nothing can be sent to a peer now.
    pub(super) fn check(&mut self, peer: PeerNo) -> Result<(), Refused> {
        let state = self.peer(peer);
        if state.is_lost {
            return Err(Refused::PeerLost);
        }
        let waiting = if peer == SELF { self.own.len() } else { state.waiting.len() };
        if waiting < MOST_WAITING { Ok(()) } else { Err(Refused::Again) }
    }

    /// Reports whether a message to a peer would wait.
    pub fn has_no_room(&mut self, peer: PeerNo) -> bool {
        let state = self.peer(peer);
        peer != SELF && (!state.waiting.is_empty() || !state.has_room())
    }

    /// Copies an injected message, whose memory the program may use again at once.
    fn copy(&mut self, peer: PeerNo, memory: &Memory) -> (Memory, Option<Vec<u8>>) {
        let mut copy = vec![0; memory.len()];
        memory.read(0, &mut copy);
        self.peer(peer).copied_bytes += copy.len();
        let segment =
            Segment { address: copy.as_mut_ptr().expose_provenance() as u64, len: copy.len() as u64 };
        // SAFETY: the transfer keeps the copy, which nobody writes, until the peer has the message.
        (unsafe { Memory::new([segment]) }, Some(copy))
    }

    /// Sends a message together with its bytes, or offers them to the peer if they are too long for that, or if
    /// the peer has too many.
    pub(super) fn transmit(
        &mut self,
        peer: PeerNo,
        header: Header,
        offer: Kind,
        memory: Memory,
        (pending, wants): (Pending, Wants),
    ) -> Result<(), Refused> {
        if memory.len() > PAYLOAD && wants.is_injected {
            return Err(Refused::TooLong);
        }
        let is_held = header.kind == Kind::Message && memory.len() > NEVER_HELD && self.peer(peer).is_holding;
        if memory.len() > PAYLOAD || is_held {
            // A program may send thousands of messages before the one that its peer waits for.
            let is_full = self.peer(peer).copied_bytes >= self.unexpected.most.max(LEAST_COPIED);
            if wants.is_injected && is_full {
                return Err(Refused::Again);
            }
            let header = Header { kind: offer, ..header };
            let (memory, copy) = if wants.is_injected { self.copy(peer, &memory) } else { (memory, None) };
            let segments = encode_segments(memory.segments());
            let role = Role::Awaited { pending, memory, is_accepted: false, copy };
            self.begin(peer, header, Payload::Bytes(&segments), role);
            return Ok(());
        }
        let payload = Payload::Part(&memory, 0, memory.len());
        let awaited = match wants.until {
            Until::Sent => 0,
            Until::Transmitted if peer == SELF || self.links.outlives_sender(peer) => 0,
            Until::Transmitted | Until::Delivered => IS_AWAITED,
            Until::Matched => IS_AWAITED | UNTIL_MATCHED,
        };
        if awaited != 0 {
            let header = Header { flags: header.flags | awaited, ..header };
            let role = Role::Awaited { pending, memory: Memory::default(), is_accepted: true, copy: None };
            self.begin(peer, header, payload, role);
            return Ok(());
        }
        // A message that must be on its way when it is complete is not kept.
        if wants.until != Until::Transmitted {
            self.post(peer, header, payload);
        } else if !self.peer(peer).waiting.is_empty() || !self.try_send(peer, header, payload) {
            return Err(Refused::Again);
        }
        let Pending { op, completion, is_reported } = pending;
        self.report(header.from, op, completion, is_reported);
        Ok(())
    }
}
