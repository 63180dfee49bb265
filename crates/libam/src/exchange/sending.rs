//! Requests and replies of the program.

use super::receiving::Body;
use super::{
    CONTROL, MOST_PROMISED, PROMISED, REPLY, REPLY_LAST, REQUEST_LAST, REQUEST_PIECE, REQUESTS_PER_POLL,
    WHOLE, in_handler,
};
use crate::code::{Category, Code, Status};
use crate::job::HELLO;
use crate::message::{Head, MAX_ARGUMENTS, ShortWords, Words, short_arguments, short_count};
use crate::objects::token::{Answer, Source, Token};
use crate::objects::{Endpoint, State};
use crate::refusal::{Refusal, refuse};
use crate::settings::{self, OUTSTANDING};
use netdyno_stack::am::{self, PeerId, PeerLost, RequestError};
use std::time::{Duration, Instant};

/// A message of the program.
#[derive(Clone, Copy)]
pub struct Outbound<'a> {
    pub handler: u8,
    pub category: Category,
    pub bytes: &'a [u8],
    pub offset: u64,
    pub arguments: &'a [i32],
}

impl<'a> Outbound<'a> {
    /// Returns the short message with this word.
    ///
    /// # Errors
    /// Returns `BadArg` if it has another number of arguments.
    fn short(front: u64, arguments: &'a [i32]) -> Result<Self, Refusal> {
        let arguments = short_count(front).and_then(|count| arguments.get(..count.into()));
        let arguments = arguments.ok_or_else(|| refuse(Code::BadArg, "a message has 0 to 16 arguments"))?;
        Ok(Self { handler: front as u8, category: Category::Short, bytes: &[], offset: 0, arguments })
    }

    fn head(&self, tag: Option<u64>) -> Head {
        let mut arguments = [0; MAX_ARGUMENTS];
        arguments[..self.arguments.len()].copy_from_slice(self.arguments);
        let Self { handler, category, offset, .. } = *self;
        Head { tag, handler, category, offset, arguments, count: self.arguments.len() as u8, status: None }
    }

    /// Returns the payload: the bytes, and the arguments that find no place in the words.
    fn payload(&self, head: &Head) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.bytes.len() + head.tail_len());
        payload.extend_from_slice(self.bytes);
        head.write_tail(&mut payload);
        payload
    }
}

/// A peer that owes answers for longer is sent a message that it must acknowledge.
const ASK_AFTER: Duration = Duration::from_millis(500);

impl Endpoint {
    /// Sends a request to the endpoint of a translation. Waits for room, unless `is_asynchronous`.
    ///
    /// # Errors
    /// Returns `NotInit` before `AM_SetExpectedResources`, `BadArg` for a translation that is not in use, `Resource` in a
    /// handler, and `NotSent` if an asynchronous one would have to wait.
    #[inline]
    pub fn request(
        &'static self,
        index: u32,
        message: Outbound<'_>,
        is_asynchronous: bool,
    ) -> Result<(), Refusal> {
        let translation = match self.translations.borrow().get(index as usize) {
            Some(Some(translation)) => *translation,
            _ if !self.is_open() => return Err(not_open()),
            _ => {
                return Err(refuse(
                    Code::BadArg,
                    "the destination is an entry of the translation table that is not in use",
                ));
            }
        };
        if self.bundle().is_barred() {
            return Err(in_handler());
        }
        let head = message.head(Some(translation.tag));
        if translation.name == self.name {
            return self.request_self(&head, message);
        }
        if self.unpolled.replace(self.unpolled.get() + 1) >= REQUESTS_PER_POLL {
            self.poll()?;
        }
        let Ok(mut link) = self.link.try_borrow_mut() else { return Err(in_handler()) };
        let Some(link) = &mut *link else { return Err(not_open()) };
        let sent = self.peer_of(link, index as usize, translation).and_then(|peer| {
            let is_owed_much = self.is_owed_much(peer);
            if is_asynchronous && (is_owed_much || !has_room(link, peer, &head, message.bytes.len())) {
                return Ok(false);
            }
            if is_owed_much {
                self.wait_for_answers(link, peer)?;
            }
            self.send(link, peer, &head, message).map(|()| true)
        });
        match sent {
            Ok(true) => {
                let count = head.count;
                self.counts.count_sent(true, message.category, count, message.bytes.len());
                Ok(())
            }
            Ok(false) => Err(refuse(Code::NotSent, "the transfer would have to wait")),
            Err(status) => {
                let entry = Source::Entry(index);
                self.return_to_program(entry, &translation.name, true, &head, status, message.bytes);
                Ok(())
            }
        }
    }

    /// Sends a short request with up to five arguments, which are in the words, if nothing stands against it: the peer is
    /// connected, there is room, no poll is due, and the endpoint is of AM_SEQ. Never panics.
    #[inline]
    pub fn sends_short(&self, index: u32, words: ShortWords) -> bool {
        let Some(count) = short_count(words[0]) else { return false };
        if self.try_request_short(index, words).is_none() {
            return false;
        }
        self.counts.count_sent(true, Category::Short, count, 0);
        true
    }

