//! The state of a domain, which all its objects share.

use super::guard::Errno;
use crate::abi;
use crate::engine::{Engine, PeerNo, Reports, Target};
use crate::links::{Acks, Name, Switches, ViLinks, Wakeup};
use rustc_hash::FxHashMap;
use rustix::thread::futex;
use rustix::time::Timespec;
use slab::Slab;
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Polls of a flush before it sleeps between two.
const POLLS_OF_FLUSH: u32 = 10_000;
/// Number of yields before the messaging thread sleeps for the threads that want the state.
const YIELDS_OF_AGENT: u32 = 100;

/// Longest sleep of a look at a completion queue, which a messaging thread ends.
const LONGEST_LOOK: Duration = Duration::from_millis(1);

/// Longest time between two looks of a caller that waits.
const IN_A_ROW: Duration = Duration::from_micros(5);

/// Number of times that such a caller looks, in about 250 ns. Between two calls MPICH gives its processor away, which takes
/// about as long, and finds a message later.
const LOOKS: u32 = 12;

/// The addresses that a program has inserted.
#[derive(Debug, Default)]
pub struct AddressVector {
    /// The address and the endpoint of each number.
    pub entries: Slab<(Name, Target)>,
    /// The numbers of each sender. A program may insert an address twice.
    pub by_source: FxHashMap<u64, SmallVec<[u64; 1]>>,
}

/// How an endpoint is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Use {
    /// The number of its address vector.
    pub addresses: Option<usize>,
    /// Whether successful operations are reported only if they ask for it.
    pub is_selective: [bool; 2],
    /// The flags of operations that have none of their own.
    pub flags: [u64; 2],
    /// Whether the source address of a receive counts (FI_DIRECTED_RECV).
    pub is_directed: bool,
}

/// The two sides of an endpoint: an index of [`Use`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Operations that it begins at a peer.
    Transmit,
    /// Receives.
    Receive,
}

/// The state of a domain.
pub struct State {
    /// The engine.
    pub engine: Engine<ViLinks>,
    /// The address vectors.
    pub addresses: Slab<AddressVector>,
    /// The use of each endpoint, by number.
    pub uses: Vec<Option<Use>>,
    /// Whether the program may sleep at the descriptor. Other threads wake it when something is complete.
    is_watched: bool,
    /// The end of the wait for receivers when endpoints are closed.
    flush_until: Option<Instant>,
    /// Number of threads that sleep in functions of this provider.
    pub sleepers: usize,
    /// Whether the messaging thread sleeps.
    is_agent_asleep: bool,
    /// When a caller last looked in vain.
    looked: Instant,
}

impl State {
    /// Makes progress. Returns whether anything was done.
    pub fn progress(&mut self) -> bool {
        let is_any = self.engine.progress();
        if self.engine.links.take_news() || is_any {
            self.wake();
        }
        is_any
    }

    /// Makes progress for a caller that looks for completions. If it looks again and again, looks for a while.
    fn look(&mut self) -> bool {
        if self.progress() {
            return true;
        }
        let now = Instant::now();
        let is_waiting = now - self.looked < IN_A_ROW;
        self.looked = now;
        if !is_waiting {
            self.engine.links.look_at_all();
            return self.progress();
        }
        // A reading of the clock takes longer than a look.
        let is_any = (0..LOOKS).any(|_| self.engine.progress_again());
        if is_any {
            self.wake();
        }
        is_any
    }

    /// Restarts the time that a flush may take, so that later messages have a time of their own.
    pub fn begin_flush_anew(&mut self) {
        self.flush_until = None;
    }

    /// Wakes the threads that sleep. To be called when something may be complete.
    pub fn wake(&mut self) {
        if std::mem::take(&mut self.is_watched) || self.sleepers > 0 {
            self.engine.links.wake();
        }
    }

    /// Prepares for a sleep at the descriptor of the links. Returns false if the caller must look again instead.
    pub fn prepare_sleep(&mut self) -> bool {
        let is_alone = self.sleepers == 0 && !self.is_watched;
        let is_ready = !self.engine.progress()
            && self.engine.links.prepare_sleep(is_alone)
            && !self.engine.progress()
            && !self.engine.links.take_news();
        if is_ready {
            self.is_watched = true;
        } else {
            // Another thread may sleep, and this one has taken its message.
            self.wake();
        }
        is_ready
    }

