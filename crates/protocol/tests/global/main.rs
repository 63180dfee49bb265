//! Global memory over a network with faults: ranks in virtual time, with one reliable connection between each two,
//! against two oracles. `docs/global-memory.md` has the rules.
//!
//! * Rules 1 to 3: each byte that a read or get returns is one that the order of syncs and barriers permits. The ranges
//!   have any offset and 0 to 5000 bytes, and overlap. Up to 64 to 1024 bytes are one message, more a bulk transfer.
//! * Rule 4: all operations on a word are linearizable: additions, compare-and-swaps, reads, writes, and stores.
//! * Bytes outside of the written ranges do not change, neither in shared segments nor where gets land.
//! * After a sync of stores all stores are there, and none came twice.
//! * Atomic additions return each old value once, in an order that fits every rank; no compare-and-swap is lost.
//! * Every split-phase addition counts exactly once.
//! * No rank leaves a barrier before all have entered. Reductions and broadcasts are right for 1 to 17 ranks.
//!
//! Each run has other seeds, and prints them. `NETDYNO_SEED` replays one.

#![allow(clippy::unwrap_used, reason = "a test")]

mod history;
mod linearizability;
mod memory;
mod programs;
mod rank;
mod visibility;
mod world;

use netdyno_protocol::faults::Faults;
use netdyno_protocol::random::Random;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use world::{Coverage, World};

const BAD: Faults = Faults { loss: 0.1, duplicate: 0.1, reorder: 0.3, corrupt: 0.02, burst: 0.001 };

/// Returns seeds, and prints each when it is taken.
fn seeds(count: usize) -> impl ExactSizeIterator<Item = u64> {
    let seeds = match std::env::var("NETDYNO_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..count).map(|_| RandomState::new().build_hasher().finish() >> 16).collect(),
    };
    seeds.into_iter().inspect(|seed| println!("NETDYNO_SEED={seed}"))
}

#[test]
fn the_memory_model_holds_under_loss_and_reordering() {
    let seeds = seeds(150);
    let runs = seeds.len() as u64;
    let mut counts = [0; 6];
    for seed in seeds {
        let ranks = 2 + Random::new(seed).below(4) as u32;
        let Coverage { retransmitted, long_transfers, read: [certain, open], swaps: [failed, succeeded] } =
            World::new(seed, ranks, 3, BAD).run().coverage();
        let run = [retransmitted, long_transfers, certain, open, failed, succeeded];
        counts.iter_mut().zip(run).for_each(|(sum, count)| *sum += count);
    }
    println!("{counts:?}");
    // One run alone may lack a case.
    let least = [6, 2, 1000, 100, 1, 1].map(|count| count * (runs - 1));
    assert!(counts.iter().zip(least).all(|(sum, least)| *sum >= least), "{counts:?} is less than {least:?}");
}

#[test]
fn collectives_are_right_for_every_number_of_ranks() {
    for ranks in 1..=17 {
        for seed in seeds(3) {
            World::new(seed, ranks, 1, BAD).run();
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..10 {
        let [one, two] = [0; 2].map(|_| World::new(seed, 4, 2, BAD).run());
        assert_eq!(one.summary(), two.summary());
    }
}

/// A barrier is due often enough that no rank is too far ahead, however slow another one is.
#[test]
fn many_broadcasts_do_not_run_away() {
    World::of_broadcasts(5, 6, 300, BAD).run();
}
