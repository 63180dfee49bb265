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
//!
//! Signals belong to the program: threads of the library block all signals that the program may wait for.

use crate::{bell, nic};
use netdyno_stack::vi::ReturnCode;
use rustix::process::Signal;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

type Handler = extern "C" fn();

/// `sigset_t` of Linux.
#[repr(C)]
struct SignalSet([u64; 16]);

/// `SIG_SETMASK` of Linux.
const SET: c_int = 2;

/// Signals that a thread raises by its own fault, and that are delivered to that thread.
const FAULTS: [Signal; 6] =
    [Signal::ILL, Signal::TRAP, Signal::ABORT, Signal::BUS, Signal::FPE, Signal::SEGV];

unsafe extern "C" {
    fn sigfillset(set: *mut SignalSet) -> c_int;
    fn sigdelset(set: *mut SignalSet, signal: c_int) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
    fn pthread_atfork(prepare: Option<Handler>, parent: Option<Handler>, child: Option<Handler>) -> c_int;
}

extern "C" fn in_child() {
    quietly(|| {
        nic::disown();
        bell::disown();
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

/// Runs `begin`, which starts threads, with all signals blocked but those of faults. The new threads
/// inherit the mask, so that it holds from their first instruction on.
pub fn without_signals<T>(begin: impl FnOnce() -> T) -> T {
    let (mut all, mut old) = (SignalSet([0; 16]), SignalSet([0; 16]));
    // SAFETY: the sets are valid and live for the calls. No call can fail with these arguments.
    unsafe {
        sigfillset(&mut all);
        for fault in FAULTS {
            sigdelset(&mut all, fault.as_raw());
        }
        pthread_sigmask(SET, &all, &mut old);
    }
    let begun = begin();
    // SAFETY: the set is the one that the call above has filled, and lives for this call.
    unsafe { pthread_sigmask(SET, &old, ptr::null_mut()) };
    begun
}

/// The system calls this function after all functions that the program has registered for its end.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: Handler = at_exit;

extern "C" fn at_exit() {
    quietly(nic::end_all);
}