    #[inline]
    fn try_request_short(&self, index: u32, [front, second, third]: ShortWords) -> Option<()> {
        let bundle = self.bundle();
        // First, because another thread may change the rest.
        if !bundle.is_used_by_this_thread() {
            return None;
        }
        let unpolled = self.unpolled.get();
        let is_due = unpolled >= REQUESTS_PER_POLL || self.promised.get() >= MOST_PROMISED;
        if is_due || bundle.is_barred() {
            return None;
        }
        // SAFETY: nothing changes the translations meanwhile. A guard would be two more stores.
        let translations = unsafe { self.translations.try_borrow_unguarded() }.ok()?;
        let translation = translations.get(index as usize)?.as_ref()?;
        let mut link = self.link.try_borrow_mut().ok()?;
        let words = [translation.tag, front, second, third];
        if !link.as_mut()?.request_at_once(translation.peer?, WHOLE, words) {
            return None;
        }
        self.unpolled.set(unpolled + 1);
        Some(())
    }

    /// Sends a short request with up to five arguments, which are in the words.
    ///
    /// # Errors
    /// As of [`Endpoint::request`].
    #[cold]
    #[inline(never)]
    pub fn request_in_words(&'static self, index: u32, words: ShortWords) -> Result<(), Refusal> {
        let arguments = short_arguments(words);
        self.request(index, Outbound::short(words[0], &arguments)?, false)
    }

    /// Reports whether a peer owes this endpoint many answers in pieces.
    #[inline]
    fn is_owed_much(&self, peer: PeerId) -> bool {
        self.promised.get() >= MOST_PROMISED && self.peers.borrow()[peer.index()].promised >= MOST_PROMISED
    }

    /// Polls until a peer owes fewer answers.
    ///
    /// # Errors
    /// Returns `Unreachable` if the peer is lost, or sends nothing of its answers for the time after which it is lost.
    #[cold]
    fn wait_for_answers(&'static self, link: &mut am::Endpoint<State>, peer: PeerId) -> Result<(), Status> {
        let time = settings::peer_timeout().map_err(|_| Status::Unreachable)?;
        let owed = || {
            let peer = &self.peers.borrow()[peer.index()];
            (peer.promised, peer.pieces[1].len)
        };
        let mut asked = Instant::now();
        let mut last = (owed(), Instant::now());
        while self.is_owed_much(peer) {
            self.poll_while_waiting(link);
            if owed() != last.0 {
                last = (owed(), Instant::now());
            } else if last.1.elapsed() > time {
                return Err(Status::Unreachable);
            }
            // A peer that has promised its answers owes the stack nothing, so that only a further message shows its end.
            if asked.elapsed() > ASK_AFTER {
                self.send_piece(link, peer, CONTROL, [HELLO, 0, 0, 0], &[])?;
                asked = Instant::now();
            }
        }
        if self.peers.borrow()[peer.index()].is_lost { Err(Status::Unreachable) } else { Ok(()) }
    }

    /// Handles a request of the endpoint to itself at once.
    #[cold]
    fn request_self(&'static self, head: &Head, message: Outbound<'_>) -> Result<(), Refusal> {
        if !self.is_open() {
            return Err(not_open());
        }
        let payload = message.payload(head);
        self.take(Source::Own, true, head.words(), Body::Lent(&payload), Answer::Own);
        self.settle(1);
        Ok(())
    }

    /// Sends a message to a connected peer.
    ///
    /// # Errors
    /// Returns `Unreachable` if the peer is lost.
    #[inline]
    fn send(
        &'static self,
        link: &mut am::Endpoint<State>,
        peer: PeerId,
        head: &Head,
        message: Outbound<'_>,
    ) -> Result<(), Status> {
        if message.bytes.is_empty() && head.tail_len() == 0 {
            loop {
                match link.try_request(peer, WHOLE, head.words()) {
                    Ok(()) => return Ok(()),
                    Err(error) => self.wait_for_room(link, error, peer)?,
                }
            }
        }
        self.send_bytes(link, peer, head, message)
    }

    fn send_bytes(
        &'static self,
        link: &mut am::Endpoint<State>,
        peer: PeerId,
        head: &Head,
        message: Outbound<'_>,
    ) -> Result<(), Status> {
        let piece = link.medium_bytes(peer);
        let tail = head.tail_len();
        let (front, last) = message.bytes.split_at((message.bytes.len() + tail).saturating_sub(piece));
        for bytes in front.chunks(piece) {
            self.send_piece(link, peer, REQUEST_PIECE, [0; 4], bytes)?;
        }
        let handler = if front.is_empty() { WHOLE } else { REQUEST_LAST };
        if tail == 0 {
            return self.send_piece(link, peer, handler, head.words(), last);
        }
        let mut payload = last.to_vec();
        head.write_tail(&mut payload);
        self.send_piece(link, peer, handler, head.words(), &payload)
    }

