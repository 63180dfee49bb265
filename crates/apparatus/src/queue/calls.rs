//! The functions of a completion queue that the hook replaces.
//!
//! A read that panics finds nothing. The program polls again, and the failed hook then hands out what it
//! holds. Completions that the provider has handed over are kept (`Queue::read`).

use super::Queue;
use crate::abi::{self, Address, Cq, Entry, ErrEntry, Fid, Opaque};
use crate::guard::{Provider, entries};
use crate::hook::{inside, is_inside};
use crate::patch::{self, call};
use core::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Relaxed;

/// Returns the hook's state of a queue.
///
/// # Safety
/// The queue is live and has a table of ours.
unsafe fn of<'a>(cq: *mut Cq) -> &'a Queue {
    // SAFETY: a table of ours leads to the state, which lives until the queue is closed.
    unsafe { patch::state::<_, Queue>((*cq).ops).as_ref() }
}

entries! {
    pub(super) fn read(cq: *mut Cq, out: Opaque, count: usize) -> isize, Queue {
        let queue = of(cq);
        hook: queue.hook,
        pass: -abi::EAGAIN,
        |_| {
            let theirs = queue.ops;
            queue.read(out.cast(), count, ptr::null_mut(), |raw, count, _| call!(theirs.read(cq, raw, count)))
        },
    }

    /// Reads where no setting dials anything. A poll of an empty queue costs next to nothing. Completions
    /// that are read with other functions are not counted.
    pub(super) fn read_and_count(cq: *mut Cq, out: Opaque, count: usize) -> isize, Queue {
        let queue = of(cq);
        hook: queue.hook,
        pass: { let theirs = queue.ops; call!(theirs.read(cq, out, count)) },
        |provider| {
            let theirs = queue.ops;
            let got = provider.call(|| call!(theirs.read(cq, out, count)));
            if got > 0 && queue.is_used.load(Relaxed) {
                queue.count_read(out.cast(), got as usize);
            }
            got
        },
    }

    pub(super) fn readfrom(cq: *mut Cq, out: Opaque, count: usize, sources: *mut Address) -> isize, Queue {
        let queue = of(cq);
        hook: queue.hook,
        pass: -abi::EAGAIN,
        |_| {
            let theirs = queue.ops;
            queue
                .read(out.cast(), count, sources, |raw, count, from| call!(theirs.readfrom(cq, raw, count, from)))
        },
    }

    pub(super) fn readerr(cq: *mut Cq, out: *mut ErrEntry, flags: u64) -> isize, Queue {
        let queue = of(cq);
        hook: queue.hook,
        pass: { let theirs = queue.ops; call!(theirs.readerr(cq, out, flags)) },
        |provider| {
            let theirs = queue.ops;
            let read = |out: *mut ErrEntry| provider.call(|| call!(theirs.readerr(cq, out, flags)));
            if is_inside() {
                return read(out);
            }
            if let Some(entry) = queue.take_unfound() {
                (*out).op_context = entry.op_context;
                (*out).flags = entry.flags;
                (*out).tag = entry.tag;
                ((*out).len, (*out).olen) = (0, 0);
                ((*out).err, (*out).prov_errno) = (abi::ENOMSG as c_int, -(abi::ENOMSG as c_int));
                (*out).err_data_size = 0;
                return 1;
            }
            // The program has its own place for a description.
            let tell = |error: ErrEntry| {
                *out = ErrEntry { err_data: (*out).err_data, err_data_size: 0, ..error };
                queue.forget(error.op_context);
                1
            };
            if let Some(error) = queue.take_behind() {
                return tell(error);
            }
            if !queue.may_tell_errors() {
                return -abi::EAGAIN;
            }
            let kept_before = queue.kept_errors();
            loop {
                let mut error = *out;
                let result = inside(|| read(&raw mut error));
                if result > 0 && !queue.passes() {
                    if !queue.tells(&error) {
                        // The program was told that there is an error: that of a peek may come next.
                        continue;
                    }
                    queue.forget(error.op_context);
                }
                if result <= 0
                    && let Some(error) = queue.tell_after_all(kept_before)
                {
                    return tell(error);
                }
                *out = error;
                return result;
            }
        },
    }

    pub(super) fn sread(
        cq: *mut Cq, out: Opaque, count: usize, condition: *const c_void, timeout: c_int,
    ) -> isize, Queue {
        let queue = of(cq);
        hook: queue.hook,
        pass: -abi::EAGAIN,
        |_| {
            let theirs = queue.ops;
            queue.sleep(
                timeout,
                |fetch| queue.read(out.cast(), count, ptr::null_mut(), fetch),
                |raw, count, _| call!(theirs.read(cq, raw, count)),
                |raw, count, _, nap| call!(theirs.sread(cq, raw, count, condition, nap)),
            )
        },
    }

    pub(super) fn sreadfrom(
        cq: *mut Cq, out: Opaque, count: usize, sources: *mut Address, condition: *const c_void, timeout: c_int,
    ) -> isize, Queue {
        let queue = of(cq);
        hook: queue.hook,
        pass: -abi::EAGAIN,
        |_| {
            let theirs = queue.ops;
            queue.sleep(
                timeout,
                |fetch| queue.read(out.cast(), count, sources, fetch),
                |raw, count, from| call!(theirs.readfrom(cq, raw, count, from)),
                |raw, count, from, nap| call!(theirs.sreadfrom(cq, raw, count, from, condition, nap)),
            )
        },
    }

    /// Wakes a blocking read. A provider may keep the signal for the next one. That read is one of the
    /// hook's short ones, so the hook remembers the signal as well.
    pub(super) fn signal(cq: *mut Cq) -> c_int, Queue {
        let queue = of(cq);
        hook: queue.hook,
        pass: { let theirs = queue.ops; call!(theirs.signal(cq)) },
        |provider| {
            queue.is_signalled.store(true, Relaxed);
            let theirs = queue.ops;
            provider.call(|| call!(theirs.signal(cq)))
        },
    }

    pub(super) fn close(fid: *mut Fid) -> c_int, Close {
        let state = patch::state::<_, Queue>((*fid).ops);
        hook: (*state.as_ptr()).hook,
        pass: close_theirs(fid.cast(), state.as_ref()),
        |provider| close_and_free(fid.cast(), state, provider),
    }
}

