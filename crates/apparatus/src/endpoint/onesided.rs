//! RMA and atomic operations. They are dialled where they start, by the time at which they may complete.

use super::{Counts, End, Endpoint, Operation, behind, bytes_of};
use crate::abi::{self, Address, AtomicMsg, Ep, IoCount, IoVec, Opaque, RmaMsg};
use crate::guard::entries;
use crate::patch::{self, call};
use core::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

/// Returns the sum of the element counts of a vector.
///
/// # Safety
/// `iov` is null or leads to `count` entries.
unsafe fn count_of(iov: *const IoCount, count: usize) -> usize {
    if iov.is_null() {
        return 0;
    }
    // SAFETY: the caller says that there are `count` entries.
    let parts = unsafe { std::slice::from_raw_parts(iov, count) };
    // The sum saturates; the provider refuses such an operation.
    parts.iter().fold(0, |sum, part| part.count.saturating_add(sum))
}

/// Returns the bytes of `count` elements. The types are numbered from `FI_INT8` and `FI_UINT8` on.
fn data_bytes(count: usize, datatype: c_uint) -> usize {
    let bytes = match datatype {
        0 | 1 => 1,
        2 | 3 => 2,
        4 | 5 | 8 => 4,
        11 | 12 => 16,
        13 => 32,
        _ => 8,
    };
    count.saturating_mul(bytes)
}

/// Returns when a write without flags completes.
fn there(state: &Endpoint) -> End {
    if state.delivers { End::Back } else { End::There }
}

/// Returns when a write with flags completes: its flags replace the endpoint's.
fn there_with(flags: u64) -> End {
    if flags & abi::DELIVERY_COMPLETE != 0 { End::Back } else { End::There }
}

/// Defines replacements of the provider's functions. Each one calls the provider's function through
/// `Endpoint::act`, with the properties of the operation.
macro_rules! operations {
    ($table:ident $state:ident; $(
        $ours:ident => $theirs:ident($($argument:ident: $kind:ty),*) { $to:expr, $bytes:expr, $counts:ident, $end:expr, $context:expr }
    )*) => { entries! {$(
        pub fn $ours(ep: *mut Ep, $($argument: $kind),*) -> isize, OneSided {
            let ($state, theirs) = behind!(ep.$table);
            hook: $state.hook,
            pass: call!(theirs.$theirs(ep, $($argument),*)),
            |provider| {
                let operation = Operation { to: $to, bytes: $bytes, counts: Counts::$counts, end: $end, context: $context };
                $state.act(&operation, provider, || call!(theirs.$theirs(ep, $($argument),*)))
            },
        }
    )*} };
}

operations! {
    rma state;
    read => read(buf: Opaque, len: usize, desc: Opaque, to: Address, addr: u64, key: u64, context: Opaque) {
        to, len, Reads, End::Back, context
    }
    readv => readv(iov: *const IoVec, desc: *mut Opaque, count: usize, to: Address, addr: u64, key: u64, context: Opaque) {
        to, bytes_of(iov, count), Reads, End::Back, context
    }
    readmsg => readmsg(msg: *const RmaMsg, flags: u64) {
        (*msg).addr, bytes_of((*msg).msg_iov, (*msg).iov_count), Reads, End::Back, (*msg).context
    }
    write => write(buf: *const c_void, len: usize, desc: Opaque, to: Address, addr: u64, key: u64, context: Opaque) {
        to, len, Writes, there(state), context
    }
    writev => writev(iov: *const IoVec, desc: *mut Opaque, count: usize, to: Address, addr: u64, key: u64, context: Opaque) {
        to, bytes_of(iov, count), Writes, there(state), context
    }
    writemsg => writemsg(msg: *const RmaMsg, flags: u64) {
        (*msg).addr, bytes_of((*msg).msg_iov, (*msg).iov_count), Writes, there_with(flags), (*msg).context
    }
    inject => inject(buf: *const c_void, len: usize, to: Address, addr: u64, key: u64) {
        to, len, Writes, End::There, ptr::null_mut()
    }
    writedata => writedata(buf: *const c_void, len: usize, desc: Opaque, data: u64, to: Address, addr: u64, key: u64, context: Opaque) {
        to, len, Writes, there(state), context
    }
    injectdata => injectdata(buf: *const c_void, len: usize, data: u64, to: Address, addr: u64, key: u64) {
        to, len, Writes, End::There, ptr::null_mut()
    }
}

