//! Propagates values through a bipartite graph that is spread over all ranks, as EM3D does with electromagnetic waves
//! (Culler et al. 1993), and checks the result.
//!
//!     cargo build --release -p netdyno-global --example em3d
//!     mpiexec -n 4 target/release/examples/em3d 1000 --by put
//!
//! A step computes the electric values from the magnetic values of their neighbours, and then the magnetic values from
//! the electric ones. A rank has a ghost of each value of another rank that it needs. `--by get` gets the ghosts before
//! they are needed; `--by put` has the owner put them once they are computed. Both are split-phase.

#[path = "common/blocks.rs"]
mod blocks;
mod common;
#[path = "em3d/graph.rs"]
mod graph;
#[path = "common/words.rs"]
mod words;

use blocks::Blocks;
use common::{Arguments, Failure, Outcome, Program, timed};
use graph::{Graph, KINDS};
use netdyno_global::{Error, GlobalPointer, Segment, World};
use std::collections::HashMap;
use std::process::ExitCode;

/// Steps of the program.
const STEPS: u64 = 10;

fn main() -> ExitCode {
    common::main(&Program {
        name: "em3d",
        size: "nodes of either kind",
        largest: 100_000_000,
        work: "nodes",
        ways: &["get", "put"],
        run,
    })
}

fn run(world: &mut World, arguments: &Arguments) -> Result<Outcome, Failure> {
    let graph = Graph { nodes: arguments.size, seed: arguments.seed };
    let mut wave = Wave::new(world, graph)?;
    let puts = arguments.way == 1;
    let ((), part) = timed(world, |world| {
        for _ in 0..STEPS {
            for kind in KINDS {
                if puts {
                    wave.compute(world, kind)?;
                    wave.put_ghosts(world, kind)?;
                } else {
                    wave.get_ghosts(world, 1 - kind)?;
                    wave.compute(world, kind)?;
                }
            }
        }
        Ok(())
    })?;
    let mine = wave.blocks.of(world.rank());
    let expected = graph.serial(STEPS);
    // Both add the same numbers in the same order.
    let is_right = KINDS.iter().all(|&kind| {
        let expected = &expected[kind][mine.start as usize..mine.end as usize];
        wave.parts[kind]
            .values
            .iter()
            .map(|value| value.to_bits())
            .eq(expected.iter().map(|value| value.to_bits()))
    });
    Ok(Outcome { part, work: KINDS.len() as u64 * STEPS * arguments.size, is_right })
}

/// The part of the graph at this rank.
struct Wave {
    blocks: Blocks,
    /// By kind.
    parts: Vec<Part>,
}

/// The nodes of one kind at this rank.
struct Part {
    /// Their values, which other ranks get from the segment.
    values: Vec<f64>,
    segment: Segment,
    /// The neighbours of each node: places among the values of this rank of the other kind, followed by the ghosts;
    /// and their weights.
    neighbours: Vec<Vec<(usize, f64)>>,
    /// The nodes of this kind at other ranks whose values this rank needs, and the segment of their values.
    ghosts: Vec<u64>,
    ghost_segment: Segment,
    /// The ghosts of this rank's nodes at other ranks: the index of the value, and the place of the ghost.
    copies: Vec<(usize, GlobalPointer)>,
}

impl Wave {
    fn new(world: &mut World, graph: Graph) -> Result<Self, Error> {
        let (blocks, ranks, me) = (Blocks::new(graph.nodes, world.ranks()), world.ranks(), world.rank());
        let mine = blocks.of(me);
        let mut parts = Vec::new();
        for kind in KINDS {
            let values: Vec<f64> = mine.clone().map(|node| graph.first_value(kind, node)).collect();
            let segment = words::allocate(world, values.len())?;
            world.fill(segment, 0, &bytes_of(&values))?;
            let ghosts = ghosts(graph, kind, blocks, me);
            let ghost_segment = words::allocate(world, ghosts.len())?;
            let ghost_values: Vec<f64> = ghosts.iter().map(|&node| graph.first_value(kind, node)).collect();
            world.fill(ghost_segment, 0, &bytes_of(&ghost_values))?;
            let mut copies = Vec::new();
            for rank in (0..ranks).filter(|rank| *rank != me) {
                for (index, node) in (0..).zip(self::ghosts(graph, kind, blocks, rank)) {
                    if mine.contains(&node) {
                        let at = GlobalPointer { rank, segment: ghost_segment.number(), offset: 8 * index };
                        copies.push(((node - mine.start) as usize, at));
                    }
                }
            }
            parts.push(Part { values, segment, neighbours: Vec::new(), ghosts, ghost_segment, copies });
        }
        for kind in KINDS {
            let others = &parts[1 - kind];
            let ghosts: HashMap<u64, usize> =
                others.ghosts.iter().copied().zip(others.values.len()..).collect();
            let place =
                |node: u64| ghosts.get(&node).copied().unwrap_or_else(|| (node - mine.start) as usize);
            let of =
                |node| graph.neighbours(kind, node).map(|(other, weight)| (place(other), weight)).collect();
            parts[kind].neighbours = mine.clone().map(of).collect();
        }
        Ok(Self { blocks, parts })
    }

    /// Computes the values of a kind from those of the other kind and their ghosts.
    fn compute(&mut self, world: &mut World, kind: usize) -> Result<(), Error> {
        let others = &self.parts[1 - kind];
        let ghosts = world.words(others.ghost_segment, 0, others.ghosts.len())?;
        let others: Vec<f64> = others.values.iter().copied().chain(ghosts.map(f64::from_bits)).collect();
        let part = &mut self.parts[kind];
        for (value, neighbours) in part.values.iter_mut().zip(&part.neighbours) {
            *value = neighbours.iter().fold(*value, |value, &(place, weight)| value - weight * others[place]);
        }
        world.fill(part.segment, 0, &bytes_of(&part.values))
    }

    /// Gets the ghosts of a kind, once all ranks have computed their values.
    fn get_ghosts(&self, world: &mut World, kind: usize) -> Result<(), Error> {
        world.barrier()?;
        let part = &self.parts[kind];
        for (index, &node) in (0..).zip(&part.ghosts) {
            let (rank, place) = self.blocks.find(node);
            let from = GlobalPointer { rank, segment: part.segment.number(), offset: 8 * place };
            world.get(from, part.ghost_segment, 8 * index, 8)?;
        }
        world.sync()
    }

    /// Puts the values of a kind into their ghosts at other ranks. All ranks have theirs afterwards.
    fn put_ghosts(&self, world: &mut World, kind: usize) -> Result<(), Error> {
        let part = &self.parts[kind];
        for &(index, at) in &part.copies {
            world.put(at, &part.values[index].to_le_bytes())?;
        }
        world.sync()?;
        world.barrier()
    }
}

/// Returns the nodes of a kind whose values a rank needs from other ranks, in order.
fn ghosts(graph: Graph, kind: usize, blocks: Blocks, rank: u32) -> Vec<u64> {
    let mine = blocks.of(rank);
    let neighbours = mine.clone().flat_map(|node| graph.neighbours(1 - kind, node)).map(|(other, _)| other);
    let mut ghosts: Vec<u64> = neighbours.filter(|other| !mine.contains(other)).collect();
    ghosts.sort_unstable();
    ghosts.dedup();
    ghosts
}

fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
