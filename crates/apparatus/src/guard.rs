//! The guard around every function of the hook that libfabric or the program calls.
//!
//! A panic that leaves an `extern "C"` function aborts the MPI job. All such functions are therefore
//! defined with [`entries`] (a test in `cli/tests/walls` finds exceptions). The macro takes what the
//! function does, and how the call passes to the provider undialled. After a panic the hook has failed
//! (`run` exits with 125), and the program gets an answer of the provider:
//!
//! ```text
//! the provider had accepted the call    that answer: calling again would repeat the operation
//! it had refused, or was not called     the answer of a new, undialled call
//! ```

use crate::abi;
use crate::fault::{Entry, Side};
use crate::hook::{self, Hook, inside};
use core::ffi::c_int;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A type that functions of libfabric return.
pub trait Answer: Copy {
    /// The answer where the provider does not have the function.
    const MISSING: Self;

    /// Returns whether the provider has accepted the call.
    fn is_accepted(self) -> bool;
}

impl Answer for isize {
    const MISSING: Self = -abi::ENOSYS;

    fn is_accepted(self) -> bool {
        self >= 0
    }
}

impl Answer for c_int {
    const MISSING: Self = -(abi::ENOSYS as Self);

    fn is_accepted(self) -> bool {
        self >= 0
    }
}

/// The value of a counter.
impl Answer for u64 {
    const MISSING: Self = 0;

    fn is_accepted(self) -> bool {
        true
    }
}

/// The provider's part of one call.
pub struct Provider<'a, R> {
    hook: &'a Hook,
    entry: Entry,
    accepted: Cell<Option<R>>,
}

impl<R: Answer> Provider<'_, R> {
    /// Calls the provider. Keeps an accepting answer, in case the hook panics afterwards.
    #[inline]
    pub fn call(&self, theirs: impl FnOnce() -> R) -> R {
        let answer = theirs();
        if answer.is_accepted() {
            self.accepted.set(Some(answer));
        }
        self.hook.panic_if_asked(self.entry, Side::After);
        answer
    }
}

/// Runs the body of a hooked function. If it panics, the hook fails, and the call passes undialled.
#[inline]
pub fn enter<R: Answer>(
    hook: &Hook,
    entry: Entry,
    ours: impl FnOnce(&Provider<'_, R>) -> R,
    pass: impl FnOnce() -> R,
) -> R {
    let provider = Provider { hook, entry, accepted: Cell::new(None) };
    let done = catch_unwind(AssertUnwindSafe(|| {
        hook.panic_if_asked(entry, Side::Before);
        ours(&provider)
    }));
    done.unwrap_or_else(|panic| {
        hook.fail_by(&*panic);
        provider.accepted.get().unwrap_or_else(|| inside(pass))
    })
}

/// Does the same for a function that is called before the hook exists.
pub fn enter_first<R>(ours: impl FnOnce() -> R, pass: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(ours)).unwrap_or_else(|panic| {
        hook::fail_by(&*panic);
        pass()
    })
}

/// Defines functions that replace the provider's. Each definition gives the hook's state of the object,
/// the body (which gets the [`Provider`]), and how the call passes undialled.
macro_rules! entries {
    ($(
        $(#[$attribute:meta])*
        $visible:vis fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $result:ty, $entry:ident {
            let $known:pat = $lookup:expr;
            hook: $hook:expr,
            pass: $pass:expr,
            |$provider:pat_param| $ours:expr $(,)?
        }
    )*) => {$(
        $(#[$attribute])*
        $visible unsafe extern "C" fn $name($($argument: $kind),*) -> $result {
            // SAFETY: the function is called through a table that the hook made for this object. So the
            // object is live, and the table leads to the hook's state of it. The arguments are those of a
            // call of the provider's function of this name.
            unsafe {
                let $known = $lookup;
                $crate::guard::enter($hook, $crate::fault::Entry::$entry, |$provider| $ours, || $pass)
            }
        }
    )*};
}
pub(crate) use entries;
