//! Tokens: what a handler gets to ask about its message, and to answer it.

use crate::code::{Category, Code};
use crate::objects::Endpoint;
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
pub enum Answer<'a> {
    /// The message is a reply or a returned one, or is answered: there is none.
    None,
    /// To the slot that is reserved for it.
    Slot(Request<'a>),
    /// To this endpoint itself.
    Own,
}

/// What a handler may ask about its message.
#[derive(Clone, Copy)]
pub struct About {
    pub tag: u64,
    pub handler: u8,
    pub category: Category,
    pub is_request: bool,
}

/// The message that a handler works on. Its address is the token of the program.
pub struct Token<'a> {
    pub endpoint: &'static Endpoint,
    pub source: Source,
    pub message: About,
    pub answer: Cell<Answer<'a>>,
    /// The token of the handler in which this one runs: a reply of an endpoint to itself is handled at once.
    outer: *const Token<'static>,
}

thread_local! {
    /// The token of the handler that this thread runs.
    static CURRENT: Cell<*const Token<'static>> = const { Cell::new(ptr::null()) };
}

/// Reports whether this thread runs a handler.
pub fn is_in_handler() -> bool {
    !CURRENT.get().is_null()
}

impl<'a> Token<'a> {
    /// Makes a token and lends it to a handler.
    #[inline]
    pub fn lend(
        endpoint: &'static Endpoint,
        source: Source,
        message: About,
        answer: Answer<'a>,
        run: impl FnOnce(*mut c_void),
    ) -> Answer<'a> {
        let outer = CURRENT.get();
        let token = Self { endpoint, source, message, answer: Cell::new(answer), outer };
        let pointer = ptr::from_ref(&token);
        let _restored = Restored(outer);
        CURRENT.set(pointer.cast());
        run(pointer.cast_mut().cast());
        token.answer.replace(Answer::None)
    }

    /// Returns the token of the handler that this thread runs.
    ///
    /// # Errors
    /// Returns `Resource` outside of a handler.
    pub fn current<'b>() -> Result<&'b Token<'static>, Refusal> {
        // SAFETY: the token lives as long as its handler runs, in this thread.
        unsafe { CURRENT.get().as_ref() }.ok_or_else(|| refuse(Code::Resource, "no handler runs"))
    }

    /// Returns the token that a program passes.
    ///
    /// # Errors
    /// Returns `BadArg` for NULL, and `Resource` if no handler of this thread runs with that token.
    pub fn find<'b>(pointer: *const c_void) -> Result<&'b Token<'static>, Refusal> {
        if pointer.is_null() {
            return Err(refuse(Code::BadArg, "the token is NULL"));
        }
        let mut current = CURRENT.get();
        while !current.is_null() {
            // SAFETY: tokens in this chain live as long as their handlers run, in this thread.
            let token = unsafe { &*current };
            if ptr::eq(pointer, current.cast()) {
                return Ok(token);
            }
            current = token.outer;
        }
        Err(refuse(
            Code::Resource,
            "no handler runs with that token: a token is valid while its handler runs",
        ))
    }
}

/// Restores the token of the outer handler, also if a panic passes.
struct Restored(*const Token<'static>);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}
