//! Endpoints: each send takes its overhead, gets its departure, and carries the departure as a stamp.

mod messages;
mod onesided;

use crate::abi::{
    self, Address, AtomicOps, Av, Cntr, Cq, Ep, Fid, IoVec, MsgOps, Opaque, Ops, RmaOps, TaggedOps,
};
use crate::account::{State, Word};
use crate::between::Between;
use crate::counter::Counter;
use crate::guard::{Provider, entries};
use crate::hook::{Draft, Force, Hook, inside, is_inside, spin_until};
use crate::page::Completion;
use crate::patch::{self, call};
use crate::peers;
use crate::queue::Queue;
use crate::replace;
use core::ffi::c_int;
use netdyno_clock::ticks;
use netdyno_protocol::dial::stamp::{Stamp, is_stamped};
use netdyno_protocol::dial::timing::Departed;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The number of sends of an endpoint that are timed at first; later every `TIMED_EVERY`-th is timed.
const TIMED_AT_FIRST: u32 = 64;
const TIMED_EVERY: u32 = 16;

/// The hook's state of an endpoint.
pub struct Endpoint {
    pub hook: &'static Hook,
    ops: *const Ops,
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
    spared: Mutex<HashMap<Address, bool>>,
    /// The counters of sends, writes and reads, in the order of [`Counts`].
    counters: [AtomicPtr<Counter>; 3],
    /// Whether operations complete with their delivery by default (`FI_DELIVERY_COMPLETE`).
    pub delivers: bool,
    /// Whether the overhead was taken for a send that the provider then refused. The next send takes
    /// none.
    is_paid: AtomicBool,
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
            is_paid: AtomicBool::new(false),
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
        place: *mut *const T,
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
            note.store(theirs.cast_mut(), Relaxed);
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
    /// Sends a message under the setting in force. `data` is the program's data for the completion. `go`
    /// calls the provider, with the data that it gets or without any.
    fn send(
        &self,
        operation: &Operation,
        data: Option<u64>,
        provider: &Provider<'_, isize>,
        mut go: impl FnMut(Option<u64>) -> isize,
    ) -> isize {
        let mut go = |data| provider.call(|| go(data));
        let bytes = operation.bytes;
        if !self.hook.ever_dials() {
            return self.send_undialled(bytes, || go(data));
        }
        if is_inside() {
            return go(data);
        }
        let mut go = |data| inside(|| go(data));
        let Some(force) = self.hook.force() else {
            let result = go(data);
            if result == 0 {
                self.count_sent(bytes);
            }
            return result;
        };
        if self.is_spared(operation.to) {
            return self.send_spared(bytes, data, go);
        }
        let Some(mut draft) = self.draft(force, bytes) else { return -abi::EAGAIN };
        let stamped = self.stamped(data, &draft);
        let is_timed = self.is_timed();
        if is_timed {
            draft.given = ticks::glance();
        }
        let (result, _) = go_stamped(data, stamped, &mut go);
        if is_timed {
            draft.taken = ticks::glance();
        }
        self.settle(force, draft, operation, result);
        if result == 0 {
            self.count_sent(bytes);
        }
        result
    }

    /// Sends a message where no setting dials anything, and counts it. Two threads that send at the same
    /// time may lose a count.
    #[inline]
    fn send_undialled(&self, bytes: usize, go: impl FnOnce() -> isize) -> isize {
        if self.is_sending.load(Relaxed) {
            return go();
        }
        self.is_sending.store(true, Relaxed);
        let result = go();
        self.is_sending.store(false, Relaxed);
        if result == 0 {
            self.count_sent(bytes);
        }
        result
    }

    /// Sends a message on a link that is not dialled, with a mark that tells the receiver so.
    fn send_spared(
        &self,
        bytes: usize,
        data: Option<u64>,
        mut go: impl FnMut(Option<u64>) -> isize,
    ) -> isize {
        let marked = self.with_stamp(data, Departed { at: 0, at_once: true }, true);
        let (result, is_marked) = go_stamped(data, marked, &mut go);
        if result == 0 {
            self.count_sent(bytes);
            self.hook.count(if is_marked { Word::Spared } else { Word::Unstamped }, 1);
        }
        result
    }

