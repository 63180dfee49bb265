//! Messages that have arrived: they go to their handlers, or back to their senders.

use super::{PROMISED, RETURNED, RETURNED_REPLY_LAST, RETURNED_REQUEST_LAST};
use crate::calling;
use crate::code::{Category, Status, opcode, operation};
use crate::job;
use crate::message::{Head, MAX_ARGUMENTS, MAX_PAYLOAD, Words, short_arguments, short_count};
use crate::name::Name;
use crate::objects::token::{About, Answer, Source, Token, Unanswered};
use crate::objects::{Buffer, Endpoint, TAG_ALL, TAG_NONE};
use netdyno_stack::am::{Loss, PeerId, PeerLost, Reply, Request};
use std::cell::Cell;
use std::ffi::c_void;

/// The payload of a message that has arrived.
pub enum Body<'a> {
    /// It is in a buffer of the stack, or is the program's own.
    Lent(&'a [u8]),
    /// It was assembled from pieces.
    Own(Buffer),
}

impl Body<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Body::Lent(bytes) => bytes,
            Body::Own(buffer) => buffer.bytes(),
        }
    }

    /// Returns the payload in memory that a handler may write to.
    fn into_buffer(self) -> Buffer {
        match self {
            Body::Lent(bytes) => {
                let mut buffer = Buffer::default();
                buffer.append(bytes);
                buffer
            }
            Body::Own(buffer) => buffer,
        }
    }
}

impl Endpoint {
    /// Keeps a piece of a message.
    pub fn gather(&self, request: &Request<'_>, which: usize) {
        let mut peers = self.peers.borrow_mut();
        let pieces = &mut peers[request.peer().index()].pieces[which];
        // A correct peer sends no more. What is too long is found to be malformed with the last piece.
        if pieces.len <= MAX_PAYLOAD {
            pieces.append(request.payload());
        }
    }

    /// Returns a message of several pieces, the last of which has come.
    pub fn gathered(&self, request: &Request<'_>, which: usize) -> Buffer {
        self.gather(request, which);
        std::mem::take(&mut self.peers.borrow_mut()[request.peer().index()].pieces[which])
    }

    /// Gives a short message of a peer with up to five arguments to its handler, if nothing stands against it. Returns
    /// whether it has done so.
    ///
    /// Most messages are such ones, and their way is short: always inlined, without a copy of the words in memory.
    #[inline(always)]
    pub fn takes_short(
        &'static self,
        peer: PeerId,
        is_request: bool,
        words: Words,
        payload: &[u8],
        answer: Answer<'_, '_>,
    ) -> bool {
        let [tag, front, second, third] = words;
        let handler = front as u8;
        let own = self.tag.get();
        // An endpoint that takes all tags is rare, and goes the long way.
        if own != tag || own == TAG_NONE {
            return false;
        }
        let Some(count) = short_count(front) else { return false };
        let Some(function) = self.handler(handler) else { return false };
        if handler == 0 || !payload.is_empty() || self.callbacks.get().is_some() {
            return false;
        }
        let message = About { tag, handler, category: Category::Short, is_request };
        let token = Token { endpoint: self, source: Source::Peer(peer), message, answer: Cell::new(answer) };
        let lent = token.lend();
        let arguments = short_arguments([front, second, third]);
        // SAFETY: the program says that the function is a handler of such messages.
        unsafe { calling::with_few(function, lent.pointer(), arguments, count) };
        drop(lent);
        // After the handler, because each store before its reply makes the reply later.
        self.counts.count_received(is_request, Category::Short);
        self.delivered.set(self.delivered.get().wrapping_add(1));
        true
    }

    /// Gives a request of a peer to its handler, or back to its sender.
    #[cold]
    #[inline(never)]
    pub fn take_request(&'static self, request: &Request<'_>, body: Body<'_>) {
        // SAFETY: the callers, which are handlers of the stack, use the request no more.
        let answer = Answer::Slot(unsafe { Unanswered::new(request) });
        self.take(Source::Peer(request.peer()), true, request.words(), body, answer);
    }

    /// Gives a reply of a peer to its handler, or back to its sender.
    #[cold]
    #[inline(never)]
    pub fn take_reply(&'static self, reply: &Reply<'_>) {
        let body = Body::Lent(reply.payload());
        self.take(Source::Peer(reply.peer()), false, reply.words(), body, Answer::None);
    }

