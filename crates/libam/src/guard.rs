//! The beginning of every function that C calls: a guard against panics, and checks of its arguments.

use crate::code::{Code, OK};
use crate::refusal::{Refusal, refuse};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, Ordering};

/// The number of calls of `AM_Init` that no `AM_Terminate` has undone.
static INITIALIZED: AtomicI32 = AtomicI32::new(0);

/// Initializes the library, once more.
pub fn initialize() {
    INITIALIZED.fetch_add(1, Ordering::Relaxed);
}

/// Undoes one initialization. Returns whether it was the last one.
pub fn terminate() -> bool {
    INITIALIZED.fetch_sub(1, Ordering::Relaxed) == 1
}

/// Runs the body of a function and returns its code. No panic reaches the program.
#[inline]
pub fn answer(call: &str, work: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => OK,
        Ok(Err(refusal)) => {
            refusal.tell(call);
            refusal.code() as c_int
        }
        Err(_) => Code::Resource as c_int,
    }
}

/// Returns `AM_OK` if a short way has done all, and else runs the guarded body. The short way has no call that can
/// panic; the guard would make a message later by a few stores.
#[inline]
pub fn answer_shortly(is_done: bool, otherwise: impl FnOnce() -> c_int) -> c_int {
    if is_done { OK } else { otherwise() }
}

/// Runs the body of a function of GAM, which returns 0, or -1 if it fails.
pub fn answer_gam(call: &str, work: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    if answer(call, work) == OK { OK } else { -1 }
}

/// Runs the body of a function that returns something else than a code.
#[inline]
pub fn quietly<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// Checks that the library is initialized.
#[inline]
pub fn check_initialized() -> Result<(), Refusal> {
    if INITIALIZED.load(Ordering::Relaxed) > 0 {
        return Ok(());
    }
    Err(refuse(Code::NotInit, "call AM_Init or SPMDStartup first"))
}

/// A pointer from the program to which a value is written.
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Takes a pointer.
    ///
    /// # Errors
    /// Returns `BadArg` if it is NULL.
    pub fn new(pointer: *mut T) -> Result<Self, Refusal> {
        if pointer.is_null() {
            Err(refuse(Code::BadArg, "a pointer for a result is NULL"))
        } else {
            Ok(Self(pointer))
        }
    }

    /// Writes a value.
    ///
    /// # Safety
    /// A `T` can be written there.
    pub unsafe fn put(self, value: T) {
        // SAFETY: the caller says so; the pointer need not be aligned.
        unsafe { self.0.write_unaligned(value) };
    }
}

/// Returns values of the program. The pointer may be NULL if there are none.
///
/// # Safety
/// There are that many values.
pub unsafe fn values<'a, T>(pointer: *const T, len: usize) -> &'a [T] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(pointer, len) }
}

/// Takes an index of the program.
pub fn index(index: c_int) -> Result<usize, Refusal> {
    usize::try_from(index).map_err(|_| refuse(Code::BadArg, "an index is negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(answer("", || Ok(())), 0);
        assert_eq!(answer("", || Err(refuse(Code::BadArg, "a test"))), 2);
        assert_eq!(answer("", || panic!("on purpose")), 3);
        assert_eq!(quietly(-1, || panic!("on purpose")), -1);
    }
}
