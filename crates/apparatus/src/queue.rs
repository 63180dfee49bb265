//! Completion queues: what has arrived is held until it is due, and what was sent has not ended
//! before its last byte has left.

use crate::abi::{self, Address, Cq, CqOps, Entry, ErrEntry, Fid, Opaque, Ops};
use crate::account::Word;
use crate::hook::{Force, Hook, inside, is_inside, spin_until};
use crate::looks::Looks;
use crate::patch::{self, call};
use crate::replace;
use core::ffi::{c_int, c_void};
use netdyno_clock::ticks;
use netdyno_protocol::dial::hold::Hold;
use netdyno_protocol::dial::terms::{Latency, Terms};
use netdyno_protocol::dial::timing::{Departed, Departures, Gate, Lane, Seen};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Completions that are fetched at once.
const FETCHED: usize = 16;
/// A blocking read looks at what is held so often, in milliseconds.
const NAP_MS: c_int = 1;
/// Notes of operations that may have ended are looked through beyond so many.
const MANY_NOTES: usize = 4096;

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
    /// The program has posted a receive since it looked last: what that brings may have been here.
    is_posted: AtomicBool,
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
    /// When it gave something, if that was just now: what was done since is part of an overhead.
    fetched: u64,
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

// SAFETY: the pointers are the provider's tables, which do not change, and contexts, which are
// handed on and never followed.
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
        // SAFETY: as the caller says; the state lives until the queue is closed.
        unsafe {
            let state = Box::into_raw(Box::new(Self {
                hook,
                fid_ops: (*cq).fid.ops,
                ops: (*cq).ops,
                entry_bytes,
                is_used: AtomicBool::new(false),
                is_signalled: AtomicBool::new(false),
                is_posted: AtomicBool::new(false),
                state: Mutex::new(State { looks: Looks::new(ticks::now()), ..State::default() }),
            }));
            (*cq).fid.ops = patch::copy((*cq).fid.ops, state, |ops: &mut Ops| replace!(ops, close => close));
            (*cq).ops = patch::copy((*cq).ops, state, |ops: &mut CqOps| {
                if hook.ever_dials() {
                    replace!(ops, read => read, readfrom => readfrom, readerr => readerr, signal => signal, sread => sread,
                        sreadfrom => sreadfrom);
                } else if entry_bytes.is_some() {
                    replace!(ops, read => read_and_count);
                }
            });
        }
    }

    /// What the hook knows of a queue, if it has one there.
    ///
    /// # Safety
    /// The queue is live.
    pub unsafe fn of<'a>(cq: *mut Cq) -> Option<&'a Self> {
        // SAFETY: a table of ours leads to the state.
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
    pub fn note_receive(&self) {
        self.is_posted.store(true, Relaxed);
    }

    /// The next completion of that context is not a message, but says that there is one.
    pub fn expect_peek(&self, context: Opaque, takes: bool) {
        self.state().peeks.push((context as usize, takes));
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
        let mut fetch = |out, count, sources| inside(|| fetch(out, count, sources));
        let is_posted = self.is_posted.load(Relaxed) && self.is_posted.swap(false, Relaxed);
        let mut raw = [MaybeUninit::<Entry>::uninit(); FETCHED];
        let mut from = [Address::MAX; FETCHED];
        let looked = ticks::glance();
        let from_place = if sources.is_null() { ptr::null_mut() } else { from.as_mut_ptr() };
        let got = fetch(raw.as_mut_ptr().cast(), FETCHED, from_place);
        // What came meanwhile may have departed meanwhile.
        let now = if got > 0 { ticks::glance() } else { looked };
        let mut state = self.state();
        state.fetched = if got > 0 { now } else { 0 };
        if is_posted {
            state.looks.posted();
        }
        // The provider works on a message before it shows it: that is no time in which it could have
        // come.
        let not_at = state.looks.not_at().map(|at| at.saturating_add(now.saturating_sub(looked)));
        let seen = Seen { at: now, not_at };
        for (nth, &source) in from.iter().enumerate().take(got.max(0) as usize) {
            let mut entry = MaybeUninit::<Entry>::zeroed();
            // SAFETY: the provider has written so many entries of so many bytes.
            let entry = unsafe {
                let place = raw.as_ptr().cast::<u8>().add(nth * bytes);
                ptr::copy_nonoverlapping(place, entry.as_mut_ptr().cast(), bytes);
                entry.assume_init()
            };
            let taken = self.hook.guarded(|| self.take(&mut state, entry, source, seen));
            if taken.is_none() {
                // It is not lost: it goes on as it came.
                state.others.put(0, Completion { entry, source, kind: Kind::Other });
            }
        }
        if got == -abi::EAGAIN || (0..FETCHED as isize).contains(&got) {
            state.looks.in_vain(looked, self.hook.away);
        }
        // SAFETY: as the caller says.
        let (written, busy_until) = unsafe { self.hand_out(&mut state, out, count, sources, bytes) };
        let has_unfound = !state.unfound.is_empty();
        drop(state);
        // Of this thread's processor: others may look meanwhile.
        spin_until(busy_until);
        match (written, got) {
            (0, got) if got < 0 && got != -abi::EAGAIN => got,
            (0, _) if has_unfound => -abi::EAVAIL,
            (0, _) => -abi::EAGAIN,
            (written, _) => written as isize,
        }
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
        for written in 0..count {
            let released = self.hook.guarded(|| self.release(state)).flatten();
            let Some((completion, busy_until)) = released else { return (written, 0) };
            // SAFETY: there is room for `count`.
            unsafe {
                let place = out.add(written * bytes);
                ptr::copy_nonoverlapping((&raw const completion.entry).cast::<u8>(), place, bytes);
                if !sources.is_null() {
                    sources.add(written).write(completion.source);
                }
            }
            // The next message has an overhead of its own, which comes after this one is handled.
            if busy_until > 0 {
                return (written + 1, busy_until);
            }
        }
        (count, 0)
    }

    /// Takes a completion of the provider's, and finds out when the program may see it.
    fn take(&self, state: &mut State, mut entry: Entry, source: Address, seen: Seen) {
        let now = seen.at;
        if entry.flags & (abi::RECV | abi::MULTI_RECV) == abi::MULTI_RECV {
            // The provider has done with a buffer. The program may fill it again only when it has
            // seen all that lies in it.
            let last = state.buffers.remove(&(entry.op_context as u64)).unwrap_or(0);
            // Among the messages, behind them: these may be released later than they are due.
            state.messages.put(last, Completion { entry, source, kind: Kind::Other });
            return;
        }
        if entry.flags & abi::RECV == 0 {
            let end = state.ends.remove(&(entry.op_context as u64)).unwrap_or(0);
            if end > now {
                self.hook.count(Word::HeldEnds, 1);
            }
            state.others.put(end, Completion { entry, source, kind: Kind::Other });
            return;
        }
        let said = self.unstamp(&mut entry, source, now);
        let completion = Completion { entry, source, kind: Kind::Other };
        if let Some((_, takes)) = state.peek(entry.op_context) {
            self.found(state, completion, &said, now, takes);
            return;
        }
        self.count_received(entry.len);
        if said.is_spared {
            let due = state.in_order(&entry, 0, now);
            // Nothing waits for it, unless it ends a buffer in which something may wait.
            let line = if due > 0 { &mut state.messages } else { &mut state.others };
            line.put(due, completion);
            return;
        }
        self.hold(state, completion, &said, seen);
    }

    /// Reads what the hook of the sender says, and takes it out of what the program will see.
    fn unstamp(&self, entry: &mut Entry, source: Address, now: u64) -> Said {
        let has_data = entry.flags & abi::REMOTE_CQ_DATA != 0;
        let packed = if has_data { (entry.data >> 32) as u32 } else { 0 };
        let stamp =
            self.hook.marks().then(|| self.hook.grain.unpack(packed, self.hook.latest(now))).flatten();
        // Programs that send data along say by it who they are.
        let says_who = has_data && !stamp.is_some_and(|stamp| stamp.added);
        let sender = match source {
            Address::MAX if says_who => Some(entry.data & u64::from(u32::MAX)),
            Address::MAX => None,
            source => Some(source),
        };
        match stamp {
            Some(stamp) if stamp.added => (entry.flags, entry.data) = (entry.flags & !abi::REMOTE_CQ_DATA, 0),
            Some(_) => entry.data &= u64::from(u32::MAX),
            None => {}
        }
        Said {
            sender,
            departed: stamp.filter(|_| self.hook.stamps).map(|stamp| stamp.departed),
            is_spared: stamp.is_some_and(|stamp| stamp.spared),
        }
    }

    /// Holds a message until it is due.
    fn hold(&self, state: &mut State, completion: Completion, said: &Said, seen: Seen) {
        let (force, entry, now) = (self.hook.force(), &completion.entry, seen.at);
        if force.is_some() && self.hook.stamps && said.departed.is_none() {
            self.hook.count(Word::Unstamped, 1);
        }
        let found = state.found.remove(&said.name(entry));
        let seen = found.map_or(seen, |found| Seen::late(found.first));
        let drawn = found.and_then(|found| found.latency);
        let terms = said.terms(force, seen.at, state.lane(said.sender));
        let latency = |here| drawn.unwrap_or_else(|| force.map_or(0, |force| force.latency(here)));
        let due = state.lane(said.sender).due(said, entry.len, seen, &terms, latency);
        let due = state.in_order(entry, due, now);
        let waited = due > now;
        if waited {
            self.hook.count(Word::Held, 1);
            self.hook.count(Word::HeldTicks, due - now);
        } else if due < state.looks.vain()
            && said.departed.is_some()
            && matches!(terms.latency, Latency::After(_))
        {
            // It was not there when the program looked after its time.
            self.hook.count(Word::Late, 1);
        }
        state.messages.put(due, Completion { kind: Kind::Message { waited }, ..completion });
    }

    /// A peek has found a message. One that is not due it does not find, unless it has taken it.
    fn found(&self, state: &mut State, found: Completion, said: &Said, now: u64, takes: bool) {
        let Some(force) = self.hook.force().filter(|_| !said.is_spared) else {
            state.others.put(now, found);
            return;
        };
        // It may be looked for again and again: it came when it was found first.
        let name = said.name(&found.entry);
        let Found { first, mut latency } = state.found_first(name, now);
        let terms = said.terms(Some(force), first, state.lane(said.sender));
        let draw = |here| *latency.get_or_insert_with(|| force.latency(here));
        let due =
            state.lane(said.sender).would_be_due(said, found.entry.len, Seen::late(first), &terms, draw);
        state.found.insert(name, Found { first, latency });
        if due <= now || takes {
            state.others.put(due, found);
        } else {
            state.unfound.push_back(found.entry);
        }
    }

    /// The next completion whose time has come, if any. A message takes its overhead first: until then,
    /// or until 0 where it has none.
    fn release(&self, state: &mut State) -> Option<(Completion, u64)> {
        if state.messages.is_empty() && state.others.is_empty() {
            return None;
        }
        // Nobody is to wait for what does not work any more.
        let is_open = self.hook.has_failed();
        let now = if is_open { u64::MAX } else { ticks::glance() };
        let others = state.others.take(now, &mut Gate::default(), &Terms::NONE);
        if let Some(other) = others {
            return Some((other.item, 0));
        }
        let is_message = state.messages.peek().is_some_and(|next| next.kind != Kind::Other);
        let force = self.hook.force().filter(|_| is_message);
        let at = state.messages.next(&self.hook.sides().gate).filter(|&at| at <= now)?;
        let terms = force.map_or(Terms::NONE, |force| force.terms_released(at));
        let released = state.messages.take(now, &mut self.hook.sides().gate, &terms)?;
        if is_open || released.item.kind == Kind::Other {
            return Some((released.item, 0));
        }
        if released.item.kind == (Kind::Message { waited: true }) {
            self.hook.note_lateness(now.saturating_sub(released.at));
        }
        if terms.recv_overhead == 0 {
            return Some((released.item, 0));
        }
        self.hook.count(Word::RecvOverheadTicks, terms.recv_overhead);
        let began = if state.fetched > 0 { state.fetched } else { now };
        Some((released.item, began.saturating_add(terms.recv_overhead)))
    }

    fn count_received(&self, bytes: usize) {
        self.hook.count(Word::Received, 1);
        self.hook.count(Word::ReceivedBytes, bytes as u64);
    }
}

