//! Tokens: what a handler gets to ask about its message, and to answer it.

use super::{Bundle, Endpoint};
use crate::code::{Category, Code};
use crate::refusal::{Refusal, refuse};
use netdyno_stack::am::{PeerId, Request};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

/// Where a message comes from.
#[derive(Clone, Copy)]
pub enum Source {
    /// Another endpoint.
    Peer(PeerId),
    /// The endpoint itself.
    Own,
}

/// Where the reply to a message goes.
#[derive(Clone, Copy)]
pub enum Answer<'a, 'b> {
    /// The message is a reply or a returned one, or is answered: there is none.
    None,
    /// To the slot that is reserved for it. The request is there until the reply takes it.
    Slot(&'b Cell<Option<Request<'a>>>),
    /// To this endpoint itself.
    Own,
}

/// The properties of a message that its handler may ask for.
#[derive(Clone, Copy)]
pub struct About {
    pub tag: u64,
    pub handler: u8,
    pub category: Category,
    pub is_request: bool,
}

/// The message that a handler works on.
pub struct Token<'a, 'b> {
    pub endpoint: &'static Endpoint,
    pub source: Source,
    pub message: About,
    pub answer: Cell<Answer<'a, 'b>>,
}

/// Says that a pointer of the program is a slot.
const MAGIC: u64 = 0x6e64_616d_2d74_6b30;
/// The most handlers of an endpoint that run within each other: a reply of the endpoint to itself is handled at once, and
/// may come back.
const DEPTH: usize = 4;

/// The place of a token. Its address is the token of the program. It stays valid when the handler has ended.
struct Slot {
    magic: u64,
    token: Cell<*const Token<'static, 'static>>,
}

/// The tokens of the handlers of an endpoint that run.
pub struct Tokens {
    slots: [Slot; DEPTH],
    running: Cell<usize>,
}

impl Default for Tokens {
    fn default() -> Self {
        let slots = [const { Slot { magic: MAGIC, token: Cell::new(ptr::null()) } }; DEPTH];
        Self { slots, running: Cell::new(0) }
    }
}

impl Tokens {
    /// Reports whether a handler of the endpoint runs.
    pub fn are_lent(&self) -> bool {
        self.running.get() > 0
    }

    /// Returns the token of the handler that runs.
    ///
    /// # Errors
    /// Returns `Resource` outside of a handler.
    pub fn current(&self) -> Result<&Token<'static, 'static>, Refusal> {
        let at = self.running.get().checked_sub(1);
        // SAFETY: the token lives as long as its handler runs.
        let token = at.and_then(|at| unsafe { self.slots[at].token.get().as_ref() });
        token.ok_or_else(|| refuse(Code::Resource, "no handler runs"))
    }
}

impl<'a, 'b> Token<'a, 'b> {
    /// Makes a token and lends it to a handler.
    #[inline]
    pub fn lend(
        endpoint: &'static Endpoint,
        source: Source,
        message: About,
        answer: Answer<'a, 'b>,
        run: impl FnOnce(*mut c_void),
    ) {
        let token = Self { endpoint, source, message, answer: Cell::new(answer) };
        let nth = endpoint.tokens.running.get();
        let Some(slot) = endpoint.tokens.slots.get(nth) else { return };
        slot.token.set(ptr::from_ref(&token).cast());
        endpoint.tokens.running.set(nth + 1);
        let bundle = endpoint.bundle();
        bundle.running.set(bundle.running.get() + 1);
        let _ended = Ended { endpoint, bundle, nth };
        run(ptr::from_ref(slot).cast_mut().cast());
    }

    /// Returns the token that a program passes.
    ///
    /// # Errors
    /// Returns `BadArg` for NULL, and `Resource` if no handler runs with that token.
    ///
    /// # Safety
    /// The pointer is NULL, a token of this library, or points to readable memory.
    #[inline]
    pub unsafe fn find<'c>(pointer: *const c_void) -> Result<&'c Token<'static, 'static>, Refusal> {
        let slot: *const Slot = pointer.cast();
        if !slot.is_null() && slot.is_aligned() {
            // SAFETY: the caller says so. The memory of slots stays.
            let slot = unsafe { &*slot };
            if slot.magic == MAGIC && !slot.token.get().is_null() {
                // SAFETY: the token lives as long as its handler runs.
                return Ok(unsafe { &*slot.token.get() });
            }
        }
        Err(no_token(pointer))
    }
}

#[cold]
fn no_token(pointer: *const c_void) -> Refusal {
    if pointer.is_null() {
        return refuse(Code::BadArg, "the token is NULL");
    }
    refuse(Code::Resource, "no handler runs with that token: a token is valid while its handler runs")
}

/// Takes the token back, also if a panic passes.
struct Ended {
    endpoint: &'static Endpoint,
    bundle: &'static Bundle,
    nth: usize,
}

impl Drop for Ended {
    #[inline]
    fn drop(&mut self) {
        self.endpoint.tokens.slots[self.nth].token.set(ptr::null());
        self.endpoint.tokens.running.set(self.nth);
        self.bundle.running.set(self.bundle.running.get() - 1);
    }
}