impl Queue {
    /// Counts the messages among the completions that the program has just read.
    ///
    /// # Safety
    /// The provider has written `got` entries of the queue's format to `out`.
    unsafe fn count_read(&self, out: *const u8, got: usize) {
        let bytes = self.entry_bytes.unwrap_or(size_of::<Entry>());
        for nth in 0..got {
            // SAFETY: the caller says that there are `got` entries. Every format begins with a context,
            // flags and a length, and only these are read.
            unsafe {
                let entry = out.add(nth * bytes).cast::<Entry>();
                if (*entry).flags & abi::RECV != 0 {
                    self.count_received((*entry).len);
                }
            }
        }
    }
}

/// Restores the provider's tables, because the provider may look at them, and closes the queue.
///
/// # Safety
/// The queue is live, and `state` is its state.
unsafe fn close_theirs(cq: *mut Cq, state: &Queue) -> c_int {
    // SAFETY: the caller says that the queue is live.
    unsafe {
        (*cq).fid.ops = state.fid_ops;
        if patch::is_ours((*cq).ops) {
            (*cq).ops = state.ops;
        }
        let theirs = state.fid_ops;
        call!(theirs.close(&raw mut (*cq).fid))
    }
}

/// Closes a queue. Frees the hook's state if the provider has closed it.
///
/// # Safety
/// The queue is live, and `state` is its state. Neither is used afterwards if the queue is closed.
unsafe fn close_and_free(cq: *mut Cq, state: NonNull<Queue>, provider: &Provider<'_, c_int>) -> c_int {
    // SAFETY: the caller says that the queue is live. Once it is closed, nothing leads to its tables and
    // its state any more. The state came from `Box::leak`.
    unsafe {
        let (fid_ops, ops) = ((*cq).fid.ops, (*cq).ops);
        let result = provider.call(|| close_theirs(cq, state.as_ref()));
        if result == 0 {
            patch::free(fid_ops);
            patch::free(ops);
            drop(Box::from_raw(state.as_ptr()));
        } else {
            ((*cq).fid.ops, (*cq).ops) = (fid_ops, ops);
        }
        result
    }
}