    /// Gives a message to its handler, or back to its sender.
    pub fn take(
        &'static self,
        source: Source,
        is_request: bool,
        words: Words,
        body: Body<'_>,
        answer: Answer<'_, '_>,
    ) {
        let Ok((head, bytes)) = Head::read(words, body.bytes()) else { return };
        if head.status.is_some() {
            return;
        }
        let len = bytes.len();
        if matches!(source, Source::Peer(_)) {
            self.counts.count_received(is_request, head.category);
        }
        let function = match self.checked(&head, len) {
            Ok(function) => function,
            Err(status) => return self.give_back(source, is_request, &head, status, body.bytes(), answer),
        };
        let message = about(&head, is_request, self.tag.get());
        let mut buffer;
        let pointer: *mut c_void = match head.category {
            Category::Short => std::ptr::null_mut(),
            Category::Medium => {
                buffer = body.into_buffer();
                buffer.pointer().cast()
            }
            Category::Long => {
                let place = self.place(head.offset);
                // SAFETY: the range was checked to be in the segment, which the program says is its memory. A message to
                // the endpoint itself may come from the segment.
                unsafe { place.cast::<u8>().copy_from(bytes.as_ptr(), len) };
                place
            }
        };
        let [before, after] = self.callbacks.get().unwrap_or_default();
        let token = Token { endpoint: self, source, message, answer: Cell::new(answer) };
        let lent = token.lend();
        let shape = Shape { head: &head, is_request, token: lent.pointer(), bytes: pointer, len };
        // SAFETY: the program says that these functions are callbacks and a handler of such messages.
        unsafe {
            if let Some(before) = before {
                shape.call_before(before);
            }
            shape.call(function);
            if let Some(after) = after {
                shape.call_after(after);
            }
        }
        drop(lent);
        self.delivered.set(self.delivered.get().wrapping_add(1));
    }

    /// Returns the handler of a message.
    ///
    /// # Errors
    /// Returns why the endpoint does not take the message.
    fn checked(&self, head: &Head, len: usize) -> Result<calling::Function, Status> {
        let own = self.tag.get();
        let is_for_us = own != TAG_NONE && (own == TAG_ALL || head.tag.is_none_or(|tag| tag == own));
        if !is_for_us {
            return Err(Status::BadTag);
        }
        // Index 0 has the handler of returned messages.
        let function = if head.handler == 0 { None } else { self.handler(head.handler) };
        let function = function.ok_or(Status::BadHandler)?;
        if head.category == Category::Long {
            let segment = self.segment.get();
            let room = (segment.len as u64).checked_sub(head.offset);
            let room = room.filter(|_| segment.len > 0);
            if room.ok_or(Status::BadSegmentOffset)? < len as u64 {
                return Err(Status::BadLength);
            }
        }
        Ok(function)
    }

    /// Gives a message back to its sender.
    fn give_back(
        &'static self,
        source: Source,
        is_request: bool,
        head: &Head,
        status: Status,
        payload: &[u8],
        answer: Answer<'_, '_>,
    ) {
        let words = Head { status: Some(status), ..*head }.words();
        match (source, answer) {
            (Source::Own, _) => self.take_returned(source, is_request, words, payload),
            (Source::Peer(peer), Answer::Slot(unanswered)) => {
                if let Err((_, slot)) = unanswered.slot().reply_medium(RETURNED, words, payload) {
                    slot.reply(PROMISED, []);
                    self.queue(peer, RETURNED_REQUEST_LAST, words, payload.to_vec());
                }
            }
            // It was not sent.
            (Source::Entry(_), _) => {}
            // A reply has no slot for an answer.
            (Source::Peer(peer), _) => self.queue(peer, RETURNED_REPLY_LAST, words, payload.to_vec()),
        }
    }

    /// Takes a message that has come back.
    pub fn take_returned(&'static self, source: Source, is_request: bool, words: Words, payload: &[u8]) {
        let Ok((head, bytes)) = Head::read(words, payload) else { return };
        let Some(status) = head.status else { return };
        self.return_to_program(source, &source.name(self), is_request, &head, status, bytes);
    }

