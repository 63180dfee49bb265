//! Completion queues. A received message is held until it is due. A send does not complete before its
//! last byte has left.

mod arriving;
mod calls;

use crate::abi::{self, Address, Cq, CqOps, Entry, ErrEntry, Opaque, Ops};
use crate::account::Word;
use crate::hook::{Hook, inside, is_inside, spin_until};
use crate::looks::Looks;
use crate::patch;
use crate::replace;
use core::ffi::{c_int, c_uint};
use netdyno_clock::ticks;
use netdyno_protocol::dial::hold::Hold;
use netdyno_protocol::dial::link::{Seen, Usual};
use netdyno_protocol::dial::polls::Polls;
use netdyno_protocol::dial::timing::{Departed, Departures, Gate, Lane};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Completions that one call of the provider reads.
const FETCHED: usize = 16;
/// The length of a nap of a blocking read, in milliseconds. The read looks at held completions after
/// each.
const NAP_MS: c_int = 1;
/// The number of records of pending operations beyond which old ones are searched for and removed.
const MANY_NOTES: usize = 4096;

/// No completion is held.
const NEVER: u64 = u64::MAX;
/// The number of releases that are timed at first; later every `TIMED_EVERY`-th is timed.
const TIMED_AT_FIRST: u32 = 64;
const TIMED_EVERY: u32 = 16;

/// The hook's state of a completion queue.
pub struct Queue {
    hook: &'static Hook,
    fid_ops: *mut Ops,
    ops: *mut CqOps,
    /// The bytes of an entry; `None` where the format has too few members to dial messages.
    entry_bytes: Option<usize>,
    /// Whether a dialled endpoint completes sends or receives in the queue.
    is_used: AtomicBool,
    /// Whether the program has called `fi_cq_signal`, so that a blocking read must return.
    is_signalled: AtomicBool,
    /// When the program posted its last receive.
    posted: AtomicU64,
    /// When the next held completion may be released, or [`NEVER`].
    next: AtomicU64,
    state: Mutex<State>,
}

/// When the completion of an operation may be released.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldEnd {
    /// Not before this time.
    pub over: u64,
    /// Not earlier than so many ticks after the provider has completed it: the latency that is added to the link's own.
    pub beyond: u64,
}

/// A completion on its way to the program.
#[derive(Clone, Copy, Debug)]
struct Completion {
    entry: Entry,
    source: Address,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A message, and whether it was held.
    Message { waited: bool },
    /// Another completion.
    Other,
}

#[derive(Default)]
struct State {
    /// Messages that have arrived and are not due.
    messages: Hold<Completion>,
    /// Completions of operations, and messages that keep no receive gap.
    others: Hold<Completion>,
    /// The senders, by address or data, as far as they are known.
    lanes: Map<Sender>,
    /// When a pending operation may complete, by its context.
    ends: Map<HeldEnd>,
    /// The number of ends at which the old ones are removed.
    many_ends: usize,
    /// The latest time at which a message in a buffer is due, by the buffer's context. Messages in a
    /// buffer are released in order.
    buffers: Map<u64>,
    /// The contexts of pending peeks, and whether they claim or discard the message that they find.
    peeks: Vec<(usize, bool)>,
    /// Messages that peeks found before they were due. The hook reports that these peeks found nothing.
    unfound: VecDeque<Entry>,
    /// Errors of the provider that came while messages were held.
    behind: VecDeque<Behind>,
    /// Messages that peeks have found and the program has not received.
    found: FxHashMap<Name, Found>,
    /// The polls that found nothing.
    looks: Looks,
    /// The time from which work in the hook counts towards the receive overhead.
    began: u64,
    /// The times of polls of the provider.
    polls: Polls,
    /// The usual time of a release, from the due time until the program has the message. It counts
    /// towards an added latency.
    releasing: Usual,
    /// Releases that could be timed.
    released: u32,
    /// The due time of the message that the hook has just spun for, until its release is timed.
    awaited: Option<u64>,
}

/// An error that is told after the messages before it.
struct Behind(ErrEntry);

/// The identity of a message for repeated peeks: its tag, sender and length.
type Name = (u64, u64, usize);

/// A message that a peek has found.
#[derive(Clone, Copy)]
struct Found {
    first: u64,
    /// Its latency, once drawn: a latency that varies is drawn only once for each message.
    latency: Option<u64>,
}

/// Properties of a message that the program does not see.
struct Said {
    /// The sender, if it can be identified.
    sender: Option<u64>,
    departed: Option<Departed>,
    /// The link from the sender is not dialled.
    is_spared: bool,
}

/// A function that reads entries and their sources from the provider's queue.
type Fetch<'a> = &'a mut dyn FnMut(Opaque, usize, *mut Address) -> isize;

