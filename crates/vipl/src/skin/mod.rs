//! The functions that C programs call. Each one checks its arguments, calls the provider once, and
//! says how that went.
//!
//! What a program hands in is believed where a C library can not find out: that pointers which are
//! not NULL lead to what `vipl.h` says they do.

mod completion;
mod connection;
mod memory;
mod name;
mod nic;
mod vi;
mod work;

use netdyno_stack::vi::ReturnCode;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does what a function is for, and says how it went. No panic gets to the program.
#[inline]
fn answer(work: impl FnOnce() -> Result<(), ReturnCode>) -> ReturnCode {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => ReturnCode::Success,
        Ok(Err(code)) => code,
        Err(_) => ReturnCode::ErrorResource,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(answer(|| Ok(())), ReturnCode::Success);
        assert_eq!(answer(|| Err(ReturnCode::NoMatch)), ReturnCode::NoMatch);
        assert_eq!(answer(|| panic!("on purpose")), ReturnCode::ErrorResource);
    }
}
