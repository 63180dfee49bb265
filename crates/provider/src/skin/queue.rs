//! A completion queue (fi_cq(3)).

use super::guard::{Errno, entries};
use super::object::{self, Object, copy_text};
use super::state::{Shared, State};
use super::wait::{Wait, check_wait, control_wait};
use crate::abi::{self, Cq, CqAttr, CqOps, Entry, ErrEntry, Fid, Opaque, Ops};
use crate::engine::{Completion, Failure};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::collections::VecDeque;
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[repr(C)]
pub struct CqObject {
    header: Cq,
    shared: Arc<Shared>,
    pub number: usize,
    /// The program has asked a waiting thread to return.
    is_signaled: AtomicBool,
    /// With a messaging thread: the number of news at the last look that left nothing in the queue.
    seen: AtomicU32,
    /// Length of an entry in bytes: the formats are beginnings of the longest one.
    entry_len: usize,
}

// SAFETY: the object begins with a `fid_cq`.
unsafe impl Object for CqObject {
    type Header = Cq;
}

static OPS: Ops = Ops { control: Some(control), ..object::ops(close) };
static CQ_OPS: CqOps = CqOps {
    size: size_of::<CqOps>(),
    read: Some(read),
    readfrom: Some(readfrom),
    readerr: Some(readerr),
    sread: Some(sread),
    sreadfrom: Some(sreadfrom),
    signal: Some(signal),
    strerror: Some(strerror),
};

fn entry_len(format: c_uint) -> Option<usize> {
    Some(match format {
        abi::CQ_FORMAT_UNSPEC | abi::CQ_FORMAT_CONTEXT => offset_of!(Entry, flags),
        abi::CQ_FORMAT_MSG => offset_of!(Entry, buf),
        abi::CQ_FORMAT_DATA => offset_of!(Entry, tag),
        abi::CQ_FORMAT_TAGGED => size_of::<Entry>(),
        _ => return None,
    })
}

/// Opens a completion queue.
pub fn open(shared: Arc<Shared>, attr: Option<&mut CqAttr>, context: Opaque) -> Result<*mut Cq, Errno> {
    let format = attr.as_ref().map_or(abi::CQ_FORMAT_UNSPEC, |attr| attr.format);
    let entry_len = entry_len(format).ok_or(Errno(abi::ENOSYS))?;
    if let Some(attr) = attr {
        check_wait(attr.wait_obj)?;
        if format == abi::CQ_FORMAT_UNSPEC {
            attr.format = abi::CQ_FORMAT_CONTEXT;
        }
    }
    let number = shared.lock().engine.completions.queues.insert(Default::default());
    // Not the present number, so that the first look is not left out.
    let seen = AtomicU32::new(shared.news().wrapping_sub(1));
    let header = Cq { fid: object::fid(abi::CLASS_CQ, context, &OPS), ops: object::table(&CQ_OPS) };
    Ok(CqObject { header, shared, number, is_signaled: AtomicBool::new(false), seen, entry_len }.give())
}

/// Returns the longest form of an entry.
fn entry_of(completion: &Completion) -> Entry {
    let Completion { context, flags, len, buffer, data, tag, .. } = *completion;
    Entry {
        op_context: ptr::with_exposed_provenance_mut(context),
        flags,
        len,
        buf: ptr::with_exposed_provenance_mut(buffer as usize),
        data,
        tag,
    }
}

impl CqObject {
    /// Reads up to `count` entries into `buf`, and their senders into `sources` if that is not null.
    unsafe fn read(&self, buf: *mut c_void, count: usize, sources: *mut u64) -> Result<isize, Errno> {
        let news = self.shared.news();
        if self.shared.switches.has_thread() && self.seen.load(Ordering::Relaxed) == news {
            self.shared.wait_for_news(news);
            return Err(Errno(abi::EAGAIN));
        }
        let mut state = self.shared.lock();
        if self.is_empty(&state) || count == 0 {
            self.shared.progress_of_caller(&mut state);
        }
        if self.is_empty(&state) {
            // What is reported after this look changes the number.
            self.seen.store(news, Ordering::Relaxed);
        }
        let mut done = 0;
        while done < count
            && let Some(queue) = state.engine.completions.queues.get_mut(self.number)
            && let Some(first) = queue.front()
        {
            if first.failure.is_some() {
                return if done > 0 { Ok(done as isize) } else { Err(Errno(abi::EAVAIL)) };
            }
            let (entry, source, endpoint) = (entry_of(first), first.source, first.endpoint);
            queue.pop_front();
            // SAFETY: the program has room for `count` entries of its format, and for as many senders.
            unsafe {
                let to = buf.cast::<u8>().add(done * self.entry_len);
                ptr::copy_nonoverlapping((&raw const entry).cast::<u8>(), to, self.entry_len);
                if !sources.is_null() {
                    *sources.add(done) = state.address_of(endpoint, source);
                }
            }
            done += 1;
        }
        if done == 0 { Err(Errno(abi::EAGAIN)) } else { Ok(done as isize) }
    }

