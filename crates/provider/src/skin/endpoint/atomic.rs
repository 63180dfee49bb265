//! Atomic operations of an endpoint (fi_atomic(3)).

use super::{EndpointObject, or_progress, wants};
use crate::abi::{self, AtomicAttr, AtomicMsg, AtomicOps, Domain, Ep, IoCount, Opaque};
use crate::engine::{Atomic, Datatype, MOST_VALUES, Operation, Place};
use crate::frame::MOST_SEGMENTS;
use crate::memory::{Memory, Segment};
use crate::skin::guard::{Errno, entries};
use crate::skin::object::Object;
use core::ffi::{c_int, c_uint, c_void};
use std::{ptr, slice};

pub static ATOMIC_OPS: AtomicOps = AtomicOps {
    size: size_of::<AtomicOps>(),
    write: Some(write),
    writev: Some(writev),
    writemsg: Some(writemsg),
    inject: Some(inject),
    readwrite: Some(readwrite),
    readwritev: Some(readwritev),
    readwritemsg: Some(readwritemsg),
    compwrite: Some(compwrite),
    compwritev: Some(compwritev),
    compwritemsg: Some(compwritemsg),
    writevalid: Some(writevalid),
    readwritevalid: Some(readwritevalid),
    compwritevalid: Some(compwritevalid),
};

/// What an operation does beside changing memory of the peer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Write,
    Fetch,
    Compare,
}

/// Returns the operation and the type of two numbers of libfabric, if there is such an operation of this form.
fn parse(form: Form, datatype: c_uint, op: c_uint) -> Result<(Operation, Datatype), Errno> {
    let none = Errno(abi::EOPNOTSUPP);
    let (operation, datatype) = (Operation::of(op).ok_or(none)?, Datatype::of(datatype).ok_or(none)?);
    let fits = datatype.has(operation)
        && operation.compares() == (form == Form::Compare)
        && (operation != Operation::Read || form == Form::Fetch);
    if fits { Ok((operation, datatype)) } else { Err(none) }
}

/// Returns the longest access with such an operation.
fn most(form: Form, datatype: c_uint, op: c_uint) -> Result<AtomicAttr, Errno> {
    let (_, datatype) = parse(form, datatype, op)?;
    Ok(AtomicAttr { count: MOST_VALUES / datatype.len(), size: datatype.len() })
}

/// Values in the program's memory.
#[derive(Clone, Copy)]
struct Values<'a>(&'a [IoCount]);

impl<'a> Values<'a> {
    /// Returns the values of an array of segments.
    ///
    /// # Safety
    /// The array must have `count` members.
    unsafe fn several(iov: *const IoCount, count: usize) -> Result<Self, Errno> {
        if count > MOST_SEGMENTS || iov.is_null() && count > 0 {
            return Err(Errno(abi::EINVAL));
        }
        // SAFETY: as the caller has promised.
        Ok(Self(if count == 0 { &[] } else { unsafe { slice::from_raw_parts(iov, count) } }))
    }

    /// Returns the values as memory.
    ///
    /// # Safety
    /// As for [`Memory::new`].
    unsafe fn memory(self, datatype: Datatype) -> Memory {
        let segment = |part: &IoCount| Segment {
            address: part.addr.expose_provenance() as u64,
            len: (part.count.saturating_mul(datatype.len())) as u64,
        };
        // SAFETY: as the caller has promised.
        unsafe { Memory::new(self.0.iter().map(segment)) }
    }
}

fn one(addr: *const c_void, count: usize) -> [IoCount; 1] {
    [IoCount { addr: addr.cast_mut(), count }]
}

/// An access, as the functions of libfabric describe it.
struct Request<'a> {
    form: Form,
    operands: Values<'a>,
    comparands: Values<'a>,
    result: Values<'a>,
    peer: u64,
    place: Place,
    datatype: c_uint,
    op: c_uint,
    context: Opaque,
    flags: Option<u64>,
    is_silent: bool,
}

const NONE: Values<'static> = Values(&[]);

impl<'a> Request<'a> {
    fn new(
        form: Form,
        operands: Values<'a>,
        peer: u64,
        [addr, key]: [u64; 2],
        [datatype, op]: [c_uint; 2],
    ) -> Self {
        Self {
            form,
            operands,
            comparands: NONE,
            result: NONE,
            peer,
            place: Place { key, offset: addr },
            datatype,
            op,
            context: ptr::null_mut(),
            flags: None,
            is_silent: false,
        }
    }