    /// Sends a request of the stack with a payload that fits.
    ///
    /// # Errors
    /// Returns `Unreachable` if the peer is lost.
    pub fn send_piece(
        &'static self,
        link: &mut am::Endpoint<State>,
        peer: PeerId,
        handler: u8,
        words: Words,
        bytes: &[u8],
    ) -> Result<(), Status> {
        loop {
            match link.try_request_medium(peer, handler, words, bytes) {
                Ok(()) => return Ok(()),
                Err(error) => self.wait_for_room(link, error, peer)?,
            }
        }
    }

    /// Polls because there was no room for a request.
    ///
    /// # Errors
    /// Returns `Unreachable` if the peer is lost.
    #[cold]
    fn wait_for_room(
        &'static self,
        link: &mut am::Endpoint<State>,
        error: RequestError,
        peer: PeerId,
    ) -> Result<(), Status> {
        match error {
            RequestError::Full => {
                self.poll_while_waiting(link);
                Ok(())
            }
            RequestError::Lost(lost) => self.note_other(lost, peer),
            // The length was checked.
            RequestError::TooLong(_) => Err(Status::Unreachable),
        }
    }

    /// Notes the loss of a peer during a send to another one.
    ///
    /// # Errors
    /// Returns `Unreachable` if it is the same.
    #[cold]
    fn note_other(&'static self, lost: PeerLost, peer: PeerId) -> Result<(), Status> {
        self.note(lost);
        if lost.peer == peer { Err(Status::Unreachable) } else { Ok(()) }
    }
}

impl Token<'_, '_> {
    /// Replies to the request of this token.
    ///
    /// # Errors
    /// Returns `Resource` if there is nothing to reply to, or if the handler has replied.
    #[inline]
    pub fn reply(&self, message: Outbound<'_>) -> Result<(), Refusal> {
        let endpoint = self.endpoint;
        let (peer, slot) = match (self.source, self.answer.replace(Answer::None)) {
            (Source::Peer(peer), Answer::Slot(unanswered)) => (peer, unanswered.slot()),
            (Source::Own, Answer::Own) => return self.reply_self(message),
            _ => return Err(no_reply()),
        };
        let head = message.head(endpoint.tag_for(peer));
        if message.bytes.is_empty() && head.tail_len() == 0 {
            slot.reply(REPLY, head.words());
        } else {
            let payload = message.payload(&head);
            if let Err((_, slot)) = slot.reply_medium(REPLY, head.words(), &payload) {
                slot.reply(PROMISED, []);
                endpoint.queue(peer, REPLY_LAST, head.words(), payload);
            }
        }
        endpoint.counts.count_sent(false, message.category, head.count, message.bytes.len());
        Ok(())
    }

    /// Replies with up to five arguments, which are in the words, if nothing stands against it: the request is of a
    /// peer with a translation over shared memory, and has no reply yet. Never panics.
    #[inline]
    pub fn replies_short(&self, [front, second, third]: ShortWords) -> bool {
        let Source::Peer(peer) = self.source else { return false };
        let Some(count) = short_count(front) else { return false };
        let Some(tag) = self.endpoint.tag_for(peer) else { return false };
        let Answer::Slot(unanswered) = self.answer.get() else { return false };
        if unanswered.slot().reply_at_once(REPLY, [tag, front, second, third]).is_err() {
            return false;
        }
        self.answer.set(Answer::None);
        self.endpoint.counts.count_sent(false, Category::Short, count, 0);
        true
    }

    /// Replies with up to five arguments, which are in the words.
    ///
    /// # Errors
    /// As of [`Token::reply`].
    #[cold]
    #[inline(never)]
    pub fn reply_in_words(&self, words: ShortWords) -> Result<(), Refusal> {
        let arguments = short_arguments(words);
        self.reply(Outbound::short(words[0], &arguments)?)
    }

    #[cold]
    fn reply_self(&self, message: Outbound<'_>) -> Result<(), Refusal> {
        let endpoint = self.endpoint;
        let tag =
            endpoint.index_of(&endpoint.name).and_then(|index| Some(endpoint.translation(index).ok()?.tag));
        let head = message.head(tag);
        let payload = message.payload(&head);
        endpoint.take(Source::Own, false, head.words(), Body::Lent(&payload), Answer::None);
        Ok(())
    }
}

impl Endpoint {
    /// Returns the tag of the translation for a peer.
    #[inline]
    fn tag_for(&self, peer: PeerId) -> Option<u64> {
        // SAFETY: nothing changes the peers meanwhile. A guard would be two more stores before the reply.
        let peers = unsafe { self.peers.try_borrow_unguarded() };
        peers.ok()?.get(peer.index())?.tag
    }
}

/// Reports whether a message can be sent without waiting.
fn has_room(link: &am::Endpoint<State>, peer: PeerId, head: &Head, len: usize) -> bool {
    let pieces = (len + head.tail_len()).div_ceil(link.medium_bytes(peer)).max(1);
    link.in_flight(peer) as usize + pieces <= OUTSTANDING as usize
}

#[cold]
fn no_reply() -> Refusal {
    refuse(Code::Resource, "only the handler of a request may reply, once")
}

#[cold]
fn not_open() -> Refusal {
    refuse(Code::NotInit, "the endpoint sends and receives after AM_SetExpectedResources")
}
