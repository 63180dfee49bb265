//! The random programs of the ranks.

use crate::memory::{SHARED, SHARED_LEN};
use netdyno_protocol::global::initiator::Completion;
use netdyno_protocol::global::message::{Collective, Combination};
use netdyno_protocol::global::{GlobalPointer, Refusal};
use netdyno_protocol::random::Random;

/// Numbers of the words at the start of the shared segment of rank 0: the counter, the word of compare-and-swap, and the
/// word of split-phase additions.
pub const COUNTER: u64 = 0;
pub const SWAPPED: u64 = 1;
pub const ADDED: u64 = 2;
/// Number of the mixed word of ranks 0 and 1. Its operations are all those that rule 4 permits.
const MIXED: u64 = 3;
/// The offset from which on ranges are drawn, right behind the words.
pub const RANGES: u64 = 8 * (MIXED + 1);
/// The greatest length of a short range, in bytes.
const SHORT: u64 = 1024;
/// The greatest length of any range, in bytes. It takes several datagrams.
const LONGEST: u64 = 5000;

/// An operation on a mixed word.
#[derive(Clone, Copy, Debug)]
pub enum WordOperation {
    Read,
    Write(u64),
    Add(u64),
    FetchAdd(u64),
    /// The rank sets the expected value when it begins.
    CompareSwap {
        expected: u64,
        new: u64,
    },
}

/// A statement of a rank's program.
#[derive(Clone, Debug)]
pub enum Statement {
    Write {
        at: GlobalPointer,
        bytes: Vec<u8>,
        completion: Completion,
    },
    Read {
        at: GlobalPointer,
        len: u64,
        completion: Completion,
    },
    Word {
        at: GlobalPointer,
        operation: WordOperation,
        completion: Completion,
    },
    Sync,
    StoreSync,
    /// Adds one to the counter, and gets its old value.
    FetchAdd(Completion),
    /// Begins to add to the word of split-phase additions.
    Add(u64),
    /// Increments the swapped word by compare-and-swap, until that succeeds.
    Increment,
    /// A write that the target must refuse.
    Wrong {
        at: GlobalPointer,
        refusal: Refusal,
    },
    Collective {
        collective: Collective,
        mine: Vec<u64>,
        result: Option<Vec<u64>>,
    },
}

impl Statement {
    /// Reports whether the statement begins an operation and waits for it.
    pub fn is_blocking(&self) -> bool {
        match self {
            Self::Write { completion, .. }
            | Self::Read { completion, .. }
            | Self::Word { completion, .. }
            | Self::FetchAdd(completion) => *completion == Completion::Call,
            _ => false,
        }
    }
}

/// Returns the place of a word at the start of a shared segment.
pub fn word(rank: u32, number: u64) -> GlobalPointer {
    GlobalPointer { rank, segment: SHARED, offset: 8 * number }
}

/// The programs of all ranks, while they are drawn.
pub struct Programs<'a> {
    random: &'a mut Random,
    pub programs: Vec<Vec<Statement>>,
    /// The ranges written so far, among which reads choose theirs.
    written: Vec<(GlobalPointer, u64)>,
}

impl<'a> Programs<'a> {
    pub fn new(random: &'a mut Random, ranks: u32) -> Self {
        Self { random, programs: vec![Vec::new(); ranks as usize], written: Vec::new() }
    }

    fn ranks(&self) -> u32 {
        self.programs.len() as u32
    }

    /// Adds a phase: all ranks operate between two barriers, then all read, then they call the other collectives.
    pub fn add_phase(&mut self, phase: u64) {
        for rank in 0..self.ranks() {
            for _ in 0..self.random.below(20) {
                let statements = self.draw();
                self.programs[rank as usize].extend(statements);
            }
            self.programs[rank as usize].extend([Statement::Sync, Statement::StoreSync]);
        }
        self.add_barrier();
        for rank in 0..self.ranks() {
            for _ in 0..self.random.below(20) {
                let read = self.draw_read(Completion::Sync);
                self.programs[rank as usize].push(read);
            }
            self.programs[rank as usize].push(Statement::Sync);
        }
        self.add_reductions(phase);
        // Orders the reads of this phase before the writes of the next one in half of the phases.
        if self.random.below(2) == 0 {
            self.add_barrier();
        }
    }

    /// Adds broadcasts alone.
    pub fn add_broadcasts(&mut self, count: u64) {
        for nth in 0..count {
            let mine = |rank| vec![if rank == 0 { nth } else { 0 }];
            self.add_collective(Collective::Broadcast { root: 0 }, mine, |_| Some(vec![nth]));
        }
    }

    fn add_collective(
        &mut self,
        collective: Collective,
        mine: impl Fn(u32) -> Vec<u64>,
        result: impl Fn(u32) -> Option<Vec<u64>>,
    ) {
        for (rank, program) in (0..).zip(&mut self.programs) {
            let (mine, result) = (mine(rank), result(rank));
            program.push(Statement::Collective { collective, mine, result });
        }
    }

    fn add_barrier(&mut self) {
        self.add_collective(Collective::Barrier, |_| Vec::new(), |_| None);
    }

