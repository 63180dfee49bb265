//! Messages that the program receives.

use super::endpoint::{Arrival, Body, Buffer, Endpoint, Receive, Unexpected};
use super::{
    Completion, Copied, Engine, Failure, Landing, Links, Op, PeerNo, Refused, Role, Transfer, source,
};
use crate::abi;
use crate::frame::{Header, IS_AWAITED, Kind, TAGGED, UNTIL_MATCHED, encode_window, parse_segments};
use crate::matching::{Envelope, ReceiveId, Wanted};
use crate::memory::{Memory, Segment, part_of};
use smallvec::SmallVec;

/// A receive to be posted.
#[derive(Clone, Debug)]
pub struct Posting {
    /// The messages that it takes.
    pub wanted: Wanted,
    /// Whether it takes messages with tags.
    pub is_tagged: bool,
    /// The memory.
    pub memory: Memory,
    /// The context of the operation.
    pub context: usize,
    /// Whether a completion is wanted.
    pub is_reported: bool,
    /// Whether it takes several messages, one behind the other.
    pub is_of_several: bool,
}

/// Most bytes that a messaging thread copies before it lets the program go first.
const PULLED_AT_ONCE: usize = 64 * 1024;

/// A message that is to be copied out of the sender's memory.
#[derive(Debug)]
pub struct Pull {
    endpoint: u16,
    landing: Landing,
    /// The sender's transfer, and its memory.
    theirs: u32,
    segments: SmallVec<[Segment; 1]>,
    /// Number of bytes that are wanted, and of those that are copied.
    wanted: usize,
    done: usize,
}

impl Arrival {
    /// Returns what the header of a message says.
    pub fn of(peer: PeerNo, header: &Header) -> Self {
        Self {
            source: source(peer, header.from),
            peer,
            is_tagged: header.has(TAGGED),
            tag: header.tag,
            data: header.data(),
            len: usize::try_from(header.len).unwrap_or(usize::MAX),
        }
    }

    fn envelope(&self) -> Envelope {
        Envelope { source: self.source, tag: self.tag }
    }

    /// Returns the completion of its receive.
    pub fn completion(&self, context: usize) -> Completion {
        let kind = if self.is_tagged { abi::TAGGED } else { abi::MSG };
        let completion = Completion::new(context, abi::RECV | kind).with_data(self.data);
        Completion { tag: self.tag, source: self.source, ..completion }
    }
}

impl<L: Links> Engine<L> {
    /// Posts a receive.
    ///
    /// # Errors
    /// Returns an error if the endpoint does not exist.
    pub fn receive(&mut self, endpoint: u16, posting: Posting) -> Result<(), Refused> {
        let Posting { wanted, is_tagged, memory, context, is_reported, is_of_several } = posting;
        let state = self.endpoints.get_mut(endpoint).ok_or(Refused::NoEndpoint)?;
        if !is_of_several {
            return self.receive_once(
                endpoint,
                &wanted,
                is_tagged,
                Receive::Once { memory, context, is_reported },
            );
        }
        let buffer = Buffer { memory, context, is_reported, used: 0, pending: 0, is_full: false };
        let number = state.buffers.insert(buffer);
        while let Some(state) = self.endpoints.get_mut(endpoint)
            && state.buffers.get(number).is_some_and(|buffer| !buffer.is_full)
        {
            let Some(id) = state.matcher(is_tagged).find_message(&wanted) else {
                state.matcher(is_tagged).post(wanted, Receive::Several(number));
                break;
            };
            let message = state.matcher(is_tagged).take_message(id);
            self.place(endpoint, &mut Receive::Several(number), message);
        }
        Ok(())
    }

    fn receive_once(
        &mut self,
        endpoint: u16,
        wanted: &Wanted,
        is_tagged: bool,
        mut receive: Receive,
    ) -> Result<(), Refused> {
        let state = self.endpoints.get_mut(endpoint).ok_or(Refused::NoEndpoint)?;
        let matcher = state.matcher(is_tagged);
        match matcher.find_message(wanted) {
            None => drop(matcher.post(*wanted, receive)),
            Some(id) => {
                let message = matcher.take_message(id);
                self.place(endpoint, &mut receive, message);
            }
        }
        Ok(())
    }

