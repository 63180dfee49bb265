//! One rank: it executes its program, serves the others, and records its operations for the oracles.

use crate::history::{History, Place, Record};
use crate::memory::{LANDING, Memory};
use crate::programs::{ADDED, COUNTER, SWAPPED, Statement, WordOperation, word};
use netdyno_protocol::global::collective::{Collectives, Step};
use netdyno_protocol::global::initiator::{Completion, Initiator, Landing, Outstanding};
use netdyno_protocol::global::message::{Collective, Operation, Outcome, Reply, Request, Words};
use netdyno_protocol::global::{GlobalPointer, target};
use std::collections::BTreeMap;

pub const OPERATE: u8 = 0;
pub const TREE: u8 = 1;

/// A request that waits for room in a window.
pub enum Waiting {
    Message {
        handler: u8,
        words: Vec<u64>,
        payload: Vec<u8>,
    },
    /// A bulk store: its ticket, and whether the target counts its bytes.
    Store {
        ticket: u32,
        is_counted: bool,
        at: GlobalPointer,
        bytes: Vec<u8>,
    },
    /// A bulk get into the landing segment.
    Get {
        ticket: u32,
        at: GlobalPointer,
        len: u64,
        landing: u64,
    },
}

pub struct Rank {
    number: u32,
    pub memory: Memory,
    pub initiator: Initiator,
    pub collectives: Collectives,
    pub program: Vec<Statement>,
    /// The number of the current statement.
    pub at: usize,
    /// Whether the current statement was begun.
    is_begun: bool,
    /// The most bytes of one message. More are a bulk transfer.
    piece: u64,
    /// The requests that are not sent, and the rank that each goes to.
    pub outgoing: Vec<(u32, Waiting)>,
    /// The operations that each completion waits for.
    records: [Vec<Record>; 3],
    /// The old values that additions to the counter returned.
    pub drawn: Vec<u64>,
    /// The value that each word had when this rank last read it.
    last: BTreeMap<GlobalPointer, u64>,
    pub barriers: usize,
    pub stored: u64,
}

impl Rank {
    pub fn new(number: u32, ranks: u32, piece: u64, program: Vec<Statement>) -> Self {
        Self {
            number,
            memory: Memory::new(),
            initiator: Initiator::new(number),
            collectives: Collectives::new(number, ranks),
            program,
            at: 0,
            is_begun: false,
            piece,
            outgoing: Vec::new(),
            records: [(); 3].map(|()| Vec::new()),
            drawn: Vec::new(),
            last: BTreeMap::new(),
            barriers: 0,
            stored: 0,
        }
    }

    /// Runs one step of the program. Returns whether it can go on.
    pub fn advance(&mut self, history: &mut History) -> bool {
        if self.at == self.program.len() {
            return false;
        }
        let program = std::mem::take(&mut self.program);
        let begins = !std::mem::replace(&mut self.is_begun, true);
        let is_over = self.execute(&program[self.at], begins, history);
        self.program = program;
        if is_over {
            (self.at, self.is_begun) = (self.at + 1, false);
        }
        is_over
    }

    /// Serves an operation. The answer has at most `longest` bytes.
    pub fn serve(&mut self, words: Words, payload: &[u8], longest: usize) -> (Words, Vec<u8>) {
        let request = Request::parse(words, payload).unwrap();
        let mut out = Vec::new();
        let outcome = target::serve(&request, &mut self.memory, longest, &mut out);
        if let (Operation::Store(data), Outcome::Written) = (request.operation, outcome) {
            self.stored += data.as_slice().len() as u64;
        }
        let reply = Reply { ticket: request.ticket, outcome };
        let (words, payload) = reply.encode();
        (words, payload.to_vec())
    }

    /// Takes the reply of the rank `from`.
    pub fn take(&mut self, from: u32, words: Words, payload: &[u8]) {
        let reply = Reply::parse(words, payload).unwrap();
        self.initiator.take(from, reply, &mut self.memory).unwrap();
    }

    fn is_bulk(&self, at: GlobalPointer, len: u64) -> bool {
        at.rank != self.number && len > self.piece
    }

    fn post(
        &mut self,
        at: GlobalPointer,
        len: u64,
        operation: Operation<'_>,
        landing: Landing,
        completion: Completion,
    ) {
        let ticket = self.initiator.begin(Outstanding { at, len, landing, completion });
        let request = Request { ticket, segment: at.segment, offset: at.offset, operation };
        let (words, payload) = request.encode();
        let (words, payload) = (words.to_vec(), payload.to_vec());
        self.outgoing.push((at.rank, Waiting::Message { handler: OPERATE, words, payload }));
    }

