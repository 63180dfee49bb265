//! A layer between many processes: each process opens a port for every other process, hands the addresses
//! out, and connects to its peers at the addresses that it got.
//!
//! * `links`: a process of the group in real time, over the wires to its peers.

pub(crate) mod links;

use netdyno_measure::contention::cues::Cues;
use netdyno_measure::contention::step::Assignment;
use netdyno_measure::layer::LayerError;

/// Most requests in flight to one peer. With many processes the window is smaller, because the peers share
/// memory and sockets.
const WINDOW: usize = 256;
/// Most requests in flight to all peers of a process together.
const WINDOW_OVER_ALL: usize = 2048;
/// The smallest window to one peer, however many processes there are.
const WINDOW_AT_LEAST: usize = 16;

/// A process's place in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The process's rank, from 0.
    pub rank: usize,
    /// The number of processes.
    pub procs: usize,
}

impl Place {
    /// Returns the ranks of all other processes.
    pub(crate) fn peers(self) -> impl Iterator<Item = usize> {
        (0..self.procs).filter(move |&peer| peer != self.rank)
    }

    /// Returns the window to each peer, a power of two.
    pub(crate) fn window(self) -> usize {
        let share = WINDOW_OVER_ALL / (self.procs - 1);
        (share.max(1) + 1).next_power_of_two().div_euclid(2).clamp(WINDOW_AT_LEAST, WINDOW)
    }

    /// Returns the addresses of a process that gives the same `address` to every peer, by rank.
    pub(crate) fn same_address(self, address: &[u8]) -> Vec<Vec<u8>> {
        let for_peer = |peer| if peer == self.rank { Vec::new() } else { address.to_vec() };
        (0..self.procs).map(for_peer).collect()
    }
}

/// Returns the error for a request to the own rank.
#[cold]
pub(crate) fn no_peer_of_itself() -> LayerError {
    LayerError::new("a process is no peer of itself")
}

/// One process of a group, not yet connected.
pub trait Gathering {
    /// Returns the bytes to hand to each other process, by rank. The entry of the own rank is not used.
    fn addresses(&self) -> Vec<Vec<u8>>;

    /// Connects to all peers at the addresses that they gave, by rank.
    ///
    /// # Errors
    /// An address is malformed, or a connection failed.
    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError>;
}

/// One process of a connected group.
pub trait Attendant {
    /// Performs a requester's assignment in a step.
    ///
    /// # Errors
    /// The layer failed, or the assignment names a process that does not exist.
    fn perform(&mut self, assignment: &Assignment, cues: &mut dyn Cues) -> Result<(), LayerError>;

    /// Answers the requests of `requesters` until the cue to stop.
    ///
    /// # Errors
    /// The layer failed.
    fn serve(&mut self, requesters: &[usize], cues: &mut dyn Cues) -> Result<(), LayerError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_powers_of_two_that_shrink_with_the_crowd() {
        let window = |procs| Place { rank: 0, procs }.window();
        assert_eq!((window(2), window(9), window(10), window(64)), (256, 256, 128, 32));
    }
}