    /// Reads entries, and waits until there is one, for `timeout` milliseconds at most; for ever if it is negative.
    unsafe fn wait(
        &self,
        buf: *mut c_void,
        count: usize,
        sources: *mut u64,
        timeout: c_int,
    ) -> Result<isize, Errno> {
        let mut wait = Wait::new(timeout);
        loop {
            // SAFETY: as the caller has promised.
            let read = unsafe { self.read(buf, count, sources) };
            if read != Err(Errno(abi::EAGAIN)) || self.is_signaled.swap(false, Ordering::Relaxed) {
                return read;
            }
            let is_nothing =
                |state: &State| self.is_empty(state) && !self.is_signaled.load(Ordering::Relaxed);
            if !wait.go_on(&self.shared, is_nothing) {
                return read;
            }
        }
    }

    fn is_empty(&self, state: &State) -> bool {
        state.engine.completions.queues.get(self.number).is_none_or(VecDeque::is_empty)
    }

    /// Makes progress, and returns whether the queue has an entry.
    pub fn is_ready(&self) -> bool {
        let mut state = self.shared.lock();
        !self.is_empty(&state) || self.shared.progress_of_caller(&mut state) && !self.is_empty(&state)
    }

    /// Reports whether the queue has no entry.
    pub fn has_none(&self) -> bool {
        self.is_empty(&self.shared.lock())
    }

    /// Prepares for a sleep until the queue has an entry. Returns false if the program must look again instead.
    pub fn prepare_sleep(&self) -> bool {
        self.shared.lock().prepare_sleep()
    }
}

fn errno_of(failure: Failure) -> isize {
    match failure {
        Failure::Truncated => abi::ETRUNC,
        Failure::Cancelled => abi::ECANCELED,
        Failure::PeerLost => abi::ECONNABORTED,
        Failure::NoEndpoint => abi::ECONNREFUSED,
        Failure::NoMemory => abi::EACCES,
        Failure::NotCopied => abi::EIO,
        Failure::NoMessage => abi::ENOMSG,
    }
}

/// Returns the text of the error number of an entry.
fn text_of(errno: isize) -> &'static CStr {
    match errno {
        abi::ETRUNC => c"the message is longer than the receive",
        abi::ECANCELED => c"the program has cancelled the operation",
        abi::ECONNABORTED => c"the peer has ended",
        abi::ECONNREFUSED => c"the peer has no such endpoint",
        abi::EACCES => c"the peer has no such memory region, or does not allow the access",
        abi::EIO => c"the system does not copy between the memories of the two processes",
        abi::ENOMSG => c"no message matches",
        _ => c"unknown error",
    }
}

entries! {
    fn close(fid: *mut Fid) -> c_int {
        let CqObject { shared, number, .. } = CqObject::of(fid)?;
        let mut state = shared.lock();
        state.check_queue(*number)?;
        state.engine.completions.queues.try_remove(*number);
        drop(state);
        drop(CqObject::take(fid));
        Ok(0)
    }

    fn control(fid: *mut Fid, command: c_int, arg: Opaque) -> c_int {
        control_wait(&CqObject::of(fid)?.shared, command, arg)
    }

    fn read(cq: *mut Cq, buf: *mut c_void, count: usize) -> isize {
        CqObject::of(cq)?.read(buf, count, ptr::null_mut())
    }

    fn readfrom(cq: *mut Cq, buf: *mut c_void, count: usize, src_addr: *mut u64) -> isize {
        CqObject::of(cq)?.read(buf, count, src_addr)
    }

    fn readerr(cq: *mut Cq, buf: *mut ErrEntry, _flags: u64) -> isize {
        let cq = CqObject::of(cq)?;
        let mut state = cq.shared.lock();
        let queue = state.engine.completions.queues.get_mut(cq.number).ok_or(Errno(abi::EBADF))?;
        let Some((failure, missing)) = queue.front().and_then(|first| first.failure) else {
            return Err(Errno(abi::EAGAIN));
        };
        if let Some(completion) = queue.pop_front() {
            let Entry { op_context, flags, len, buf: bytes, data, tag } = entry_of(&completion);
            let entry = buf.as_mut().ok_or(Errno(abi::EINVAL))?;
            *entry = ErrEntry {
                op_context,
                flags,
                len,
                buf: bytes,
                data,
                tag,
                olen: missing,
                err: errno_of(failure) as c_int,
                prov_errno: errno_of(failure) as c_int,
                err_data: entry.err_data,
                err_data_size: 0,
            };
        }
        Ok(1)
    }

    fn sread(cq: *mut Cq, buf: *mut c_void, count: usize, _cond: *const c_void, timeout: c_int) -> isize {
        CqObject::of(cq)?.wait(buf, count, ptr::null_mut(), timeout)
    }

    fn sreadfrom(
        cq: *mut Cq,
        buf: *mut c_void,
        count: usize,
        src_addr: *mut u64,
        _cond: *const c_void,
        timeout: c_int,
    ) -> isize {
        CqObject::of(cq)?.wait(buf, count, src_addr, timeout)
    }

    fn signal(cq: *mut Cq) -> c_int {
        let queue = CqObject::of(cq)?;
        queue.is_signaled.store(true, Ordering::Relaxed);
        queue.shared.lock().wake();
        Ok(0)
    }

    fn strerror(_cq: *mut Cq, errno: c_int, _data: *const c_void, buf: *mut c_char, len: usize) -> *const c_char {
        let text = text_of(errno as isize);
        if !buf.is_null() {
            copy_text(text.to_bytes(), buf, len);
        }
        Ok(text.as_ptr())
    }
}