    /// Looks for a message that has arrived. If it `is_claimed`, only a receive that names the context takes it.
    ///
    /// # Errors
    /// Returns an error if the endpoint does not exist.
    pub fn find(
        &mut self,
        endpoint: u16,
        wanted: &Wanted,
        is_tagged: bool,
        is_claimed: Option<usize>,
    ) -> Result<Option<Arrival>, Refused> {
        let state = self.endpoints.get_mut(endpoint).ok_or(Refused::NoEndpoint)?;
        let matcher = state.matcher(is_tagged);
        let Some(id) = matcher.find_message(wanted) else { return Ok(None) };
        let arrival = matcher.message(id).arrival;
        if let Some(context) = is_claimed {
            let message = matcher.take_message(id);
            state.claimed.insert(context, message);
        }
        Ok(Some(arrival))
    }

    /// Receives the message that was claimed with this context. Returns whether there is one.
    pub fn receive_claimed(
        &mut self,
        endpoint: u16,
        memory: Memory,
        context: usize,
        is_reported: bool,
    ) -> bool {
        let Some(state) = self.endpoints.get_mut(endpoint) else { return false };
        let Some(message) = state.claimed.remove(&context) else { return false };
        self.place(endpoint, &mut Receive::Once { memory, context, is_reported }, message);
        true
    }

    /// Discards the message that was claimed with this context, or the first that matches. Returns it.
    pub fn discard(
        &mut self,
        endpoint: u16,
        wanted: &Wanted,
        is_tagged: bool,
        is_claimed: Option<usize>,
    ) -> Option<Arrival> {
        let state = self.endpoints.get_mut(endpoint)?;
        let Unexpected { arrival, body } = if let Some(context) = is_claimed {
            state.claimed.remove(&context)?
        } else {
            let matcher = state.matcher(is_tagged);
            let id = matcher.find_message(wanted)?;
            matcher.take_message(id)
        };
        self.answer_taken(arrival.peer, &body, None);
        Some(arrival)
    }

    /// Cancels a posted receive, if it is still posted. Returns whether it was. If messages still come into its buffer, the
    /// last of them reports its end.
    pub fn cancel(&mut self, endpoint: u16, context: usize) -> bool {
        let Some(state) = self.endpoints.get_mut(endpoint) else { return false };
        let Some((receive, is_tagged)) = state.unpost(context) else { return false };
        let mut flags = abi::RECV | if is_tagged { abi::TAGGED } else { abi::MSG };
        if let Receive::Several(number) = receive {
            let buffer = &mut state.buffers[number];
            if buffer.pending > 0 {
                buffer.is_full = true;
                return true;
            }
            state.buffers.remove(number);
            flags |= abi::MULTI_RECV;
        }
        let failure = Some((Failure::Cancelled, 0));
        self.report(endpoint, Op::Receive, Completion { failure, ..Completion::new(context, flags) }, true);
        true
    }

    pub(super) fn on_message(&mut self, peer: PeerNo, header: &Header, payload: &[u8]) {
        let failure = self.endpoints.get(header.to).is_none().then_some(Failure::NoEndpoint);
        let awaited = header.has(IS_AWAITED).then_some(header.transfer);
        let is_until_matched = header.has(UNTIL_MATCHED) && failure.is_none();
        if let Some(transfer) = awaited.filter(|_| !is_until_matched) {
            self.answer_done(peer, transfer, failure);
        }
        let awaited = awaited.filter(|_| is_until_matched);
        let arrival = Arrival { len: payload.len(), ..Arrival::of(peer, header) };
        let Some(state) = self.endpoints.get_mut(header.to) else { return };
        let matcher = state.matcher(arrival.is_tagged);
        let Some(id) = matcher.find_receive(&arrival.envelope()) else {
            let body = Body::Here(self.unexpected.keep(payload), awaited);
            matcher.keep(arrival.envelope(), Unexpected { arrival, body });
            return self.hold(peer);
        };
        let landing = land(state, arrival, id);
        if let Some(transfer) = awaited {
            self.answer_done(peer, transfer, None);
        }
        let len = landing.memory().write(0, payload);
        self.landed(header.to, landing, len, None);
    }