    /// Calls the handler of returned messages with a message to the endpoint `to`. Without a handler, the process ends.
    pub fn return_to_program(
        &'static self,
        source: Source,
        to: &Name,
        is_request: bool,
        head: &Head,
        status: Status,
        bytes: &[u8],
    ) {
        self.counts.count_returned();
        let Some(function) = self.handler(0) else {
            if matches!(status, Status::Unreachable | Status::BadEndpoint) {
                job::end_if_rank_has_left(self, to);
            }
            let Head { handler, tag, arguments, count, .. } = head;
            job::fail(&format!(
                "a message came back ({status}): {} to handler {handler} of endpoint {to}, tag {:#x}, arguments {:?}; \
                 set handler 0 to handle this",
                operation(head.category, is_request),
                tag.unwrap_or(0),
                &arguments[..usize::from(*count)],
            ))
        };
        let mut buffer = Buffer::default();
        if head.category == Category::Short {
            head.arguments[..head.count.into()]
                .iter()
                .for_each(|argument| buffer.append(&argument.to_ne_bytes()));
        } else {
            buffer.append(bytes);
        }
        let numbers = [status as i32, opcode(head.category, is_request)];
        let message = about(head, is_request, 0);
        let token = Token { endpoint: self, source, message, answer: Cell::new(Answer::None) };
        let lent = token.lend();
        // SAFETY: the program says that the function is a handler of returned messages.
        unsafe { calling::returned(function, numbers, lent.pointer(), buffer.pointer().cast(), buffer.len) };
        drop(lent);
        self.delivered.set(self.delivered.get().wrapping_add(1));
    }

    /// Takes the loss of a peer. A request may report it before the poll does.
    pub fn note(&'static self, lost: PeerLost) {
        let (name, owed) = {
            let mut peers = self.peers.borrow_mut();
            let peer = &mut peers[lost.peer.index()];
            if std::mem::replace(&mut peer.is_lost, true) {
                return;
            }
            let owed = std::mem::take(&mut peer.promised);
            self.promised.set(self.promised.get() - owed.max(0));
            (peer.name, owed)
        };
        self.outgoing.borrow_mut().retain(|message| message.peer != lost.peer);
        // The stack takes a promise of a reply in pieces for an answer.
        let is_answered = lost.unresolved == 0 && owed <= 0;
        if job::rank_is_lost(self, &name, lost.loss) || is_answered {
            return;
        }
        // The requests were not kept. The program learns once that some of them may not have been handled.
        let head = Head {
            tag: None,
            handler: 0,
            category: Category::Short,
            offset: 0,
            arguments: [0; MAX_ARGUMENTS],
            count: 0,
            status: None,
        };
        let status = if lost.loss == Loss::Closed { Status::BadEndpoint } else { Status::Unreachable };
        self.return_to_program(Source::Peer(lost.peer), &name, true, &head, status, &[]);
    }
}

/// Returns what a handler may ask about its message. A reply to an endpoint without a translation has the tag `otherwise`.
#[inline]
fn about(head: &Head, is_request: bool, otherwise: u64) -> About {
    About { tag: head.tag.unwrap_or(otherwise), handler: head.handler, category: head.category, is_request }
}

/// The parameters of a handler and of the callbacks.
struct Shape<'a> {
    head: &'a Head,
    is_request: bool,
    token: *mut c_void,
    bytes: *mut c_void,
    len: usize,
}

type Before =
    unsafe extern "C" fn(i32, i32, i32, *mut c_void, *mut c_void, usize, i32, *mut [i32; MAX_ARGUMENTS]);
type After = unsafe extern "C" fn(i32, i32);

impl Shape<'_> {
    unsafe fn call(&self, function: calling::Function) {
        let Head { arguments, count, category, .. } = self.head;
        // SAFETY: the caller says that the function is a handler of such messages.
        unsafe {
            match category {
                Category::Short => calling::short(function, self.token, arguments, *count),
                _ => calling::with_bytes(function, self.token, self.bytes, self.len, arguments, *count),
            }
        }
    }

    unsafe fn call_before(&self, function: calling::Function) {
        let Self { head, is_request, token, bytes, len } = *self;
        let mut arguments = head.arguments;
        let (category, handler, count) = (head.category as i32, head.handler.into(), head.count.into());
        // SAFETY: the caller says that the function is a callback for the time before a handler.
        unsafe {
            std::mem::transmute::<calling::Function, Before>(function)(
                category,
                is_request.into(),
                handler,
                token,
                bytes,
                len,
                count,
                &raw mut arguments,
            );
        }
    }

    unsafe fn call_after(&self, function: calling::Function) {
        let (category, is_request) = (self.head.category as i32, self.is_request.into());
        // SAFETY: the caller says that the function is a callback for the time after a handler.
        unsafe { std::mem::transmute::<calling::Function, After>(function)(category, is_request) };
    }
}
