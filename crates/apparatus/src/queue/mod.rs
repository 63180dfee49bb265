//! Completion queues: what has arrived is held until it is due, and what was sent has not ended
//! before its last byte has left.

mod arriving;
mod calls;

use crate::abi::{self, Address, Cq, CqOps, Entry, Opaque, Ops};
use crate::account::Word;
use crate::hook::{Hook, inside, is_inside, spin_until};
use crate::looks::Looks;
use crate::patch;
use crate::replace;
use core::ffi::c_int;
use netdyno_clock::ticks;
use netdyno_protocol::dial::hold::Hold;
use netdyno_protocol::dial::link::{Seen, Usual};
use netdyno_protocol::dial::polls::Polls;
use netdyno_protocol::dial::timing::{Departed, Departures, Gate, Lane};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Completions that are fetched at once.
const FETCHED: usize = 16;
/// A blocking read looks at what is held so often, in milliseconds.
const NAP_MS: c_int = 1;
/// Notes of operations that may have ended are looked through beyond so many.
const MANY_NOTES: usize = 4096;

/// Nothing is held.
const NEVER: u64 = u64::MAX;
/// How many releases are timed at first, and which of the others.
const TIMED_AT_FIRST: u32 = 64;
const TIMED_EVERY: u32 = 16;

/// What the hook knows of a completion queue.
pub struct Queue {
    hook: &'static Hook,
    fid_ops: *const Ops,
    ops: *const CqOps,
    /// Bytes of an entry, where entries say enough to be dialled.
    entry_bytes: Option<usize>,
    /// An endpoint of the kind that is dialled receives into it, or sends.
    is_used: AtomicBool,
    /// The program wants whoever sleeps in a read of it to return.
    is_signalled: AtomicBool,
    /// When the program has posted its last receive.
    posted: AtomicU64,
    /// When to look at what is held: the next release, or [`NEVER`].
    next: AtomicU64,
    state: Mutex<State>,
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
    /// A message; whether it had to wait for its time.
    Message { waited: bool },
    /// What else is reported of arrivals and of what was sent.
    Other,
}

#[derive(Default)]
struct State {
    /// Messages that are here and not due.
    messages: Hold<Completion>,
    /// Ends of operations, and what has no gap to keep.
    others: Hold<Completion>,
    /// By sender, as far as it is known.
    lanes: Map<Sender>,
    /// When an operation of the program's may end, by its context.
    ends: Map<u64>,
    /// When what lies in one buffer was due at the latest: it is released in order.
    buffers: Map<u64>,
    /// Looks into the provider's messages, and whether they take what they find.
    peeks: Vec<(usize, bool)>,
    /// Peeks that found a message that is not due: they found nothing.
    unfound: VecDeque<Entry>,
    /// Messages that peeks have found and nobody has received: since when they are here.
    found: HashMap<Name, Found, BuildHasherDefault<Spread>>,
    /// When the provider had nothing more.
    looks: Looks,
    /// Since when what is done is part of a receive overhead.
    began: u64,
    /// What looks at the provider take.
    polls: Polls,
    /// What a release takes, from when it is due until the program has the message: part of an added
    /// latency.
    releasing: Usual,
    /// Releases that could be timed.
    released: u32,
    /// When the last message was due that was released, if the hook has waited for it.
    awaited: Option<u64>,
}

/// What a message is known again by: its tag, who sent it, its bytes.
type Name = (u64, u64, usize);

/// A message that a peek has found.
#[derive(Clone, Copy)]
struct Found {
    first: u64,
    /// Its latency, once it was asked for: what varies by chance is drawn once.
    latency: Option<u64>,
}

/// What is known of a message beside what the program will see of it.
struct Said {
    /// Who sent it, as far as that can be told.
    sender: Option<u64>,
    departed: Option<Departed>,
    /// The link between the two is left as it is.
    is_spared: bool,
}

/// Reads the provider's queue: entries, and where they come from.
type Fetch<'a> = &'a mut dyn FnMut(Opaque, usize, *mut Address) -> isize;

/// By a number or a context.
type Map<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// Spreads numbers and addresses over a table: nobody chooses them to harm.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing, by the golden ratio: the high bits are good, and are used as well.
        let spread = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ spread >> 32;
    }
}

/// One sender's messages, where they arrive.
#[derive(Default)]
struct Sender {
    lane: Lane,
    /// Where departures are not written down, they are made up here.
    departures: Departures,
}

// SAFETY: the pointers in it are contexts and buffers of the program's, which are handed on and never
// followed.
unsafe impl Send for Completion {}