    /// Returns the access of a message, which names one piece of the peer's memory.
    ///
    /// # Safety
    /// The message must be as the manual prescribes.
    unsafe fn of(form: Form, msg: *const AtomicMsg, flags: u64) -> Result<Self, Errno> {
        // SAFETY: as the caller has promised.
        unsafe {
            let msg = msg.as_ref().ok_or(Errno(abi::EINVAL))?;
            let there = msg.rma_iov.as_ref().filter(|_| msg.rma_iov_count == 1).ok_or(Errno(abi::EINVAL))?;
            let operands = Values::several(msg.msg_iov, msg.iov_count)?;
            let request =
                Self::new(form, operands, msg.addr, [there.addr, there.key], [msg.datatype, msg.op]);
            Ok(Self { context: msg.context, flags: Some(flags), ..request })
        }
    }

    fn with_context(self, context: Opaque) -> Self {
        Self { context, ..self }
    }

    fn into_result(self, result: Values<'a>) -> Self {
        Self { result, ..self }
    }

    fn comparing(self, comparands: Values<'a>) -> Self {
        Self { comparands, ..self }
    }
}

impl EndpointObject {
    /// Begins an access.
    ///
    /// # Safety
    /// The memory must be as the manual prescribes.
    unsafe fn access(&self, request: Request<'_>) -> Result<isize, Errno> {
        let Request { form, peer, place, context, flags, is_silent, .. } = request;
        let (operation, datatype) = parse(form, request.datatype, request.op)?;
        // SAFETY: as the caller has promised.
        let [mut operands, comparands, result] = [request.operands, request.comparands, request.result]
            .map(|values| unsafe { values.memory(datatype) });
        // A read has no operands. Programs may pass some.
        if operation == Operation::Read {
            operands = Memory::default();
        }
        let len = if form == Form::Write { operands.len() } else { result.len() };
        let fits = len > 0
            && (operands.len() == len || operation == Operation::Read)
            && comparands.len() == if form == Form::Compare { len } else { 0 };
        if !fits {
            return Err(Errno(abi::EINVAL));
        }
        let result = (form != Form::Write).then_some(result);
        let atomic = Atomic { operation, datatype, len, operands, comparands, result };
        let mut state = self.shared.lock();
        let used = state.used(self.number)?;
        let target = state.target(&used, peer)?;
        let pending = (context.expose_provenance(), wants(&used, flags, is_silent));
        let begun = state.engine.access(self.number, target, place, atomic, pending);
        or_progress(&mut state, begun)?;
        state.wake();
        Ok(0)
    }
}

type Count = *const IoCount;
type Desc = *mut Opaque;

