//! Handlers, and the messages that they receive.

use super::bulk::{FetchedHandler, Memories, RefusedHandler, StoreHandler};
use super::call::Call;
use super::error::TooLong;
use super::peer_id::PeerId;
use super::shm::outbox::ShmOutbox;
use netdyno_protocol::frame::slot::MAX_WORDS;

/// A handler of requests. `S` is the program's state, which handlers borrow while the program polls.
pub type RequestHandler<S> = fn(&mut S, Request<'_>);
/// A handler of replies.
pub type ReplyHandler<S> = fn(&mut S, Reply<'_>);

/// The handler tables of an endpoint. Requests, replies, stores and gets have one table each. The
/// programs at both ends must agree on the indices.
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
    /// Returns empty tables.
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

    /// Sets the handler of gets at `index`. It runs at the side that called `get`, when the bytes have
    /// arrived.
    pub const fn on_fetched(&mut self, index: u8, handler: FetchedHandler<S>) {
        self.fetched[index as usize] = Some(handler);
    }

    /// Sets the handler of stores and gets that a peer refuses after they were begun. Without this
    /// handler no transfer is begun.
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

/// The handlers and the memories that an endpoint offers to its peers.
pub(super) struct Offer<S> {
    pub handlers: Handlers<S>,
    pub memories: Memories,
}

/// The content of a message.
pub(super) struct Content<'a> {
    pub peer: PeerId,
    pub words: [u64; MAX_WORDS],
    pub payload: &'a [u8],
}

/// The sending side of a connection over a transport other than shared memory. Replies go to it.
pub(super) trait Replies {
    /// Returns the longest payload of a reply, in bytes.
    fn medium_bytes(&self) -> usize;

    /// Replies. Never waits, because the slot of the reply is reserved. The payload fits.
    fn reply(&mut self, call: &Call, payload: &[u8]);
}

/// The connection that the reply to a request goes to. A pointer, because one is made for every request.
pub(super) enum Outbox<'a> {
    Shm(&'a mut ShmOutbox),
    Other(&'a mut dyn Replies),
}

impl Outbox<'_> {
    /// Replies with up to four words. Never waits: the slot was reserved.
    #[inline(always)]
    pub(super) fn reply<const N: usize>(self, handler: u8, words: [u64; N]) {
        const { assert!(N <= MAX_WORDS) };
        match self {
            Outbox::Shm(outbox) => outbox.reply(handler, &words),
            Outbox::Other(outbox) => reply(outbox, &Call::new(handler, words)),
        }
    }

    /// Replies with words and a payload. The caller has checked the length of the payload.
    pub(super) fn reply_medium<const N: usize>(self, handler: u8, words: [u64; N], payload: &[u8]) {
        const { assert!(N <= MAX_WORDS) };
        match self {
            Outbox::Shm(outbox) => outbox.reply_medium(handler, &words, payload),
            Outbox::Other(outbox) => outbox.reply(&Call::new(handler, words), payload),
        }
    }

    /// Returns the longest payload of a reply, in bytes.
    pub(super) fn medium_bytes(&self) -> usize {
        match self {
            Outbox::Shm(outbox) => outbox.medium_bytes(),
            Outbox::Other(outbox) => outbox.medium_bytes(),
        }
    }
}

/// Kept out of line, so that replies over shared memory pay nothing for it.
#[cold]
#[inline(never)]
fn reply(outbox: &mut dyn Replies, call: &Call) {
    outbox.reply(call, &[]);
}

/// The slot that is reserved for the reply to a request. Without a reply, the peer gets the slot back.
pub struct ReplySlot<'a>(pub(super) Outbox<'a>);

