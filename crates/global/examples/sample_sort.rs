//! Sorts 64-bit keys that are spread over all ranks, by sample sort with one-way stores, and checks the result.
//!
//!     cargo build --release -p netdyno-global --example sample_sort
//!     mpiexec -n 4 target/release/examples/sample_sort 100000
//!
//! A sample of the keys divides them among the ranks. Each rank stores each of its keys at the rank that the key
//! belongs to, and sorts those that it has then (Culler et al. 1993, Martin et al. 1997).

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
use netdyno_global::{Combination, Error, GlobalPointer, World};
use std::process::ExitCode;

/// Keys of a rank in the sample. With more of them the ranks have numbers of keys that differ less.
const SAMPLE: usize = 32;

fn main() -> ExitCode {
    common::main(&Program {
        name: "sample_sort",
        size: "keys",
        largest: 1_000_000_000,
        work: "keys",
        ways: &[],
        run: |world, arguments| sorting::run(world, arguments, sort),
    })
}

/// Sorts. Each rank has another number of keys afterwards.
fn sort(world: &mut World, arguments: &Arguments, keys: Vec<u64>) -> Result<Vec<u64>, Error> {
    let splitters = splitters(world, arguments, &keys)?;
    let rank_of = |key: u64| splitters.partition_point(|splitter| *splitter <= key);
    let (mut places, mine) = places(world, &keys, rank_of)?;
    let segment = words::allocate(world, mine)?;
    world.barrier()?;
    for &key in &keys {
        let rank = rank_of(key);
        let to = GlobalPointer { rank: rank as u32, segment: segment.number(), offset: 8 * places[rank] };
        places[rank] += 1;
        world.store(to, &key.to_le_bytes())?;
    }
    world.all_store_sync()?;
    let mut keys: Vec<u64> = world.words(segment, 0, mine)?.collect();
    keys.sort_unstable();
    world.free(segment)?;
    Ok(keys)
}

/// Returns the least key of each rank but the first. The keys are random, so that the first ones are a sample.
fn splitters(world: &mut World, arguments: &Arguments, keys: &[u64]) -> Result<Vec<u64>, Error> {
    let (ranks, me) = (world.ranks(), world.rank() as usize);
    let samples = words::allocate(world, SAMPLE * ranks as usize)?;
    world.barrier()?;
    let offset = (8 * SAMPLE * me) as u64;
    world.store(
        GlobalPointer { rank: 0, segment: samples.number(), offset },
        cast_slice(&keys[..keys.len().min(SAMPLE)]),
    )?;
    world.all_store_sync()?;
    let mut splitters = vec![0; ranks as usize - 1];
    if me == 0 {
        let all: Vec<u64> = world.words(samples, 0, SAMPLE * ranks as usize)?.collect();
        let blocks = Blocks::new(arguments.size, ranks);
        let len = |rank| ((blocks.of(rank).end - blocks.of(rank).start) as usize).min(SAMPLE);
        let of_ranks = (0..).zip(all.chunks(SAMPLE));
        let mut sample: Vec<u64> = of_ranks.flat_map(|(rank, keys)| &keys[..len(rank)]).copied().collect();
        sample.sort_unstable();
        let nth = |rank: usize| sample.get(rank * sample.len() / ranks as usize).copied().unwrap_or(u64::MAX);
        splitters = (1..ranks as usize).map(nth).collect();
    }
    world.broadcast(0, cast_slice_mut(&mut splitters))?;
    world.free(samples)?;
    Ok(splitters)
}

/// Returns the place at each rank at which the first key of this rank goes, and the number of keys that come here.
fn places(
    world: &mut World,
    keys: &[u64],
    rank_of: impl Fn(u64) -> usize,
) -> Result<(Vec<u64>, usize), Error> {
    let (ranks, me) = (world.ranks() as usize, world.rank() as usize);
    // The number of keys that each rank sends, by receiver and then by sender.
    let mut counts = vec![0; ranks * ranks];
    for &key in keys {
        counts[rank_of(key) * ranks + me] += 1;
    }
    world.all_reduce(Combination::Sum, &mut counts)?;
    let by_receiver: Vec<&[u64]> = counts.chunks(ranks).collect();
    let places = by_receiver.iter().map(|senders| senders[..me].iter().sum()).collect();
    Ok((places, by_receiver[me].iter().sum::<u64>() as usize))
}