/// A map by sender or by context, whose hasher need not resist chosen keys.
type Map<T> = FxHashMap<u64, T>;

/// The receiving end of the link from one sender.
#[derive(Default)]
struct Sender {
    lane: Lane,
    /// The assumed departures of messages without stamps.
    departures: Departures,
}

// SAFETY: its pointers are contexts and buffers of the program. The hook passes them on and never follows
// them.
unsafe impl Send for Completion {}
// SAFETY: as above.
unsafe impl Send for Behind {}

impl Queue {
    /// Puts a hook on a new completion queue.
    ///
    /// # Safety
    /// The queue is a live one of libfabric's with that format, and nothing else uses it yet.
    pub unsafe fn install(hook: &'static Hook, cq: *mut Cq, format: c_uint) {
        let entry_bytes = match format {
            abi::CQ_FORMAT_DATA => Some(std::mem::offset_of!(Entry, tag)),
            abi::CQ_FORMAT_TAGGED => Some(size_of::<Entry>()),
            _ => None,
        };
        // SAFETY: the caller says that the queue is live, so that its tables are. The state lives until
        // the queue is closed.
        unsafe {
            let state = NonNull::from(Box::leak(Box::new(Self {
                hook,
                fid_ops: (*cq).fid.ops,
                ops: (*cq).ops,
                entry_bytes,
                is_used: AtomicBool::new(false),
                is_signalled: AtomicBool::new(false),
                posted: AtomicU64::new(0),
                next: AtomicU64::new(NEVER),
                state: Mutex::new(State { looks: Looks::new(ticks::now()), ..State::default() }),
            })));
            (*cq).fid.ops =
                patch::copy((*cq).fid.ops, state, |ops: &mut Ops| replace!(ops, close => calls::close));
            (*cq).ops = patch::copy((*cq).ops, state, |ops: &mut CqOps| {
                if hook.ever_dials() {
                    replace!(ops, read => calls::read, readfrom => calls::readfrom, readerr => calls::readerr,
                        signal => calls::signal, sread => calls::sread, sreadfrom => calls::sreadfrom);
                } else if entry_bytes.is_some() {
                    replace!(ops, read => calls::read_and_count);
                }
            });
        }
    }

    /// Returns the hook's state of a queue, if the queue has a hook.
    ///
    /// # Safety
    /// The queue is live.
    pub unsafe fn of(cq: *mut Cq) -> Option<NonNull<Self>> {
        // SAFETY: the caller says that the queue is live. A table of ours leads to the state.
        unsafe { patch::is_ours((*cq).ops).then(|| patch::state((*cq).ops)) }
    }

    /// Records that a dialled endpoint receives into the queue.
    pub fn expect_messages(&self) {
        if self.entry_bytes.is_none() {
            self.hook.count(Word::BareQueues, 1);
        }
        self.hold_completions();
    }

    /// Records that completions of a dialled endpoint go into the queue.
    pub fn hold_completions(&self) {
        self.is_used.store(true, Relaxed);
    }

    /// Holds the completion of an operation.
    pub fn not_before(&self, context: Opaque, end: HeldEnd) {
        let mut state = self.state();
        if state.ends.len() >= state.many_ends {
            let now = ticks::now();
            state.ends.retain(|_, end| end.over.saturating_add(end.beyond) > now);
            // With so many in flight, the next search comes once as many again have been added.
            state.many_ends = MANY_NOTES.max(2 * state.ends.len());
        }
        state.ends.insert(context as u64, end);
    }

    /// Records that the program posts a receive at `now`.
    pub fn note_receive(&self, now: u64) {
        self.posted.store(now, Relaxed);
    }

    /// Records a peek. The next completion with that context reports a message and does not receive it.
    pub fn expect_peek(&self, context: Opaque, takes: bool) {
        self.state().peeks.push((context as usize, takes));
    }

    /// Takes a peek that found nothing, which the program reads as an error entry.
    fn take_unfound(&self) -> Option<Entry> {
        self.state().unfound.pop_front()
    }

    /// Removes a pending peek that will not complete.
    pub fn forget_peek(&self, context: Opaque) {
        self.state().peek(context);
    }

    /// Removes what is noted of an operation that has failed.
    pub fn forget(&self, context: Opaque) {
        let mut state = self.state();
        state.peek(context);
        state.ends.remove(&(context as u64));
        state.buffers.remove(&(context as u64));
    }

    /// Reports whether the program may read an error now. One that the provider reports is behind the messages that are
    /// held: it may give a buffer with such a message back to the program. A peek in vain is told at once, because its
    /// caller waits for that.
    fn may_tell_errors(&self) -> bool {
        self.passes() || self.hook.has_failed() || {
            let state = self.state();
            state.messages.is_empty() || !state.peeks.is_empty()
        }
    }

