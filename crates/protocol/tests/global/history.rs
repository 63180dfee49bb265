//! The history of a run: the operations of all ranks and their results, for the oracles.

use crate::linearizability::{Access, Call, is_linearizable};
use crate::programs::WordOperation;
use crate::visibility::{Moment, Writes};
use netdyno_protocol::global::GlobalPointer;
use std::collections::BTreeMap;

/// The place of a result at its initiator.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// The operation has no result.
    Nowhere,
    /// `Initiator::bytes`.
    Bytes,
    /// `Initiator::value`.
    Value,
    /// The landing segment, at this offset.
    Landing(u64),
}

/// An operation that is not synced yet.
#[derive(Clone, Copy, Debug)]
pub enum Record {
    /// The write of this number in [`Writes`].
    Write {
        number: usize,
    },
    Read {
        at: GlobalPointer,
        len: u64,
        begin: Moment,
        place: Place,
    },
    Word {
        at: GlobalPointer,
        operation: WordOperation,
        begin: u64,
        place: Place,
    },
    /// An addition to the counter.
    Counter {
        place: Place,
    },
}

impl Record {
    pub fn place(&self) -> Place {
        match self {
            Self::Write { .. } => Place::Nowhere,
            Self::Read { place, .. } | Self::Word { place, .. } | Self::Counter { place } => *place,
        }
    }

    /// Returns the length of the result, if it has one.
    pub fn len(&self) -> u64 {
        if let Self::Read { len, .. } = self { *len } else { 8 }
    }
}

/// The operations of all ranks.
pub struct History {
    pub seed: u64,
    events: u64,
    /// Number of ranks that have entered each barrier.
    entered: BTreeMap<usize, u32>,
    ranks: u32,
    pub writes: Writes,
    /// The operations on each mixed word.
    words: BTreeMap<GlobalPointer, Vec<Call>>,
}

impl History {
    pub fn new(seed: u64, ranks: u32) -> Self {
        let (entered, writes, words) = Default::default();
        Self { seed, events: 0, entered, ranks, writes, words }
    }

    /// Returns the moment of a new event at a rank.
    pub fn moment(&mut self, rank: u32, barriers: usize) -> Moment {
        self.events += 1;
        Moment { rank, barriers, event: self.events }
    }

    pub fn enter(&mut self, barrier: usize) {
        *self.entered.entry(barrier).or_default() += 1;
    }

    pub fn leave(&mut self, barrier: usize) {
        let (entered, seed) = (self.entered[&barrier], self.seed);
        assert_eq!(entered, self.ranks, "seed {seed}: a rank left a barrier before all had entered");
    }

    /// Ends an operation, and checks the result of a read.
    pub fn end(&mut self, record: Record, result: &[u8], rank: u32, barriers: usize) {
        let end = self.moment(rank, barriers);
        let seed = self.seed;
        match record {
            Record::Write { number } => self.writes.end(number, end),
            Record::Read { at, begin, .. } => {
                let checked = self.writes.check(at, result, begin);
                checked.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
            Record::Word { at, operation, begin, .. } => {
                let value = || u64::from_le_bytes(result.try_into().unwrap());
                let access = match operation {
                    WordOperation::Read => Access::Read { seen: value() },
                    WordOperation::Write(value) => Access::Write { value },
                    WordOperation::Add(addend) => Access::Add { addend },
                    WordOperation::FetchAdd(addend) => Access::FetchAdd { addend, old: value() },
                    WordOperation::CompareSwap { expected, new } => {
                        Access::CompareSwap { expected, new, old: value() }
                    }
                };
                self.words.entry(at).or_default().push(Call { begin, end: end.event, access });
            }
            Record::Counter { .. } => {}
        }
    }

    /// Checks the operations on each mixed word, and its value after them.
    pub fn check_words(&mut self, value: impl Fn(GlobalPointer) -> u64) {
        for (at, calls) in &mut self.words {
            let access = Access::Read { seen: value(*at) };
            calls.push(Call { begin: self.events + 1, end: self.events + 2, access });
            assert!(is_linearizable(calls), "seed {}: {at:?} is not linearizable: {calls:#?}", self.seed);
        }
    }

    /// Returns the numbers of compare-and-swaps of mixed words that failed and that succeeded.
    pub fn swaps(&self) -> [u64; 2] {
        let mut swaps = [0; 2];
        for call in self.words.values().flatten() {
            if let Access::CompareSwap { expected, old, .. } = call.access {
                swaps[usize::from(old == expected)] += 1;
            }
        }
        swaps
    }
}