    /// Begins a bulk transfer. Returns its ticket.
    fn begin_bulk(&mut self, at: GlobalPointer, len: u64, completion: Completion) -> u32 {
        let landing = Landing::Elsewhere;
        self.initiator.begin(Outstanding { at, len, landing, completion })
    }

    fn write(&mut self, at: GlobalPointer, bytes: &[u8], completion: Completion) {
        let (len, is_counted) = (bytes.len() as u64, completion == Completion::StoreSync);
        if self.is_bulk(at, len) {
            let ticket = self.begin_bulk(at, len, completion);
            let store = Waiting::Store { ticket, is_counted, at, bytes: bytes.to_vec() };
            self.outgoing.push((at.rank, store));
            return;
        }
        let operation =
            if is_counted { Operation::Store(bytes.into()) } else { Operation::Put(bytes.into()) };
        self.post(at, len, operation, Landing::Nothing, completion);
    }

    /// Begins a read. Returns the place of its result.
    fn read(&mut self, at: GlobalPointer, len: u64, completion: Completion) -> Place {
        if completion == Completion::Call && !self.is_bulk(at, len) {
            self.initiator.bytes = vec![0; len as usize];
            self.post(at, len, Operation::Get(len), Landing::Bytes(0), completion);
            return Place::Bytes;
        }
        let landing = self.memory.make_room(len);
        if self.is_bulk(at, len) {
            let ticket = self.begin_bulk(at, len, completion);
            self.outgoing.push((at.rank, Waiting::Get { ticket, at, len, landing }));
        } else {
            let landing = Landing::Segment { segment: LANDING, offset: landing };
            self.post(at, len, Operation::Get(len), landing, completion);
        }
        Place::Landing(landing)
    }

    /// Begins an operation that returns a word. Returns the place of its result.
    fn fetch_word(&mut self, at: GlobalPointer, operation: Operation<'_>, completion: Completion) -> Place {
        if completion == Completion::Call {
            self.post(at, 8, operation, Landing::Value, completion);
            return Place::Value;
        }
        let offset = self.memory.make_room(8);
        self.post(at, 8, operation, Landing::Segment { segment: LANDING, offset }, completion);
        Place::Landing(offset)
    }

    fn operate_on_word(
        &mut self,
        at: GlobalPointer,
        operation: WordOperation,
        completion: Completion,
    ) -> Place {
        match operation {
            WordOperation::Read => self.fetch_word(at, Operation::Get(8), completion),
            WordOperation::FetchAdd(addend) => self.fetch_word(at, Operation::FetchAdd(addend), completion),
            WordOperation::CompareSwap { expected, new } => {
                self.fetch_word(at, Operation::CompareSwap { expected, new }, completion)
            }
            WordOperation::Write(value) => {
                self.write(at, &value.to_le_bytes(), completion);
                Place::Nowhere
            }
            WordOperation::Add(addend) => {
                self.post(at, 8, Operation::Add(addend), Landing::Nothing, completion);
                Place::Nowhere
            }
        }
    }

    fn record(&mut self, completion: Completion, record: Record) {
        self.records[completion as usize].push(record);
    }

    /// Reports whether all operations of a kind are over, which must not have failed. Checks their results.
    fn is_synced(&mut self, completion: Completion, history: &mut History) -> bool {
        if self.initiator.count(completion) > 0 {
            return false;
        }
        assert_eq!(self.initiator.take_failure(completion), None, "seed {}", history.seed);
        for record in std::mem::take(&mut self.records[completion as usize]) {
            let result = match record.place() {
                Place::Nowhere => Vec::new(),
                Place::Bytes => self.initiator.bytes.clone(),
                Place::Value => self.initiator.value.to_le_bytes().to_vec(),
                Place::Landing(offset) => self.memory.landed(offset, record.len()),
            };
            if let Record::Word { at, .. } = record
                && let Ok(word) = result[..].try_into()
            {
                self.last.insert(at, u64::from_le_bytes(word));
            }
            if let Record::Counter { .. } = record {
                self.drawn.push(u64::from_le_bytes(result[..].try_into().unwrap()));
            }
            history.end(record, &result, self.number, self.barriers);
        }
        if completion == Completion::Sync && self.records[Completion::Call as usize].is_empty() {
            self.memory.clear_landing();
        }
        true
    }

