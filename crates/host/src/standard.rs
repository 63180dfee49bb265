//! The state of standard output at the start of this process.
//!
//! Rust's runtime opens /dev/null in place of a closed standard stream before `main` begins, so that later
//! writes are lost without an error. An entry of `.init_array` checks the stream before that, because the
//! loader calls it first.

use rustix::io::fcntl_getfd;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: `.init_array` holds addresses of functions with the C calling convention, and the loader calls each
// once. This is the address of such a function. It uses no part of Rust's runtime, which is not yet
// initialized.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    WAS_CLOSED.store(is_closed(1), Ordering::Relaxed);
}

fn is_closed(number: RawFd) -> bool {
    // SAFETY: the number is not -1, and no other thread runs yet that could close or reuse it. The call only
    // queries the number in the kernel. If it is not open, the kernel returns EBADF and does nothing else.
    fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) }).is_err()
}

/// Reports whether standard output was closed when this process started.
pub fn output_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
