//! The end of a process closes its NICs, and a child after a fork has none.
//!
//! A program may exit right after its last send. At the reliable levels a completed send must still
//! arrive, and over UDP the sender has to take part in that for a while. So a process that returns from
//! `main` or calls `exit` does for its peers what `VipCloseNic` does. It does so after all functions that
//! the program has registered with `atexit`, because these may still use the NICs. A process that is
//! killed or calls `_exit` does not.
//!
//! A forked child inherits sockets and the memory of peers, and would act in its parent's name. So the
//! parent's handles are invalid in the child.

use crate::{nic, wakeup};
use netdyno_stack::vi::ReturnCode;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

type Handler = extern "C" fn();

unsafe extern "C" {
    fn pthread_atfork(prepare: Option<Handler>, parent: Option<Handler>, child: Option<Handler>) -> c_int;
}

extern "C" fn in_child() {
    quietly(|| {
        nic::disown();
        wakeup::disown();
    });
}

/// Runs a function that the system calls. No panic may leave it.
fn quietly(work: impl FnOnce()) {
    // The panic cannot be reported, so its payload is dropped.
    let _ = catch_unwind(AssertUnwindSafe(work));
}

/// Registers the handler that runs in forked children.
///
/// # Errors
/// Returns `ErrorResource` if the system has no memory for it.
pub fn watch_forks() -> Result<(), ReturnCode> {
    static IS_WATCHING: OnceLock<bool> = OnceLock::new();
    // SAFETY: the function stays loaded as long as the process lives, because the library is never
    // unloaded. The function only writes two words, which is allowed where other threads held locks at
    // the fork.
    let is_watching = IS_WATCHING.get_or_init(|| unsafe { pthread_atfork(None, None, Some(in_child)) } == 0);
    if *is_watching { Ok(()) } else { Err(ReturnCode::ErrorResource) }
}

/// The system calls this function after all functions that the program has registered for its end.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: Handler = at_exit;

extern "C" fn at_exit() {
    quietly(nic::end_all);
}
