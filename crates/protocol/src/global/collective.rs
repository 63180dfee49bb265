//! Collective operations by trees: barrier, broadcast, reduce and all-reduce, as a state machine.
//!
//! All ranks call the same collectives in the same order, so that a number identifies each. A rank may be ahead of
//! others. Its messages are kept until this rank calls the collective as well. [`Collectives::is_barrier_due`] bounds
//! how far a rank can be ahead.

use super::message::{Collective, Combination, Direction, TreeMessage};
use super::tree::Tree;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Number of collectives by which a rank may be ahead of another.
const LEAD: u64 = 64;

/// The next thing to do for the running collective.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this message to a rank: the direction, with [`Collectives::message`].
    Send {
        /// The receiver.
        to: u32,
        /// The direction of the message.
        direction: Direction,
    },
    /// Wait for a message.
    Wait,
    /// The collective is over; the value is the result. At a rank that receives none it has no meaning.
    Done(Vec<u8>),
}

/// A rank has called another collective than this one, or with a value of another length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The number of the collective in the job.
    pub sequence: u64,
    /// The rank.
    pub rank: u32,
}

/// A message that no correct rank sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected;

/// The position of this rank in the running collective.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// It takes the value of the child with this index.
    Gathering(usize),
    /// It waits for the value of its parent.
    Awaiting,
    /// It sends the value to the child with this index.
    Spreading(usize),
}

#[derive(Debug)]
struct Running {
    collective: Collective,
    tree: Tree,
    children: Vec<u32>,
    stage: Stage,
    value: Vec<u8>,
}

/// A message that came before this rank needed it.
#[derive(Debug)]
struct Early {
    collective: Collective,
    value: Vec<u8>,
}

/// The collective operations of a rank.
#[derive(Debug)]
pub struct Collectives {
    rank: u32,
    ranks: u32,
    /// The number of the running collective, or of the next one.
    sequence: u64,
    running: Option<Running>,
    early: BTreeMap<(u64, Direction, u32), Early>,
}

impl Collective {
    /// Returns the root of its tree.
    #[must_use]
    pub const fn root(self) -> u32 {
        match self {
            Self::Barrier | Self::AllReduce { .. } => 0,
            Self::Broadcast { root } | Self::Reduce { root, .. } => root,
        }
    }

    /// Reports whether values go from the leaves to the root.
    const fn gathers(self) -> bool {
        !matches!(self, Self::Broadcast { .. })
    }

    /// Reports whether the value goes from the root to the leaves.
    const fn spreads(self) -> bool {
        !matches!(self, Self::Reduce { .. })
    }

    const fn combination(self) -> Option<Combination> {
        match self {
            Self::Reduce { combination, .. } | Self::AllReduce { combination } => Some(combination),
            Self::Barrier | Self::Broadcast { .. } => None,
        }
    }
}

impl Collectives {
    /// Returns the state of `rank` in a job of `ranks`. The rank is below `ranks`.
    pub const fn new(rank: u32, ranks: u32) -> Self {
        Self { rank, ranks, sequence: 0, running: None, early: BTreeMap::new() }
    }

    /// Reports whether the next collective must be a barrier, so that no rank is far ahead of another.
    pub const fn is_barrier_due(&self) -> bool {
        self.sequence % LEAD == LEAD - 1
    }

    /// Starts a collective with the value of this rank. At a rank that receives a broadcast, only the length of the
    /// value matters. The root is below the number of ranks, and no other collective runs.
    pub fn start(&mut self, collective: Collective, value: Vec<u8>) {
        debug_assert!(self.running.is_none());
        let tree = Tree::new(self.rank, self.ranks, collective.root());
        let stage = if collective.gathers() { Stage::Gathering(0) } else { Stage::Awaiting };
        self.running = Some(Running { collective, tree, children: tree.children().collect(), stage, value });
    }

