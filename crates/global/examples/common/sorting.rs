//! The keys of the programs that sort, and the check of their result.

use crate::blocks::Blocks;
use crate::common::{Arguments, Failure, Outcome, timed};
use crate::words::random;
use netdyno_global::{Combination, Error, World};

/// A function that sorts the keys of all ranks. It gets and returns those of this rank.
type Sort = fn(&mut World, &Arguments, Vec<u64>) -> Result<Vec<u64>, Error>;

/// Sorts random keys and checks the result.
pub fn run(world: &mut World, arguments: &Arguments, sort: Sort) -> Result<Outcome, Failure> {
    let &Arguments { size, seed, .. } = arguments;
    let mine = Blocks::new(size, world.ranks()).of(world.rank());
    let keys = mine.map(|nth| random(seed, nth)).collect();
    let (sorted, part) = timed(world, |world| sort(world, arguments, keys))?;
    let expected = checksum((0..size).map(|nth| random(seed, nth)));
    let is_sorted = is_sorted(world, &sorted)?;
    let are_the_same = of_all(world, checksum(sorted.iter().copied()))? == expected;
    Ok(Outcome { part, work: size, is_right: is_sorted && are_the_same })
}

/// A number that all orders of the same keys have: count, sum, and sum of a function that is not linear.
type Checksum = [u64; 3];

fn checksum(keys: impl Iterator<Item = u64>) -> Checksum {
    keys.fold([0; 3], |[count, sum, mixed], key| {
        [count + 1, sum.wrapping_add(key), mixed.wrapping_add(random(key, 0))]
    })
}

/// Returns the checksum of the keys of all ranks.
fn of_all(world: &mut World, mut checksum: Checksum) -> Result<Checksum, Error> {
    world.all_reduce(Combination::Sum, &mut checksum)?;
    Ok(checksum)
}

/// Reports whether the keys of all ranks are in order, one rank behind the other. Ranks may have none.
fn is_sorted(world: &mut World, keys: &[u64]) -> Result<bool, Error> {
    // Whether each rank has keys, its first one and its last one.
    let mut ends = vec![0; 3 * world.ranks() as usize];
    if let (Some(&first), Some(&last)) = (keys.first(), keys.last()) {
        ends[3 * world.rank() as usize..][..3].copy_from_slice(&[1, first, last]);
    }
    world.all_reduce(Combination::Sum, &mut ends)?;
    let with_keys = ends.as_chunks::<3>().0.iter().filter(|[has_keys, ..]| *has_keys == 1);
    Ok(keys.is_sorted() && with_keys.flat_map(|[_, first, last]| [first, last]).is_sorted())
}
