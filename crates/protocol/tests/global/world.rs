//! The simulated world: ranks with their programs, connections and networks, and the oracle.

use netdyno_protocol::faults::Faults;
use netdyno_protocol::frame::datagram::{self, Datagram, Kind};
use netdyno_protocol::global::collective::{Collectives, Step};
use netdyno_protocol::global::initiator::{Completion, Initiator, Landing, Outstanding};
use netdyno_protocol::global::message::{
    Collective, Combination, Operation, Reply, Request, TreeMessage, Words,
};
use netdyno_protocol::global::{GlobalPointer, Refusal, Segments, target};
use netdyno_protocol::random::Random;
use netdyno_protocol::reliability::{Config, Connection, Delivery};
use netdyno_protocol::sim::network::Network;
use std::collections::{BTreeMap, BTreeSet};

const OPERATE: u8 = 0;
const TREE: u8 = 1;
/// Slots of eight bytes in segment 0. Slot 0 is the counter, slot 1 the word of compare-and-swap, slot 2 that of
/// split-phase additions. Of the others each rank writes those whose number is its rank modulo the number of ranks.
const SLOTS: u64 = 64;
const COUNTER: u64 = 0;
const SWAPPED: u64 = 1;
const ADDED: u64 = 2;
const FIRST: u64 = 3;
/// Segment 1 receives gets.
const LANDING: u32 = 1;
/// Slot of the landing segment for old values.
const OLD: u64 = 1;
const HEALED_NS: u64 = 2_000_000_000;
const END_NS: u64 = 60_000_000_000;

#[derive(Default)]
struct Memory([Vec<u8>; 2]);

impl Segments for Memory {
    fn len(&self, segment: u32) -> Option<u64> {
        self.0.get(segment as usize).map(|bytes| bytes.len() as u64)
    }
    fn read(&self, segment: u32, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0[segment as usize][offset as usize..][..into.len()]);
    }
    fn write(&mut self, segment: u32, offset: u64, from: &[u8]) {
        self.0[segment as usize][offset as usize..][..from.len()].copy_from_slice(from);
    }
}