impl ReplySlot<'_> {
    /// Replies with up to four words. Never waits, because the slot is reserved.
    #[inline(always)]
    pub fn reply<const N: usize>(self, handler: u8, words: [u64; N]) {
        self.0.reply(handler, words);
    }

    /// Replies with up to four words, if that takes no more than a few stores: over shared memory, without dials.
    ///
    /// # Errors
    /// Returns the slot if it takes more. Nothing is sent.
    #[inline(always)]
    pub fn reply_at_once<const N: usize>(self, handler: u8, words: [u64; N]) -> Result<(), Self> {
        const { assert!(N <= MAX_WORDS) };
        match self.0 {
            Outbox::Shm(outbox) if !outbox.is_dialled() => {
                outbox.reply_undialled(handler, &words);
                Ok(())
            }
            outbox => Err(Self(outbox)),
        }
    }

    /// Replies with up to four words and a payload.
    ///
    /// # Errors
    /// Returns `TooLong` and the slot if the payload is too long. Nothing is sent, and the slot still takes a reply.
    pub fn reply_medium<const N: usize>(
        self,
        handler: u8,
        words: [u64; N],
        payload: &[u8],
    ) -> Result<(), (TooLong, Self)> {
        if let Err(too_long) = TooLong::check(payload, self.0.medium_bytes()) {
            return Err((too_long, self));
        }
        self.0.reply_medium(handler, words, payload);
        Ok(())
    }
}

/// A request, given to its handler, which may reply once.
///
/// ```
/// use netdyno_stack::am::Handlers;
/// let mut handlers = Handlers::<()>::new();
/// handlers.on_request(0, |_, request| request.reply(0, [1]));
/// ```
///
/// A second reply is a type error:
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
/// A request cannot be kept, because its reply slot may serve another request later:
///
/// ```compile_fail
/// use netdyno_stack::am::{Handlers, Request};
/// let mut handlers = Handlers::<Vec<Request<'static>>>::new();
/// handlers.on_request(0, |kept, request| kept.push(request));
/// ```
///
/// A reply of more words than a message has is a type error as well:
///
/// ```compile_fail,E0080
/// use netdyno_stack::am::Handlers;
/// let mut handlers = Handlers::<()>::new();
/// handlers.on_request(0, |_, request| request.reply(0, [1, 2, 3, 4, 5]));
/// ```
pub struct Request<'a> {
    pub(super) content: Content<'a>,
    pub(super) slot: ReplySlot<'a>,
}

impl<'a> Request<'a> {
    /// Returns the sender of the request.
    pub fn peer(&self) -> PeerId {
        self.content.peer
    }

    /// Returns the words of the request; words that were not sent are 0.
    #[inline(always)]
    pub fn words(&self) -> [u64; MAX_WORDS] {
        self.content.words
    }

    /// Returns the payload; empty for a short message. It outlives the request, so that a reply can
    /// carry it.
    pub fn payload(&self) -> &'a [u8] {
        self.content.payload
    }

    /// Replies with up to four words. Never waits, because the slot of the reply is reserved.
    #[inline(always)]
    pub fn reply<const N: usize>(self, handler: u8, words: [u64; N]) {
        self.slot.reply(handler, words);
    }

    /// Replies with up to four words and a payload.
    ///
    /// # Errors
    /// Returns `TooLong` and the request if the payload is too long. Nothing is sent, and the handler
    /// can still reply.
    pub fn reply_medium<const N: usize>(
        self,
        handler: u8,
        words: [u64; N],
        payload: &[u8],
    ) -> Result<(), (TooLong, Self)> {
        let Self { content, slot } = self;
        slot.reply_medium(handler, words, payload)
            .map_err(|(too_long, slot)| (too_long, Self { content, slot }))
    }

    /// Returns the slot of the reply, for a handler that replies when the rest of the request is gone.
    #[inline(always)]
    pub fn into_slot(self) -> ReplySlot<'a> {
        self.slot
    }
}

/// A reply, given to its handler. It has no method that sends.
///
/// ```compile_fail,E0599
/// use netdyno_stack::am::Handlers;
/// let mut handlers = Handlers::<()>::new();
/// handlers.on_reply(0, |_, reply| reply.reply(0, [1]));
/// ```
///
/// A handler cannot reach the endpoint that polls either:
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
    /// Returns the sender of the reply.
    pub fn peer(&self) -> PeerId {
        self.content.peer
    }

    /// Returns the words of the reply; words that were not sent are 0.
    #[inline(always)]
    pub fn words(&self) -> [u64; MAX_WORDS] {
        self.content.words
    }

    /// Returns the payload; empty for a short message.
    pub fn payload(&self) -> &'a [u8] {
        self.content.payload
    }
}
