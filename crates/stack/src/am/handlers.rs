//! Handlers, and what they are given.

use super::bulk::{FetchedHandler, Memories, RefusedHandler, StoreHandler};
use super::config::PeerId;
use super::error::TooLong;
use super::{shm, udp};
use netdyno_protocol::frame::slot::MAX_WORDS;

/// A handler of requests. `S` is what the program lends to handlers while it polls.
pub type RequestHandler<S> = fn(&mut S, Request<'_>);
/// A handler of replies.
pub type ReplyHandler<S> = fn(&mut S, Reply<'_>);

/// The handler tables of an endpoint. Indices are agreed upon between the programs at
/// both ends; requests, replies, stores and gets have a table each.
pub struct Handlers<S> {
    requests: [Option<RequestHandler<S>>; 256],
    replies: [Option<ReplyHandler<S>>; 256],
    stores: [Option<StoreHandler<S>>; 256],
    fetched: [Option<FetchedHandler<S>>; 256],
    refused: Option<RefusedHandler<S>>,
}

impl<S> Clone for Handlers<S> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<S> Default for Handlers<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Handlers<S> {
    /// Empty tables.
    pub const fn new() -> Self {
        Self {
            requests: [None; 256],
            replies: [None; 256],
            stores: [None; 256],
            fetched: [None; 256],
            refused: None,
        }
    }

    /// Sets the handler of requests at `index`.
    pub const fn on_request(&mut self, index: u8, handler: RequestHandler<S>) {
        self.requests[index as usize] = Some(handler);
    }

    /// Sets the handler of replies at `index`.
    pub const fn on_reply(&mut self, index: u8, handler: ReplyHandler<S>) {
        self.replies[index as usize] = Some(handler);
    }

    /// Sets the handler of stores by peers at `index`.
    pub const fn on_store(&mut self, index: u8, handler: StoreHandler<S>) {
        self.stores[index as usize] = Some(handler);
    }

    /// Sets the handler of gets at `index`, which fires where the bytes have arrived.
    pub const fn on_fetched(&mut self, index: u8, handler: FetchedHandler<S>) {
        self.fetched[index as usize] = Some(handler);
    }

    /// Sets the handler of all stores and gets that a peer refuses after they were begun.
    /// Without it none is begun.
    pub const fn on_refused(&mut self, handler: RefusedHandler<S>) {
        self.refused = Some(handler);
    }

    pub(super) fn store(&self, index: u8) -> Option<StoreHandler<S>> {
        self.stores[index as usize]
    }

    pub(super) fn fetched(&self, index: u8) -> Option<FetchedHandler<S>> {
        self.fetched[index as usize]
    }

    pub(super) fn refused(&self) -> Option<RefusedHandler<S>> {
        self.refused
    }

    #[inline(always)]
    pub(super) fn request(&self, index: u8) -> Option<RequestHandler<S>> {
        self.requests[index as usize]
    }

    #[inline(always)]
    pub(super) fn reply(&self, index: u8) -> Option<ReplyHandler<S>> {
        self.replies[index as usize]
    }
}

/// What an endpoint has for its peers.
pub(super) struct Offer<S> {
    pub handlers: Handlers<S>,
    pub memories: Memories,
}

/// Words one by one, to be passed on in registers. A pointer to them would keep them in memory
/// on the way of shared memory as well, where copying them takes as long as sending them.
#[inline(always)]
pub(super) fn spread<const N: usize>(words: [u64; N]) -> [u64; MAX_WORDS] {
    std::array::from_fn(|at| words.get(at).copied().unwrap_or(0))
}

/// What any message brings.
pub(super) struct Content<'a> {
    pub peer: PeerId,
    pub words: [u64; MAX_WORDS],
    pub payload: &'a [u8],
}

/// Where the reply to a request goes, by the wire that it came over: a pointer, for it is made
/// for every request.
pub(super) enum Outbox<'a> {
    Shm(&'a mut shm::Outbox),
    Udp(&'a mut udp::Outbox),
}

impl Outbox<'_> {
    /// Replies with up to four words. Never waits: the slot was reserved.
    #[inline(always)]
    pub(super) fn reply<const N: usize>(self, handler: u8, words: [u64; N]) {
        const { assert!(N <= MAX_WORDS) };
        match self {
            Outbox::Shm(outbox) => outbox.reply(handler, &words),
            Outbox::Udp(outbox) => {
                let [a, b, c, d] = spread(words);
                outbox.reply_short(handler, N, a, b, c, d);
            }
        }
    }

    /// The same with a payload that is not too long.
    pub(super) fn reply_medium<const N: usize>(self, handler: u8, words: [u64; N], payload: &[u8]) {
        const { assert!(N <= MAX_WORDS) };
        match self {
            Outbox::Shm(outbox) => outbox.reply_medium(handler, &words, payload),
            Outbox::Udp(outbox) => outbox.reply(handler, &words, payload),
        }
    }

    /// The longest payload that may go back.
    pub(super) fn medium_bytes(&self) -> usize {
        match self {
            Outbox::Shm(outbox) => outbox.medium_bytes(),
            Outbox::Udp(outbox) => outbox.medium_bytes(),
        }
    }
}

/// A request in the hands of its handler, which may answer it once.
///
/// ```
/// use netdyno_stack::am::Handlers;
/// let mut handlers = Handlers::<()>::new();
/// handlers.on_request(0, |_, request| request.reply(0, [1]));
/// ```
///
/// A second answer is a type error:
///
/// ```compile_fail,E0382
/// use netdyno_stack::am::Handlers;
/// let mut handlers = Handlers::<()>::new();
/// handlers.on_request(0, |_, request| {
///     request.reply(0, [1]);
///     request.reply(0, [2]);
/// });
/// ```
///
/// So is one that is kept for later, when its slot may be another's:
///
/// ```compile_fail
/// use netdyno_stack::am::{Handlers, Request};
/// let mut handlers = Handlers::<Vec<Request<'static>>>::new();
/// handlers.on_request(0, |kept, request| kept.push(request));
/// ```
///
/// And so are more words than a message has:
///
/// ```compile_fail,E0080
/// use netdyno_stack::am::Handlers;
/// let mut handlers = Handlers::<()>::new();
/// handlers.on_request(0, |_, request| request.reply(0, [1, 2, 3, 4, 5]));
/// ```
pub struct Request<'a> {
    pub(super) content: Content<'a>,
    pub(super) outbox: Outbox<'a>,
}