impl Said {
    fn name(&self, entry: &Entry) -> Name {
        (entry.tag, self.sender.unwrap_or(u64::MAX), entry.len)
    }

    /// What the message is put under, seen then. Where it does not say when it departed, it departs
    /// here.
    fn terms(&self, force: Option<&Force>, seen: u64, sender: &Sender) -> Terms {
        match (force, self.departed) {
            (None, _) => Terms::NONE,
            (Some(force), Some(departed)) => force.terms_seen(seen, departed.at),
            (Some(force), None) => force.terms(seen, || sender.departures.free()),
        }
    }
}

impl Sender {
    /// When its next message is due. Where it does not say when it departed, it departs when it is
    /// seen, and keeps its distance from the one before.
    fn due(
        &mut self,
        said: &Said,
        bytes: usize,
        seen: Seen,
        terms: &Terms,
        latency: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let departed = said.departed.unwrap_or_else(|| self.departures.depart(seen.at, bytes, terms));
        match said.sender {
            Some(_) => self.lane.due_by(Some(departed), bytes, seen, terms, latency),
            // Several senders that nobody tells apart do not wait for each other.
            None => self.lane.due_of_any_by(Some(departed), bytes, seen, terms, latency),
        }
    }

    /// The same, of a message that stays where it is.
    fn would_be_due(
        &self,
        said: &Said,
        bytes: usize,
        seen: Seen,
        terms: &Terms,
        latency: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let departed = said.departed.unwrap_or(Departed { at: seen.at, at_once: true });
        self.lane.clone().due_by(Some(departed), bytes, seen, terms, latency)
    }
}

