//! What the tests of Active Messages share: a wire, a seed, a deadline, other processes.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod asking;
pub mod bulk;
pub mod killing;
mod linking;
pub mod patience;
pub mod process;
pub mod traffic;

use crate::{DIALS, FAULTS, WIRE};
use netdyno_stack::am::{Config, Endpoint, Faults, PeerId};
pub use patience::{Deadline, Idler, PATIENCE, seed, until};

/// What all endpoints of a test have in common: the network that it is about.
pub fn base() -> Config {
    // Faults alone are drawn from it.
    let seed = if FAULTS == Faults::NONE { 0 } else { seed() };
    Config { faults: FAULTS, seed, dials: DIALS, ..Config::default() }
}

/// Connects two endpoints of this process.
pub fn connect<S>(a: &mut Endpoint<S>, b: &mut Endpoint<S>) -> (PeerId, PeerId) {
    let (port_a, port_b) = (a.open_port(WIRE).unwrap(), b.open_port(WIRE).unwrap());
    let (address_a, address_b) = (port_a.address(), port_b.address());
    (a.connect(port_a, &address_b).unwrap(), b.connect(port_b, &address_a).unwrap())
}

/// Connects each endpoint with every other one. `peers[i][j]` is what `i` calls `j`.
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
