//! The end of the process.
#![allow(non_upper_case_globals, reason = "the names are those of the interface")]

use netdyno_host::signals::without_signals;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{ptr, thread};

/// A variable with a function that ends the process.
#[repr(transparent)]
pub struct Kill(UnsafeCell<Option<unsafe extern "C" fn(c_int)>>);

// SAFETY: the library only reads it, as the program may set it before it ends.
unsafe impl Sync for Kill {}

/// The function that ends the process. A program may set another one.
#[unsafe(no_mangle)]
pub static AMX_SPMDkillmyprocess: Kill = Kill(UnsafeCell::new(Some(_exit)));

/// Time for streams that other threads of the program may have locked.
const FLUSH_TIME: Duration = Duration::from_secs(1);
/// Whether another thread keeps a stream locked.
static IS_STUCK: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    static stdout: *mut c_void;
    static stderr: *mut c_void;
    fn _exit(code: c_int);
    fn fflush(stream: *mut c_void) -> c_int;
}

/// Writes what the program has printed so far.
///
/// All streams are flushed in a thread of its own, for a while: a stream from which another thread of the program reads, as
/// from the keyboard, stays locked until something comes.
pub fn flush_output() {
    // SAFETY: both are streams of the C library.
    unsafe {
        fflush(stdout);
        fflush(stderr);
    }
    if IS_STUCK.load(Ordering::Relaxed) {
        return;
    }
    let (done, is_done) = mpsc::channel();
    let flush = move || {
        // SAFETY: NULL stands for all streams.
        unsafe { fflush(ptr::null_mut()) };
        // A caller that waits no longer needs no answer.
        let _ = done.send(());
    };
    let spawned = without_signals(|| thread::Builder::new().name("netdyno-flush".into()).spawn(flush));
    if spawned.is_ok() && is_done.recv_timeout(FLUSH_TIME).is_err() {
        IS_STUCK.store(true, Ordering::Relaxed);
    }
}

/// Ends the process as a signal does: whatever its threads do, and without the program's part.
pub fn end_now(code: c_int) {
    // SAFETY: the call has no conditions.
    unsafe { _exit(code) };
}

/// Empties the output of the program, and ends the process.
pub fn kill(code: c_int) -> ! {
    flush_output();
    // SAFETY: the variable has the address of such a function, or NULL.
    if let Some(kill) = unsafe { *AMX_SPMDkillmyprocess.0.get() } {
        // SAFETY: as above.
        unsafe { kill(code) };
    }
    // The program's function has returned.
    std::process::abort()
}