impl State {
    /// The lane of a sender, or of all that nobody tells apart.
    fn lane(&mut self, sender: Option<u64>) -> &mut Sender {
        self.lanes.entry(sender.unwrap_or(u64::MAX)).or_default()
    }

    /// Forgets a peek, if the context is one.
    fn peek(&mut self, context: Opaque) -> Option<(usize, bool)> {
        let at = self.peeks.iter().position(|(of, _)| *of == context as usize)?;
        Some(self.peeks.swap_remove(at))
    }

    /// When a message was found that a peek finds now.
    fn found_first(&mut self, name: Name, now: u64) -> Found {
        if self.found.len() >= MANY_NOTES {
            // Received as something else than they were found as.
            self.found.clear();
        }
        *self.found.entry(name).or_insert(Found { first: now, latency: None })
    }

    /// What lies in one buffer is released in order: with the last message the program may give the
    /// buffer away.
    fn in_order(&mut self, entry: &Entry, due: u64, now: u64) -> u64 {
        if entry.flags & abi::TAGGED != 0 {
            return due;
        }
        if self.buffers.len() >= MANY_NOTES {
            self.buffers.retain(|_, &mut last| last > now);
        }
        let last = self.buffers.entry(entry.op_context as u64).or_default();
        *last = due.max(*last);
        *last
    }
}

