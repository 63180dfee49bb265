//! Signals of the program. Threads of a library block all signals that the program may wait for.

use rustix::process::Signal;
use std::ffi::c_int;
use std::ptr;

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
