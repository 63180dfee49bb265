//! Endpoints: the hook's state of each, and its life from the opening to the close.

mod messages;
mod onesided;
mod sending;

use crate::abi::{
    self, Address, AtomicOps, Av, Cntr, Cq, Ep, Fid, IoVec, MsgOps, Opaque, Ops, RmaOps, TaggedOps,
};
use crate::account::{State, Word};
use crate::counter::Counter;
use crate::guard::{Provider, entries};
use crate::hook::{Hook, inside};
use crate::patch::{self, call};
use crate::peers;
use crate::queue::Queue;
use crate::replace;
use core::ffi::c_int;
use netdyno_clock::ticks;
use rustc_hash::FxHashMap;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Relaxed};

/// The hook's state of an endpoint.
pub struct Endpoint {
    pub hook: &'static Hook,
    ops: *mut Ops,
    msg: AtomicPtr<MsgOps>,
    tagged: AtomicPtr<TaggedOps>,
    pub rma: AtomicPtr<RmaOps>,
    pub atomic: AtomicPtr<AtomicOps>,
    /// The completion queues for sends and for receives, if they have hooks.
    ends: AtomicPtr<Queue>,
    arrivals: AtomicPtr<Queue>,
    /// Whether completions carry eight bytes of the sender's data.
    has_data: bool,
    /// The address vector, and for each address whether its link is spared, that is, not dialled.
    peers: AtomicPtr<Av>,
    spared: Mutex<FxHashMap<Address, bool>>,
    /// The counters of sends, writes and reads, in the order of [`Counts`].
    counters: [AtomicPtr<Counter>; 3],
    /// Whether operations complete with their delivery by default (`FI_DELIVERY_COMPLETE`).
    pub delivers: bool,
    /// Whether the overhead was taken for a send that the provider then refused. The next send takes
    /// none.
    paid: AtomicU32,
    /// The number of dialled sends.
    sends: AtomicU32,
    /// Whether the provider is inside a send. Used only where no setting dials anything.
    is_sending: AtomicBool,
}

/// An operation of the program.
pub struct Operation {
    /// The destination.
    pub to: Address,
    pub bytes: usize,
    pub end: End,
    pub counts: Counts,
    /// The context of its completion; null if it has no completion.
    pub context: Opaque,
}

/// The counter that counts the operation.
#[derive(Clone, Copy)]
pub enum Counts {
    Sends,
    Writes,
    Reads,
}

/// When an operation completes, relative to its departure.
#[derive(Clone, Copy)]
pub enum End {
    /// When its last byte has left.
    Sent,
    /// When its last byte has left, although the endpoint has `FI_DELIVERY_COMPLETE` as a default flag.
    /// The MPI library has set that flag for the whole endpoint, and a standard send of MPI does not wait
    /// for delivery.
    Local,
    /// When it is due at the target: one latency later.
    There,
    /// When the answer is back: two latencies later.
    Back,
}

/// Puts a hook on a new endpoint.
///
/// # Safety
/// The endpoint is a live one of libfabric's, and nothing else uses it yet.
pub unsafe fn install(hook: &'static Hook, ep: *mut Ep, has_data: bool, delivers: bool) {
    // SAFETY: the endpoint is live, so that its tables are, and nothing else uses it yet. The state lives
    // until the endpoint is closed.
    unsafe {
        let state = NonNull::from(Box::leak(Box::new(Endpoint {
            hook,
            ops: (*ep).fid.ops,
            msg: AtomicPtr::default(),
            tagged: AtomicPtr::default(),
            rma: AtomicPtr::default(),
            atomic: AtomicPtr::default(),
            ends: AtomicPtr::default(),
            arrivals: AtomicPtr::default(),
            peers: AtomicPtr::default(),
            spared: Mutex::default(),
            counters: Default::default(),
            has_data,
            delivers,
            paid: AtomicU32::new(0),
            sends: AtomicU32::new(0),
            is_sending: AtomicBool::new(false),
        })));
        (*ep).fid.ops = patch::copy((*ep).fid.ops, state, |ops: &mut Ops| {
            replace!(ops, close => close, bind => bind, control => control);
        });
        patch_tables(ep, state);
    }
}