impl<'a> Request<'a> {
    /// Who sent it.
    pub fn peer(&self) -> PeerId {
        self.content.peer
    }

    /// Its words; 0 beyond those that were sent.
    #[inline(always)]
    pub fn words(&self) -> [u64; MAX_WORDS] {
        self.content.words
    }

    /// Its payload; empty for a short message. It outlives the request, so that it can be
    /// the payload of the reply.
    pub fn payload(&self) -> &'a [u8] {
        self.content.payload
    }

    /// Replies with up to four words. Never waits: the slot was reserved.
    #[inline(always)]
    pub fn reply<const N: usize>(self, handler: u8, words: [u64; N]) {
        self.outbox.reply(handler, words);
    }

    /// Replies with up to four words and a payload. Where the payload is too long, nothing
    /// is sent and the request remains, to be answered otherwise.
    pub fn reply_medium<const N: usize>(
        self,
        handler: u8,
        words: [u64; N],
        payload: &[u8],
    ) -> Result<(), (TooLong, Self)> {
        if let Err(too_long) = TooLong::check(payload, self.outbox.medium_bytes()) {
            return Err((too_long, self));
        }
        self.outbox.reply_medium(handler, words, payload);
        Ok(())
    }
}

/// A reply in the hands of its handler, which sends nothing: there is no way to.
///
/// ```compile_fail,E0599
/// use netdyno_stack::am::Handlers;
/// let mut handlers = Handlers::<()>::new();
/// handlers.on_reply(0, |_, reply| reply.reply(0, [1]));
/// ```
///
/// Nor does it get at the endpoint that polls:
///
/// ```compile_fail,E0499
/// use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId};
/// struct State<'a> {
///     endpoint: &'a mut Endpoint<State<'a>>,
/// }
/// fn poll<'a>(endpoint: &'a mut Endpoint<State<'a>>) {
///     let mut state = State { endpoint: &mut *endpoint };
///     let _ = endpoint.poll(&mut state);
/// }
/// ```
pub struct Reply<'a> {
    pub(super) content: Content<'a>,
}

impl<'a> Reply<'a> {
    /// Who sent it.
    pub fn peer(&self) -> PeerId {
        self.content.peer
    }

    /// Its words; 0 beyond those that were sent.
    #[inline(always)]
    pub fn words(&self) -> [u64; MAX_WORDS] {
        self.content.words
    }

    /// Its payload; empty for a short message.
    pub fn payload(&self) -> &'a [u8] {
        self.content.payload
    }
}
