//! Multiplies two matrices whose blocks are spread over all ranks, with blocks that are got ahead, and checks the
//! result.
//!
//!     cargo build --release -p netdyno-global --example matmul
//!     mpiexec -n 4 target/release/examples/matmul 256
//!
//! A rank computes the blocks of the product that it owns. It gets the blocks for the next step by two bulk gets before
//! it computes the current step (Culler et al. 1993).

mod common;
#[path = "common/words.rs"]
mod words;

use common::{Arguments, Failure, Outcome, Program, timed};
use netdyno_global::{Error, GlobalPointer, Segment, World};
use std::process::ExitCode;

/// Rows and columns of a block. Its 8 KiB are more than a message holds.
const EDGE: u64 = 32;
const BLOCK: usize = (EDGE * EDGE) as usize;
/// Rows of a block that are computed between two polls, in which the rank serves the others.
const ROWS_BETWEEN_POLLS: usize = 8;

fn main() -> ExitCode {
    common::main(&Program { name: "matmul", size: "rows", largest: 8192, work: "products", ways: &[], run })
}

fn run(world: &mut World, arguments: &Arguments) -> Result<Outcome, Failure> {
    let matrices = Matrices { rows: arguments.size, seed: arguments.seed };
    let mut product = Product::new(world, matrices)?;
    let ((), part) = timed(world, |world| product.multiply(world))?;
    let is_right = product.blocks.iter().all(|(place, block)| *block == matrices.serial(*place));
    Ok(Outcome { part, work: arguments.size.pow(3), is_right })
}

/// Row and column of a block among the blocks, or of an entry.
type Place = (u64, u64);

/// The two factors, which a seed determines. Their entries are small whole numbers, so that all sums are exact.
#[derive(Clone, Copy)]
struct Matrices {
    rows: u64,
    seed: u64,
}

impl Matrices {
    /// Returns an entry of a factor; 0 outside of the matrix, where the last blocks end.
    fn entry(self, factor: usize, (row, column): Place) -> f64 {
        if row >= self.rows || column >= self.rows {
            return 0.0;
        }
        (words::random(self.seed.wrapping_add(factor as u64), row * self.rows + column) % 16) as f64
    }

    /// Returns the blocks in a row of blocks.
    fn blocks(self) -> u64 {
        self.rows.div_ceil(EDGE)
    }

    /// Returns a block of a factor, row by row.
    fn block(self, factor: usize, place: Place) -> Vec<f64> {
        entries_of(place).map(|place| self.entry(factor, place)).collect()
    }

    /// Returns a block of the product, as one process computes it.
    fn serial(self, place: Place) -> Vec<f64> {
        let left: Vec<Vec<f64>> = (0..EDGE)
            .map(|row| (0..self.rows).map(|k| self.entry(0, (place.0 * EDGE + row, k))).collect())
            .collect();
        let right: Vec<Vec<f64>> = (0..EDGE)
            .map(|column| (0..self.rows).map(|k| self.entry(1, (k, place.1 * EDGE + column))).collect())
            .collect();
        let dot = |row: &[f64], column: &[f64]| row.iter().zip(column).map(|(a, b)| a * b).sum();
        left.iter().flat_map(|row| right.iter().map(move |column| dot(row, column))).collect()
    }
}

/// Returns the places of the entries of a block, row by row.
fn entries_of((row, column): Place) -> impl Iterator<Item = Place> {
    (0..EDGE).flat_map(move |r| (0..EDGE).map(move |c| (row * EDGE + r, column * EDGE + c)))
}

/// The blocks at this rank.
struct Product {
    matrices: Matrices,
    ranks: u64,
    /// The segments of the blocks of either factor at this rank, one after the other.
    factors: [Segment; 2],
    /// The blocks of two steps, one under way and one in use: first and second factor of either.
    landing: Segment,
    /// The blocks of the product.
    blocks: Vec<(Place, Vec<f64>)>,
}

impl Product {
    fn new(world: &mut World, matrices: Matrices) -> Result<Self, Error> {
        let (ranks, me, across) = (u64::from(world.ranks()), u64::from(world.rank()), matrices.blocks());
        let places: Vec<Place> = (0..across * across)
            .filter(|nth| nth % ranks == me)
            .map(|nth| (nth / across, nth % across))
            .collect();
        let mut factor = |factor| {
            let segment = words::allocate(world, BLOCK * places.len())?;
            let bytes =
                places.iter().flat_map(|place| matrices.block(factor, *place)).flat_map(f64::to_le_bytes);
            world.fill(segment, 0, &bytes.collect::<Vec<u8>>())?;
            Ok::<_, Error>(segment)
        };
        let factors = [factor(0)?, factor(1)?];
        let landing = words::allocate(world, 4 * BLOCK)?;
        let blocks = places.into_iter().map(|place| (place, vec![0.0; BLOCK])).collect();
        Ok(Self { matrices, ranks, factors, landing, blocks })
    }

    /// Computes the blocks of the product.
    fn multiply(&mut self, world: &mut World) -> Result<(), Error> {
        let across = self.matrices.blocks();
        let steps: Vec<(usize, u64)> =
            (0..self.blocks.len()).flat_map(|block| (0..across).map(move |k| (block, k))).collect();
        let mut ahead = steps.iter().enumerate();
        if let Some((nth, step)) = ahead.next() {
            self.get(world, nth, *step)?;
        }
        for (nth, &(block, _)) in steps.iter().enumerate() {
            world.sync()?;
            if let Some((nth, step)) = ahead.next() {
                self.get(world, nth, *step)?;
            }
            let (left, right) = (self.landed(world, nth, 0)?, self.landed(world, nth, 1)?);
            add_product(world, &mut self.blocks[block].1, &left, &right)?;
        }
        Ok(())
    }

    /// Begins to get the blocks of both factors for a step.
    fn get(&self, world: &mut World, nth: usize, (block, k): (usize, u64)) -> Result<(), Error> {
        let ((row, column), _) = self.blocks[block];
        for (factor, place) in [(row, k), (k, column)].into_iter().enumerate() {
            let number = place.0 * self.matrices.blocks() + place.1;
            let from = GlobalPointer {
                rank: (number % self.ranks) as u32,
                segment: self.factors[factor].number(),
                offset: number / self.ranks * BYTES,
            };
            world.get(from, self.landing, landing(nth, factor), BYTES as usize)?;
        }
        Ok(())
    }

    /// Returns the block of a factor that was got for a step.
    fn landed(&self, world: &World, nth: usize, factor: usize) -> Result<Vec<f64>, Error> {
        let words = world.words(self.landing, landing(nth, factor), BLOCK)?;
        Ok(words.map(f64::from_bits).collect())
    }
}

/// Bytes of a block.
const BYTES: u64 = (BLOCK * size_of::<f64>()) as u64;

/// Returns where the block of a factor lands for a step.
fn landing(nth: usize, factor: usize) -> u64 {
    (2 * (nth as u64 % 2) + factor as u64) * BYTES
}

/// Adds the product of two blocks to a third one.
fn add_product(world: &mut World, sum: &mut [f64], left: &[f64], right: &[f64]) -> Result<(), Error> {
    let edge = EDGE as usize;
    for (nth, (sum, left)) in sum.chunks_mut(edge).zip(left.chunks(edge)).enumerate() {
        if nth % ROWS_BETWEEN_POLLS == 0 {
            world.poll()?;
        }
        for (factor, right) in left.iter().zip(right.chunks(edge)) {
            sum.iter_mut().zip(right).for_each(|(sum, entry)| *sum += factor * entry);
        }
    }
    Ok(())
}