    fn add_reductions(&mut self, phase: u64) {
        let n = self.ranks();
        let root = self.random.below(n.into()) as u32;
        let value = |rank: u32| vec![u64::from(rank) + phase, (u64::from(rank) * 7 + phase) ^ 5];
        let fold = |combination: Combination| {
            let all = (0..n).map(value);
            all.reduce(|a, b| a.iter().zip(b).map(|(&a, b)| combination.of(a, b)).collect())
        };
        let sum = fold(Combination::Sum);
        let reduce = Collective::Reduce { root, combination: Combination::Sum };
        self.add_collective(reduce, value, |rank| sum.clone().filter(|_| rank == root));
        let most = fold(Combination::Max);
        self.add_collective(Collective::AllReduce { combination: Combination::Max }, value, |_| most.clone());
        self.add_collective(Collective::Broadcast { root }, value, |_| Some(value(root)));
    }

    /// Draws some statements.
    fn draw(&mut self) -> Vec<Statement> {
        let at = self.draw_range().0;
        match self.random.below(20) {
            0..6 => vec![self.draw_write()],
            6 | 7 => {
                let write = self.draw_write();
                let completion = self.draw_completion();
                vec![write, Statement::Sync, self.draw_read(completion)]
            }
            8 | 9 => {
                let completion = self.draw_completion();
                vec![self.draw_read(completion)]
            }
            10..14 => self.draw_words(),
            14 => vec![Statement::FetchAdd(Completion::Call)],
            15 => vec![Statement::FetchAdd(Completion::Sync), Statement::Sync],
            16 => (0..1 + self.random.below(5)).map(|_| Statement::Add(self.random.bits())).collect(),
            17 => vec![Statement::Increment],
            18 => vec![Statement::Wrong {
                at: GlobalPointer { offset: SHARED_LEN - 7, ..at },
                refusal: Refusal::OutOfBounds { segment_len: SHARED_LEN },
            }],
            _ => vec![Statement::Wrong {
                at: GlobalPointer { segment: 9, ..at },
                refusal: Refusal::NoSuchSegment,
            }],
        }
    }

    fn draw_completion(&mut self) -> Completion {
        if self.random.below(2) == 0 { Completion::Call } else { Completion::Sync }
    }

    /// Draws a range: a word, a few bytes, up to 1024 bytes, or more.
    fn draw_range(&mut self) -> (GlobalPointer, u64) {
        let len = match self.random.below(8) {
            0 | 1 => 8,
            2 => self.random.below(33),
            3..7 => self.random.below(SHORT + 1),
            _ => SHORT + self.random.below(LONGEST - SHORT + 1),
        };
        let offset = RANGES + self.random.below(SHARED_LEN - RANGES - len + 1);
        // Words are often aligned.
        let offset = if len == 8 && self.random.below(2) == 0 { offset & !7 } else { offset };
        let rank = self.random.below(self.ranks().into()) as u32;
        (GlobalPointer { rank, segment: SHARED, offset }, len)
    }

    fn draw_write(&mut self) -> Statement {
        let (at, len) = self.draw_range();
        self.written.push((at, len));
        // Random bytes tell the writes apart.
        let bytes = (0..len).map(|_| self.random.bits() as u8).collect();
        let completion =
            if self.random.below(3) == 0 { Completion::StoreSync } else { self.draw_completion() };
        Statement::Write { at, bytes, completion }
    }

    /// Draws a read. It often begins where the latest write of the program began.
    fn draw_read(&mut self, completion: Completion) -> Statement {
        let (mut at, mut len) = self.draw_range();
        let choices = if self.random.below(2) == 0 { 1 } else { 40 };
        let back = self.random.below(choices) as usize;
        if let Some((written, written_len)) = self.written.iter().rev().nth(back) {
            (at.rank, at.offset) = (written.rank, written.offset);
            len = if self.random.below(2) == 0 { *written_len } else { len.min(SHARED_LEN - at.offset) };
        }
        Statement::Read { at, len, completion }
    }

    /// Draws up to three operations on a mixed word, and a sync.
    fn draw_words(&mut self) -> Vec<Statement> {
        let at = word(self.random.below(u64::from(self.ranks()).min(2)) as u32, MIXED);
        let mut statements = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let bits = self.random.bits();
            let (operation, completion) = match self.random.below(6) {
                0 => (WordOperation::Read, self.draw_completion()),
                1 => (WordOperation::Write(bits), self.draw_completion()),
                2 => (WordOperation::Add(bits), Completion::Sync),
                3 => (WordOperation::FetchAdd(bits), self.draw_completion()),
                4 => (WordOperation::Write(bits), Completion::StoreSync),
                _ => {
                    // Most of them fail unless the rank has just read the word.
                    if self.random.below(2) == 0 {
                        let read = WordOperation::Read;
                        statements.push(Statement::Word {
                            at,
                            operation: read,
                            completion: Completion::Call,
                        });
                    }
                    (WordOperation::CompareSwap { expected: 0, new: bits }, Completion::Call)
                }
            };
            statements.push(Statement::Word { at, operation, completion });
        }
        statements.push(Statement::Sync);
        if self.random.below(2) == 0 {
            statements.push(Statement::StoreSync);
        }
        statements
    }
}
