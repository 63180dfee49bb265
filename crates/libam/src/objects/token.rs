//! Tokens: what a handler gets to ask about its message, and to answer it.

use super::Endpoint;
use crate::code::{Category, Code};
use crate::name::Name;
use crate::refusal::{Refusal, refuse};
use netdyno_stack::am::{PeerId, ReplySlot, Request};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where a message comes from.
#[derive(Clone, Copy)]
pub enum Source {
    /// Another endpoint.
    Peer(PeerId),
    /// The endpoint itself.
    Own,
    /// Nowhere: it could not be sent to the entry of the translation table with this index.
    Entry(u32),
}

impl Source {
    /// Returns the name of the other endpoint of a message of `endpoint`.
    pub fn name(self, endpoint: &Endpoint) -> Name {
        match self {
            Self::Own => endpoint.name,
            Self::Peer(peer) => endpoint.peers.borrow()[peer.index()].name,
            Self::Entry(index) => {
                endpoint.translation(index as usize).map_or(endpoint.name, |entry| entry.name)
            }
        }
    }

    /// Returns the index of the translation for the other endpoint, if there is one.
    pub fn entry(self, endpoint: &Endpoint) -> Option<usize> {
        match self {
            Self::Own => endpoint.index_of(&endpoint.name),
            Self::Peer(peer) => endpoint.peers.borrow()[peer.index()].translation,
            Self::Entry(index) => Some(index as usize),
        }
    }
}

/// Where the reply to a message goes.
#[derive(Clone, Copy)]
pub enum Answer<'a, 'b> {
    /// The message is a reply or a returned one, or is answered: there is none.
    None,
    /// To the slot that is reserved for it.
    Slot(Unanswered<'a, 'b>),
    /// To this endpoint itself.
    Own,
}

/// A request without a reply. It stays where the stack has put it: a copy, made right after the stack has written it in
/// smaller stores, would wait until these stores have ended.
#[derive(Clone, Copy)]
pub struct Unanswered<'a, 'b>(&'b Request<'a>);

impl<'a, 'b> Unanswered<'a, 'b> {
    /// Takes a request.
    ///
    /// # Safety
    /// The request is used no more once this has replied.
    pub unsafe fn new(request: &'b Request<'a>) -> Self {
        Self(request)
    }

    /// Takes the slot of the reply. It is taken again only if it was not used.
    #[inline(always)]
    pub fn slot(self) -> ReplySlot<'a> {
        // SAFETY: the maker of this says that the request is used no more. A request has nothing to drop.
        unsafe { ptr::read(self.0) }.into_slot()
    }
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
// In this order: if the tag lay behind the peer, as in a request of the stack, the compiler would copy both in one
// load, which would wait for the stack's two stores.
#[repr(C)]
pub struct Token<'a, 'b> {
    pub endpoint: &'static Endpoint,
    pub message: About,
    pub source: Source,
    pub answer: Cell<Answer<'a, 'b>>,
}

/// Whether the process has, or has had, several bundles. With a single one its place tells whether a handler runs, and no
/// message pays for a variable of the thread.
static ARE_SEVERAL: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The handlers that this thread runs, of those that began while there were several bundles.
    static RUNNING: Cell<u32> = const { Cell::new(0) };
}

/// Notes that there are several bundles from now on.
pub fn count_handlers() {
    ARE_SEVERAL.store(true, Ordering::Relaxed);
}

/// Reports whether the process has, or has had, several bundles.
#[inline]
pub fn are_several_bundles() -> bool {
    ARE_SEVERAL.load(Ordering::Relaxed)
}

/// Reports whether this thread runs a handler, if there are several bundles.
#[inline]
pub fn runs_a_handler() -> bool {
    ARE_SEVERAL.load(Ordering::Relaxed) && RUNNING.get() > 0
}

/// Says that a pointer of the program is the place of a token.
const MAGIC: u64 = 0x6e64_616d_2d74_6b30;

/// The place of the token of the handler that runs in a bundle. Its address is the token of the program, and stays
/// valid when the handler has ended. A reply of an endpoint to itself is handled at once, within the handler that
/// sends it; its token takes the place meanwhile.
pub struct Place {
    magic: u64,
    token: Cell<*const Token<'static, 'static>>,
}

impl Default for Place {
    fn default() -> Self {
        Self { magic: MAGIC, token: Cell::new(ptr::null()) }
    }
}

impl Place {
    /// Reports whether a handler runs.
    #[inline]
    pub fn is_taken(&self) -> bool {
        !self.token.get().is_null()
    }

    /// Reports whether a handler of the endpoint runs.
    pub fn is_taken_by(&self, endpoint: &Endpoint) -> bool {
        // Handlers that run within each other are of one endpoint.
        self.token().is_some_and(|token| ptr::eq(token.endpoint, endpoint))
    }

    /// Returns the token of the handler that runs.
    #[inline]
    pub fn token(&self) -> Option<&Token<'static, 'static>> {
        // SAFETY: the token lives as long as its handler runs.
        unsafe { self.token.get().as_ref() }
    }
}

impl Token<'_, '_> {
    /// Lends the token to a handler.
    #[inline(always)]
    pub fn lend(&self) -> Lent {
        let place = &self.endpoint.bundle().place;
        let is_counted = ARE_SEVERAL.load(Ordering::Relaxed);
        if is_counted {
            RUNNING.set(RUNNING.get() + 1);
        }
        Lent { place, outer: place.token.replace(ptr::from_ref(self).cast()), is_counted }
    }

    /// Returns the token that a program passes.
    ///
    /// # Errors
    /// Returns `BadArg` for NULL, and `Resource` if no handler runs with that token.
    ///
    /// # Safety
    /// The pointer is NULL, a token of this library, or points to readable memory.
    pub unsafe fn of<'c>(pointer: *const c_void) -> Result<&'c Token<'static, 'static>, Refusal> {
        // SAFETY: the caller says so.
        unsafe { Self::find(pointer) }.ok_or_else(|| no_token(pointer))
    }

    /// Returns the token that a program passes, if its handler runs.
    ///
    /// # Safety
    /// As of [`Token::of`].
    #[inline]
    pub unsafe fn find<'c>(pointer: *const c_void) -> Option<&'c Token<'static, 'static>> {
        let place: *const Place = pointer.cast();
        // SAFETY: the caller says so.
        if place.is_null() || unsafe { (&raw const (*place).magic).read_unaligned() } != MAGIC {
            return None;
        }
        // SAFETY: this is a place, whose memory stays.
        unsafe { (*place).token() }
    }
}

#[cold]
fn no_token(pointer: *const c_void) -> Refusal {
    if pointer.is_null() {
        return refuse(Code::BadArg, "the token is NULL");
    }
    refuse(Code::Resource, "no handler runs with that token: a token is valid while its handler runs")
}

/// A token that a handler has. Dropped, it takes the token back, also if a panic passes.
pub struct Lent {
    place: &'static Place,
    /// The token of the handler within which this one runs.
    outer: *const Token<'static, 'static>,
    is_counted: bool,
}

impl Lent {
    /// Returns the token of the program.
    #[inline(always)]
    pub fn pointer(&self) -> *mut c_void {
        ptr::from_ref(self.place).cast_mut().cast()
    }
}

impl Drop for Lent {
    #[inline(always)]
    fn drop(&mut self) {
        self.place.token.set(self.outer);
        if self.is_counted {
            RUNNING.set(RUNNING.get() - 1);
        }
    }
}
