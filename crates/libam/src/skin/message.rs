//! Requests, replies, and questions about a message. The functions `AM_Request0` to `AM_ReplyXfer16` and the variadic ones
//! are in the headers and call these.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use super::endpoint::answer_with;
use crate::code::{Category, Code};
use crate::exchange::Outbound;
use crate::guard::{Out, answer, answer_shortly, check_initialized, values};
use crate::message::{MAX_ARGUMENTS, MAX_BYTES};
use crate::name::Name;
use crate::objects::Endpoint;
use crate::objects::token::Token;
use crate::refusal::{Refusal, refuse};
use std::ffi::{c_int, c_void};

/// A message as the headers pass it, `struct amx_message`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Given {
    handler: u8,
    category: u8,
    is_asynchronous: u8,
    count: c_int,
    arguments: *const i32,
    bytes: *const c_void,
    len: usize,
    offset: usize,
}

impl Given {
    /// Reads and checks it.
    ///
    /// # Errors
    /// Returns `BadArg` with what is wrong.
    ///
    /// # Safety
    /// The pointer, the arguments and the bytes are what the headers and the program say.
    #[inline]
    unsafe fn read<'a>(pointer: *const Self) -> Result<(Outbound<'a>, bool), Refusal> {
        // SAFETY: the caller says so.
        let given = unsafe { *pointer };
        let category =
            Category::of(given.category).ok_or_else(|| refuse(Code::BadArg, "there is no such category"))?;
        let count = usize::try_from(given.count).ok().filter(|count| *count <= MAX_ARGUMENTS);
        let count = count.ok_or_else(|| refuse(Code::BadArg, "a message has 0 to 16 arguments"))?;
        // SAFETY: the caller says so.
        let arguments = unsafe { values(given.arguments, count) };
        let bytes = if category == Category::Short {
            &[]
        } else if given.len > MAX_BYTES {
            return Err(refuse(Code::BadArg, "a message has at most 65000 bytes"));
        } else if given.bytes.is_null() && given.len > 0 {
            return Err(refuse(Code::BadArg, "the source is NULL"));
        } else {
            // SAFETY: the caller says so.
            unsafe { values(given.bytes.cast(), given.len) }
        };
        let offset = if category == Category::Long { given.offset as u64 } else { 0 };
        Ok((
            Outbound { handler: given.handler, category, bytes, offset, arguments },
            given.is_asynchronous != 0,
        ))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SendRequest(endpoint: *const Endpoint, to: u32, message: *const Given) -> c_int {
    answer_with("AM_Request", endpoint, |endpoint| {
        // SAFETY: the headers pass a message.
        let (message, is_asynchronous) = unsafe { Given::read(message) }?;
        endpoint.request(to, message, is_asynchronous)
    })
}

/// Sends a short request with up to five arguments, in the words of `message`.
#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SendShortRequest(
    endpoint: *const Endpoint,
    to: u32,
    front: u64,
    second: u64,
    third: u64,
) -> c_int {
    answer_shortly(
        // SAFETY: the program passes a handle of this library.
        unsafe { Endpoint::find(endpoint) }
            .is_some_and(|endpoint| endpoint.sends_short(to, [front, second, third])),
        || request_in_words(endpoint, to, front, second, third),
    )
}

/// Sends a short request that the short way could not send. A function of its own with the parameters of its caller,
/// so that the short way saves no registers.
#[cold]
#[inline(never)]
fn request_in_words(endpoint: *const Endpoint, to: u32, front: u64, second: u64, third: u64) -> c_int {
    answer_with("AM_Request", endpoint, |endpoint| endpoint.request_in_words(to, [front, second, third]))
}

/// Replies with up to five arguments.
#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SendShortReply(token: *const c_void, front: u64, second: u64, third: u64) -> c_int {
    answer_shortly(
        // SAFETY: the program passes a token.
        unsafe { Token::find(token) }.is_some_and(|token| token.replies_short([front, second, third])),
        || reply_in_words(token, front, second, third),
    )
}

/// Replies as [`request_in_words`] requests.
#[cold]
#[inline(never)]
fn reply_in_words(token: *const c_void, front: u64, second: u64, third: u64) -> c_int {
    answer("AM_Reply", || {
        check_initialized()?;
        // SAFETY: the program passes a token.
        unsafe { Token::of(token) }?.reply_in_words([front, second, third])
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SendReply(token: *const c_void, message: *const Given) -> c_int {
    answer("AM_Reply", || {
        check_initialized()?;
        // SAFETY: the program passes a token.
        let token = unsafe { Token::of(token) }?;
        // SAFETY: the headers pass a message.
        let (message, _) = unsafe { Given::read(message) }?;
        token.reply(message)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetSourceEndpoint(token: *const c_void, name: *mut Name) -> c_int {
    answer("AM_GetSourceEndpoint", || {
        check_initialized()?;
        // SAFETY: the program passes a token.
        let token = unsafe { Token::of(token) }?;
        // SAFETY: the program has room for a name there.
        unsafe { Out::new(name)?.put(token.source.name(token.endpoint)) };
        Ok(())
    })
}

/// Gives the index of the translation for the source, or -1 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_GetSourceId(token: *const c_void, id: *mut c_int) -> c_int {
    answer("AMX_GetSourceId", || {
        check_initialized()?;
        // SAFETY: the program passes a token.
        let token = unsafe { Token::of(token) }?;
        let index = token.source.entry(token.endpoint);
        // SAFETY: the program has room for a number there.
        unsafe { Out::new(id)?.put(index.map_or(-1, |index| index as c_int)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetDestEndpoint(token: *const c_void, endpoint: *mut *const Endpoint) -> c_int {
    answer("AM_GetDestEndpoint", || {
        check_initialized()?;
        // SAFETY: the program passes a token.
        let token = unsafe { Token::of(token) }?;
        // SAFETY: the program has room for a handle there.
        unsafe { Out::new(endpoint)?.put(token.endpoint) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetMsgTag(token: *const c_void, tag: *mut u64) -> c_int {
    answer("AM_GetMsgTag", || {
        check_initialized()?;
        // SAFETY: the program passes a token.
        let token = unsafe { Token::of(token) }?;
        // SAFETY: the program has room for a tag there.
        unsafe { Out::new(tag)?.put(token.message.tag) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_GetTokenInfo(
    token: *const c_void,
    handler: *mut u8,
    category: *mut c_int,
    is_request: *mut c_int,
) -> c_int {
    answer("AMX_GetTokenInfo", || {
        check_initialized()?;
        // SAFETY: the program passes a token.
        let message = unsafe { Token::of(token) }?.message;
        let (handler, category, is_request) =
            (Out::new(handler)?, Out::new(category)?, Out::new(is_request)?);
        // SAFETY: the program has room for the three there.
        unsafe {
            handler.put(message.handler);
            category.put(message.category as c_int);
            is_request.put(message.is_request.into());
        }
        Ok(())
    })
}
