//! Why a call fails: its return code, and a text for programs that want to see it.

use crate::code::Code;
use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::io::{self, Write};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// Whether a call that fails says why on standard error.
#[unsafe(no_mangle)]
pub static AMX_VerboseErrors: AtomicI32 = AtomicI32::new(0);
/// The bandwidth that a program expects. Nothing reads it.
#[unsafe(no_mangle)]
pub static AMUDP_ExpectedBandwidth: AtomicU32 = AtomicU32::new(0);
/// Whether waits leave the processor to others. Each does, and nothing reads it.
#[unsafe(no_mangle)]
pub static AMUDP_PoliteSync: AtomicI32 = AtomicI32::new(0);
/// Whether the library says nothing else. It never does.
#[unsafe(no_mangle)]
pub static AMX_SilentMode: AtomicI32 = AtomicI32::new(0);
/// The program's name for this process, which stands before what the library says, or NULL.
#[unsafe(no_mangle)]
pub static AMX_ProcessLabel: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

/// Why a call fails.
///
/// It is a pointer, so that a result of a call that succeeds fits into a register.
#[derive(Debug)]
pub struct Refusal(Box<(Code, Cow<'static, str>)>);

/// The text of a refusal that is an answer and no error.
pub const NOTHING_TO_TELL: &str = "";

/// Returns the refusal of what a handler may not do.
#[cold]
pub fn in_handler() -> Refusal {
    refuse(Code::Resource, "a handler may not do this: it may reply once, to a request")
}

/// Makes a refusal. Kept out of line, so that calls that succeed pay nothing for it.
#[cold]
pub fn refuse(code: Code, why: &'static str) -> Refusal {
    Refusal(Box::new((code, Cow::Borrowed(why))))
}

/// Makes a refusal for a reason outside of the program: the system, another process, or the environment.
#[cold]
pub fn failed(why: impl ToString) -> Refusal {
    Refusal::new(Code::Resource, why.to_string())
}

/// Writes a line on standard error: at once, because the lines of several ranks mix otherwise.
pub fn say(text: &str) {
    let label = AMX_ProcessLabel.load(Ordering::Relaxed);
    let label = if label.is_null() {
        String::new()
    } else {
        // SAFETY: the program says that this is a string.
        unsafe { CStr::from_ptr(label) }.to_string_lossy().into_owned() + ": "
    };
    // A program that has closed its standard error hears nothing.
    let _ = io::stderr().write_all(format!("netdyno-am: {label}{text}\n").as_bytes());
}

impl Refusal {
    /// Makes a refusal with a text that depends on the case.
    #[cold]
    pub fn new(code: Code, why: impl Into<String>) -> Self {
        Self(Box::new((code, Cow::Owned(why.into()))))
    }

    /// Returns the return code.
    pub fn code(&self) -> Code {
        self.0.0
    }

    /// Returns why the call fails.
    pub fn why(&self) -> &str {
        &self.0.1
    }

    /// Says why the call fails, if the program wants it.
    #[cold]
    pub fn tell(&self, call: &str) {
        if AMX_VerboseErrors.load(Ordering::Relaxed) != 0 && self.why() != NOTHING_TO_TELL {
            let code = match self.code() {
                Code::NotInit => "AM_ERR_NOT_INIT",
                Code::BadArg => "AM_ERR_BAD_ARG",
                Code::Resource => "AM_ERR_RESOURCE",
                Code::NotSent => "AM_ERR_NOT_SENT",
                Code::InUse => "AM_ERR_IN_USE",
            };
            say(&format!("{call}: {code}: {}", self.why()));
        }
    }
}