    /// Returns whether the link to that address is spared, that is, not dialled.
    fn is_spared(&self, to: Address) -> bool {
        let Some(between) = &self.hook.between else { return false };
        let mut spared = self.spared.lock().unwrap_or_else(PoisonError::into_inner);
        *spared.entry(to).or_insert_with(|| !self.is_dialled(between, to))
    }

    fn is_dialled(&self, between: &Between, to: Address) -> bool {
        let peers = self.peers.load(Relaxed);
        // SAFETY: by libfabric's rules an address vector outlives the endpoints that are bound to it.
        let address = if peers.is_null() { None } else { inside(|| unsafe { peers::address_of(peers, to) }) };
        match address.and_then(|address| peers::find(self.hook.folder, &address)) {
            Some(who) => between.dials(&self.hook.who, &who),
            None => {
                self.hook.fail("--between: a message goes to an address at which nobody has said to be");
                false
            }
        }
    }

    /// Starts a one-sided operation under the setting in force.
    pub fn act(
        &self,
        operation: &Operation,
        provider: &Provider<'_, isize>,
        go: impl FnOnce() -> isize,
    ) -> isize {
        let go = || provider.call(go);
        if is_inside() {
            return go();
        }
        let force = self.hook.force();
        let is_spared = force.is_some() && self.is_spared(operation.to);
        let draft = match force.filter(|_| !is_spared) {
            None => None,
            Some(force) => match self.draft(force, operation.bytes) {
                Some(draft) => Some((force, draft)),
                None => return -abi::EAGAIN,
            },
        };
        let result = inside(go);
        if let Some((force, draft)) = draft {
            self.settle(force, draft, operation, result);
        }
        if result == 0 {
            self.hook.count(Word::OneSided, 1);
            self.hook.count(Word::OneSidedBytes, operation.bytes as u64);
            self.hook.count(Word::Spared, is_spared.into());
        }
        result
    }

    /// Returns when a send without flags completes.
    fn sent(&self) -> End {
        match (self.delivers, self.hook.completion) {
            (false, _) => End::Sent,
            (true, Completion::Local) => End::Local,
            (true, Completion::Delivered) => End::Back,
        }
    }

    fn count_sent(&self, bytes: usize) {
        self.hook.count(Word::Sent, 1);
        self.hook.count(Word::SentBytes, bytes as u64);
    }

    /// Takes the send overhead, once for each message also if the provider refuses it at first, and
    /// computes the departure. Returns `None` if the capacity is used up or the gap is too long to wait
    /// for.
    fn draft(&self, force: &Force, bytes: usize) -> Option<Draft> {
        let entered = ticks::glance();
        let terms = force.terms(entered, || self.hook.sides().departures.free());
        let overhead = terms.send_overhead;
        let began = if overhead > 0 && !self.is_paid.swap(true, Relaxed) {
            self.hook.count(Word::SendOverheadTicks, overhead);
            spin_until(entered + overhead.saturating_sub(self.hook.own()))
        } else {
            entered
        };
        let began = force.wait_for_gap(self.hook, began);
        let draft = began.and_then(|began| force.depart(self.hook, began, bytes, terms));
        if draft.is_none() {
            self.hook.count(Word::Refused, 1);
        }
        draft
    }

    /// Returns the data with the stamp of the departure, if stamps are in use and the data has room for
    /// one.
    fn stamped(&self, data: Option<u64>, draft: &Draft) -> Option<u64> {
        if !self.hook.stamps {
            return None;
        }
        // A stamp may lie ahead by half of its range. The other half is for messages that are read late.
        let furthest = draft.began.saturating_add(self.hook.grain.range() / 2);
        if draft.departs.at > furthest {
            self.hook.count(Word::TooFarAhead, 1);
        }
        let departed = Departed { at: draft.departs.at.min(furthest), ..draft.departs };
        let stamped = self.with_stamp(data, departed, false)?;
        self.hook.announce(departed.at, draft.began);
        Some(stamped)
    }

