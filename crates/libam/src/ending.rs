//! The end of the process.
#![allow(non_upper_case_globals, reason = "the names are those of the interface")]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr;

/// A variable with a function that ends the process.
#[repr(transparent)]
pub struct Kill(UnsafeCell<Option<unsafe extern "C" fn(c_int)>>);

// SAFETY: the library only reads it, as the program may set it before it ends.
unsafe impl Sync for Kill {}

/// The function that ends the process. A program may set another one.
#[unsafe(no_mangle)]
pub static AMX_SPMDkillmyprocess: Kill = Kill(UnsafeCell::new(Some(_exit)));

unsafe extern "C" {
    fn _exit(code: c_int);
    fn fflush(stream: *mut c_void) -> c_int;
}

/// Empties the output of the program, and ends the process.
pub fn kill(code: c_int) -> ! {
    // SAFETY: NULL stands for all streams.
    unsafe { fflush(ptr::null_mut()) };
    // SAFETY: the variable has the address of such a function, or NULL.
    if let Some(kill) = unsafe { *AMX_SPMDkillmyprocess.0.get() } {
        // SAFETY: as above.
        unsafe { kill(code) };
    }
    // The program's function has returned.
    std::process::abort()
}