// Each of the following stands in for the provider's function of that name. SAFETY, for all of them:
// they are reached through a table of ours, which leads to the state; the arguments are those that
// the program gave.

unsafe extern "C" fn read(cq: *mut Cq, out: Opaque, count: usize) -> isize {
    // SAFETY: see above.
    unsafe {
        let queue: &Queue = patch::state((*cq).ops);
        let theirs = queue.ops;
        queue.read(out.cast(), count, ptr::null_mut(), |raw, count, _| call!(theirs.read(cq, raw, count)))
    }
}

/// Where nothing is ever dialled: a look at an empty queue costs next to nothing, and what is read
/// by other functions is not counted.
unsafe extern "C" fn read_and_count(cq: *mut Cq, out: Opaque, count: usize) -> isize {
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

unsafe extern "C" fn readfrom(cq: *mut Cq, out: Opaque, count: usize, sources: *mut Address) -> isize {
    // SAFETY: see above.
    unsafe {
        let queue: &Queue = patch::state((*cq).ops);
        let theirs = queue.ops;
        queue
            .read(out.cast(), count, sources, |raw, count, from| call!(theirs.readfrom(cq, raw, count, from)))
    }
}

unsafe extern "C" fn readerr(cq: *mut Cq, out: *mut ErrEntry, flags: u64) -> isize {
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

unsafe extern "C" fn sread(
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

unsafe extern "C" fn sreadfrom(
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
unsafe extern "C" fn signal(cq: *mut Cq) -> c_int {
    // SAFETY: see above.
    unsafe {
        let queue: &Queue = patch::state((*cq).ops);
        queue.is_signalled.store(true, Relaxed);
        (*queue.ops).signal.map_or(-(abi::ENOSYS as c_int), |theirs| theirs(cq))
    }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
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