/// Copies the tables that are not ours yet. A provider may replace its tables when the endpoint is
/// enabled.
///
/// # Safety
/// The endpoint is live, and `state` is its state. Nothing else uses the endpoint during the call.
unsafe fn patch_tables(ep: *mut Ep, state: NonNull<Endpoint>) {
    /// Records the provider's table in the state and replaces it in the endpoint.
    unsafe fn table<T: Copy>(
        place: *mut *mut T,
        note: &AtomicPtr<T>,
        state: NonNull<Endpoint>,
        change: impl FnOnce(&mut T),
    ) {
        // SAFETY: the place is a member of an endpoint that is live and that nothing else uses. A table
        // of the provider begins with its size.
        unsafe {
            let theirs = *place;
            if theirs.is_null() || patch::is_ours(theirs) {
                return;
            }
            note.store(theirs, Relaxed);
            *place = patch::copy(theirs, state, change);
        }
    }
    // SAFETY: the caller says that the endpoint and its state are live, and that nothing else uses them.
    unsafe {
        let known = state.as_ref();
        let dials = known.hook.ever_dials();
        table(&raw mut (*ep).msg, &known.msg, state, |ops| {
            if dials {
                replace!(ops, recv => messages::recv, recvv => messages::recvv, recvmsg => messages::recvmsg);
            }
            replace!(ops, send => messages::send, sendv => messages::sendv, sendmsg => messages::sendmsg, inject => messages::inject,
                senddata => messages::senddata, injectdata => messages::injectdata);
        });
        table(&raw mut (*ep).tagged, &known.tagged, state, |ops| {
            if dials {
                replace!(ops, recv => messages::trecv, recvv => messages::trecvv, recvmsg => messages::trecvmsg);
            }
            replace!(ops, send => messages::tsend, sendv => messages::tsendv, sendmsg => messages::tsendmsg, inject => messages::tinject,
                senddata => messages::tsenddata, injectdata => messages::tinjectdata);
        });
        table(&raw mut (*ep).rma, &known.rma, state, |ops| {
            replace!(ops, read => onesided::read, readv => onesided::readv, readmsg => onesided::readmsg,
                write => onesided::write, writev => onesided::writev, writemsg => onesided::writemsg,
                inject => onesided::inject, writedata => onesided::writedata, injectdata => onesided::injectdata);
        });
        table(&raw mut (*ep).atomic, &known.atomic, state, |ops| {
            replace!(ops, write => onesided::atomic_write, writev => onesided::atomic_writev,
                writemsg => onesided::atomic_writemsg, inject => onesided::atomic_inject,
                readwrite => onesided::readwrite, readwritev => onesided::readwritev,
                readwritemsg => onesided::readwritemsg, compwrite => onesided::compwrite,
                compwritev => onesided::compwritev, compwritemsg => onesided::compwritemsg);
        });
    }
}

impl Endpoint {
    /// Publishes the rank and host at the address of this endpoint.
    ///
    /// # Safety
    /// The endpoint is live, and `self` is its state.
    unsafe fn introduce(&self, ep: *mut Ep) {
        // SAFETY: the caller says that the endpoint is live.
        let address = inside(|| unsafe { peers::own_address(ep) });
        let is_said = address
            .is_some_and(|address| peers::announce(self.hook.folder, &address, &self.hook.who).is_ok());
        if !is_said {
            self.hook.fail("--between: what address the rank is at cannot be said to the others");
        } else if !self.has_data {
            self.hook.fail("--between: completions of this provider have no room for a mark");
        }
    }