/// A statement of a rank's program.
#[derive(Clone, Debug)]
enum Statement {
    Put {
        at: GlobalPointer,
        value: u64,
    },
    Store {
        at: GlobalPointer,
        value: u64,
    },
    /// Gets a slot into the slot `to` of the landing segment.
    Get {
        at: GlobalPointer,
        to: u64,
    },
    Sync,
    StoreSync,
    /// Checks the landing slot.
    Expect {
        to: u64,
        value: u64,
    },
    FetchAdd,
    /// Begins to add to the word of split-phase additions.
    Add(u64),
    /// Begins a fetch-and-add on the counter whose old value lands in a segment.
    GetAdd,
    /// Takes that old value, after a sync.
    TakeOld,
    /// Increments the swapped word by compare-and-swap, until it succeeds.
    Increment,
    /// An operation that the target must refuse.
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

/// A message that waits for room in a window, and the rank that it goes to.
struct Outgoing {
    to: u32,
    handler: u8,
    words: Vec<u64>,
    payload: Vec<u8>,
}

struct Rank {
    memory: Memory,
    initiator: Initiator,
    collectives: Collectives,
    program: Vec<Statement>,
    at: usize,
    /// Whether the current statement was begun.
    is_begun: bool,
    outgoing: Vec<Outgoing>,
    guess: u64,
    /// The old values that additions returned.
    drawn: Vec<u64>,
    barriers: usize,
    stored: u64,
}

struct Link {
    ranks: [u32; 2],
    ends: [Connection; 2],
    network: Network,
}

pub struct World {
    seed: u64,
    random: Random,
    ranks: Vec<Rank>,
    links: Vec<Link>,
    now_ns: u64,
    /// Number of ranks that have entered each barrier.
    entered: BTreeMap<usize, u32>,
    expected_stores: Vec<u64>,
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl World {
    /// Creates ranks with random programs of some phases.
    pub fn new(seed: u64, ranks: u32, phases: u64, faults: Faults) -> Self {
        let mut world = Self::empty(seed, ranks, faults);
        for phase in 0..phases {
            world.add_phase(phase);
        }
        world
    }

    /// Creates ranks whose programs have only broadcasts.
    pub fn of_broadcasts(seed: u64, ranks: u32, count: u64, faults: Faults) -> Self {
        let mut world = Self::empty(seed, ranks, faults);
        for nth in 0..count {
            let result = Some(vec![nth]);
            world.add_collective(
                Collective::Broadcast { root: 0 },
                |rank| vec![if rank == 0 { nth } else { 0 }],
                |_| result.clone(),
            );
        }
        world
    }

    fn empty(seed: u64, ranks: u32, faults: Faults) -> Self {
        let mut random = Random::new(seed);
        let rank = |rank| Rank {
            memory: Memory([0; 2].map(|_| vec![0; 8 * SLOTS as usize])),
            initiator: Initiator::new(rank),
            collectives: Collectives::new(rank, ranks),
            program: Vec::new(),
            at: 0,
            is_begun: false,
            outgoing: Vec::new(),
            guess: 0,
            drawn: Vec::new(),
            barriers: 0,
            stored: 0,
        };
        let mut links = Vec::new();
        for a in 0..ranks {
            for b in a + 1..ranks {
                let config = Config { window: 1 << random.below(6), ..Config::default() };
                let ends = [(1, 2), (2, 1)].map(|(local, remote)| Connection::new(config, local, remote, 0));
                let network = Network::new(random.bits(), [faults; 2], Vec::new(), HEALED_NS);
                links.push(Link { ranks: [a, b], ends, network });
            }
        }
        let ranks: Vec<Rank> = (0..ranks).map(rank).collect();
        let expected_stores = vec![0; ranks.len()];
        Self { seed, random, ranks, links, now_ns: 0, entered: BTreeMap::new(), expected_stores }
    }

    fn add_collective(
        &mut self,
        collective: Collective,
        mine: impl Fn(u32) -> Vec<u64>,
        result: impl Fn(u32) -> Option<Vec<u64>>,
    ) {
        for (rank, state) in (0..).zip(&mut self.ranks) {
            let (mine, result) = (mine(rank), result(rank));
            state.program.push(Statement::Collective { collective, mine, result });
        }
    }

    /// Adds a phase: every rank writes slots of its own everywhere, then all read them after a barrier.
    fn add_phase(&mut self, phase: u64) {
        let n = self.ranks.len() as u32;
        let mut written = BTreeMap::new();
        for rank in 0..n {
            for _ in 0..self.random.below(20) {
                let slot = FIRST + self.random.below(SLOTS - FIRST);
                let (target, value) = (self.random.below(n.into()) as u32, self.random.bits());
                let at = GlobalPointer { rank: target, segment: 0, offset: 8 * slot };
                // One write to a place in each phase, because writes between two syncs have no order.
                if slot % u64::from(n) != u64::from(rank) || written.contains_key(&at) {
                    continue;
                }
                written.insert(at, value);
                let program = &mut self.ranks[rank as usize].program;
                match self.random.below(3) {
                    0 => {
                        program.push(Statement::Store { at, value });
                        self.expected_stores[target as usize] += 8;
                    }
                    1 => program.push(Statement::Put { at, value }),
                    _ => program.extend([
                        Statement::Put { at, value },
                        Statement::Sync,
                        Statement::Get { at, to: 0 },
                        Statement::Sync,
                        Statement::Expect { to: 0, value },
                    ]),
                }
                match self.random.below(10) {
                    0 => program.push(Statement::FetchAdd),
                    1 => program.push(Statement::Increment),
                    2 => program.push(Statement::Wrong {
                        at: GlobalPointer { offset: 8 * SLOTS - 7, ..at },
                        refusal: Refusal::OutOfBounds { segment_len: 8 * SLOTS },
                    }),
                    3 => program.push(Statement::Wrong {
                        at: GlobalPointer { segment: 9, ..at },
                        refusal: Refusal::NoSuchSegment,
                    }),
                    4 => {
                        let addends = (0..1 + self.random.below(5)).map(|_| self.random.bits());
                        program.extend(addends.collect::<Vec<_>>().into_iter().map(Statement::Add));
                    }
                    5 => program.extend([Statement::GetAdd, Statement::Sync, Statement::TakeOld]),
                    _ => {}
                }
            }
            self.ranks[rank as usize].program.extend([Statement::Sync, Statement::StoreSync]);
        }
        self.add_collective(Collective::Barrier, |_| Vec::new(), |_| None);
        for rank in 0..n {
            let mut reads = Vec::new();
            for (to, (&at, &value)) in (0..SLOTS).zip(&written) {
                if self.random.below(2) == 0 {
                    reads.push(Statement::Expect { to, value });
                    self.ranks[rank as usize].program.push(Statement::Get { at, to });
                }
            }
            self.ranks[rank as usize].program.push(Statement::Sync);
            self.ranks[rank as usize].program.extend(reads);
        }
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
        // Separates the reads of this phase from the writes of the next one.
        self.add_collective(Collective::Barrier, |_| Vec::new(), |_| None);
    }

    /// Runs until every program is at its end, and checks what only the end shows.
    pub fn run(mut self) -> Self {
        while self.ranks.iter().any(|rank| rank.at < rank.program.len() || !rank.outgoing.is_empty()) {
            assert!(self.now_ns < END_NS, "seed {}: the programs do not end: {:?}", self.seed, self.places());
            self.turn();
        }
        self.check_end();
        self
    }

    fn places(&self) -> Vec<String> {
        self.ranks.iter().map(|rank| format!("{:?}", rank.program.get(rank.at))).collect()
    }

    pub fn retransmitted(&self) -> u64 {
        self.links.iter().flat_map(|link| &link.ends).map(|end| end.counters().retransmitted).sum()
    }

    pub fn summary(&self) -> (u64, u64, Vec<Vec<u64>>) {
        (self.now_ns, self.retransmitted(), self.ranks.iter().map(|rank| rank.drawn.clone()).collect())
    }

    fn check_end(&self) {
        let seed = self.seed;
        let word = |slot: u64| {
            let mut bytes = [0; 8];
            self.ranks[0].memory.read(0, 8 * slot, &mut bytes);
            u64::from_le_bytes(bytes)
        };
        let drawn: Vec<u64> = self.ranks.iter().flat_map(|rank| rank.drawn.clone()).collect();
        let distinct: BTreeSet<u64> = drawn.iter().copied().collect();
        assert_eq!(
            distinct.into_iter().collect::<Vec<_>>(),
            (0..drawn.len() as u64).collect::<Vec<_>>(),
            "seed {seed}"
        );
        assert_eq!(word(COUNTER), drawn.len() as u64, "seed {seed}");
        for rank in &self.ranks {
            assert!(rank.drawn.is_sorted(), "seed {seed}: additions of one rank were reordered");
        }
        let is_increment = |statement: &&Statement| matches!(statement, Statement::Increment);
        let increments = self.ranks.iter().flat_map(|rank| &rank.program).filter(is_increment).count();
        assert_eq!(word(SWAPPED), increments as u64, "seed {seed}");
        let added = self.ranks.iter().flat_map(|rank| &rank.program).fold(0u64, |sum, statement| {
            if let Statement::Add(addend) = statement { sum.wrapping_add(*addend) } else { sum }
        });
        assert_eq!(word(ADDED), added, "seed {seed}: an addition was lost or came twice");
        let stored: Vec<u64> = self.ranks.iter().map(|rank| rank.stored).collect();
        assert_eq!(stored, self.expected_stores, "seed {seed}");
    }

    /// Lets each program run, sends, and advances the time to the next event.
    fn turn(&mut self) {
        for rank in 0..self.ranks.len() {
            while self.advance(rank as u32) {}
            self.send(rank as u32);
        }
        let mut next_ns = self.now_ns + 1_000_000;
        for link in &mut self.links {
            for side in 0..2 {
                while let Some(bytes) = link.ends[side].transmit(self.now_ns) {
                    link.network.send(side, bytes, self.now_ns);
                }
                next_ns = next_ns.min(link.ends[side].deadline().unwrap_or(u64::MAX));
            }
            next_ns = next_ns.min(link.network.next_arrival_ns().unwrap_or(u64::MAX));
        }
        self.now_ns = next_ns.max(self.now_ns + 1);
        for link in 0..self.links.len() {
            while let Some((side, bytes)) = self.links[link].network.arrive(self.now_ns) {
                self.arrive(link, side, &bytes);
            }
            for end in &mut self.links[link].ends {
                if end.deadline().is_some_and(|at_ns| at_ns <= self.now_ns) {
                    end.on_time(self.now_ns);
                }
                assert_eq!(end.lost(), None, "seed {}", self.seed);
            }
        }
    }

    fn arrive(&mut self, link: usize, side: usize, bytes: &[u8]) {
        let Ok(datagram) = datagram::parse(bytes) else { return };
        let end = &mut self.links[link].ends[side];
        if datagram.header.connection != end.local() || end.receive(&datagram, self.now_ns) != Delivery::Now {
            return;
        }
        self.handle(link, side, &datagram);
        while let Some(bytes) = self.links[link].ends[side].buffered() {
            self.handle(link, side, &datagram::parse(&bytes).unwrap());
            self.links[link].ends[side].recycle(bytes);
        }
    }

    fn handle(&mut self, link: usize, side: usize, datagram: &Datagram<'_>) {
        let Link { ranks, ends, .. } = &mut self.links[link];
        let (here, from, end) = (ranks[side], ranks[1 - side], &mut ends[side]);
        let rank = &mut self.ranks[here as usize];
        let mut words: Words = [0; 4];
        words.iter_mut().zip(datagram.words.iter()).for_each(|(word, sent)| *word = *sent);
        match datagram.header.kind {
            Kind::Request if datagram.header.handler == TREE => {
                let message = TreeMessage::parse(words, datagram.payload).unwrap();
                rank.collectives.take(from, &message).unwrap();
                end.reply(TREE, &[], &[], self.now_ns);
            }
            Kind::Request => {
                let (words, payload) = rank.serve(words, datagram.payload);
                end.reply(OPERATE, &words, &payload, self.now_ns);
            }
            Kind::Reply if datagram.header.handler == TREE => {}
            Kind::Reply => {
                let reply = Reply::parse(words, datagram.payload).unwrap();
                rank.initiator.take(from, reply, &mut rank.memory).unwrap();
            }
            kind => panic!("{kind:?} was delivered"),
        }
    }

    /// Sends the messages of a rank for which there is room. Those to itself are handled at once.
    fn send(&mut self, here: u32) {
        let outgoing = std::mem::take(&mut self.ranks[here as usize].outgoing);
        let mut blocked = BTreeSet::new();
        for message in outgoing {
            let is_sent = !blocked.contains(&message.to) && self.send_one(here, &message);
            if !is_sent {
                blocked.insert(message.to);
                self.ranks[here as usize].outgoing.push(message);
            }
        }
    }

    fn send_one(&mut self, here: u32, Outgoing { to, handler, words, payload }: &Outgoing) -> bool {
        if *to == here {
            let rank = &mut self.ranks[here as usize];
            let (words, payload) = rank.serve(words[..].try_into().unwrap(), payload);
            let reply = Reply::parse(words, &payload).unwrap();
            rank.initiator.take(here, reply, &mut rank.memory).unwrap();
            return true;
        }
        let pair = [here.min(*to), here.max(*to)];
        let link = self.links.iter_mut().find(|link| link.ranks == pair).unwrap();
        let side = usize::from(here > *to);
        link.ends[side].request(*handler, words, payload, self.now_ns).is_ok()
    }

    /// Runs one step of a program. Returns whether it can go on.
    fn advance(&mut self, here: u32) -> bool {
        let seed = self.seed;
        let rank = &mut self.ranks[here as usize];
        let Some(statement) = rank.program.get(rank.at).cloned() else { return false };
        let begins = !std::mem::replace(&mut rank.is_begun, true);
        if let (Statement::Collective { collective: Collective::Barrier, .. }, true) = (&statement, begins) {
            *self.entered.entry(rank.barriers).or_default() += 1;
        }
        let is_over = rank.execute(&statement, begins, seed);
        if is_over {
            if let Statement::Collective { collective: Collective::Barrier, .. } = statement {
                let (entered, ranks) = (self.entered[&rank.barriers], self.ranks.len() as u32);
                assert_eq!(entered, ranks, "seed {seed}: a rank left a barrier before all had entered");
                self.ranks[here as usize].barriers += 1;
            }
            let rank = &mut self.ranks[here as usize];
            (rank.at, rank.is_begun) = (rank.at + 1, false);
        }
        is_over
    }
}

impl Rank {
    /// Serves an operation.
    fn serve(&mut self, words: Words, payload: &[u8]) -> (Words, Vec<u8>) {
        let request = Request::parse(words, payload).unwrap();
        let mut out = Vec::new();
        let outcome = target::serve(&request, &mut self.memory, 1024, &mut out);
        if let (Operation::Store(data), false) =
            (request.operation, matches!(outcome, netdyno_protocol::global::message::Outcome::Refused(_)))
        {
            self.stored += data.as_slice().len() as u64;
        }
        let reply = Reply { ticket: request.ticket, outcome };
        let (words, payload) = reply.encode();
        (words, payload.to_vec())
    }

