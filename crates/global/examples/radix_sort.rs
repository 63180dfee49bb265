//! Sorts 64-bit keys that are spread over all ranks, by radix sort with one-way stores, and checks the result.
//!
//!     cargo build --release -p netdyno-global --example radix_sort
//!     netdyno launch -n 4 target/release/examples/radix_sort 100000
//!
//! `--by key` stores each key by itself: a message a key. `--by digit` lets keys with the same digit wait for each
//! other, so that one store moves many.

#[path = "common/blocks.rs"]
mod blocks;
mod common;
#[path = "common/sorting.rs"]
mod sorting;
#[path = "common/words.rs"]
mod words;

use blocks::Blocks;
use bytemuck::{cast_slice, cast_slice_mut};
use common::{Arguments, Program};
use netdyno_global::{Combination, Error, GlobalPointer, Segment, World};
use std::mem;
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
        ways: &["key", "digit"],
        run: |world, arguments| sorting::run(world, arguments, sort),
    })
}

/// Number of keys that are loaded at once: they stay in the first cache.
const PIECE: usize = 1024;
/// The most keys of a digit that are stored together. The keys that wait for others, of all digits, stay in the
/// second cache.
const TOGETHER: usize = 256;

/// Sorts by one digit after the other, from the lowest on. Each rank keeps its number of keys. Keys go from one segment to
/// the other, so that no key is stored to the place of one that has not been taken.
fn sort(world: &mut World, arguments: &Arguments, mut keys: Vec<u64>) -> Result<Vec<u64>, Error> {
    let blocks = Blocks::new(arguments.size, world.ranks());
    let mut from = words::allocate(world, keys.len())?;
    let mut to = words::allocate(world, keys.len())?;
    world.fill(from, 0, cast_slice(&keys))?;
    let together = if arguments.way == 0 { 1 } else { TOGETHER };
    let mut waiting = vec![Vec::new(); VALUES];
    for shift in (0..u64::BITS).step_by(BITS as usize) {
        let digit = |key: u64| (key >> shift) as usize % VALUES;
        let counts = counts(world.words(from, 0, keys.len())?, digit);
        let mut places = first_places(world, &counts)?;
        for first in (0..keys.len()).step_by(PIECE) {
            let mut piece = [0; PIECE];
            let piece = &mut piece[..PIECE.min(keys.len() - first)];
            world.load(from, (size_of::<u64>() * first) as u64, cast_slice_mut(piece))?;
            for &mut key in piece {
                let waiting = &mut waiting[digit(key)];
                waiting.push(key);
                if waiting.len() == together {
                    store(world, blocks, to, &mut places[digit(key)], waiting)?;
                }
            }
        }
        for (place, waiting) in places.iter_mut().zip(&mut waiting) {
            store(world, blocks, to, place, waiting)?;
        }
        world.all_store_sync()?;
        mem::swap(&mut from, &mut to);
    }
    world.load(from, 0, cast_slice_mut(&mut keys))?;
    world.free(from)?;
    world.free(to)?;
    Ok(keys)
}

/// Returns the number of keys with each digit.
fn counts(keys: impl Iterator<Item = u64>, digit: impl Fn(u64) -> usize) -> [u64; VALUES] {
    let mut counts = [0; VALUES];
    keys.for_each(|key| counts[digit(key)] += 1);
    counts
}

/// Stores adjacent keys from a place on, which may be places of several ranks. Leaves no keys, and the place behind them.
fn store(
    world: &mut World,
    blocks: Blocks,
    segment: Segment,
    place: &mut u64,
    keys: &mut Vec<u64>,
) -> Result<(), Error> {
    let mut left = keys.as_slice();
    while !left.is_empty() {
        let (rank, index) = blocks.find(*place);
        let room = blocks.of(rank).end - *place;
        let (here, others) = left.split_at(left.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
        let to = GlobalPointer { rank, segment: segment.number(), offset: 8 * index };
        world.store(to, cast_slice(here))?;
        (*place, left) = (*place + here.len() as u64, others);
    }
    keys.clear();
    Ok(())
}

/// Returns the sum of all counts before each one.
fn sums_before(counts: &[u64]) -> Vec<u64> {
    let sum_before = |sum: &mut u64, count: &u64| {
        *sum += count;
        Some(*sum - count)
    };
    counts.iter().scan(0, sum_before).collect()
}

/// Returns the place in the whole order at which the first key of this rank with each digit goes.
fn first_places(world: &mut World, counts: &[u64]) -> Result<Vec<u64>, Error> {
    let (ranks, me) = (world.ranks() as usize, world.rank() as usize);
    // The counts of all ranks, by digit and then by rank: in the order of the result.
    let mut all = vec![0; VALUES * ranks];
    for (value, count) in counts.iter().enumerate() {
        all[value * ranks + me] = *count;
    }
    world.all_reduce(Combination::Sum, &mut all)?;
    Ok(sums_before(&all).into_iter().skip(me).step_by(ranks).collect())
}
