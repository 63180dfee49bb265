//! Counts random keys in buckets that are spread over all ranks, by remote increments, and checks the result.
//!
//!     cargo build --release -p netdyno-global --example histogram
//!     mpiexec -n 4 target/release/examples/histogram 100000
//!
//! `--by add` has a split-phase addition for each key, and one `sync` that waits for all of them: the increments overlap.
//! `--by fetch_add` waits for the old value of each bucket. So each key of another rank takes a round trip, and no two of
//! them overlap.

#[path = "common/blocks.rs"]
mod blocks;
mod common;
#[path = "common/words.rs"]
mod words;

use blocks::Blocks;
use common::{Arguments, Failure, Outcome, Program, timed};
use netdyno_global::{GlobalPointer, World};
use std::process::ExitCode;

/// Number of buckets of all ranks.
const BUCKETS: u64 = 1024;

fn main() -> ExitCode {
    common::main(&Program {
        name: "histogram",
        size: "keys",
        largest: 1_000_000_000,
        work: "keys",
        ways: &["add", "fetch_add"],
        run,
    })
}

fn run(world: &mut World, &Arguments { size, seed, way, .. }: &Arguments) -> Result<Outcome, Failure> {
    let bucket = |nth: u64| words::random(seed, nth) % BUCKETS;
    let buckets = Blocks::new(BUCKETS, world.ranks());
    let mine = buckets.of(world.rank());
    let segment = words::allocate(world, mine.clone().count())?;
    let keys = Blocks::new(size, world.ranks()).of(world.rank());
    let ((), part) = timed(world, |world| {
        for nth in keys {
            let (rank, index) = buckets.find(bucket(nth));
            let at = GlobalPointer { rank, segment: segment.number(), offset: 8 * index };
            if way == 0 { world.add(at, 1)? } else { world.fetch_add(at, 1).map(drop)? }
        }
        world.sync()
    })?;
    let mut expected = vec![0; BUCKETS as usize];
    (0..size).for_each(|nth| expected[bucket(nth) as usize] += 1);
    let counted = world.words(segment, 0, mine.clone().count())?;
    let is_right = counted.eq(expected[mine.start as usize..mine.end as usize].iter().copied());
    Ok(Outcome { part, work: size, is_right })
}