    fn operate(
        &mut self,
        at: GlobalPointer,
        operation: Operation<'_>,
        landing: Landing,
        completion: Completion,
    ) {
        let ticket = self.initiator.begin(Outstanding { at, len: 8, landing, completion });
        let request = Request { ticket, segment: at.segment, offset: at.offset, operation };
        let (words, payload) = request.encode();
        self.outgoing.push(Outgoing {
            to: at.rank,
            handler: OPERATE,
            words: words.to_vec(),
            payload: payload.to_vec(),
        });
    }

    /// Reports whether all operations of a kind are over, which must not have failed.
    fn synced(&mut self, completion: Completion, seed: u64) -> bool {
        let is_over = self.initiator.count(completion) == 0;
        if is_over {
            assert_eq!(self.initiator.take_failure(completion), None, "seed {seed}");
        }
        is_over
    }

    /// Begins or continues a statement. Returns whether it is over.
    fn execute(&mut self, statement: &Statement, begins: bool, seed: u64) -> bool {
        let [counter, swapped, added] =
            [COUNTER, SWAPPED, ADDED].map(|slot| GlobalPointer { rank: 0, segment: 0, offset: 8 * slot });
        match statement {
            Statement::Put { at, value } => {
                self.operate(
                    *at,
                    Operation::Put(value.to_le_bytes()[..].into()),
                    Landing::Nothing,
                    Completion::Sync,
                );
                true
            }
            Statement::Store { at, value } => {
                let bytes = value.to_le_bytes();
                self.operate(
                    *at,
                    Operation::Store(bytes[..].into()),
                    Landing::Nothing,
                    Completion::StoreSync,
                );
                true
            }
            Statement::Get { at, to } => {
                let landing = Landing::Segment { segment: LANDING, offset: 8 * to };
                self.operate(*at, Operation::Get(8), landing, Completion::Sync);
                true
            }
            Statement::Sync => self.synced(Completion::Sync, seed),
            Statement::StoreSync => self.synced(Completion::StoreSync, seed),
            Statement::Expect { to, value } => {
                let mut bytes = [0; 8];
                self.memory.read(LANDING, 8 * to, &mut bytes);
                assert_eq!(u64::from_le_bytes(bytes), *value, "seed {seed}: a get missed a write");
                true
            }
            Statement::FetchAdd if begins => {
                self.operate(counter, Operation::FetchAdd(1), Landing::Value, Completion::Call);
                false
            }
            Statement::FetchAdd => {
                let is_over = self.synced(Completion::Call, seed);
                if is_over {
                    self.drawn.push(self.initiator.value);
                }
                is_over
            }
            Statement::Add(addend) => {
                self.operate(added, Operation::Add(*addend), Landing::Nothing, Completion::Sync);
                true
            }
            Statement::GetAdd => {
                let landing = Landing::Segment { segment: LANDING, offset: 8 * OLD };
                self.operate(counter, Operation::FetchAdd(1), landing, Completion::Sync);
                true
            }
            Statement::TakeOld => {
                let mut bytes = [0; 8];
                self.memory.read(LANDING, 8 * OLD, &mut bytes);
                self.drawn.push(u64::from_le_bytes(bytes));
                true
            }
            Statement::Increment => {
                if !begins && !self.synced(Completion::Call, seed) {
                    return false;
                }
                if !begins && self.initiator.value == self.guess {
                    return true;
                }
                if !begins {
                    self.guess = self.initiator.value;
                }
                let operation = Operation::CompareSwap { expected: self.guess, new: self.guess + 1 };
                self.operate(swapped, operation, Landing::Value, Completion::Call);
                false
            }
            Statement::Wrong { at, .. } if begins => {
                self.operate(*at, Operation::Put([1; 8][..].into()), Landing::Nothing, Completion::Call);
                false
            }
            Statement::Wrong { at, refusal } => {
                if self.initiator.count(Completion::Call) > 0 {
                    return false;
                }
                let failure = self.initiator.take_failure(Completion::Call).unwrap();
                assert_eq!((failure.at, failure.refusal), (*at, *refusal), "seed {seed}");
                true
            }
            Statement::Collective { collective, mine, result } => {
                self.collect(*collective, mine, result, begins, seed)
            }
        }
    }

    fn collect(
        &mut self,
        collective: Collective,
        mine: &[u64],
        result: &Option<Vec<u64>>,
        begins: bool,
        seed: u64,
    ) -> bool {
        if begins {
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
                    self.outgoing.push(Outgoing { to, handler: TREE, words, payload });
                }
                // The barrier that was due is over.
                Step::Done(value) if value.is_empty() && !mine.is_empty() => self.start(collective, mine),
                Step::Done(value) => {
                    if let Some(result) = result {
                        assert_eq!(value, bytes(result), "seed {seed}: {collective:?}");
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
