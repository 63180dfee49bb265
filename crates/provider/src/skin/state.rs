//! The state of a domain, which all its objects share.

use super::guard::Errno;
use crate::abi;
use crate::engine::{Engine, Target};
use crate::links::{Name, ViLinks};
use rustc_hash::FxHashMap;
use slab::Slab;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The addresses that a program has inserted.
#[derive(Debug, Default)]
pub struct AddressVector {
    /// The address and the endpoint of each number.
    pub entries: Slab<(Name, Target)>,
    /// The number of each sender.
    pub by_source: FxHashMap<u64, u64>,
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
    /// The use of each endpoint.
    pub uses: FxHashMap<u16, Use>,
}

impl State {
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
        self.uses.get(&endpoint).copied().ok_or(Errno(abi::EBADF))
    }
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
        let (addresses, uses) = (Slab::new(), FxHashMap::default());
        Self(Mutex::new(State { engine: Engine::new(links), addresses, uses }))
    }

    /// Waits until no other thread uses the state.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // A panic inside has become an error number. The state is used further.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