impl Queue {
    /// Puts a hook on a completion queue that has just been made.
    ///
    /// # Safety
    /// The queue is a live one of libfabric's, of that format, and nobody else uses it yet.
    pub unsafe fn install(hook: &'static Hook, cq: *mut Cq, format: c_int) {
        let entry_bytes = match format {
            abi::FORMAT_DATA => Some(std::mem::offset_of!(Entry, tag)),
            abi::FORMAT_TAGGED => Some(size_of::<Entry>()),
            _ => None,
        };
        // SAFETY: the caller says that the queue is live, so that its tables are. The state lives until the
        // queue is closed.
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

    /// What the hook knows of a queue, if it has one there.
    ///
    /// # Safety
    /// The queue is live.
    pub unsafe fn of(cq: *mut Cq) -> Option<NonNull<Self>> {
        // SAFETY: the caller says that the queue is live. A table of ours leads to the state.
        unsafe { patch::is_ours((*cq).ops).then(|| patch::state((*cq).ops)) }
    }

    /// An endpoint is bound to it.
    pub fn expect_messages(&self) {
        if self.entry_bytes.is_none() {
            self.hook.count(Word::BareQueues, 1);
        }
        self.is_used.store(true, Relaxed);
    }

    /// An operation of the program's does not end earlier.
    pub fn not_before(&self, context: Opaque, at: u64) {
        let mut state = self.state();
        if state.ends.len() >= MANY_NOTES {
            let now = ticks::now();
            state.ends.retain(|_, &mut end| end > now);
        }
        state.ends.insert(context as u64, at);
    }

    /// A receive is posted.
    pub fn note_receive(&self, now: u64) {
        self.posted.store(now, Relaxed);
    }

    /// The next completion of that context is not a message, but says that there is one.
    pub fn expect_peek(&self, context: Opaque, takes: bool) {
        self.state().peeks.push((context as usize, takes));
    }

    /// Takes a peek that has found nothing, to report it as an error.
    fn take_unfound(&self) -> Option<Entry> {
        self.state().unfound.pop_front()
    }

    /// There will be none.
    pub fn forget_peek(&self, context: Opaque) {
        self.state().peek(context);
    }

    /// Whether something is held back.
    pub fn holds(&self) -> bool {
        let state = self.state();
        !(state.messages.is_empty() && state.others.is_empty() && state.unfound.is_empty())
    }

    /// A blocking read in short naps, so that what is held is released in time: `read` reads through
    /// what it is given, which is `look` or, for no longer than it is told, `wait`. A negative timeout
    /// has no end.
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

    /// Whether completions pass as they come.
    fn passes(&self) -> bool {
        self.entry_bytes.is_none() || !self.is_used.load(Relaxed)
    }

    /// Reads completions as the program asked, through `fetch`, which reads the provider's.
    ///
    /// # Safety
    /// `out` has room for `count` entries of the queue's format, `sources` for as many addresses or
    /// is null.
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
        // What came meanwhile may have departed meanwhile.
        let now = if got > 0 || holds { ticks::glance() } else { entered };
        let mut state = self.state();
        state.began = if got > 0 { now } else { entered };
        let not_at = state.looks.not_at();
        if got > 0 {
            // The provider works on a message before it shows it: that is no time in which it could have
            // come.
            let not_at = not_at.map(|at| at.saturating_add(now.saturating_sub(entered)));
            let seen = Seen { not_at, posted: Some(self.posted.load(Relaxed)), ..Seen::late(now) };
            for (nth, &source) in from.iter().enumerate().take(got as usize) {
                let mut entry = MaybeUninit::<Entry>::zeroed();
                // SAFETY: the provider has written so many entries of so many bytes. Where an entry of the
                // queue's format is shorter, the rest is zero.
                let mut entry = unsafe {
                    let place = raw.as_ptr().cast::<u8>().add(nth * bytes);
                    ptr::copy_nonoverlapping(place, entry.as_mut_ptr().cast(), bytes);
                    entry.assume_init()
                };
                let taken = self.hook.guarded(|| self.take(&mut state, &mut entry, source, seen));
                if taken.is_none() {
                    // It is not lost: it goes on undialled.
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
        let has_unfound = !state.unfound.is_empty();
        drop(state);
        // Of this thread's processor: others may look meanwhile.
        if busy_until > 0 {
            spin_until(busy_until);
        }
        match (written, got) {
            (0, got) if got < 0 && got != -abi::EAGAIN => got,
            (0, _) if has_unfound => -abi::EAVAIL,
            (0, _) => -abi::EAGAIN,
            (written, _) => written as isize,
        }
    }

    /// Gives the program what is held and due, or will be before a look at the provider would be over,
    /// where `next` is when the next message is released. `None` where the provider is to be looked at.
    ///
    /// # Safety
    /// As of [`Queue::read`].
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
                // Others may look meanwhile.
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

    /// Gives the program what its time has come for. Returns how many completions that are, and until
    /// when they keep the processor.
    ///
    /// # Safety
    /// As of [`Queue::read`]; entries have so many `bytes`.
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
            // SAFETY: the caller says that `out` and `sources` have room for `count`, and so many are not
            // written yet.
            unsafe {
                let place = out.add(written * bytes);
                ptr::copy_nonoverlapping((&raw const completion.entry).cast::<u8>(), place, bytes);
                if !sources.is_null() {
                    sources.add(written).write(completion.source);
                }
            }
            written += 1;
            // The next message has an overhead of its own, which comes after this one is handled.
            if until > 0 {
                busy_until = until;
                break;
            }
        }
        self.next.store(self.hook.guarded(|| self.next_release(state)).unwrap_or(0), Relaxed);
        (written, busy_until)
    }

    /// When something that is held is released next.
    fn next_release(&self, state: &State) -> u64 {
        let others = state.others.next(&Gate::default());
        let messages = match self.hook.has_gate {
            false => state.messages.next(&Gate::default()),
            true => state.messages.next(&self.hook.sides().gate),
        };
        let unfound = (!state.unfound.is_empty()).then_some(NEVER - 1);
        others.into_iter().chain(messages).chain(unfound).min().unwrap_or(NEVER)
    }
}
