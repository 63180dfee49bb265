//! Shared by the tests of Active Messages: a wire, a seed, a deadline, other processes.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod asking;
pub mod bulk;
pub mod killing;
mod linking;
pub mod process;
pub mod timeout;
pub mod traffic;

use crate::{DIALS, FAULTS, WIRE};
use netdyno_stack::am::{Config, Endpoint, Faults, PeerId};
pub use timeout::{Deadline, Idler, TIMEOUT, seed, until};

/// Returns the settings that all endpoints of a test share: the faults and dials of its network.
pub fn base() -> Config {
    // The seed only affects faults.
    let seed = if FAULTS == Faults::NONE { 0 } else { seed() };
    Config::new().faults(FAULTS).seed(seed).dials(DIALS)
}

/// Connects two endpoints of this process.
pub fn connect<S>(a: &mut Endpoint<S>, b: &mut Endpoint<S>) -> (PeerId, PeerId) {
    let (port_a, port_b) = (a.open_port(WIRE).unwrap(), b.open_port(WIRE).unwrap());
    let (address_a, address_b) = (port_a.address(), port_b.address());
    (a.connect(port_a, &address_b).unwrap(), b.connect(port_b, &address_a).unwrap())
}

/// Connects each endpoint with every other one. `peers[i][j]` is the ID of `j` at `i`.
pub fn connect_all<S>(endpoints: &mut [Endpoint<S>]) -> Vec<Vec<Option<PeerId>>> {
    let count = endpoints.len();
    let mut peers = vec![vec![None; count]; count];
    for (i, j) in (0..count).flat_map(|i| (0..i).map(move |j| (i, j))) {
        let [a, b] = endpoints.get_disjoint_mut([i, j]).unwrap();
        let (to_b, to_a) = connect(a, b);
        (peers[i][j], peers[j][i]) = (Some(to_b), Some(to_a));
    }
    peers
}