    /// Records a completion queue that the endpoint is bound to.
    ///
    /// # Safety
    /// The queue is live for as long as the endpoint.
    unsafe fn use_queue(&self, cq: *mut Cq, flags: u64) {
        // SAFETY: the caller says that the queue is live.
        let Some(queue) = (unsafe { Queue::of(cq) }) else { return };
        if flags & abi::RECV != 0 {
            self.arrivals.store(queue.as_ptr(), Relaxed);
            // SAFETY: a live queue leads to a live state.
            unsafe { queue.as_ref() }.expect_messages();
        }
        if flags & abi::TRANSMIT != 0 {
            self.ends.store(queue.as_ptr(), Relaxed);
            // SAFETY: a live queue leads to a live state.
            unsafe { queue.as_ref() }.hold_completions();
        }
    }

    /// Records a counter that the endpoint is bound to.
    ///
    /// # Safety
    /// The counter is live for as long as the endpoint.
    unsafe fn use_counter(&self, cntr: *mut Cntr, flags: u64) {
        // SAFETY: the caller says that the counter is live.
        let Some(counter) = (unsafe { Counter::of(cntr) }) else { return };
        for (counts, flag) in
            [(Counts::Sends, abi::TRANSMIT), (Counts::Writes, abi::WRITE), (Counts::Reads, abi::READ)]
        {
            if flags & flag != 0 {
                self.counters[counts as usize].store(counter.as_ptr(), Relaxed);
            }
        }
        if flags & (abi::RECV | abi::REMOTE_READ | abi::REMOTE_WRITE) != 0 {
            self.hook.count(Word::Counters, 1);
        }
    }

    fn note_receive(&self) {
        if let Some(queue) = self.arrivals() {
            queue.note_receive(ticks::glance());
        }
    }

    fn ends(&self) -> Option<&Queue> {
        // SAFETY: by libfabric's rules a queue outlives the endpoints that are bound to it.
        unsafe { self.ends.load(Relaxed).as_ref() }
    }

    fn arrivals(&self) -> Option<&Queue> {
        // SAFETY: by libfabric's rules a queue outlives the endpoints that are bound to it.
        unsafe { self.arrivals.load(Relaxed).as_ref() }
    }
}

/// Returns the bytes of a vector.
///
/// # Safety
/// `iov` is null or leads to `count` entries.
pub unsafe fn bytes_of(iov: *const IoVec, count: usize) -> usize {
    if iov.is_null() {
        return 0;
    }
    // SAFETY: the caller says that there are `count` entries.
    let parts = unsafe { std::slice::from_raw_parts(iov, count) };
    // The sum saturates; the provider refuses such a message.
    parts.iter().fold(0, |bytes, part| part.iov_len.saturating_add(bytes))
}

/// Restores the provider's tables, because the provider may look at them, and closes the endpoint.
///
/// # Safety
/// The endpoint is live, and `state` is its state.
unsafe fn close_theirs(ep: *mut Ep, state: &Endpoint) -> c_int {
    fn theirs<T>(now: *mut T, note: &AtomicPtr<T>) -> *mut T {
        if patch::is_ours(now) { note.load(Relaxed) } else { now }
    }
    // SAFETY: the caller says that the endpoint is live.
    unsafe {
        (*ep).fid.ops = state.ops;
        (*ep).msg = theirs((*ep).msg, &state.msg);
        (*ep).tagged = theirs((*ep).tagged, &state.tagged);
        (*ep).rma = theirs((*ep).rma, &state.rma);
        (*ep).atomic = theirs((*ep).atomic, &state.atomic);
        let theirs = state.ops;
        call!(theirs.close(&raw mut (*ep).fid))
    }
}