    /// Prepares for a sleep of the messaging thread. Returns the descriptor; `None` if the thread must look again.
    pub fn prepare_agent_sleep(&mut self) -> Option<RawFd> {
        let is_alone = self.sleepers == 0 && !self.is_watched;
        let descriptor = self.engine.links.descriptor().ok()?.as_raw_fd();
        let is_ready = !self.engine.has_deferred()
            && self.engine.links.prepare_sleep(is_alone)
            && !self.progress()
            && !self.engine.links.take_news();
        self.is_agent_asleep = is_ready;
        is_ready.then_some(descriptor)
    }

    /// Notes that the messaging thread is awake.
    pub fn end_agent_sleep(&mut self) {
        self.is_agent_asleep = false;
    }

    /// Wakes the messaging thread if there is work that only it does.
    fn wake_agent(&mut self) {
        if self.is_agent_asleep && self.engine.has_deferred() {
            self.is_agent_asleep = false;
            self.engine.links.wake();
        }
    }

    /// Returns the endpoint at an address of an address vector.
    ///
    /// # Errors
    /// Returns an error if the program has not inserted it.
    pub fn target(&self, used: &Use, address: u64) -> Result<Target, Errno> {
        let vector = used.addresses.and_then(|number| self.addresses.get(number));
        let entry = vector.and_then(|vector| vector.entries.get(usize::try_from(address).ok()?));
        entry.map(|(_, target)| *target).ok_or(Errno(abi::EINVAL))
    }

    /// Returns the use of an endpoint.
    ///
    /// # Errors
    /// Returns an error if the endpoint does not exist.
    pub fn used(&self, endpoint: u16) -> Result<Use, Errno> {
        self.uses.get(usize::from(endpoint)).copied().flatten().ok_or(Errno(abi::EBADF))
    }

    /// Returns the number of a sender in the address vector of the endpoint that has received from it.
    pub fn address_of(&self, endpoint: u16, source: u64) -> u64 {
        let number = self.used(endpoint).ok().and_then(|used| used.addresses);
        let vector = number.and_then(|number| self.addresses.get(number));
        let known = vector.and_then(|vector| vector.by_source.get(&source)?.first());
        known.copied().unwrap_or(abi::ADDR_NOTAVAIL)
    }

    /// Returns an error if an endpoint is bound to the queue of this number.
    pub fn check_queue(&self, number: usize) -> Result<(), Errno> {
        self.check_unbound(|reports| reports.queues.contains(&Some(number)))
    }

    /// Returns an error if an endpoint or a region is bound to the counter of this number.
    pub fn check_counter(&self, number: usize) -> Result<(), Errno> {
        free_unless(self.engine.regions.values().any(|region| region.counters.contains(&Some(number))))?;
        self.check_unbound(|reports| reports.counters.contains(&Some(number)))
    }

    fn check_unbound(&self, is_bound: impl Fn(&Reports) -> bool) -> Result<(), Errno> {
        free_unless(self.engine.endpoints.iter().any(|endpoint| is_bound(&endpoint.reports)))
    }

    /// Returns an error if an endpoint is bound to the address vector of this number.
    pub fn check_addresses(&self, number: usize) -> Result<(), Errno> {
        free_unless(self.uses.iter().flatten().any(|used| used.addresses == Some(number)))
    }
}

/// Returns an error if an object is bound.
fn free_unless(is_bound: bool) -> Result<(), Errno> {
    if is_bound { Err(Errno(abi::EBUSY)) } else { Ok(()) }
}

/// The state of a domain, behind a lock.
pub struct Shared {
    state: Mutex<State>,
    /// The switches.
    pub switches: Switches,
    /// Changes when an operation is complete. A program with a messaging thread looks here first.
    news: AtomicU32,
    /// Number of threads of the program that want the state. The messaging thread lets them go first.
    wanted: AtomicU32,
}

// SAFETY: the engine holds addresses of the program's memory, which any thread of the program may access. All else in it
// is of this process, and the lock lets one thread at a time use it.
unsafe impl Send for Shared {}
// SAFETY: the lock lets one thread at a time use the engine. All other fields may be shared by themselves.
unsafe impl Sync for Shared {}

/// The state, while nobody else uses it.
pub struct Held<'a> {
    shared: &'a Shared,
    /// `None` at the end.
    guard: Option<MutexGuard<'a, State>>,
}

impl Deref for Held<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.guard.as_ref().expect("the state is held until the end")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.guard.as_mut().expect("the state is held until the end")
    }
}

impl Drop for Held<'_> {
    /// Tells threads that wait for the messaging thread what is new.
    fn drop(&mut self) {
        if !self.shared.switches.has_thread() {
            return;
        }
        self.wake_agent();
        let is_news = self.engine.completions.take_news() | self.engine.links.take_acknowledged();
        self.guard = None;
        if is_news {
            // The queue is read under the lock, so this word orders nothing.
            self.shared.news.fetch_add(1, Ordering::Relaxed);
            if self.shared.switches.wakeup == Some(Wakeup::Event) {
                // An error says that nobody sleeps.
                let _ = futex::wake(&self.shared.news, futex::Flags::PRIVATE, u32::MAX >> 1);
            }
        }
    }
}