    pub(super) fn on_offer(&mut self, peer: PeerNo, header: &Header, payload: &[u8]) -> bool {
        let Some(segments) = parse_segments(payload) else { return false };
        let arrival = Arrival::of(peer, header);
        let Some(state) = self.endpoints.get_mut(header.to) else {
            self.answer_done(peer, header.transfer, Some(Failure::NoEndpoint));
            return true;
        };
        let body = Body::Offered { transfer: header.transfer, segments };
        let matcher = state.matcher(arrival.is_tagged);
        match matcher.find_receive(&arrival.envelope()) {
            None => drop(matcher.keep(arrival.envelope(), Unexpected { arrival, body })),
            Some(id) => {
                let landing = land(state, arrival, id);
                self.bring(header.to, landing, body);
            }
        }
        true
    }

    /// Answers the sender of an unexpected message that waits until it is taken.
    pub(super) fn answer_taken(&mut self, peer: PeerNo, body: &Body, failure: Option<Failure>) {
        if let Body::Offered { transfer, .. } | Body::Here(_, Some(transfer)) = body {
            self.answer_done(peer, *transfer, failure);
        }
    }

    /// Gives an unexpected message to a receive.
    fn place(&mut self, endpoint: u16, receive: &mut Receive, message: Unexpected) {
        let Unexpected { arrival, body } = message;
        let Some(state) = self.endpoints.get_mut(endpoint) else { return };
        let landing = reserve(&mut state.buffers, state.least_room, receive, arrival);
        self.bring(endpoint, landing, body);
    }

    /// Brings the bytes of a message to its landing.
    pub(super) fn bring(&mut self, endpoint: u16, landing: Landing, body: Body) {
        let arrival = *landing.arrival();
        let (theirs, segments) = match body {
            Body::Here(bytes, awaited) => {
                if let Some(transfer) = awaited {
                    self.answer_done(arrival.peer, transfer, None);
                }
                let len = landing.memory().write(0, &bytes);
                return self.landed(endpoint, landing, len, None);
            }
            Body::Offered { transfer, segments } => (transfer, segments),
        };
        let wanted = arrival.len.min(landing.memory().len());
        let pull = Pull { endpoint, landing, theirs, segments, wanted, done: 0 };
        if self.is_deferring {
            self.pulls.push_back(pull);
        } else {
            self.pull(pull, usize::MAX);
        }
    }

    /// Copies a part of one of the messages that are to be copied.
    pub(super) fn pull_next(&mut self) -> bool {
        let Some(pull) = self.pulls.pop_front() else { return false };
        let goes_on = self.pull(pull, PULLED_AT_ONCE);
        self.pulls.extend(goes_on);
        true
    }

    /// Copies the rest of all messages that are to be copied.
    pub(super) fn pull_all(&mut self) {
        while let Some(pull) = self.pulls.pop_front() {
            self.pull(pull, usize::MAX);
        }
    }

