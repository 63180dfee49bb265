//! What all objects have in common: they begin with a `fid`, and the program closes them.

use super::guard::{Errno, missing};
use crate::abi::{self, Fid, Opaque, Ops};
use core::ffi::{c_char, c_int};
use std::ptr;

/// An object of the program. It begins with its `fid`.
///
/// # Safety
/// The type must be `#[repr(C)]` and begin with a structure of libfabric that begins with a `fid`.
pub unsafe trait Object: Sized {
    /// The structure of libfabric.
    type Header;

    /// Gives the object to the program. It lives until the program closes it.
    fn give(self) -> *mut Self::Header {
        Box::into_raw(Box::new(self)).cast()
    }

    /// Returns an object of the program.
    ///
    /// # Safety
    /// The pointer must come from [`Object::give`], and the object must not be closed.
    unsafe fn of<'a, P>(pointer: *mut P) -> Result<&'a Self, Errno> {
        // SAFETY: as the caller has promised.
        unsafe { pointer.cast::<Self>().as_ref() }.ok_or(Errno(abi::EINVAL))
    }

    /// Takes an object back that the program closes.
    ///
    /// # Safety
    /// As for [`Object::of`]; nobody uses the object any more.
    unsafe fn take<P>(pointer: *mut P) -> Box<Self> {
        // SAFETY: as the caller has promised.
        unsafe { Box::from_raw(pointer.cast::<Self>()) }
    }
}

/// Returns the `fid` of an object.
pub const fn fid(class: usize, context: Opaque, ops: &'static Ops) -> Fid {
    Fid { fclass: class, context, ops: ptr::from_ref(ops).cast_mut() }
}

/// Returns a pointer to a table that is never written.
pub const fn table<T>(ops: &'static T) -> *mut T {
    ptr::from_ref(ops).cast_mut()
}

/// Returns the operations that all objects have. Objects of most classes can neither be bound nor controlled.
pub const fn ops(close: unsafe extern "C" fn(*mut Fid) -> c_int) -> Ops {
    Ops {
        size: size_of::<Ops>(),
        close: Some(close),
        bind: Some(no_bind),
        control: Some(no_control),
        ops_open: Some(no_ops_open),
        tostr: Some(no_tostr),
        ops_set: Some(no_ops_set),
    }
}

missing! {
    fn no_bind(*mut Fid, *mut Fid, u64) -> c_int;
    fn no_control(*mut Fid, c_int, Opaque) -> c_int;
    fn no_ops_open(*mut Fid, *const c_char, u64, *mut Opaque, Opaque) -> c_int;
    fn no_tostr(*const Fid, *mut c_char, usize) -> c_int;
    fn no_ops_set(*mut Fid, *const c_char, u64, Opaque, Opaque) -> c_int;
}

/// Writes a text as a string into `len` bytes of the program, as much as fits.
///
/// # Safety
/// `len` bytes must be writable there.
pub unsafe fn copy_text(text: &[u8], to: *mut c_char, len: usize) {
    if let Some(most) = len.checked_sub(1) {
        let kept = text.len().min(most);
        // SAFETY: as the caller has promised.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), kept);
            *to.add(kept) = 0;
        }
    }
}