entries! {
    fn write(
        ep: *mut Ep, buf: *const c_void, count: usize, _desc: Opaque, to: u64, addr: u64, key: u64,
        datatype: c_uint, op: c_uint, context: Opaque,
    ) -> isize {
        let operands = one(buf, count);
        let request = Request::new(Form::Write, Values(&operands), to, [addr, key], [datatype, op]);
        EndpointObject::of(ep)?.access(request.with_context(context))
    }

    fn writev(
        ep: *mut Ep, iov: Count, _desc: Desc, count: usize, to: u64, addr: u64, key: u64,
        datatype: c_uint, op: c_uint, context: Opaque,
    ) -> isize {
        let operands = Values::several(iov, count)?;
        let request = Request::new(Form::Write, operands, to, [addr, key], [datatype, op]);
        EndpointObject::of(ep)?.access(request.with_context(context))
    }

    fn writemsg(ep: *mut Ep, msg: *const AtomicMsg, flags: u64) -> isize {
        EndpointObject::of(ep)?.access(Request::of(Form::Write, msg, flags)?)
    }

    fn inject(
        ep: *mut Ep, buf: *const c_void, count: usize, to: u64, addr: u64, key: u64, datatype: c_uint, op: c_uint,
    ) -> isize {
        let operands = one(buf, count);
        let request = Request::new(Form::Write, Values(&operands), to, [addr, key], [datatype, op]);
        EndpointObject::of(ep)?.access(Request { is_silent: true, ..request })
    }

    fn readwrite(
        ep: *mut Ep, buf: *const c_void, count: usize, _desc: Opaque, result: Opaque, _result_desc: Opaque, to: u64,
        addr: u64, key: u64, datatype: c_uint, op: c_uint, context: Opaque,
    ) -> isize {
        let (operands, result) = (one(buf, count), one(result, count));
        let request = Request::new(Form::Fetch, Values(&operands), to, [addr, key], [datatype, op]);
        EndpointObject::of(ep)?.access(request.into_result(Values(&result)).with_context(context))
    }

    fn readwritev(
        ep: *mut Ep, iov: Count, _desc: Desc, count: usize, result: *mut IoCount, _result_desc: Desc,
        result_count: usize, to: u64, addr: u64, key: u64, datatype: c_uint, op: c_uint, context: Opaque,
    ) -> isize {
        let (operands, result) = (Values::several(iov, count)?, Values::several(result, result_count)?);
        let request = Request::new(Form::Fetch, operands, to, [addr, key], [datatype, op]);
        EndpointObject::of(ep)?.access(request.into_result(result).with_context(context))
    }

    fn readwritemsg(
        ep: *mut Ep, msg: *const AtomicMsg, result: *mut IoCount, _result_desc: Desc, result_count: usize, flags: u64,
    ) -> isize {
        let request = Request::of(Form::Fetch, msg, flags)?;
        EndpointObject::of(ep)?.access(request.into_result(Values::several(result, result_count)?))
    }

    fn compwrite(
        ep: *mut Ep, buf: *const c_void, count: usize, _desc: Opaque, compare: *const c_void, _compare_desc: Opaque,
        result: Opaque, _result_desc: Opaque, to: u64, addr: u64, key: u64, datatype: c_uint, op: c_uint,
        context: Opaque,
    ) -> isize {
        let (operands, comparands, result) = (one(buf, count), one(compare, count), one(result, count));
        let request = Request::new(Form::Compare, Values(&operands), to, [addr, key], [datatype, op]);
        let request = request.comparing(Values(&comparands)).into_result(Values(&result));
        EndpointObject::of(ep)?.access(request.with_context(context))
    }

    fn compwritev(
        ep: *mut Ep, iov: Count, _desc: Desc, count: usize, compare: Count, _compare_desc: Desc, compare_count: usize,
        result: *mut IoCount, _result_desc: Desc, result_count: usize, to: u64, addr: u64, key: u64,
        datatype: c_uint, op: c_uint, context: Opaque,
    ) -> isize {
        let (operands, comparands) = (Values::several(iov, count)?, Values::several(compare, compare_count)?);
        let request = Request::new(Form::Compare, operands, to, [addr, key], [datatype, op]);
        let request = request.comparing(comparands).into_result(Values::several(result, result_count)?);
        EndpointObject::of(ep)?.access(request.with_context(context))
    }

    fn compwritemsg(
        ep: *mut Ep, msg: *const AtomicMsg, compare: Count, _compare_desc: Desc, compare_count: usize,
        result: *mut IoCount, _result_desc: Desc, result_count: usize, flags: u64,
    ) -> isize {
        let request = Request::of(Form::Compare, msg, flags)?.comparing(Values::several(compare, compare_count)?);
        EndpointObject::of(ep)?.access(request.into_result(Values::several(result, result_count)?))
    }

    fn writevalid(_ep: *mut Ep, datatype: c_uint, op: c_uint, count: *mut usize) -> c_int {
        *count = most(Form::Write, datatype, op)?.count;
        Ok(0)
    }

    fn readwritevalid(_ep: *mut Ep, datatype: c_uint, op: c_uint, count: *mut usize) -> c_int {
        *count = most(Form::Fetch, datatype, op)?.count;
        Ok(0)
    }

    fn compwritevalid(_ep: *mut Ep, datatype: c_uint, op: c_uint, count: *mut usize) -> c_int {
        *count = most(Form::Compare, datatype, op)?.count;
        Ok(0)
    }

    /// Says whether there is such an operation, and how many values an access has at most.
    fn query_atomic(_domain: *mut Domain, datatype: c_uint, op: c_uint, attr: *mut AtomicAttr, flags: u64) -> c_int {
        let form = match flags {
            abi::FETCH_ATOMIC => Form::Fetch,
            abi::COMPARE_ATOMIC => Form::Compare,
            0 => Form::Write,
            _ => return Err(Errno(abi::EINVAL)),
        };
        attr.write(most(form, datatype, op)?);
        Ok(0)
    }
}
