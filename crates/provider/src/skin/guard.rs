//! The guard around every function that libfabric or the program calls. A panic that leaves an `extern "C"` function
//! aborts the process; here it becomes an error number.

use crate::abi;
use crate::engine::Refused;
use core::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An error number of libfabric, positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub isize);

impl From<Refused> for Errno {
    fn from(refused: Refused) -> Self {
        Self(match refused {
            Refused::Again => abi::EAGAIN,
            Refused::PeerLost => abi::ECONNABORTED,
            Refused::TooLong => abi::EMSGSIZE,
            Refused::NoEndpoint => abi::EBADF,
        })
    }
}

/// A type that functions of libfabric return.
pub trait Answer {
    /// Returns the answer of a function that failed.
    fn failed(errno: Errno) -> Self;
}

impl Answer for c_int {
    fn failed(Errno(errno): Errno) -> Self {
        -(errno as Self)
    }
}

impl Answer for isize {
    fn failed(Errno(errno): Errno) -> Self {
        -errno
    }
}

/// The value of a counter, which has no error numbers.
impl Answer for u64 {
    fn failed(_: Errno) -> Self {
        0
    }
}

/// A string; none if the function failed.
impl Answer for *const c_char {
    fn failed(_: Errno) -> Self {
        std::ptr::null()
    }
}

/// A function without an answer.
impl Answer for () {
    fn failed(_: Errno) -> Self {}
}

/// Runs the body of a function.
pub fn enter<R: Answer>(body: impl FnOnce() -> Result<R, Errno>) -> R {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(errno)) => R::failed(errno),
        Err(_) => R::failed(Errno(abi::EOTHER)),
    }
}

/// Defines functions that C calls. Each body returns a `Result`.
macro_rules! entries {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $result:ty $body:block)*) => {$(
        $(#[$attribute])*
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> $result {
            #[allow(unused_unsafe, reason = "some functions follow no pointer")]
            // SAFETY: the function is called through a table of an object of this provider, with the arguments that
            // the manual of libfabric prescribes. So the object is live, and the pointers lead to what they should.
            $crate::skin::guard::enter(|| unsafe { $body })
        }
    )*};
}
pub(crate) use entries;

/// Defines functions that this provider does not have. They answer that.
macro_rules! missing {
    ($(fn $name:ident($($kind:ty),* $(,)?) -> $result:ty;)*) => {$(
        unsafe extern "C" fn $name($(_: $kind),*) -> $result {
            <$result as $crate::skin::guard::Answer>::failed($crate::skin::guard::Errno($crate::abi::ENOSYS))
        }
    )*};
}
pub(crate) use missing;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_number() {
        assert_eq!(enter::<c_int>(|| panic!("for the test")), -(abi::EOTHER as c_int));
        assert_eq!(enter::<isize>(|| Err(Refused::Again.into())), -abi::EAGAIN);
        assert_eq!(enter(|| Ok(7_u64)), 7);
    }
}
