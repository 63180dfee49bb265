//! The guard of every function that libfabric or the program calls in the hook.
//!
//! A panic that leaves an `extern "C"` function aborts the MPI job. [`entries`] is the one way to
//! define such a function here (a test of `cli/tests/walls.rs` looks for others). It says what the
//! function does, and how the call passes to the provider undialled. After a panic
//! the hook has failed (`run` ends with 125), and the program gets the provider's answer:
//!
//! ```text
//! the provider had accepted the call    its answer: calling again would repeat the operation
//! it had refused, or was not called     that of the undialled call
//! ```

use crate::abi;
use crate::fault::{Entry, Side};
use crate::hook::{self, Hook, inside};
use core::ffi::c_int;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a function of libfabric's returns.
pub trait Answer: Copy {
    /// What a provider answers that does not have the function.
    const MISSING: Self;

    /// Whether the provider has done what it was asked for.
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

/// The provider's side of one call.
pub struct Provider<'a, R> {
    hook: &'a Hook,
    entry: Entry,
    accepted: Cell<Option<R>>,
}

impl<R: Answer> Provider<'_, R> {
    /// Calls the provider, and keeps its answer for the case that the hook panics behind it.
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

/// Does what a function of the hook's is for. If that panics, the hook fails, and the call passes.
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

/// The same for a function that is called before there is a hook.
pub fn enter_first<R>(ours: impl FnOnce() -> R, pass: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(ours)).unwrap_or_else(|panic| {
        hook::fail_by(&*panic);
        pass()
    })
}

/// Defines functions that stand in for the provider's of an object. Each one says what it knows of the
/// object, what it does (given the [`Provider`]), and how the call passes undialled.
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
            // object is live, the table leads to what the hook knows of it, and the arguments are those
            // that the provider's function of this name is called with.
            unsafe {
                let $known = $lookup;
                $crate::guard::enter($hook, $crate::fault::Entry::$entry, |$provider| $ours, || $pass)
            }
        }
    )*};
}
pub(crate) use entries;
