//! The functions of a completion queue that the hook stands in for.

use super::Queue;
use crate::abi::{self, Address, Cq, Entry, ErrEntry, Fid, Opaque};
use crate::hook::{inside, is_inside};
use crate::patch::{self, call};
use core::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

// Each of the following stands in for the provider's function of that name. SAFETY, for all of them:
// they are reached through a table of ours, which leads to the state; the arguments are those that
// the program gave.

pub(super) unsafe extern "C" fn read(cq: *mut Cq, out: Opaque, count: usize) -> isize {
    // SAFETY: see above.
    unsafe {
        let queue: &Queue = patch::state((*cq).ops);
        let theirs = queue.ops;
        queue.read(out.cast(), count, ptr::null_mut(), |raw, count, _| call!(theirs.read(cq, raw, count)))
    }
}

/// Where nothing is ever dialled: a look at an empty queue costs next to nothing, and what is read
/// by other functions is not counted.
pub(super) unsafe extern "C" fn read_and_count(cq: *mut Cq, out: Opaque, count: usize) -> isize {
    // SAFETY: see above; so many entries were written, of so many bytes.
    unsafe {
        let queue: &Queue = patch::state((*cq).ops);
        let theirs = queue.ops;
        let got = call!(theirs.read(cq, out, count));
        if got > 0 && queue.is_used.load(Relaxed) {
            let bytes = queue.entry_bytes.unwrap_or(size_of::<Entry>());
            for nth in 0..got as usize {
                let entry = out.cast::<u8>().add(nth * bytes).cast::<Entry>();
                if (*entry).flags & abi::RECV != 0 {
                    queue.count_received((*entry).len);
                }
            }
        }
        got
    }
}

pub(super) unsafe extern "C" fn readfrom(
    cq: *mut Cq,
    out: Opaque,
    count: usize,
    sources: *mut Address,
) -> isize {
    // SAFETY: see above.
    unsafe {
        let queue: &Queue = patch::state((*cq).ops);
        let theirs = queue.ops;
        queue
            .read(out.cast(), count, sources, |raw, count, from| call!(theirs.readfrom(cq, raw, count, from)))
    }
}

pub(super) unsafe extern "C" fn readerr(cq: *mut Cq, out: *mut ErrEntry, flags: u64) -> isize {
    // SAFETY: see above; an error's description is a structure of the program's.
    unsafe {
        let queue: &Queue = patch::state((*cq).ops);
        let theirs = queue.ops;
        if is_inside() {
            return call!(theirs.readerr(cq, out, flags));
        }
        if let Some(entry) = queue.hook.guarded(|| queue.state().unfound.pop_front()).flatten() {
            (*out).op_context = entry.op_context;
            (*out).flags = entry.flags;
            (*out).tag = entry.tag;
            ((*out).len, (*out).olen) = (0, 0);
            ((*out).err, (*out).prov_errno) = (abi::ENOMSG, -abi::ENOMSG);
            (*out).err_data_size = 0;
            return 1;
        }
        let result = inside(|| call!(theirs.readerr(cq, out, flags)));
        if result > 0 && !queue.passes() {
            queue.hook.guarded(|| queue.state().peek((*out).op_context));
        }
        result
    }
}

pub(super) unsafe extern "C" fn sread(
    cq: *mut Cq,
    out: Opaque,
    count: usize,
    condition: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: see above.
    unsafe {
        let queue: &Queue = patch::state((*cq).ops);
        let theirs = queue.ops;
        queue.sleep(
            timeout,
            |fetch| queue.read(out.cast(), count, ptr::null_mut(), fetch),
            |raw, count, _| call!(theirs.read(cq, raw, count)),
            |raw, count, _, nap| call!(theirs.sread(cq, raw, count, condition, nap)),
        )
    }
}

pub(super) unsafe extern "C" fn sreadfrom(
    cq: *mut Cq,
    out: Opaque,
    count: usize,
    sources: *mut Address,
    condition: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: see above.
    unsafe {
        let queue: &Queue = patch::state((*cq).ops);
        let theirs = queue.ops;
        queue.sleep(
            timeout,
            |fetch| queue.read(out.cast(), count, sources, fetch),
            |raw, count, from| call!(theirs.readfrom(cq, raw, count, from)),
            |raw, count, from, nap| call!(theirs.sreadfrom(cq, raw, count, from, condition, nap)),
        )
    }
}

/// A provider may keep the signal for whoever sleeps next, which is a nap.
pub(super) unsafe extern "C" fn signal(cq: *mut Cq) -> c_int {
    // SAFETY: see above.
    unsafe {
        let queue: &Queue = patch::state((*cq).ops);
        queue.is_signalled.store(true, Relaxed);
        (*queue.ops).signal.map_or(-(abi::ENOSYS as c_int), |theirs| theirs(cq))
    }
}

pub(super) unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: libfabric closes what it opened; the tables are put back first.
    unsafe {
        let cq = fid.cast::<Cq>();
        let state: &Queue = patch::state((*fid).ops);
        let state = ptr::from_ref(state).cast_mut();
        let (fid_ops, ops) = ((*fid).ops, (*cq).ops);
        (*fid).ops = (*state).fid_ops;
        if patch::is_ours(ops) {
            (*cq).ops = (*state).ops;
        }
        let Some(theirs) = (*(*state).fid_ops).close else { return 0 };
        let result = theirs(fid);
        if result == 0 {
            patch::free(fid_ops);
            patch::free(ops);
            drop(Box::from_raw(state));
        } else {
            ((*fid).ops, (*cq).ops) = (fid_ops, ops);
        }
        result
    }
}
