//! Standard output as this process was given it.
//!
//! Rust's runtime opens /dev/null in the place of a standard stream that is closed, before `main` begins: what
//! is written there is lost without an error. So a closed one is looked for before that, by an entry of
//! `.init_array`, which the loader calls first.

use rustix::io::fcntl_getfd;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: `.init_array` holds addresses of functions of the C calling convention, which the loader calls once
// each; this is one address of such a function. It uses nothing of Rust's runtime, which is not set up yet.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    WAS_CLOSED.store(is_closed(1), Ordering::Relaxed);
}

fn is_closed(number: RawFd) -> bool {
    // SAFETY: the number is not -1, and nothing else runs that could close or reuse it meanwhile. The call asks
    // the kernel about the number alone: of one that is not open it answers EBADF and does nothing.
    fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) }).is_err()
}

/// Reports that standard output was closed when this process began.
pub fn output_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
