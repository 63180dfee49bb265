//! Sending and receiving messages over the endpoint of the stack.
//!
//! A message that fits into a piece of the stack is one request or reply of the stack. A longer one is sent in pieces:
//! requests of the stack, which arrive in order. The reply to a message goes into the slot that the stack has reserved
//! for it. A reply in pieces, and a reply that comes back to its sender, are requests of the stack too. A handler
//! cannot send requests, so these wait in [`Endpoint::outgoing`] for the next poll.

mod connecting;
mod control;
mod receiving;
mod sending;

use crate::code::Code;
use crate::job;
use crate::lobby;
use crate::message::Words;
use crate::objects::token::{Answer, Source, Unanswered};
use crate::objects::{Endpoint, Outgoing, State};
use crate::polling;
use crate::refusal::{Refusal, failed, in_handler, refuse};
use crate::settings::{self, OUTSTANDING};
use netdyno_stack::am::{self, Handlers, PeerId, Reply, Request, RequestError};
use receiving::Body;
pub use sending::Outbound;
use std::time::Duration;

/// Indices of the handlers of the stack's requests.
const WHOLE: u8 = 0;
const REQUEST_PIECE: u8 = 1;
const REQUEST_LAST: u8 = 2;
const REPLY_PIECE: u8 = 3;
const REPLY_LAST: u8 = 4;
const RETURNED_REQUEST_LAST: u8 = 5;
const RETURNED_REPLY_LAST: u8 = 6;
pub const CONTROL: u8 = 7;
/// Indices of the handlers of the stack's replies.
const REPLY: u8 = 0;
const RETURNED: u8 = 1;
/// The answer comes later, in pieces.
const PROMISED: u8 = 2;
/// Answers in pieces that a peer may owe to this endpoint before it waits with further requests to it. They bound the
/// memory that the peer needs for them.
const MOST_PROMISED: i64 = 64;

/// Answers in pieces that wait for room to a peer. A correct one asks for no more: besides what it is owed, it has a
/// window of requests whose promises have not come, and one of replies that come back.
const MOST_QUEUED: usize = MOST_PROMISED as usize + 2 * OUTSTANDING as usize;

/// Requests between two polls. The interface lets a request poll, so that a program that only sends makes progress.
const REQUESTS_PER_POLL: u32 = 8;
/// Longest sleep of a call that waits.
const SLEEP_AT_MOST: Duration = Duration::from_millis(10);
/// Messages between two looks after the other bundles, while one bundle is busy.
const BUSY_MESSAGES: u64 = 4096;
/// Polls without a message between two yields of the processor, where ranks share it.
const VAIN_POLLS: u32 = 16;

/// Returns the handlers of the stack's messages.
pub fn handlers() -> Handlers<State> {
    let mut handlers = Handlers::new();
    handlers.on_request(WHOLE, take_whole_request);
    handlers.on_request(REQUEST_PIECE, |state: &mut State, request| state.0.gather(&request, 0));
    handlers.on_request(REQUEST_LAST, |state: &mut State, request| {
        let body = state.0.gathered(&request, 0);
        state.0.take_request(&request, Body::Own(body));
    });
    handlers.on_request(REPLY_PIECE, |state: &mut State, request| state.0.gather(&request, 1));
    handlers.on_request(REPLY_LAST, |state: &mut State, request| {
        let body = state.0.gathered(&request, 1);
        state.0.count_promise(request.peer(), -1);
        state.0.take(Source::Peer(request.peer()), false, request.words(), Body::Own(body), Answer::None);
    });
    handlers.on_request(RETURNED_REQUEST_LAST, |state: &mut State, request| {
        let body = state.0.gathered(&request, 1);
        state.0.count_promise(request.peer(), -1);
        state.0.take_returned(Source::Peer(request.peer()), true, request.words(), body.bytes());
    });
    handlers.on_request(RETURNED_REPLY_LAST, |state: &mut State, request| {
        let body = state.0.gathered(&request, 1);
        state.0.take_returned(Source::Peer(request.peer()), false, request.words(), body.bytes());
    });
    handlers.on_request(CONTROL, |state: &mut State, request| {
        job::take_control(state.0, request.peer(), request.words(), request.payload());
    });
    handlers.on_reply(REPLY, take_whole_reply);
    handlers.on_reply(RETURNED, |state: &mut State, reply: Reply<'_>| {
        state.0.take_returned(Source::Peer(reply.peer()), true, reply.words(), reply.payload());
    });
    handlers.on_reply(PROMISED, |state: &mut State, reply: Reply<'_>| state.0.count_promise(reply.peer(), 1));
    handlers
}

/// Takes a request of one piece. A function and not a closure, which would copy the request.
fn take_whole_request(state: &mut State, request: Request<'_>) {
    // SAFETY: the request is used no more if the short way has taken it.
    let answer = Answer::Slot(unsafe { Unanswered::new(&request) });
    if !state.0.takes_short(request.peer(), true, request.words(), request.payload(), answer) {
        state.0.take_request(&request, Body::Lent(request.payload()));
    }
}

/// Takes a reply of one piece.
fn take_whole_reply(state: &mut State, reply: Reply<'_>) {
    if !state.0.takes_short(reply.peer(), false, reply.words(), reply.payload(), Answer::None) {
        state.0.take_reply(&reply);
    }
}

