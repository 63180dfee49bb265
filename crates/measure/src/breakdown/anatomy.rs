//! What a layer can do in parts, and how the cost of each step follows from that.
//!
//! A layer makes runs. A run makes operations a number of times, and times them by its probes. A step is a
//! difference of probes: of an operation with the step and of the same operation without it. The probes of all
//! steps are measured in turn within each launch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The table that an operation belongs to (von Eicken et al. 1994, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// System calls: the way into the kernel and back, and what the call does there.
    Crossing,
    /// An exchange of the same bytes without the layer's protocol.
    Exchange,
    /// An operation of the layer.
    #[default]
    Operation,
}

impl Table {
    /// Returns the title of the table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Crossing => "system calls",
            Self::Exchange => "plain exchange",
            Self::Operation => "operations of the layer",
        }
    }
}

/// One run of a layer: operations in a row, some of which are timed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// What each of its probes times, as in `send request`.
    pub probes: Vec<String>,
    /// The largest number of operations in one run.
    pub most: u64,
}

/// A probe's share in the cost of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Term {
    /// The index of the probe, counted through all runs.
    pub probe: usize,
    /// How often it counts; negative where the operation is without the step.
    pub times: f64,
}

/// A step of an operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What it does, as in `checksum`.
    pub name: String,
    /// The probes whose sum is its cost.
    pub terms: Vec<Term>,
}

/// An operation with its steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// The table in which it stands.
    pub table: Table,
    /// What it does, as in `send request`.
    pub name: String,
    /// The index of the probe that times it as a whole, counted through all runs.
    pub whole: usize,
    /// Its steps, in the order in which they are made.
    pub steps: Vec<Step>,
}

/// What a layer can do in parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Anatomy {
    /// Its runs.
    pub runs: Vec<Run>,
    /// The operations that follow from them, by table.
    pub operations: Vec<Operation>,
}

impl Anatomy {
    /// Returns the number of probes of all runs.
    pub fn probes(&self) -> usize {
        self.runs.iter().map(|run| run.probes.len()).sum()
    }

    /// Reports that every operation and every step names probes that there are.
    pub(super) fn is_sound(&self) -> bool {
        let probes = self.probes();
        self.operations.iter().all(|operation| {
            operation.whole < probes
                && operation.steps.iter().flat_map(|step| &step.terms).all(|term| term.probe < probes)
        })
    }

    /// Adds a run with these probes, of at most `most` operations. Returns the indices of its probes.
    pub fn run<const N: usize>(&mut self, most: u64, probes: [&str; N]) -> [usize; N] {
        let first = self.probes();
        self.runs.push(Run { probes: probes.map(String::from).into(), most });
        std::array::from_fn(|nth| first + nth)
    }

    /// Adds an operation, which the probe `whole` times, with its steps. The cost of a step is the sum of its probes,
    /// each with the number of times that it counts.
    pub fn operation(&mut self, table: Table, name: &str, whole: usize, steps: &[(&str, &[(usize, f64)])]) {
        let term = |&(probe, times): &(usize, f64)| Term { probe, times };
        let step = |(name, terms): &(&str, &[(usize, f64)])| Step {
            name: (*name).into(),
            terms: terms.iter().map(term).collect(),
        };
        let steps = steps.iter().map(step).collect();
        self.operations.push(Operation { table, name: name.into(), whole, steps });
    }
}
