//! Initialization, bundles, events and polling.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use crate::code::Code;
use crate::guard::{Out, answer, check_initialized, initialize, terminate};
use crate::objects::{Bundle, Mask};
use crate::polling;
use crate::refusal::refuse;
use std::ffi::c_int;

/// `AM_SEQ` and `AM_PAR`.
const SEQUENTIAL: c_int = 0;
const CONCURRENT: c_int = 1;

#[unsafe(no_mangle)]
extern "C" fn AM_Init() -> c_int {
    answer("AM_Init", || {
        initialize();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn AM_Terminate() -> c_int {
    answer("AM_Terminate", || {
        check_initialized()?;
        if polling::is_in_handler() {
            return Err(refuse(Code::InUse, "a handler may not end the use of the library"));
        }
        if terminate() { polling::free_all() } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_AllocateBundle(mode: c_int, out: *mut *const Bundle) -> c_int {
    answer("AM_AllocateBundle", || {
        check_initialized()?;
        let out = Out::new(out)?;
        let is_concurrent = match mode {
            SEQUENTIAL => false,
            CONCURRENT => true,
            _ => return Err(refuse(Code::BadArg, "the mode is neither AM_SEQ nor AM_PAR")),
        };
        // SAFETY: the program has room for a handle there.
        unsafe { out.put(Bundle::allocate(is_concurrent)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_FreeBundle(bundle: *const Bundle) -> c_int {
    answer("AM_FreeBundle", || {
        check_initialized()?;
        // SAFETY: the program passes a handle of this library.
        unsafe { Bundle::of(bundle) }?.free()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetEventMask(bundle: *const Bundle, mask: *mut c_int) -> c_int {
    answer("AM_GetEventMask", || {
        check_initialized()?;
        // SAFETY: the program passes a handle of this library.
        let bundle = unsafe { Bundle::of(bundle) }?;
        let mask = Out::new(mask)?;
        let _held = bundle.hold()?;
        bundle.check_lives()?;
        // SAFETY: the program has room for a number there.
        unsafe { mask.put(bundle.mask.get() as c_int) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_SetEventMask(bundle: *const Bundle, mask: c_int) -> c_int {
    answer("AM_SetEventMask", || {
        check_initialized()?;
        // SAFETY: the program passes a handle of this library.
        let bundle = unsafe { Bundle::of(bundle) }?;
        let mask = match mask {
            0 => Mask::NoEvents,
            1 => Mask::NotEmpty,
            _ => return Err(refuse(Code::BadArg, "the mask is neither AM_NOEVENTS nor AM_NOTEMPTY")),
        };
        let _held = bundle.hold()?;
        bundle.check_lives()?;
        bundle.mask.set(mask);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_WaitSema(bundle: *const Bundle) -> c_int {
    answer("AM_WaitSema", || {
        check_initialized()?;
        // SAFETY: the program passes a handle of this library.
        unsafe { Bundle::of(bundle) }?.wait()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_Poll(bundle: *const Bundle) -> c_int {
    answer("AM_Poll", || {
        check_initialized()?;
        // SAFETY: the program passes a handle of this library.
        unsafe { Bundle::of(bundle) }?.poll().map(|_| ())
    })
}