    /// Takes an error that is behind no message any more.
    fn take_behind(&self) -> Option<ErrEntry> {
        let mut state = self.state();
        if !state.messages.is_empty() && !self.hook.has_failed() {
            return None;
        }
        state.behind.pop_front().map(|Behind(error)| error)
    }

    /// Decides about an error that the provider has reported. Returns false if it is kept, behind the messages that are
    /// held.
    fn tells(&self, error: &ErrEntry) -> bool {
        let mut state = self.state();
        if state.peek(error.op_context).is_some() || state.messages.is_empty() || self.hook.has_failed() {
            return true;
        }
        // The provider's description of the error lasts until the next one is read.
        state.behind.push_back(Behind(ErrEntry { err_data: ptr::null_mut(), err_data_size: 0, ..*error }));
        false
    }

    /// Returns the number of errors that are kept.
    fn kept_errors(&self) -> usize {
        self.state().behind.len()
    }

    /// Takes back the first error that was kept after `before` others.
    fn tell_after_all(&self, before: usize) -> Option<ErrEntry> {
        self.state().behind.remove(before).map(|Behind(error)| error)
    }

    /// Returns whether completions are held.
    pub fn holds(&self) -> bool {
        let state = self.state();
        !(state.messages.is_empty()
            && state.others.is_empty()
            && state.unfound.is_empty()
            && state.behind.is_empty())
    }

