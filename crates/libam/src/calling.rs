//! The call of a handler of the program.
//!
//! A handler has as many parameters as its message has arguments. It is called with more: with 4 or with 16. By the
//! calling conventions of C on x86-64 and aarch64 the caller removes the arguments, and a function does not see those
//! beyond its parameters. So two calls serve all numbers of arguments. A handler that expects more arguments than
//! were sent gets anything for them.

use crate::message::MAX_ARGUMENTS;
use std::ffi::{c_int, c_void};

/// A function of the program, whatever its parameters are.
pub type Function = unsafe extern "C" fn();

type Arguments = [i32; MAX_ARGUMENTS];
type Short4 = unsafe extern "C" fn(*mut c_void, i32, i32, i32, i32);
type Data4 = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, i32, i32, i32, i32);
type Returned = unsafe extern "C" fn(c_int, c_int, *mut c_void, *mut c_void, usize);
#[rustfmt::skip]
type Short16 = unsafe extern "C" fn(
    *mut c_void,
    i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32,
);
#[rustfmt::skip]
type Data16 = unsafe extern "C" fn(
    *mut c_void, *mut c_void, usize,
    i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32,
);

/// Calls the handler of a short message with up to five arguments.
///
/// # Safety
/// As of [`short`].
#[inline(always)]
pub unsafe fn with_few(function: Function, token: *mut c_void, [a, b, c, d, e]: [i32; 5], count: u8) {
    if count <= 4 {
        // SAFETY: the caller says what the function is. It does not see arguments beyond its parameters.
        unsafe { std::mem::transmute::<Function, Short4>(function)(token, a, b, c, d) };
    } else {
        let mut arguments = [0; MAX_ARGUMENTS];
        arguments[..5].copy_from_slice(&[a, b, c, d, e]);
        // SAFETY: the caller says what the function is.
        unsafe { short(function, token, &arguments, count) };
    }
}

/// Calls the handler of a short message.
///
/// # Safety
/// The function is one for short messages, in C or a language that calls as C does.
#[inline]
pub unsafe fn short(function: Function, token: *mut c_void, arguments: &Arguments, count: u8) {
    let [a, b, c, d, rest @ ..] = *arguments;
    if count <= 4 {
        // SAFETY: the caller says what the function is. It does not see arguments beyond its parameters.
        unsafe { std::mem::transmute::<Function, Short4>(function)(token, a, b, c, d) };
    } else {
        let [e, f, g, h, i, j, k, l, m, n, o, p] = rest;
        // SAFETY: as above.
        unsafe {
            std::mem::transmute::<Function, Short16>(function)(
                token, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p,
            )
        };
    }
}

/// Calls the handler of a medium or long message.
///
/// # Safety
/// The function is one for such messages, in C or a language that calls as C does. The bytes are readable and writable.
#[inline]
pub unsafe fn with_bytes(
    function: Function,
    token: *mut c_void,
    bytes: *mut c_void,
    len: usize,
    arguments: &Arguments,
    count: u8,
) {
    let [a, b, c, d, rest @ ..] = *arguments;
    if count <= 4 {
        // SAFETY: the caller says what the function is. It does not see arguments beyond its parameters.
        unsafe { std::mem::transmute::<Function, Data4>(function)(token, bytes, len, a, b, c, d) };
    } else {
        let [e, f, g, h, i, j, k, l, m, n, o, p] = rest;
        // SAFETY: as above.
        unsafe {
            std::mem::transmute::<Function, Data16>(function)(
                token, bytes, len, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p,
            )
        };
    }
}

/// Calls the handler of returned messages.
///
/// # Safety
/// As of [`with_bytes`].
pub unsafe fn returned(
    function: Function,
    [status, opcode]: [c_int; 2],
    token: *mut c_void,
    bytes: *mut c_void,
    len: usize,
) {
    // SAFETY: the caller says what the function is.
    unsafe { std::mem::transmute::<Function, Returned>(function)(status, opcode, token, bytes, len) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::ptr;

    thread_local! {
        static SEEN: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
    }

    unsafe extern "C" fn two(_: *mut c_void, a: i32, b: i32) {
        SEEN.with_borrow_mut(|seen| seen.extend([a, b]));
    }

    #[rustfmt::skip]
    unsafe extern "C" fn nine(_: *mut c_void, _: *mut c_void, len: usize, a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i32, h: i32, i: i32) {
        SEEN.with_borrow_mut(|seen| seen.extend([len as i32, a, b, c, d, e, f, g, h, i]));
    }

    #[test]
    fn a_handler_gets_its_arguments() {
        let arguments: Arguments = std::array::from_fn(|at| at as i32 + 1);
        // SAFETY: both are functions in C's convention that take what is passed, and less.
        unsafe {
            let two = std::mem::transmute::<unsafe extern "C" fn(*mut c_void, i32, i32), Function>(two);
            short(two, ptr::null_mut(), &arguments, 2);
            short(two, ptr::null_mut(), &arguments, 16);
            #[rustfmt::skip]
            let nine = std::mem::transmute::<unsafe extern "C" fn(*mut c_void, *mut c_void, usize, i32, i32, i32, i32, i32, i32, i32, i32, i32), Function>(nine);
            with_bytes(nine, ptr::null_mut(), ptr::null_mut(), 7, &arguments, 9);
        }
        SEEN.with_borrow(|seen| assert_eq!(seen[..], [1, 2, 1, 2, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    }
}
