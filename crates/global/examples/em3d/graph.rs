//! A bipartite graph that a seed determines, and its values as one process computes them.

use crate::words::random;

/// The kinds of nodes: electric and magnetic.
pub const KINDS: [usize; 2] = [0, 1];
/// Neighbours of a node. Each is of the other kind.
const DEGREE: u64 = 5;
/// The share of neighbours that may be anywhere, in percent. The others are near.
const FAR: u64 = 20;
/// The largest distance of a near neighbour.
const NEAR: u64 = 8;
/// The largest weight of an edge. The values stay small.
const HEAVIEST: f64 = 0.1;

/// A bipartite graph.
#[derive(Clone, Copy, Debug)]
pub struct Graph {
    /// Nodes of either kind.
    pub nodes: u64,
    /// The seed.
    pub seed: u64,
}

impl Graph {
    /// Returns the value of a node before the first step.
    pub fn first_value(self, kind: usize, node: u64) -> f64 {
        share(random(self.seed.wrapping_add(kind as u64), node))
    }

    /// Returns the neighbours of a node and the weights of their edges.
    pub fn neighbours(self, kind: usize, node: u64) -> impl Iterator<Item = (u64, f64)> {
        (0..DEGREE).map(move |edge| {
            let stream = !self.seed.wrapping_add(kind as u64);
            let draw = |nth: u64| random(stream, (node * DEGREE + edge) * 3 + nth);
            let far = draw(1) % self.nodes;
            let near = (node + self.nodes * NEAR + draw(1) % (2 * NEAR + 1) - NEAR) % self.nodes;
            let neighbour = if draw(0) % 100 < FAR { far } else { near };
            (neighbour, HEAVIEST * share(draw(2)))
        })
    }

    /// Returns the values of all nodes after the steps, by kind.
    pub fn serial(self, steps: u64) -> [Vec<f64>; 2] {
        let mut values =
            KINDS.map(|kind| (0..self.nodes).map(|node| self.first_value(kind, node)).collect::<Vec<f64>>());
        for _ in 0..steps {
            for kind in KINDS {
                for node in 0..self.nodes {
                    let of = |value, (other, weight): (u64, f64)| {
                        value - weight * values[1 - kind][other as usize]
                    };
                    values[kind][node as usize] =
                        self.neighbours(kind, node).fold(values[kind][node as usize], of);
                }
            }
        }
        values
    }
}

/// Returns a number from 0 to 1.
fn share(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}