impl Endpoint {
    /// Opens the endpoint for messages.
    ///
    /// # Errors
    /// Returns `Resource` if it was opened before, or if the environment or the system does not allow it.
    pub fn open(&'static self) -> Result<(), Refusal> {
        if self.is_open() {
            return Err(refuse(Code::Resource, "AM_SetExpectedResources was called before"));
        }
        let config = settings::config(*self.name.at().ip(), self.here).map_err(failed)?;
        let link = am::Endpoint::new(handlers(), config).map_err(failed)?;
        *self.link.borrow_mut() = Some(link);
        Ok(())
    }

    /// Polls. Returns the number of the stack's messages that were handled.
    ///
    /// # Errors
    /// Returns `Resource` in a handler.
    #[inline(always)]
    pub fn poll(&'static self) -> Result<usize, Refusal> {
        if self.bundle().is_barred() {
            return Err(in_handler());
        }
        self.unpolled.set(0);
        let handled = {
            let Ok(mut link) = self.link.try_borrow_mut() else { return Err(in_handler()) };
            // An endpoint that is not open yet has nothing to poll.
            let Some(link) = &mut *link else { return Ok(0) };
            self.look(link)
        };
        self.settle(handled);
        Ok(handled)
    }

    /// Looks for messages once, while the endpoint of the stack is borrowed. Several looks in a poll would follow
    /// each other too fast: each takes a line away from its writer, and a round trip took 5 to 10 % longer with them.
    ///
    /// Not inlined: as the one place that polls the stack, it has the whole poll of the stack inlined.
    #[inline(never)]
    fn look(&'static self, link: &mut am::Endpoint<State>) -> usize {
        if lobby::has_news() {
            self.answer_calls(link);
        }
        let handled = link.poll(&mut State(self)).unwrap_or_else(|lost| {
            self.note(lost);
            1
        });
        self.push(link);
        handled
    }

    /// Does what a poll may not do while the endpoint of the stack is borrowed. A poll without a message yields the
    /// processor now and then, where ranks share it.
    #[inline]
    fn settle(&'static self, handled: usize) {
        if handled > 0 {
            self.vain.set(0);
            control::end_if_told();
            if self.delivered.get() % BUSY_MESSAGES < handled as u64 {
                polling::tend_others();
            }
        } else if self.vain.replace(self.vain.get() + 1) >= VAIN_POLLS {
            self.rest();
        }
    }

    /// Yields the processor, where ranks share it.
    #[cold]
    fn rest(&'static self) {
        self.vain.set(0);
        control::end_if_told();
        if let Ok(mut link) = self.link.try_borrow_mut()
            && let Some(link) = &mut *link
        {
            link.idle(SLEEP_AT_MOST);
        }
        polling::tend_others();
    }

    /// Polls all endpoints of the bundle while a call waits, as `AM_Poll` does.
    pub fn poll_while_waiting(&'static self, link: &mut am::Endpoint<State>) {
        let mut handled = self.look(link);
        // A handler may free endpoints, or move them to a bundle of other threads.
        let bundle = self.bundle();
        let endpoints = bundle.endpoints.borrow().clone();
        for endpoint in endpoints.into_iter().filter(|endpoint| endpoint.is_in(bundle)) {
            // This endpoint is borrowed, and so is one that waits further out in this thread.
            if let Ok(Some(link)) = endpoint.link.try_borrow_mut().as_deref_mut() {
                handled += endpoint.look(link);
            }
        }
        // The peer for which the call waits may have ended the job or left it.
        control::end_if_told();
        if handled == 0 {
            link.idle(SLEEP_AT_MOST);
            polling::tend_others();
        }
    }

    /// Keeps a message of several pieces until there is room. A peer that takes no answers and goes on to ask gets no more.
    fn queue(&self, peer: PeerId, last: u8, words: Words, payload: Vec<u8>) {
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.iter().filter(|message| message.peer == peer).count() >= MOST_QUEUED {
            return;
        }
        outgoing.push_back(Outgoing { peer, piece: REPLY_PIECE, last, words, payload, sent: 0 });
    }

    /// Counts an answer that a peer owes, or that has come. It may come before the promise.
    fn count_promise(&self, peer: PeerId, more: i64) {
        let promised = &mut self.peers.borrow_mut()[peer.index()].promised;
        let before = (*promised).max(0);
        *promised += more;
        // An answer that nobody has promised does not make up for those that others owe.
        self.promised.set(self.promised.get() + (*promised).max(0) - before);
    }

    /// Sends what waits, as long as there is room. A peer without room does not keep the others waiting.
    #[inline]
    fn push(&'static self, link: &mut am::Endpoint<State>) {
        if !self.outgoing.borrow().is_empty() {
            self.push_outgoing(link);
        }
    }

    #[cold]
    fn push_outgoing(&'static self, link: &mut am::Endpoint<State>) {
        let mut outgoing = self.outgoing.borrow_mut();
        let mut full = Vec::new();
        let mut at = 0;
        while let Some(message) = outgoing.get_mut(at) {
            if full.contains(&message.peer) {
                at += 1;
                continue;
            }
            let piece = link.medium_bytes(message.peer);
            let rest = &message.payload[message.sent..];
            let is_last = rest.len() <= piece;
            let bytes = &rest[..rest.len().min(piece)];
            let (handler, words) =
                if is_last { (message.last, message.words) } else { (message.piece, [0; 4]) };
            match link.try_request_medium(message.peer, handler, words, bytes) {
                Ok(()) if is_last => drop(outgoing.remove(at)),
                Ok(()) => message.sent += bytes.len(),
                Err(RequestError::Full) => {
                    full.push(message.peer);
                    if full.len() == self.peers.borrow().len() {
                        return;
                    }
                }
                // A poll reports the loss.
                Err(_) => drop(outgoing.remove(at)),
            }
        }
    }
}
