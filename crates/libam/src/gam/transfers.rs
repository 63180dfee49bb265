//! Stores and gets of GAM: medium messages of up to 65000 bytes, which carry the address of their bytes.

use super::{arguments, job, places, rank, source, word};
use crate::calling::Function;
use crate::code::{Category, Code};
use crate::exchange::Outbound;
use crate::guard::{answer_gam, quietly, values};
use crate::lock::held;
use crate::message::MAX_BYTES;
use crate::objects::token::Token;
use crate::refusal::{Refusal, refuse};
use std::ffi::{c_int, c_void};
use std::sync::Mutex;

/// Indices of the handlers of the job's endpoint.
const STORE: u8 = 202;
const GET: u8 = 203;
const GOT: u8 = 204;

/// A function that is told the end of a transfer: the process, the address, the bytes, and what the program gave.
type Told = unsafe extern "C" fn(c_int, *mut c_void, c_int, *mut c_void);

/// The function of this process that is called at the end of a transfer, and its arguments.
#[derive(Clone, Copy)]
struct End {
    with: c_int,
    at: *mut c_void,
    len: c_int,
    function: *const c_void,
    argument: *mut c_void,
}

impl End {
    fn tell(self) {
        if !self.function.is_null() {
            let function = places::function(self.function);
            // SAFETY: the program says that this is such a function.
            unsafe {
                std::mem::transmute::<Function, Told>(function)(self.with, self.at, self.len, self.argument);
            }
        }
    }
}

// SAFETY: the addresses are the program's, which uses the job in one thread at a time.
unsafe impl Send for End {}

/// A get that is not complete.
struct Get {
    end: End,
    missing: usize,
}

/// Ends of asynchronous stores that no poll has told yet.
static STORED: Mutex<Vec<End>> = Mutex::new(Vec::new());
/// Gets by their number.
static GETS: Mutex<Vec<Option<Get>>> = Mutex::new(Vec::new());

/// Sets the AM-2 handlers.
pub fn set_handlers(set: impl Fn(u8, Function)) {
    set(STORE, places::function(stored as *const c_void));
    set(GET, places::function(asked as *const c_void));
    set(GOT, places::function(got as *const c_void));
}

/// Tells the ends of asynchronous stores.
pub fn end_stores() {
    // A function that is told may begin another one.
    let stored = std::mem::take(&mut *held(&STORED));
    for end in stored {
        end.tell();
    }
}

/// A transfer between this process and another one.
struct Transfer {
    with: c_int,
    here: *mut c_void,
    there: *mut c_void,
    len: c_int,
}

impl Transfer {
    /// Returns the length.
    ///
    /// # Errors
    /// Returns `BadArg` if the length is negative or an address is NULL.
    fn len(&self) -> Result<usize, Refusal> {
        let len = usize::try_from(self.len).map_err(|_| refuse(Code::BadArg, "the length is negative"))?;
        if len > 0 && (self.here.is_null() || self.there.is_null()) {
            return Err(refuse(Code::BadArg, "an address is NULL"));
        }
        Ok(len)
    }

    /// Sends the bytes. The other process calls `function` when all have come.
    fn store(&self, function: *const c_void, argument: *mut c_void) -> Result<(), Refusal> {
        let (job, len) = (job()?, self.len()?);
        let to = rank(&job, self.with)?;
        let function = if function.is_null() { 0 } else { places::encode_function(function)? };
        let (argument, is_in_object) = places::encode_argument(argument);
        for Piece { at, len: piece, is_last } in
            pieces(len, to as usize == job.rank && self.there > self.here)
        {
            // SAFETY: the program says that there are that many bytes.
            let bytes = unsafe { values(self.here.cast::<u8>().wrapping_add(at), piece) };
            let place = places::encode(self.there.wrapping_byte_add(at));
            let arguments = arguments([
                place,
                if is_last { function } else { 0 },
                argument,
                places::encode(self.there),
                len as u64 | u64::from(is_in_object) << 32,
            ]);
            let message = Outbound {
                handler: STORE,
                category: Category::Medium,
                bytes,
                offset: 0,
                arguments: &arguments,
            };
            job.endpoint.request(to, message, false)?;
        }
        Ok(())
    }
}

/// A message of a transfer.
struct Piece {
    at: usize,
    len: usize,
    is_last: bool,
}

/// Returns the messages of a transfer in their order. Bytes that move up within this process may overlap, so they are moved
/// from the last to the first.
fn pieces(len: usize, is_upwards_here: bool) -> impl Iterator<Item = Piece> {
    let count = len.div_ceil(MAX_BYTES).max(1);
    (0..count).map(move |nth| {
        let at = MAX_BYTES * if is_upwards_here { count - 1 - nth } else { nth };
        Piece { at, len: (len - at).min(MAX_BYTES), is_last: nth == count - 1 }
    })
}

/// Stores bytes into the memory of another process, where `function` is called then. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn am_store(
    with: c_int,
    here: *mut c_void,
    there: *mut c_void,
    len: c_int,
    function: *const c_void,
    argument: *mut c_void,
) -> c_int {
    answer_gam("am_store", || Transfer { with, here, there, len }.store(function, argument))
}