    /// Copies up to `most` bytes of a message out of the sender's memory. Returns what is left to do. If the system does
    /// not copy, asks for pieces.
    fn pull(&mut self, pull: Pull, most: usize) -> Option<Pull> {
        let Pull { endpoint, landing, theirs, segments, wanted, done } = pull;
        let peer = landing.arrival().peer;
        if self.peer(peer).is_lost {
            self.landed(endpoint, landing, 0, Some(Failure::PeerLost));
            return None;
        }
        let len = most.min(wanted - done);
        let copied = if wanted == 0 {
            Copied::Whole
        } else {
            self.links.pull(peer, &part_of(&segments, done, len), &landing.memory().part(done, len))
        };
        match copied {
            Copied::Whole if done + len < wanted => {
                return Some(Pull { endpoint, landing, theirs, segments, wanted, done: done + len });
            }
            Copied::Whole => {
                self.answer_done(peer, theirs, None);
                self.landed(endpoint, landing, wanted, None);
            }
            Copied::Failed | Copied::Ended => {
                let failure = if copied == Copied::Ended { Failure::PeerLost } else { Failure::NotCopied };
                self.answer_done(peer, theirs, Some(Failure::NotCopied));
                self.landed(endpoint, landing, 0, Some(failure));
            }
            Copied::NotHere => {
                let window = self.links.open_window(peer, &landing.memory().part(0, wanted));
                let bytes = window.as_ref().map(encode_window).unwrap_or_default();
                let role = Role::Landing { landing, got: 0, wanted, theirs, failure: None, window };
                let number = self.transfers.insert(Transfer { peer, endpoint, role });
                let (other, len) = (number as u32, wanted as u64);
                let accept = Header { transfer: theirs, other, len, ..Header::new(Kind::Accept) };
                self.answer(peer, accept, &bytes);
            }
        }
        None
    }

    /// Reports that the bytes of a message are there.
    pub(super) fn landed(&mut self, endpoint: u16, landing: Landing, len: usize, failure: Option<Failure>) {
        let (arrival, memory, context, mut is_reported, buffer) = match landing {
            Landing::Receive { arrival, memory, context, is_reported, buffer } => {
                (arrival, memory, context, is_reported, buffer)
            }
            Landing::Write { arrival, key, .. } => {
                return self.written(endpoint, key, &arrival, len, failure);
            }
        };
        let mut completion = Completion { len, buffer: memory.address(), ..arrival.completion(context) };
        let missing = arrival.len.saturating_sub(memory.len());
        let truncated = (missing > 0).then_some(Failure::Truncated);
        completion.failure = failure.or(truncated).map(|failure| (failure, missing));
        if let Some(number) = buffer
            && let Some(state) = self.endpoints.get_mut(endpoint)
            && let Some(several) = state.buffers.get_mut(number)
        {
            several.pending -= 1;
            if several.is_full && several.pending == 0 {
                completion.flags |= abi::MULTI_RECV;
                is_reported = true;
                state.buffers.remove(number);
            }
        }
        self.report(endpoint, Op::Receive, completion, is_reported);
    }
}

/// Returns the landing of a message at a posted receive, which is taken away unless it takes more.
fn land(state: &mut Endpoint, arrival: Arrival, id: ReceiveId) -> Landing {
    let matcher = if arrival.is_tagged { &mut state.tagged } else { &mut state.untagged };
    let landing = reserve(&mut state.buffers, state.least_room, matcher.receive(id), arrival);
    let is_done = match &landing {
        Landing::Receive { buffer: Some(number), .. } => state.buffers[*number].is_full,
        _ => true,
    };
    if is_done {
        matcher.take_receive(id);
    }
    landing
}

/// Reserves the memory of a receive for a message.
fn reserve(
    buffers: &mut slab::Slab<Buffer>,
    least_room: usize,
    receive: &mut Receive,
    arrival: Arrival,
) -> Landing {
    match receive {
        Receive::Once { memory, context, is_reported } => Landing::Receive {
            arrival,
            memory: std::mem::take(memory),
            context: *context,
            is_reported: *is_reported,
            buffer: None,
        },
        Receive::Several(number) => {
            let several = &mut buffers[*number];
            // An empty message has its place in the buffer too.
            let memory = match arrival.len {
                0 => several.memory.nothing_at(several.used),
                len => several.memory.part(several.used, len),
            };
            several.used += memory.len();
            several.pending += 1;
            several.is_full = several.memory.len() - several.used < least_room.max(1);
            let (context, is_reported) = (several.context, several.is_reported);
            Landing::Receive { arrival, memory, context, is_reported, buffer: Some(*number) }
        }
    }
}
