//! The functions that C programs call. Each one checks its arguments, calls the provider and returns a
//! code.
//!
//! A C library cannot check everything. A pointer that is not NULL is trusted to be what `vipl.h` says.

mod completion;
mod connection;
mod memory;
mod name;
mod nic;
mod vi;
mod work;

use netdyno_stack::vi::ReturnCode;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a function and returns its code. No panic reaches the program.
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