/// Stores bytes, and calls `end` in this process when the source may be used again: in the next poll.
#[unsafe(no_mangle)]
unsafe extern "C" fn am_store_async(
    with: c_int,
    here: *mut c_void,
    there: *mut c_void,
    len: c_int,
    function: *const c_void,
    argument: *mut c_void,
    end: *const c_void,
    end_argument: *mut c_void,
) -> c_int {
    answer_gam("am_store_async", || {
        Transfer { with, here, there, len }.store(function, argument)?;
        let end = End { with, at: here, len, function: end, argument: end_argument };
        held(&STORED).push(end);
        Ok(())
    })
}

/// Notes a get. Returns its number.
fn begin(get: Get) -> u64 {
    let mut gets = held(&GETS);
    let free = gets.iter().position(Option::is_none).unwrap_or(gets.len());
    if free == gets.len() {
        gets.push(None);
    }
    gets[free] = Some(get);
    free as u64
}

/// Gets bytes from the memory of another process, and calls `function` in this one when all have come.
#[unsafe(no_mangle)]
unsafe extern "C" fn am_get(
    with: c_int,
    there: *mut c_void,
    here: *mut c_void,
    len: c_int,
    function: *const c_void,
    argument: *mut c_void,
) -> c_int {
    answer_gam("am_get", || {
        let transfer = Transfer { with, here, there, len };
        let (job, bytes) = (job()?, transfer.len()?);
        let to = rank(&job, with)?;
        let get = Get { end: End { with, at: here, len, function, argument }, missing: bytes };
        let number = begin(get);
        for (nth, Piece { at, len: piece, .. }) in
            pieces(bytes, to as usize == job.rank && here > there).enumerate()
        {
            let place = places::encode(there.wrapping_byte_add(at));
            let arguments = arguments([place, piece as u64, number, at as u64]);
            job.endpoint.request(to, super::short(GET, &arguments), false).inspect_err(|_| {
                // Nothing comes for a get that has asked for nothing.
                if nth == 0 {
                    held(&GETS)[number as usize] = None;
                }
            })?;
        }
        Ok(())
    })
}

/// The AM-2 handler of a store.
#[rustfmt::skip]
unsafe extern "C" fn stored(
    token: *const c_void, bytes: *const u8, len: usize,
    p0: i32, p1: i32, f0: i32, f1: i32, a0: i32, a1: i32, b0: i32, b1: i32, l0: i32, is_in_object: i32,
) {
    quietly((), || {
        // SAFETY: the library passes a token.
        let Some(token) = (unsafe { Token::find(token) }) else { return };
        let Some(place) = places::decode(word(p0, p1)) else { return };
        // SAFETY: the sender runs the same program and says that this is memory for its bytes.
        unsafe { place.cast::<u8>().copy_from_nonoverlapping(bytes, len) };
        let argument = places::decode_argument(word(a0, a1), is_in_object != 0);
        let ends = (places::decode_function(word(f0, f1)), argument, places::decode(word(b0, b1)));
        if let (Some(function), Some(argument), Some(at)) = ends {
            End { with: source(token), at, len: l0, function: function as *const c_void, argument }.tell();
        }
    });
}

/// The AM-2 handler of a question for bytes.
#[rustfmt::skip]
unsafe extern "C" fn asked(
    token: *const c_void,
    p0: i32, p1: i32, l0: i32, l1: i32, n0: i32, n1: i32, o0: i32, o1: i32,
) {
    quietly((), || {
        // SAFETY: the library passes a token.
        let Some(token) = (unsafe { Token::find(token) }) else { return };
        let len = word(l0, l1) as usize;
        let Some(place) = places::decode(word(p0, p1)).filter(|_| len <= MAX_BYTES) else { return };
        // SAFETY: the asker runs the same program and says that this is memory with that many bytes.
        let bytes = unsafe { values(place.cast_const().cast::<u8>(), len) };
        let arguments = [n0, n1, o0, o1];
        let message = Outbound { handler: GOT, category: Category::Medium, bytes, offset: 0, arguments: &arguments };
        // This is the handler of a request, and the first reply.
        let _ = token.reply(message);
    });
}

/// The AM-2 handler of bytes that were asked for.
unsafe extern "C" fn got(_: *const c_void, bytes: *const u8, len: usize, n0: i32, n1: i32, o0: i32, o1: i32) {
    quietly((), || {
        let (number, offset) = (word(n0, n1) as usize, word(o0, o1) as usize);
        let place = || {
            let mut gets = held(&GETS);
            let get = gets.get_mut(number)?.as_mut()?;
            let has_room = offset.checked_add(len).is_some_and(|end| end <= get.end.len as usize);
            if !has_room || len > get.missing {
                return None;
            }
            // SAFETY: the program says that its memory has room for all bytes of the get.
            unsafe { get.end.at.cast::<u8>().add(offset).copy_from_nonoverlapping(bytes, len) };
            get.missing -= len;
            (get.missing == 0).then(|| gets[number].take()).flatten()
        };
        if let Some(get) = place() {
            get.end.tell();
        }
    });
}
