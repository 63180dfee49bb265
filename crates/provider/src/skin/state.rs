//! The state of a domain, which all its objects share.

use super::guard::Errno;
use crate::abi;
use crate::engine::{Engine, Reports, Target};
use crate::links::{Name, ViLinks};
use rustc_hash::FxHashMap;
use slab::Slab;
use smallvec::SmallVec;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Polls of a flush before it sleeps between two.
const POLLS_OF_FLUSH: u32 = 10_000;

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
        let mut all = self.engine.endpoints.iter();
        free_unless(all.any(|(_, endpoint)| is_bound(&endpoint.reports)))
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
pub struct Shared(Mutex<State>);

// SAFETY: the engine holds addresses of the program's memory, which any thread of the program may access. All else in it
// is of this process, and the lock lets one thread at a time use it.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Returns the state of a new domain.
    pub fn new(links: ViLinks) -> Self {
        let (addresses, uses) = (Slab::new(), Vec::new());
        Self(Mutex::new(State {
            engine: Engine::new(links),
            addresses,
            uses,
            is_watched: false,
            flush_until: None,
            sleepers: 0,
        }))
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
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // A panic inside has become an error number. The state is used further.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
