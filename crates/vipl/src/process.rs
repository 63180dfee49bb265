//! The process that NICs are of: when it ends they are closed for it, and a child of it has none of
//! them.
//!
//! A program may end right behind its last send. At the reliable levels a send that is complete is to
//! arrive all the same, and where the wire is UDP that takes this side for a while. So a process that
//! returns from `main` or calls `exit` does for its peers what `VipCloseNic` does, behind all functions
//! that it has registered with `atexit`, for those may still use their NICs. One that is killed, or
//! leaves by `_exit`, does not.
//!
//! What a process has when it forks, sockets and memory of its peers, the child has as well, and would
//! speak in its parent's name. So there is nothing under the parent's handles in the child.
//!
//! Signals are the program's: no thread of the library's takes one that the program waits for.

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

/// What a thread does to itself, and so gets itself.
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

/// Does what the system calls for, which no panic may leave: the program goes on or ends as it would.
fn quietly(work: impl FnOnce()) {
    // Nothing is left to be told. What a panic carries is dropped.
    let _ = catch_unwind(AssertUnwindSafe(work));
}

/// Sees to it that children are told.
///
/// # Errors
/// The system has no room for that.
pub fn watch_forks() -> Result<(), ReturnCode> {
    static IS_WATCHING: OnceLock<bool> = OnceLock::new();
    // SAFETY: the function is there as long as the process, for the library is not unloaded. All it does
    // is to write two words, which is allowed where other threads held locks.
    let is_watching = IS_WATCHING.get_or_init(|| unsafe { pthread_atfork(None, None, Some(in_child)) } == 0);
    if *is_watching { Ok(()) } else { Err(ReturnCode::ErrorResource) }
}

/// Does something in which threads begin that take no signal, but for their own faults: they have that
/// from the one that begins them, and so from their first instruction on.
pub fn without_signals<T>(begin: impl FnOnce() -> T) -> T {
    let (mut all, mut old) = (SignalSet([0; 16]), SignalSet([0; 16]));
    // SAFETY: the sets are some, and live for the calls. None of them can fail with these arguments.
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

/// Called by the system behind all that the program wants to be called at its end.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: Handler = at_exit;

extern "C" fn at_exit() {
    quietly(nic::end_all);
}