/// Closes an endpoint. Frees the hook's state if the provider has closed it.
///
/// # Safety
/// The endpoint is live, and `state` is its state. Neither is used afterwards if the endpoint is closed.
unsafe fn close_and_free(ep: *mut Ep, state: NonNull<Endpoint>, provider: &Provider<'_, c_int>) -> c_int {
    // SAFETY: the caller says that the endpoint is live. Once it is closed, nothing leads to its tables
    // and its state any more. The state came from `Box::leak`.
    unsafe {
        let ours = (*ep).fid.ops;
        let tables = ((*ep).msg, (*ep).tagged, (*ep).rma, (*ep).atomic);
        let result = provider.call(|| close_theirs(ep, state.as_ref()));
        if result == 0 {
            patch::free(ours);
            patch::free(tables.0);
            patch::free(tables.1);
            patch::free(tables.2);
            patch::free(tables.3);
            drop(Box::from_raw(state.as_ptr()));
        } else {
            (*ep).fid.ops = ours;
            ((*ep).msg, (*ep).tagged, (*ep).rma, (*ep).atomic) = tables;
        }
        result
    }
}

impl Endpoint {
    /// Records an object that the provider has bound the endpoint to.
    ///
    /// # Safety
    /// The object is live for as long as the endpoint.
    unsafe fn bound(&self, to: *mut Fid, flags: u64) {
        // SAFETY: the caller says that the object is live. Its class tells its type.
        unsafe {
            match to.as_ref().map(|fid| fid.fclass) {
                Some(abi::CLASS_CQ) => self.use_queue(to.cast(), flags),
                Some(abi::CLASS_AV) => self.peers.store(to.cast(), Relaxed),
                Some(abi::CLASS_CNTR) => self.use_counter(to.cast(), flags),
                _ => {}
            }
        }
    }

    /// Hooks the tables of an endpoint that was just enabled, because the provider may have replaced
    /// them.
    ///
    /// # Safety
    /// The endpoint is live, `state` is its state, and nothing else uses the endpoint yet.
    unsafe fn enabled(state: NonNull<Self>, ep: *mut Ep) {
        // SAFETY: the caller says that the state and the endpoint are live.
        unsafe {
            patch_tables(ep, state);
            let known = state.as_ref();
            if known.arrivals().is_some() {
                known.hook.reach(State::InForce);
            }
            if known.hook.between.is_some() {
                known.introduce(ep);
            }
        }
    }
}

entries! {
    fn close(fid: *mut Fid) -> c_int, Close {
        let state = patch::state::<_, Endpoint>((*fid).ops);
        hook: (*state.as_ptr()).hook,
        pass: close_theirs(fid.cast(), state.as_ref()),
        |provider| close_and_free(fid.cast(), state, provider),
    }

    fn bind(fid: *mut Fid, to: *mut Fid, flags: u64) -> c_int, Endpoint {
        let (state, theirs) = of(fid);
        hook: (*state.as_ptr()).hook,
        pass: call!(theirs.bind(fid, to, flags)),
        |provider| {
            let result = provider.call(|| call!(theirs.bind(fid, to, flags)));
            if result == 0 {
                state.as_ref().bound(to, flags);
            }
            result
        },
    }

    fn control(fid: *mut Fid, command: c_int, argument: Opaque) -> c_int, Endpoint {
        let (state, theirs) = of(fid);
        hook: (*state.as_ptr()).hook,
        pass: call!(theirs.control(fid, command, argument)),
        |provider| {
            let result = provider.call(|| call!(theirs.control(fid, command, argument)));
            if result == 0 && command == abi::ENABLE {
                Endpoint::enabled(state, fid.cast());
            }
            result
        },
    }
}

/// Returns the hook's state of an endpoint, and the provider's table.
///
/// # Safety
/// The endpoint is live and has a table of ours.
unsafe fn of(fid: *mut Fid) -> (NonNull<Endpoint>, *mut Ops) {
    // SAFETY: a table of ours leads to the state.
    unsafe {
        let state = patch::state::<_, Endpoint>((*fid).ops);
        (state, (*state.as_ptr()).ops)
    }
}

/// Returns the hook's state that an endpoint's table leads to, and the provider's table.
macro_rules! behind {
    ($ep:ident.$table:ident) => {{
        let state: &Endpoint = patch::state((*$ep).$table).as_ref();
        (state, state.$table.load(Relaxed).cast_const())
    }};
}
pub(crate) use behind;
