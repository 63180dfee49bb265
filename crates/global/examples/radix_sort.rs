//! Sorts 64-bit keys that are spread over all ranks, by radix sort, and checks the result.
//!
//!     cargo build --release -p netdyno-global --example radix_sort
//!     netdyno launch -n 4 target/release/examples/radix_sort 100000

use netdyno_global::{Combination, Config, GlobalPointer, World};
use std::error::Error;
use std::process::ExitCode;

/// Bits of a digit, and number of its values.
const BITS: u32 = 8;
const VALUES: usize = 1 << BITS;

fn main() -> ExitCode {
    let text = std::env::args().nth(1).unwrap_or_else(|| "10000".into());
    let Ok(keys) = text.parse() else {
        eprintln!("error: '{text}' is no number of keys: use one as in 100000");
        return ExitCode::from(2);
    };
    match run(keys) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(keys: usize) -> Result<(), Box<dyn Error>> {
    let mut world = World::launched(Config::default())?;
    let mine = random_keys(u64::from(world.rank()), keys);
    let before = checksum(&mut world, &mine)?;
    let sorted = sort(&mut world, mine)?;
    let is_same = checksum(&mut world, &sorted)? == before;
    let is_sorted = is_sorted(&mut world, &sorted)?;
    if world.rank() == 0 {
        println!("{} keys at each of {} ranks: sorted {is_sorted}, same keys {is_same}", keys, world.ranks());
    }
    world.finish()?;
    if is_sorted && is_same { Ok(()) } else { Err("the keys are not sorted".into()) }
}

/// Returns keys of a rank (SplitMix64).
fn random_keys(rank: u64, count: usize) -> Vec<u64> {
    let mix = |z: u64, shift: u32, factor: u64| (z ^ (z >> shift)).wrapping_mul(factor);
    let first = rank.wrapping_mul(1 << 40);
    (0..count as u64)
        .map(|nth| (first + nth + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .map(|z| mix(mix(z, 30, 0xbf58_476d_1ce4_e5b9), 27, 0x94d0_49bb_1331_11eb))
        .map(|z| z ^ (z >> 31))
        .collect()
}

/// Sorts by one digit after the other, from the lowest on. Each rank keeps its number of keys.
fn sort(world: &mut World, mut keys: Vec<u64>) -> Result<Vec<u64>, netdyno_global::Error> {
    let each = keys.len();
    let segment = world.allocate(8 * each)?;
    world.barrier()?;
    for shift in (0..u64::BITS).step_by(BITS as usize) {
        let digit = |key: u64| (key >> shift) as usize % VALUES;
        let mut places = first_places(world, &keys, digit)?;
        for &key in &keys {
            let place = places[digit(key)];
            places[digit(key)] += 1;
            let rank = (place / each as u64) as u32;
            let to = GlobalPointer { rank, segment: segment.number(), offset: 8 * (place % each as u64) };
            world.store(to, &key.to_le_bytes())?;
        }
        world.all_store_sync()?;
        let mut bytes = vec![0; 8 * each];
        world.load(segment, 0, &mut bytes)?;
        keys = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        // No rank stores keys of the next digit before all have taken these.
        world.barrier()?;
    }
    Ok(keys)
}

/// Returns the place in the whole order at which the first key of this rank with each digit goes.
fn first_places(
    world: &mut World,
    keys: &[u64],
    digit: impl Fn(u64) -> usize,
) -> Result<Vec<u64>, netdyno_global::Error> {
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

/// Returns a number that all orders of the same keys have.
fn checksum(world: &mut World, keys: &[u64]) -> Result<[u64; 2], netdyno_global::Error> {
    let sum = |sum: u64, key: u64| sum.wrapping_add(key.wrapping_mul(key | 1));
    let mut words = [keys.iter().fold(0, |a, &key| a ^ key), keys.iter().copied().fold(0, sum)];
    world.all_reduce(Combination::Xor, &mut words[..1])?;
    world.all_reduce(Combination::Sum, &mut words[1..])?;
    Ok(words)
}

/// Reports whether the keys of all ranks are in order: each rank also reads the last key of the one before.
fn is_sorted(world: &mut World, keys: &[u64]) -> Result<bool, netdyno_global::Error> {
    let segment = world.allocate(8)?;
    world.fill(segment, 0, &keys.last().copied().unwrap_or(0).to_le_bytes())?;
    world.barrier()?;
    let before = match world.rank().checked_sub(1) {
        Some(rank) => world.read_u64(GlobalPointer { rank, segment: segment.number(), offset: 0 })?,
        None => 0,
    };
    let is_sorted = keys.is_sorted() && keys.first().is_none_or(|first| before <= *first);
    let mut wrong = [u64::from(!is_sorted)];
    world.all_reduce(Combination::Sum, &mut wrong)?;
    Ok(wrong[0] == 0)
}