    /// Takes a message of the rank `from`.
    ///
    /// # Errors
    /// Returns `Unexpected` if the message came twice, or for a collective that is over or too far ahead.
    pub fn take(&mut self, from: u32, message: &TreeMessage<'_>) -> Result<(), Unexpected> {
        let TreeMessage { direction, collective, sequence, value } = *message;
        let key = (sequence, direction, from);
        let is_near = sequence.checked_sub(self.sequence).is_some_and(|ahead| ahead <= LEAD);
        if !is_near || from >= self.ranks || self.early.contains_key(&key) {
            return Err(Unexpected);
        }
        self.early.insert(key, Early { collective, value: value.to_vec() });
        Ok(())
    }

    /// Returns the message of a [`Step::Send`].
    pub fn message(&self, direction: Direction) -> Option<TreeMessage<'_>> {
        let Running { collective, value, .. } = self.running.as_ref()?;
        Some(TreeMessage { direction, collective: *collective, sequence: self.sequence, value })
    }

    /// Returns the next thing to do for the running collective.
    ///
    /// # Errors
    /// Returns `Mismatch` if another rank has called another collective. The collectives of the job cannot continue.
    pub fn step(&mut self) -> Result<Step, Mismatch> {
        let Self { sequence, running, early, .. } = self;
        let Some(run) = running.as_mut() else { return Ok(Step::Wait) };
        let mut taken =
            |direction, rank: u32, run: &Running| match early.remove(&(*sequence, direction, rank)) {
                Some(Early { collective, value }) => {
                    let is_same = collective == run.collective && value.len() == run.value.len();
                    if is_same { Ok(Some(value)) } else { Err(Mismatch { sequence: *sequence, rank }) }
                }
                None => Ok(None),
            };
        loop {
            match run.stage {
                Stage::Gathering(nth) => match run.children.get(nth) {
                    Some(&child) => {
                        let Some(value) = taken(Direction::Up, child, run)? else { return Ok(Step::Wait) };
                        if let Some(combination) = run.collective.combination() {
                            combine(combination, &mut run.value, &value);
                        }
                        run.stage = Stage::Gathering(nth + 1);
                    }
                    None => {
                        run.stage = Stage::Awaiting;
                        if let Some(to) = run.tree.parent() {
                            return Ok(Step::Send { to, direction: Direction::Up });
                        }
                    }
                },
                Stage::Awaiting if !run.collective.spreads() => break,
                Stage::Awaiting => {
                    if let Some(parent) = run.tree.parent() {
                        let Some(value) = taken(Direction::Down, parent, run)? else {
                            return Ok(Step::Wait);
                        };
                        run.value = value;
                    }
                    run.stage = Stage::Spreading(run.children.len());
                }
                // The child with the greatest subtree comes first.
                Stage::Spreading(0) => break,
                Stage::Spreading(left) => {
                    run.stage = Stage::Spreading(left - 1);
                    return Ok(Step::Send { to: run.children[left - 1], direction: Direction::Down });
                }
            }
        }
        *sequence += 1;
        // No correct rank sends a message that the collective did not need.
        while early.first_key_value().is_some_and(|((number, ..), _)| number < sequence) {
            early.pop_first();
        }
        let value = running.take().map(|run| run.value);
        Ok(Step::Done(value.unwrap_or_default()))
    }
}

/// Combines `other` into `value`, word by word. Both have the same length, a multiple of eight.
fn combine(combination: Combination, value: &mut [u8], other: &[u8]) {
    let (words, _) = value.as_chunks_mut::<8>();
    let (others, _) = other.as_chunks::<8>();
    for (word, other) in words.iter_mut().zip(others) {
        *word = combination.of(u64::from_le_bytes(*word), u64::from_le_bytes(*other)).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_no_rank_needs_is_forgotten_with_its_collective() {
        let mut collectives = Collectives::new(0, 2);
        for sequence in 0..1000 {
            let message =
                |direction| TreeMessage { direction, collective: Collective::Barrier, sequence, value: &[] };
            collectives.start(Collective::Barrier, Vec::new());
            // The child of this rank has no value for it on the way down.
            collectives.take(1, &message(Direction::Down)).unwrap();
            collectives.take(1, &message(Direction::Up)).unwrap();
            while !matches!(collectives.step(), Ok(Step::Done(_))) {}
            assert!(collectives.early.is_empty());
        }
    }
}