    /// Begins or continues a statement. Returns whether it is over.
    fn execute(&mut self, statement: &Statement, begins: bool, history: &mut History) -> bool {
        if !begins && statement.is_blocking() {
            return self.is_synced(Completion::Call, history);
        }
        let moment = history.moment(self.number, self.barriers);
        match statement {
            Statement::Write { at, bytes, completion } => {
                self.write(*at, bytes, *completion);
                let number = history.writes.begin(*at, bytes.clone(), moment);
                self.record(*completion, Record::Write { number });
            }
            Statement::Read { at, len, completion } => {
                let place = self.read(*at, *len, *completion);
                self.record(*completion, Record::Read { at: *at, len: *len, begin: moment, place });
            }
            Statement::Word { at, operation, completion } => {
                let mut operation = *operation;
                if let WordOperation::CompareSwap { expected, .. } = &mut operation {
                    // It fails if the word has another value by now.
                    *expected = self.last.get(at).copied().unwrap_or(0);
                }
                let place = self.operate_on_word(*at, operation, *completion);
                self.record(*completion, Record::Word { at: *at, operation, begin: moment.event, place });
            }
            Statement::FetchAdd(completion) => {
                let at = word(0, COUNTER);
                let place = self.fetch_word(at, Operation::FetchAdd(1), *completion);
                self.record(*completion, Record::Counter { place });
            }
            Statement::Add(addend) => {
                let add = Operation::Add(*addend);
                self.post(word(0, ADDED), 8, add, Landing::Nothing, Completion::Sync);
            }
            Statement::Sync => return self.is_synced(Completion::Sync, history),
            Statement::StoreSync => return self.is_synced(Completion::StoreSync, history),
            Statement::Increment => return self.increment(begins, history),
            Statement::Wrong { at, .. } if begins => {
                self.post(*at, 8, Operation::Put([1; 8][..].into()), Landing::Nothing, Completion::Call);
                return false;
            }
            Statement::Wrong { at, refusal } => {
                if self.initiator.count(Completion::Call) > 0 {
                    return false;
                }
                let failure = self.initiator.take_failure(Completion::Call).unwrap();
                assert_eq!((failure.at, failure.refusal), (*at, *refusal), "seed {}", history.seed);
            }
            Statement::Collective { collective, mine, result } => {
                return self.collect(*collective, mine, result, begins, history);
            }
        }
        !statement.is_blocking()
    }

    /// Increments the swapped word by compare-and-swap, until that succeeds.
    fn increment(&mut self, begins: bool, history: &mut History) -> bool {
        let at = word(0, SWAPPED);
        if !begins {
            if !self.is_synced(Completion::Call, history) {
                return false;
            }
            let old = self.initiator.value;
            if self.last.insert(at, old).unwrap_or(0) == old {
                return true;
            }
        }
        let expected = self.last.get(&at).copied().unwrap_or(0);
        let operation = Operation::CompareSwap { expected, new: expected + 1 };
        self.post(at, 8, operation, Landing::Value, Completion::Call);
        false
    }

    fn collect(
        &mut self,
        collective: Collective,
        mine: &[u64],
        result: &Option<Vec<u64>>,
        begins: bool,
        history: &mut History,
    ) -> bool {
        if begins {
            if collective == Collective::Barrier {
                history.enter(self.barriers);
            }
            let due = self.collectives.is_barrier_due();
            self.start(if due { Collective::Barrier } else { collective }, if due { &[] } else { mine });
        }
        loop {
            match self.collectives.step().unwrap() {
                Step::Wait => return false,
                Step::Send { to, direction } => {
                    let message = self.collectives.message(direction).unwrap();
                    let (words, payload) = message.encode();
                    let (words, payload) = (words.to_vec(), payload.to_vec());
                    self.outgoing.push((to, Waiting::Message { handler: TREE, words, payload }));
                }
                // The barrier that was due is over.
                Step::Done(value) if value.is_empty() && !mine.is_empty() => self.start(collective, mine),
                Step::Done(value) => {
                    if let Some(result) = result {
                        assert_eq!(value, bytes(result), "seed {}: {collective:?}", history.seed);
                    }
                    if collective == Collective::Barrier {
                        history.leave(self.barriers);
                        self.barriers += 1;
                    }
                    return true;
                }
            }
        }
    }

    fn start(&mut self, collective: Collective, mine: &[u64]) {
        self.collectives.start(collective, bytes(mine));
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