    /// Blocks in a read, in short naps so that held completions are released in time. `read` reads
    /// through the function that it gets. That is `look`, which does not block, or `wait`, which blocks
    /// for at most the given milliseconds. A negative timeout means no timeout.
    fn sleep(
        &self,
        timeout: c_int,
        read: impl Fn(Fetch<'_>) -> isize,
        mut look: impl FnMut(Opaque, usize, *mut Address) -> isize,
        mut wait: impl FnMut(Opaque, usize, *mut Address, c_int) -> isize,
    ) -> isize {
        if self.passes() || is_inside() {
            return read(&mut |raw, count, from| wait(raw, count, from, timeout));
        }
        let ready = read(&mut look);
        if ready != -abi::EAGAIN {
            return ready;
        }
        let end = u64::try_from(timeout).ok().map(|ms| Instant::now() + Duration::from_millis(ms));
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()).as_millis() as c_int);
            let nap = left.map_or(NAP_MS, |left| left.min(NAP_MS));
            let result = read(&mut |raw, count, from| wait(raw, count, from, nap));
            if result != -abi::EAGAIN || left == Some(0) || self.is_signalled.swap(false, Relaxed) {
                return result;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether completions pass through unchanged.
    fn passes(&self) -> bool {
        self.entry_bytes.is_none() || !self.is_used.load(Relaxed)
    }

    /// Reads completions for the program. `fetch` reads those of the provider.
    ///
    /// # Safety
    /// `out` has room for `count` entries of the queue's format. `sources` has room for as many addresses
    /// or is null.
    unsafe fn read(
        &self,
        out: *mut u8,
        count: usize,
        sources: *mut Address,
        mut fetch: impl FnMut(Opaque, usize, *mut Address) -> isize,
    ) -> isize {
        let Some(bytes) = self.entry_bytes.filter(|_| !self.passes() && !is_inside()) else {
            return fetch(out.cast(), count, sources);
        };
        let entered = ticks::glance();
        let next = self.next.load(Relaxed);
        let holds = next != NEVER;
        if holds {
            // SAFETY: the caller says that `out` and `sources` have room for `count` entries.
            let written = unsafe { self.read_held(out, count, sources, bytes, entered, next) };
            if let Some(written) = written {
                return written as isize;
            }
        }
        let mut raw = [MaybeUninit::<Entry>::uninit(); FETCHED];
        let mut from = [Address::MAX; FETCHED];
        let from_place = if sources.is_null() { ptr::null_mut() } else { from.as_mut_ptr() };
        let got = inside(|| fetch(raw.as_mut_ptr().cast(), FETCHED, from_place));
        // A message that arrived during the read may also have departed during it.
        let now = if got > 0 || holds { ticks::glance() } else { entered };
        let mut state = self.state();
        state.began = if got > 0 { now } else { entered };
        let not_at = state.looks.not_at();
        if got > 0 {
            // The provider works on a message before it shows it. The message cannot have arrived during
            // that work.
            let not_at = not_at.map(|at| at.saturating_add(now.saturating_sub(entered)));
            let seen = Seen { not_at, posted: Some(self.posted.load(Relaxed)), ..Seen::late(now) };
            for (nth, &source) in from.iter().enumerate().take(got as usize) {
                let mut entry = MaybeUninit::<Entry>::zeroed();
                // SAFETY: the provider has written `got` entries of `bytes` each. Where an entry of the
                // queue's format is shorter, the rest is zero.
                let mut entry = unsafe {
                    let place = raw.as_ptr().cast::<u8>().add(nth * bytes);
                    ptr::copy_nonoverlapping(place, entry.as_mut_ptr().cast(), bytes);
                    entry.assume_init()
                };
                let taken = self.hook.guarded(|| self.take(&mut state, &mut entry, source, seen));
                if taken.is_none() {
                    // The completion is not lost: the program gets it undialled.
                    state.others.put(0, Completion { entry, source, kind: Kind::Other });
                }
            }
        } else if holds && got == -abi::EAGAIN {
            state.polls.note(now.saturating_sub(entered));
        }
        if got == -abi::EAGAIN || (0..FETCHED as isize).contains(&got) {
            state.looks.in_vain(entered, self.hook.away);
        }
        let (written, busy_until) = if got > 0 || holds {
            // SAFETY: the caller says that `out` and `sources` have room for `count` entries.
            unsafe { self.hand_out(&mut state, out, count, sources, bytes) }
        } else {
            (0, 0)
        };
        let has_error = !state.unfound.is_empty() || !state.behind.is_empty() && state.messages.is_empty();
        let is_behind = got == -abi::EAVAIL && !state.messages.is_empty() && state.peeks.is_empty();
        drop(state);
        // The overhead keeps this thread's processor busy. Other threads may poll meanwhile, so the lock
        // is released.
        if busy_until > 0 {
            spin_until(busy_until);
        }
        match (written, got) {
            (0, got) if got < 0 && got != -abi::EAGAIN && !is_behind => got,
            (0, _) if has_error => -abi::EAVAIL,
            (0, _) => -abi::EAGAIN,
            (written, _) => written as isize,
        }
    }

    /// Releases held completions that are due, or that become due before a poll of the provider would
    /// end. `next` is the time of the next release. Returns `None` if the provider is to be polled.
    ///
    /// # Safety
    /// That of [`Queue::read`].
    unsafe fn read_held(
        &self,
        out: *mut u8,
        count: usize,
        sources: *mut Address,
        bytes: usize,
        now: u64,
        next: u64,
    ) -> Option<usize> {
        let mut state = self.state();
        if !self.hook.has_failed() {
            if !state.polls.waits(now, next) {
                return None;
            }
            if now < next {
                // Other threads may poll during the wait.
                drop(state);
                spin_until(next);
                state = self.state();
                state.awaited = Some(next);
            }
        }
        state.began = now;
        // SAFETY: the caller says that `out` and `sources` have room for `count` entries.
        let (written, busy_until) = unsafe { self.hand_out(&mut state, out, count, sources, bytes) };
        if let Some(due) = state.awaited.take() {
            state.time_release(due);
        }
        drop(state);
        if busy_until > 0 {
            spin_until(busy_until);
        }
        (written > 0).then_some(written)
    }

    /// Writes the completions that may be released to `out`. Returns their number, and until when their
    /// receive overhead keeps the processor busy.
    ///
    /// # Safety
    /// That of [`Queue::read`]; entries have `bytes` bytes.
    unsafe fn hand_out(
        &self,
        state: &mut State,
        out: *mut u8,
        count: usize,
        sources: *mut Address,
        bytes: usize,
    ) -> (usize, u64) {
        let (mut written, mut busy_until) = (0, 0);
        while written < count {
            let released = self.hook.guarded(|| self.release(state)).flatten();
            let Some((completion, until)) = released else { break };
            // SAFETY: the caller says that `out` and `sources` have room for `count` entries, and fewer
            // are written.
            unsafe {
                let place = out.add(written * bytes);
                ptr::copy_nonoverlapping((&raw const completion.entry).cast::<u8>(), place, bytes);
                if !sources.is_null() {
                    sources.add(written).write(completion.source);
                }
            }
            written += 1;
            // The next message has a receive overhead of its own, which begins after the program has
            // handled this one.
            if until > 0 {
                busy_until = until;
                break;
            }
        }
        self.next.store(self.hook.guarded(|| self.next_release(state)).unwrap_or(0), Relaxed);
        (written, busy_until)
    }

    /// Returns when the next held completion may be released.
    fn next_release(&self, state: &State) -> u64 {
        let others = state.others.next(&Gate::default());
        let messages = match self.hook.has_gate {
            false => state.messages.next(&Gate::default()),
            true => state.messages.next(&self.hook.sides().gate),
        };
        let has_error = !state.unfound.is_empty() || !state.behind.is_empty();
        let errors = has_error.then_some(NEVER - 1);
        others.into_iter().chain(messages).chain(errors).min().unwrap_or(NEVER)
    }
}
