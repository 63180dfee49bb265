//! The places of the processes of a launch, and the halves into which they fall.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What separates the two halves of the processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bisected {
    /// Nothing but the order of the ranks, as in a simulation.
    #[default]
    Ranks,
    /// The order of the processors of one host.
    Processors,
    /// The hosts: both ends of each pair across are on different ones.
    Hosts,
    /// The hosts, but both ends of some pairs across are on the same one.
    HostsInPart,
}

/// The order of the processes by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The ranks: those of a host together, and within a host ascending by processor.
    pub order: Vec<usize>,
    /// What separates the first half of them from the second.
    pub by: Bisected,
}

impl Places {
    /// Returns the places of processes of which nothing is known.
    pub fn by_rank(procs: usize) -> Self {
        Self { order: (0..procs).collect(), by: Bisected::Ranks }
    }

    /// Returns the places from the host and the processor of each rank, as far as they are known.
    pub fn of(procs: usize, hosts: &[usize], cpus: &[usize]) -> Self {
        let place = |rank: usize| (hosts.get(rank).copied(), cpus.get(rank).copied());
        let differ = |of: &[usize]| of.iter().take(procs).any(|one| *one != of[0]);
        let mut places = Self::by_rank(procs);
        places.order.sort_by_key(|&rank| place(rank));
        let is_between_hosts = |&(a, b): &(usize, usize)| hosts.get(a) != hosts.get(b);
        places.by = match () {
            () if differ(hosts) && places.across().iter().all(is_between_hosts) => Bisected::Hosts,
            () if differ(hosts) => Bisected::HostsInPart,
            () if differ(cpus) => Bisected::Processors,
            () => Bisected::Ranks,
        };
        places
    }

    /// Returns the pairs of requester and replier with one end in each half: i with i + P/2.
    pub fn across(&self) -> Vec<(usize, usize)> {
        let half = self.order.len() / 2;
        (0..half).map(|at| (self.order[at], self.order[at + half])).collect()
    }

    /// Returns the pairs of neighbours of the same processes: 0 with 1, 2 with 3.
    pub fn neighbours(&self) -> Vec<(usize, usize)> {
        let half = self.order.len() / 2;
        (0..half).map(|at| (self.order[2 * at], self.order[2 * at + 1])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_come_before_processors_and_processors_before_ranks() {
        let interleaved = Places::of(4, &[0, 1, 0, 1], &[0, 0, 1, 1]);
        assert_eq!((interleaved.order.clone(), interleaved.by), (vec![0, 2, 1, 3], Bisected::Hosts));
        assert_eq!(interleaved.across(), [(0, 1), (2, 3)]);
        assert_eq!(interleaved.neighbours(), [(0, 2), (1, 3)]);
        let reversed = Places::of(4, &[0; 4], &[3, 2, 1, 0]);
        assert_eq!((reversed.order, reversed.by), (vec![3, 2, 1, 0], Bisected::Processors));
        assert_eq!(Places::of(4, &[0, 1, 1, 1], &[0; 4]).by, Bisected::HostsInPart);
        assert_eq!(Places::of(5, &[], &[]), Places::by_rank(5));
        assert_eq!(Places::by_rank(5).across(), [(0, 2), (1, 3)]);
    }

    proptest! {
        #[test]
        fn both_patterns_have_the_same_processes_once(
            hosts in proptest::collection::vec(0usize..3, 0..12),
            cpus in proptest::collection::vec(0usize..8, 0..12),
            procs in 0usize..12,
        ) {
            let places = Places::of(procs, &hosts, &cpus);
            let ends = |pairs: Vec<(usize, usize)>| {
                let mut ends: Vec<usize> = pairs.into_iter().flat_map(|(a, b)| [a, b]).collect();
                ends.sort_unstable();
                ends
            };
            let (across, neighbours) = (ends(places.across()), ends(places.neighbours()));
            prop_assert_eq!(&across, &neighbours);
            prop_assert!(across.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(across.len(), procs / 2 * 2);
        }
    }
}