    /// Returns the data with a stamp, if it has room for one.
    fn with_stamp(&self, data: Option<u64>, departed: Departed, spared: bool) -> Option<u64> {
        let stamp = Stamp { departed, added: data.is_none(), spared };
        let rest = data.unwrap_or(0);
        let taken = (rest >> 32) as u32;
        if is_stamped(taken) {
            self.hook.fail("the program's own data look like stamps: say --carrier arrival");
        }
        let has_room = self.has_data && taken == 0;
        has_room.then(|| rest | u64::from(self.hook.grain.pack(stamp)) << 32)
    }

    /// Updates the hook's state after the provider has accepted or refused an operation.
    fn settle(&self, force: &Force, draft: Draft, operation: &Operation, result: isize) {
        if result != 0 {
            self.hook.recall(draft);
            return;
        }
        self.is_paid.store(false, Relaxed);
        if force.has_capacity() {
            force.sent(&mut self.hook.sides(), &draft);
        }
        self.count_end(operation);
        let latencies = match operation.end {
            End::Sent | End::Local => 0,
            End::There => 1,
            End::Back => 2,
        };
        let over = draft.departs.at.saturating_add(latencies * draft.terms.latency.ticks());
        if over > draft.sent {
            self.hold_end(operation, over);
        }
        if draft.taken > 0 {
            let before = draft.given.saturating_sub(draft.began);
            let after = ticks::glance().saturating_sub(draft.taken);
            self.hook.note_send(operation.bytes, draft.taken.saturating_sub(draft.began), [before, after]);
        }
    }

    /// Counts a send by when it completes, if delivery was asked for.
    fn count_end(&self, operation: &Operation) {
        if operation.context.is_null() || !matches!(operation.counts, Counts::Sends) {
            return;
        }
        match operation.end {
            End::Local => self.hook.count(Word::EndedLocally, 1),
            End::Back => self.hook.count(Word::EndedDelivered, 1),
            End::Sent | End::There => {}
        }
    }

    /// Holds the completion of an operation until `over`, in its queue and its counter.
    fn hold_end(&self, operation: &Operation, over: u64) {
        let queue = self.ends().filter(|_| !operation.context.is_null());
        if let Some(queue) = queue {
            queue.not_before(operation.context, over);
        }
        // SAFETY: by libfabric's rules a counter outlives the endpoints that are bound to it.
        if let Some(counter) = unsafe { self.counters[operation.counts as usize].load(Relaxed).as_ref() } {
            counter.not_before(over);
            // A completion that is also held in a queue is counted there.
            self.hook.count(Word::HeldEnds, queue.is_none().into());
        }
    }

    /// Returns whether to time this send. Reading the clock at every send would add to the overhead.
    fn is_timed(&self) -> bool {
        let nth = self.sends.load(Relaxed);
        self.sends.store(nth.wrapping_add(1), Relaxed);
        nth < TIMED_AT_FIRST || nth.is_multiple_of(TIMED_EVERY)
    }

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

/// Sends with the stamped data. If the provider refuses data that the program did not pass, sends again
/// without data. Also returns whether the stamp was sent.
fn go_stamped(
    data: Option<u64>,
    stamped: Option<u64>,
    go: &mut impl FnMut(Option<u64>) -> isize,
) -> (isize, bool) {
    match stamped.map(|stamped| go(Some(stamped))) {
        None => (go(data), false),
        Some(result) if result != 0 && result != -abi::EAGAIN && data.is_none() => (go(None), false),
        Some(result) => (result, true),
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
    parts.iter().fold(0, |bytes, part| part.len.saturating_add(bytes))
}

/// Restores the provider's tables, because the provider may look at them, and closes the endpoint.
///
/// # Safety
/// The endpoint is live, and `state` is its state.
unsafe fn close_theirs(ep: *mut Ep, state: &Endpoint) -> c_int {
    fn theirs<T>(now: *const T, note: &AtomicPtr<T>) -> *const T {
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
unsafe fn of(fid: *mut Fid) -> (NonNull<Endpoint>, *const Ops) {
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