operations! {
    atomic state;
    atomic_write => write(buf: *const c_void, count: usize, desc: Opaque, to: Address, addr: u64, key: u64, datatype: c_uint, op: c_uint, context: Opaque) {
        to, data_bytes(count, datatype), Writes, there(state), context
    }
    atomic_writev => writev(iov: *const IoCount, desc: *mut Opaque, count: usize, to: Address, addr: u64, key: u64, datatype: c_uint, op: c_uint, context: Opaque) {
        to, data_bytes(count_of(iov, count), datatype), Writes, there(state), context
    }
    atomic_writemsg => writemsg(msg: *const AtomicMsg, flags: u64) {
        (*msg).addr, bytes_of_atomic(msg), Writes, there_with(flags), (*msg).context
    }
    atomic_inject => inject(buf: *const c_void, count: usize, to: Address, addr: u64, key: u64, datatype: c_uint, op: c_uint) {
        to, data_bytes(count, datatype), Writes, End::There, ptr::null_mut()
    }
    readwrite => readwrite(buf: *const c_void, count: usize, desc: Opaque, result: Opaque, result_desc: Opaque, to: Address, addr: u64, key: u64, datatype: c_uint, op: c_uint, context: Opaque) {
        to, data_bytes(count, datatype), Reads, End::Back, context
    }
    readwritev => readwritev(iov: *const IoCount, desc: *mut Opaque, count: usize, result: *mut IoCount, result_desc: *mut Opaque, result_count: usize, to: Address, addr: u64, key: u64, datatype: c_uint, op: c_uint, context: Opaque) {
        to, data_bytes(count_of(iov, count), datatype), Reads, End::Back, context
    }
    readwritemsg => readwritemsg(msg: *const AtomicMsg, result: *mut IoCount, result_desc: *mut Opaque, result_count: usize, flags: u64) {
        (*msg).addr, bytes_of_atomic(msg), Reads, End::Back, (*msg).context
    }
    compwrite => compwrite(buf: *const c_void, count: usize, desc: Opaque, compare: *const c_void, compare_desc: Opaque, result: Opaque, result_desc: Opaque, to: Address, addr: u64, key: u64, datatype: c_uint, op: c_uint, context: Opaque) {
        to, data_bytes(count, datatype), Reads, End::Back, context
    }
    compwritev => compwritev(iov: *const IoCount, desc: *mut Opaque, count: usize, compare: *const IoCount, compare_desc: *mut Opaque, compare_count: usize, result: *mut IoCount, result_desc: *mut Opaque, result_count: usize, to: Address, addr: u64, key: u64, datatype: c_uint, op: c_uint, context: Opaque) {
        to, data_bytes(count_of(iov, count), datatype), Reads, End::Back, context
    }
    compwritemsg => compwritemsg(msg: *const AtomicMsg, compare: *const IoCount, compare_desc: *mut Opaque, compare_count: usize, result: *mut IoCount, result_desc: *mut Opaque, result_count: usize, flags: u64) {
        (*msg).addr, bytes_of_atomic(msg), Reads, End::Back, (*msg).context
    }
}

/// Returns the bytes of an atomic operation.
///
/// # Safety
/// The message is live, and its vector is null or has `iov_count` entries.
unsafe fn bytes_of_atomic(msg: *const AtomicMsg) -> usize {
    // SAFETY: the caller says so of the message and its vector.
    unsafe { data_bytes(count_of((*msg).msg_iov, (*msg).iov_count), (*msg).datatype) }
}
