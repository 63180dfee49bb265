//! Sorts 64-bit keys that are spread over all ranks, by radix sort with one-way stores, and checks the result.
//!
//!     cargo build --release -p netdyno-global --example radix_sort
//!     netdyno launch -n 4 target/release/examples/radix_sort 100000

#[path = "common/blocks.rs"]
mod blocks;
mod common;
#[path = "common/sorting.rs"]
mod sorting;
#[path = "common/words.rs"]
mod words;

use blocks::Blocks;
use common::{Arguments, Program};
use netdyno_global::{Combination, Error, GlobalPointer, World};
use std::process::ExitCode;

/// Bits of a digit, and number of its values.
const BITS: u32 = 8;
const VALUES: usize = 1 << BITS;

fn main() -> ExitCode {
    common::main(&Program {
        name: "radix_sort",
        size: "keys",
        largest: 1_000_000_000,
        work: "keys",
        ways: &[],
        run: |world, arguments| sorting::run(world, arguments, sort),
    })
}

/// Sorts by one digit after the other, from the lowest on. Each rank keeps its number of keys.
fn sort(world: &mut World, arguments: &Arguments, mut keys: Vec<u64>) -> Result<Vec<u64>, Error> {
    let blocks = Blocks::new(arguments.size, world.ranks());
    let segment = words::allocate(world, keys.len())?;
    world.barrier()?;
    for shift in (0..u64::BITS).step_by(BITS as usize) {
        let digit = |key: u64| (key >> shift) as usize % VALUES;
        let mut places = first_places(world, &keys, digit)?;
        for &key in &keys {
            let (rank, index) = blocks.find(places[digit(key)]);
            places[digit(key)] += 1;
            let to = GlobalPointer { rank, segment: segment.number(), offset: 8 * index };
            world.store(to, &key.to_le_bytes())?;
        }
        world.all_store_sync()?;
        keys = words::load(world, segment, 0, keys.len())?;
        // No rank stores keys of the next digit before all have taken these.
        world.barrier()?;
    }
    world.free(segment)?;
    Ok(keys)
}

/// Returns the place in the whole order at which the first key of this rank with each digit goes.
fn first_places(world: &mut World, keys: &[u64], digit: impl Fn(u64) -> usize) -> Result<Vec<u64>, Error> {
    let (ranks, me) = (world.ranks() as usize, world.rank() as usize);
    // The counts of all ranks, by digit and then by rank: in the order of the result.
    let mut counts = vec![0; VALUES * ranks];
    for &key in keys {
        counts[digit(key) * ranks + me] += 1;
    }
    world.all_reduce(Combination::Sum, &mut counts)?;
    let places: Vec<u64> = counts
        .iter()
        .scan(0, |sum, count| {
            *sum += count;
            Some(*sum - count)
        })
        .collect();
    Ok((0..VALUES).map(|value| places[value * ranks + me]).collect())
}
