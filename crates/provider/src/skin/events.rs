//! An event queue (fi_eq(3)). The provider has no events of its own: a queue holds what the program writes.

use super::guard::{Errno, entries};
use super::object::{self, Object, copy_text};
use super::wait::{check_wait, sleep, timeout_of};
use crate::abi::{self, Eq, EqAttr, EqErrEntry, EqOps, Fid, Opaque, Ops};
use core::ffi::{c_char, c_int, c_void};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{ptr, slice};

/// Size of a queue for which the program names none.
const SIZE: usize = 256;

/// An event: its number and its bytes.
type Event = (u32, Box<[u8]>);

#[repr(C)]
struct EqObject {
    header: Eq,
    events: Mutex<VecDeque<Event>>,
    size: usize,
    /// Readable while there is an event.
    signal: OwnedFd,
}

// SAFETY: the object begins with a `fid_eq`.
unsafe impl Object for EqObject {
    type Header = Eq;
}

static OPS: Ops = Ops { control: Some(control), ..object::ops(close) };
static EQ_OPS: EqOps = EqOps {
    size: size_of::<EqOps>(),
    read: Some(read),
    readerr: Some(readerr),
    write: Some(write),
    sread: Some(sread),
    strerror: Some(strerror),
};

/// Opens an event queue.
pub fn open(attr: Option<&EqAttr>, context: Opaque) -> Result<*mut Eq, Errno> {
    check_wait(attr.map_or(abi::WAIT_UNSPEC, |attr| attr.wait_obj))?;
    let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
    let signal = eventfd(0, flags).map_err(|_| Errno(abi::EMFILE))?;
    let size = attr.map_or(0, |attr| attr.size);
    let header = Eq { fid: object::fid(abi::CLASS_EQ, context, &OPS), ops: object::table(&EQ_OPS) };
    let size = if size == 0 { SIZE } else { size };
    Ok(EqObject { header, events: Mutex::default(), size, signal }.give())
}

impl EqObject {
    fn events(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the first event into `len` bytes. Returns its length.
    unsafe fn read(&self, event: *mut u32, buf: *mut c_void, len: usize, flags: u64) -> Result<isize, Errno> {
        let mut events = self.events();
        let (number, bytes) = events.front().ok_or(Errno(abi::EAGAIN))?;
        let done = bytes.len();
        if done > len {
            return Err(Errno(abi::ETOOSMALL));
        }
        // SAFETY: the program has room for a number and `len` bytes.
        unsafe {
            event.write(*number);
            ptr::copy_nonoverlapping(bytes.as_ptr(), buf.cast(), done);
        }
        if flags & abi::PEEK == 0 {
            events.pop_front();
            if events.is_empty() {
                // An error says that it was not readable, which is what it shall be.
                let _ = rustix::io::read(&self.signal, &mut [0; 8]);
            }
        }
        Ok(done as isize)
    }

    fn write(&self, event: u32, bytes: &[u8]) -> Result<isize, Errno> {
        let mut events = self.events();
        if events.len() >= self.size {
            return Err(Errno(abi::EAGAIN));
        }
        events.push_back((event, bytes.into()));
        // An error says that it is readable already.
        let _ = rustix::io::write(&self.signal, &1_u64.to_ne_bytes());
        Ok(bytes.len() as isize)
    }
}

entries! {
    fn close(fid: *mut Fid) -> c_int {
        drop(EqObject::take(fid));
        Ok(0)
    }

    fn control(fid: *mut Fid, command: c_int, arg: Opaque) -> c_int {
        if command != abi::GETWAIT {
            return Err(Errno(abi::ENOSYS));
        }
        arg.cast::<c_int>().write(EqObject::of(fid)?.signal.as_raw_fd());
        Ok(0)
    }

    fn read(eq: *mut Eq, event: *mut u32, buf: *mut c_void, len: usize, flags: u64) -> isize {
        EqObject::of(eq)?.read(event, buf, len, flags)
    }

    /// There are no failed events.
    fn readerr(_eq: *mut Eq, _buf: *mut EqErrEntry, _flags: u64) -> isize {
        Err(Errno(abi::EAGAIN))
    }

    fn write(eq: *mut Eq, event: u32, buf: *const c_void, len: usize, _flags: u64) -> isize {
        let bytes = if len == 0 { &[][..] } else { slice::from_raw_parts(buf.cast::<u8>(), len) };
        EqObject::of(eq)?.write(event, bytes)
    }

    fn sread(eq: *mut Eq, event: *mut u32, buf: *mut c_void, len: usize, timeout: c_int, flags: u64) -> isize {
        let queue = EqObject::of(eq)?;
        let until = timeout_of(timeout).map(|timeout| Instant::now() + timeout);
        loop {
            // A signal, or another reader, may end a sleep without an event.
            match queue.read(event, buf, len, flags) {
                Err(Errno(abi::EAGAIN)) => {}
                read => return read,
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(Errno(abi::EAGAIN));
            }
            sleep(queue.signal.as_fd(), left);
        }
    }

    fn strerror(_eq: *mut Eq, _errno: c_int, _data: *const c_void, buf: *mut c_char, len: usize) -> *const c_char {
        let text = c"unknown error";
        if !buf.is_null() {
            copy_text(text.to_bytes(), buf, len);
        }
        Ok(text.as_ptr())
    }
}
