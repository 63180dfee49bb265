//! Sorts 64-bit keys that are spread over all ranks, by radix sort with one-way stores, and checks the result.
//!
//!     cargo build --release -p netdyno-global --example radix_sort
//!     netdyno launch -n 4 target/release/examples/radix_sort 100000
//!
//! `--by key` stores each key by itself: a message a key. `--by digit` first sorts the keys of the rank, so that one store
//! moves all keys with a digit to a rank.

#[path = "common/blocks.rs"]
mod blocks;
mod common;
#[path = "common/sorting.rs"]
mod sorting;
#[path = "common/words.rs"]
mod words;

use blocks::Blocks;
use common::{Arguments, Program};
use netdyno_global::{Combination, Error, GlobalPointer, Segment, World};
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

/// A key in the bytes of a message.
type Key = [u8; 8];

/// Number of keys that are loaded at once: they stay in the first cache.
const PIECE: usize = 1024;

/// Sorts by one digit after the other, from the lowest on. Each rank keeps its number of keys.
fn sort(world: &mut World, arguments: &Arguments, mut keys: Vec<u64>) -> Result<Vec<u64>, Error> {
    let blocks = Blocks::new(arguments.size, world.ranks());
    let segment = words::allocate(world, keys.len())?;
    let mut by_digit = vec![Key::default(); keys.len()];
    world.barrier()?;
    for shift in (0..u64::BITS).step_by(BITS as usize) {
        let digit = |key: u64| (key >> shift) as usize % VALUES;
        let counts = counts(&keys, digit);
        let mut places = first_places(world, &counts)?;
        if arguments.way == 0 {
            for &key in &keys {
                let place = &mut places[digit(key)];
                store(world, blocks, segment, *place, &[key.to_le_bytes()])?;
                *place += 1;
            }
        } else {
            sort_here(&keys, &counts, digit, &mut by_digit);
            for (place, run) in from_the_next_rank_on(world, blocks, &places, &counts, &by_digit) {
                store(world, blocks, segment, place, run)?;
            }
        }
        world.all_store_sync()?;
        load(world, segment, &mut keys)?;
        // No rank stores keys of the next digit before all have taken these.
        world.barrier()?;
    }
    world.free(segment)?;
    Ok(keys)
}

/// Returns the number of keys of this rank with each digit.
fn counts(keys: &[u64], digit: impl Fn(u64) -> usize) -> [u64; VALUES] {
    let mut counts = [0; VALUES];
    for &key in keys {
        counts[digit(key)] += 1;
    }
    counts
}

/// Sorts the keys of this rank by a digit into `sorted`, and leaves keys with the same digit in their order.
fn sort_here(keys: &[u64], counts: &[u64; VALUES], digit: impl Fn(u64) -> usize, sorted: &mut [Key]) {
    let mut places = [0; VALUES];
    places.copy_from_slice(&sums_before(counts));
    for &key in keys {
        let place = &mut places[digit(key)];
        sorted[*place as usize] = key.to_le_bytes();
        *place += 1;
    }
}

/// Returns the keys with each digit and their first place. Those of the next rank come first and those of this rank last:
/// ranks that began with the same rank would wait for it, and a rank that copies its own keys serves no other.
fn from_the_next_rank_on<'a>(
    world: &World,
    blocks: Blocks,
    places: &[u64],
    counts: &[u64],
    mut keys: &'a [Key],
) -> Vec<(u64, &'a [Key])> {
    let mut runs = Vec::new();
    for (place, count) in places.iter().zip(counts) {
        let (run, others) = keys.split_at(*count as usize);
        runs.push((*place, run));
        keys = others;
    }
    let end = blocks.of(world.rank()).end;
    runs.rotate_left(places.partition_point(|place| *place < end));
    runs
}

/// Loads the keys of a segment of this rank.
fn load(world: &World, segment: Segment, keys: &mut [u64]) -> Result<(), Error> {
    let mut bytes = [Key::default(); PIECE];
    for (nth, piece) in keys.chunks_mut(PIECE).enumerate() {
        let bytes = &mut bytes[..piece.len()];
        world.load(segment, (8 * PIECE * nth) as u64, bytes.as_flattened_mut())?;
        piece.iter_mut().zip(bytes).for_each(|(key, bytes)| *key = u64::from_le_bytes(*bytes));
    }
    Ok(())
}

/// Stores adjacent keys from a place on, which may be places of several ranks.
fn store(
    world: &mut World,
    blocks: Blocks,
    segment: Segment,
    mut place: u64,
    mut keys: &[Key],
) -> Result<(), Error> {
    while !keys.is_empty() {
        let (rank, index) = blocks.find(place);
        let room = blocks.of(rank).end - place;
        let (here, others) = keys.split_at(keys.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
        let to = GlobalPointer { rank, segment: segment.number(), offset: 8 * index };
        world.store(to, here.as_flattened())?;
        (place, keys) = (place + here.len() as u64, others);
    }
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
