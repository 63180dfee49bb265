//! The arguments of `main` that a program passes to the start. That of a rank that a program has started has one more: the
//! invitation to the job.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

/// The beginning of the invitation, which is the first argument.
pub const INVITATION: &str = "--netdyno-rank-of=";

/// The variables of the program with the number of arguments and the arguments.
pub struct Arguments {
    count: *mut c_int,
    first: *mut *mut c_char,
}

impl Arguments {
    /// Takes the arguments, unless a pointer is NULL.
    ///
    /// # Safety
    /// The pointers are NULL or those to the arguments of `main`.
    pub unsafe fn of(argc: *mut c_int, argv: *mut *mut *mut c_char) -> Option<Self> {
        if argc.is_null() || argv.is_null() {
            return None;
        }
        // SAFETY: the caller says so.
        let first = unsafe { *argv };
        (!first.is_null()).then_some(Self { count: argc, first })
    }

    /// Returns the arguments.
    pub fn all(&self) -> Vec<OsString> {
        // SAFETY: the creator of the value says that there are so many arguments.
        unsafe { words(self.len(), self.first) }
    }

    fn len(&self) -> usize {
        // SAFETY: the creator of the value says that this is the number of arguments.
        usize::try_from(unsafe { *self.count }).unwrap_or(0)
    }

    /// Returns the invitation, if this process has one.
    pub fn invitation(&self) -> Option<String> {
        Some(self.all().get(1)?.to_str()?.strip_prefix(INVITATION)?.to_owned())
    }

    /// Removes the invitation, which the program does not know.
    pub fn remove_invitation(&mut self) {
        let len = self.len();
        // SAFETY: there is an argument at 1, and NULL behind the last one.
        unsafe {
            self.first.add(1).copy_from(self.first.add(2), len - 1);
            *self.count -= 1;
        }
    }
}

/// Reads strings of C, up to NULL.
///
/// # Safety
/// There are that many strings, or NULL behind the last one.
pub unsafe fn words(count: usize, first: *const *mut c_char) -> Vec<OsString> {
    let word = |at: usize| {
        // SAFETY: the caller says so.
        let text = unsafe { *first.add(at) };
        // SAFETY: the caller says so.
        (!text.is_null()).then(|| OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()).to_owned())
    };
    (0..count).map_while(word).collect()
}

/// Reports whether arguments have an invitation.
///
/// # Safety
/// The pointer is NULL or that to the arguments of `main`.
pub unsafe fn is_invited(argv: *const *const c_char) -> bool {
    // SAFETY: the caller says so; NULL stands behind the last argument.
    let first = || unsafe { words(2, argv.cast()) };
    !argv.is_null() && first().get(1).is_some_and(|word| word.as_bytes().starts_with(INVITATION.as_bytes()))
}