impl Shared {
    /// Returns the state of a new domain.
    pub fn new(links: ViLinks) -> Self {
        let (addresses, uses) = (Slab::new(), Vec::new());
        let switches = links.switches();
        let mut engine = Engine::new(links);
        engine.set_deferring(switches.has_thread());
        if let Some(bytes) = switches.most_unexpected {
            engine.set_most_unexpected(bytes);
        }
        Self {
            state: Mutex::new(State {
                engine,
                addresses,
                uses,
                is_watched: false,
                flush_until: None,
                sleepers: 0,
                is_agent_asleep: false,
                looked: Instant::now(),
            }),
            switches,
            news: AtomicU32::new(0),
            wanted: AtomicU32::new(0),
        }
    }

    /// Waits until all that was sent has left this process, or until its receivers have ended. A program that has seen
    /// the completion of a message may end, and the message must arrive.
    pub fn flush(&self) {
        // The endpoints of a domain wait for the same receivers, so all have one limit.
        let until = {
            let mut state = self.lock();
            let timeout = state.engine.links.timeout();
            *state.flush_until.get_or_insert_with(|| Instant::now() + timeout)
        };
        for polls in 0_u32.. {
            let mut state = self.lock();
            if state.engine.is_flushed() {
                state.flush_until = None;
                return;
            }
            if Instant::now() >= until {
                return;
            }
            state.progress();
            drop(state);
            if polls < POLLS_OF_FLUSH {
                thread::yield_now();
            } else {
                thread::sleep(Duration::from_micros(100));
            }
        }
    }

    /// Waits until no other thread uses the state.
    pub fn lock(&self) -> Held<'_> {
        if !self.switches.has_thread() {
            return self.hold();
        }
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let held = self.hold();
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        held
    }

    fn hold(&self) -> Held<'_> {
        // A panic inside has become an error number. The state is used further.
        let guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Held { shared: self, guard: Some(guard) }
    }

    /// Waits, as the messaging thread, until no other thread uses the state or wants it. The lock itself is not fair: a
    /// thread that takes it again and again would keep the others out.
    pub fn lock_as_agent(&self) -> Held<'_> {
        for yields in 0_u32.. {
            if self.wanted.load(Ordering::Relaxed) == 0 {
                break;
            }
            // This thread may run before the one that it waits for (`prefer`), which then gets no processor by a yield.
            if yields < YIELDS_OF_AGENT {
                thread::yield_now();
            } else {
                thread::sleep(Duration::from_micros(1));
            }
        }
        self.hold()
    }

    /// Makes progress, unless the messaging thread does.
    pub fn progress_of_caller(&self, state: &mut State) -> bool {
        !self.switches.has_thread() && state.look()
    }

    /// Makes progress, unless the messaging thread does, if a message to the peer would wait. The peer may have said
    /// meanwhile that it has room. A message that waits is copied once more.
    pub fn make_room(&self, state: &mut State, peer: PeerNo) {
        if state.engine.has_no_room(peer) && !self.switches.has_thread() {
            state.progress();
        }
    }

    /// Waits until a peer has acknowledged all that was sent to it, if a messaging thread hears of that. So the sender waits
    /// for the explicit acknowledgement of its message, as in the paper.
    pub fn wait_until_acknowledged(&self, peer: PeerNo) {
        if self.switches.acks != Acks::Explicit || !self.switches.has_thread() {
            return;
        }
        loop {
            let news = self.news();
            if self.lock().engine.links.is_acknowledged(peer) {
                return;
            }
            self.wait_for_news(news);
            thread::yield_now();
        }
    }

    /// Returns a number that changes when an operation is complete.
    pub fn news(&self) -> u32 {
        self.news.load(Ordering::Relaxed)
    }

    /// Waits for a moment, as the program that looked when the number of news was `seen` and found nothing: until the
    /// messaging thread wakes it, or not at all.
    pub fn wait_for_news(&self, seen: u32) {
        if self.switches.wakeup == Some(Wakeup::Event) {
            let limit = Timespec { tv_sec: 0, tv_nsec: LONGEST_LOOK.subsec_nanos().into() };
            // Whatever ends the sleep, the caller looks again.
            let _ = futex::wait(&self.news, futex::Flags::PRIVATE, seen, Some(&limit));
        }
    }
}
