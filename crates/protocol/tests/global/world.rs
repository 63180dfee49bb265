//! The simulated world: ranks, and a connection over a network between each two.

use crate::history::History;
use crate::memory::{SHARED_LEN, TransferMemory, Transfers};
use crate::programs::{ADDED, COUNTER, Programs, RANGES, SWAPPED, Statement, word};
use crate::rank::{OPERATE, Rank, TREE, Waiting};
use netdyno_protocol::faults::Faults;
use netdyno_protocol::frame::datagram::{self, Datagram, Kind, LONGEST_PIECE};
use netdyno_protocol::global::initiator::Completion;
use netdyno_protocol::global::message::{Outcome, Reply, TreeMessage, Words};
use netdyno_protocol::global::{GlobalPointer, Segments};
use netdyno_protocol::random::Random;
use netdyno_protocol::reliability::{Config, Connection, Delivery, Event};
use netdyno_protocol::sim::network::Network;
use std::collections::BTreeSet;

const HEALED_NS: u64 = 2_000_000_000;
const END_NS: u64 = 60_000_000_000;

struct Link {
    ranks: [u32; 2],
    ends: [Connection; 2],
    /// The bulk transfers that each side has requested.
    transfers: [Transfers; 2],
    network: Network,
}

/// Counts of the cases that the random programs must reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    pub retransmitted: u64,
    /// Bulk transfers of more than one datagram.
    pub long_transfers: u64,
    /// Bytes read that had one permitted value, and those that had several.
    pub read: [u64; 2],
    /// Compare-and-swaps of mixed words that failed, and those that succeeded.
    pub swaps: [u64; 2],
}

pub struct World {
    seed: u64,
    ranks: Vec<Rank>,
    links: Vec<Link>,
    history: History,
    /// The most bytes of one message.
    piece: u64,
    now_ns: u64,
    long_transfers: u64,
}

impl World {
    /// Creates ranks with random programs of some phases.
    pub fn new(seed: u64, ranks: u32, phases: u64, faults: Faults) -> Self {
        Self::with(seed, ranks, faults, |programs| (0..phases).for_each(|phase| programs.add_phase(phase)))
    }

    /// Creates ranks whose programs have only broadcasts.
    pub fn of_broadcasts(seed: u64, ranks: u32, count: u64, faults: Faults) -> Self {
        Self::with(seed, ranks, faults, |programs| programs.add_broadcasts(count))
    }

    fn with(seed: u64, ranks: u32, faults: Faults, add: impl FnOnce(&mut Programs<'_>)) -> Self {
        let mut random = Random::new(seed);
        let mut links = Vec::new();
        for a in 0..ranks {
            for b in a + 1..ranks {
                let config = Config { window: 1 << random.below(6), ..Config::default() };
                let ends = [(1, 2), (2, 1)].map(|(local, remote)| Connection::new(config, local, remote, 0));
                let network = Network::new(random.bits(), [faults; 2], Vec::new(), HEALED_NS);
                links.push(Link { ranks: [a, b], ends, transfers: Default::default(), network });
            }
        }
        let piece = 64 << random.below(5);
        let mut programs = Programs::new(&mut random, ranks);
        add(&mut programs);
        let rank = |(number, program)| Rank::new(number, ranks, piece, program);
        let all = (0..).zip(programs.programs).map(rank).collect();
        let history = History::new(seed, ranks);
        Self { seed, ranks: all, links, history, piece, now_ns: 0, long_transfers: 0 }
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

    pub fn coverage(&self) -> Coverage {
        let ends = self.links.iter().flat_map(|link| &link.ends);
        Coverage {
            retransmitted: ends.map(|end| end.counters().retransmitted).sum(),
            long_transfers: self.long_transfers,
            read: self.history.writes.read,
            swaps: self.history.swaps(),
        }
    }

    pub fn summary(&self) -> (u64, Coverage, Vec<Vec<u64>>) {
        (self.now_ns, self.coverage(), self.ranks.iter().map(|rank| rank.drawn.clone()).collect())
    }

    fn value(&self, at: GlobalPointer) -> u64 {
        let mut bytes = [0; 8];
        self.ranks[at.rank as usize].memory.read(at.segment, at.offset, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn check_end(&mut self) {
        let seed = self.seed;
        let [counter, swapped, added] = [COUNTER, SWAPPED, ADDED].map(|number| self.value(word(0, number)));
        let drawn: Vec<u64> = self.ranks.iter().flat_map(|rank| rank.drawn.clone()).collect();
        let distinct: BTreeSet<u64> = drawn.iter().copied().collect();
        assert_eq!(
            distinct.into_iter().collect::<Vec<_>>(),
            (0..drawn.len() as u64).collect::<Vec<_>>(),
            "seed {seed}"
        );
        assert_eq!(counter, drawn.len() as u64, "seed {seed}");
        for rank in &self.ranks {
            assert!(rank.drawn.is_sorted(), "seed {seed}: additions of one rank were reordered");
        }
        let (mut increments, mut sum) = (0, 0u64);
        let mut expected_stores = vec![0; self.ranks.len()];
        for statement in self.ranks.iter().flat_map(|rank| &rank.program) {
            match statement {
                Statement::Increment => increments += 1,
                Statement::Add(addend) => sum = sum.wrapping_add(*addend),
                Statement::Write { at, bytes, completion: Completion::StoreSync } => {
                    expected_stores[at.rank as usize] += bytes.len() as u64;
                }
                Statement::Word { at, completion: Completion::StoreSync, .. } => {
                    expected_stores[at.rank as usize] += 8
                }
                _ => {}
            }
        }
        assert_eq!(swapped, increments, "seed {seed}");
        assert_eq!(added, sum, "seed {seed}: an addition was lost or came twice");
        let stored: Vec<u64> = self.ranks.iter().map(|rank| rank.stored).collect();
        assert_eq!(stored, expected_stores, "seed {seed}");
        // Every rank has synced its writes. So a read of all bytes after a last barrier sees only permitted values.
        let begin = self.history.moment(0, usize::MAX);
        for (number, rank) in (0..).zip(&self.ranks) {
            let mut bytes = [0; (SHARED_LEN - RANGES) as usize];
            let at = GlobalPointer { offset: RANGES, ..word(number, 0) };
            rank.memory.read(at.segment, at.offset, &mut bytes);
            let checked = self.history.writes.check(at, &bytes, begin);
            checked.unwrap_or_else(|error| panic!("seed {seed}: at the end, {error}"));
        }
        let mut history = std::mem::replace(&mut self.history, History::new(seed, 0));
        history.check_words(|at| self.value(at));
        self.history = history;
    }

    /// Lets each program run, sends, and advances the time to the next event.
    fn turn(&mut self) {
        for rank in 0..self.ranks.len() {
            while self.ranks[rank].advance(&mut self.history) {}
            self.send(rank as u32);
        }
        let mut next_ns = self.now_ns + 1_000_000;
        for Link { ranks, ends, transfers, network } in &mut self.links {
            for side in 0..2 {
                let memory = &mut self.ranks[ranks[side] as usize].memory;
                let mut transfer_memory = TransferMemory { memory, transfers: &mut transfers[side] };
                loop {
                    while let Some(bytes) = ends[side].transmit(self.now_ns) {
                        network.send(side, bytes, self.now_ns);
                    }
                    if !ends[side].feed(&mut transfer_memory, self.now_ns) {
                        break;
                    }
                }
                next_ns = next_ns.min(ends[side].deadline().unwrap_or(u64::MAX));
            }
            next_ns = next_ns.min(network.next_arrival_ns().unwrap_or(u64::MAX));
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
        let Link { ranks, ends, transfers, .. } = &mut self.links[link];
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
                let (words, payload) = rank.serve(words, datagram.payload, self.piece as usize);
                end.reply(OPERATE, &words, &payload, self.now_ns);
            }
            Kind::Reply if datagram.header.handler == TREE => {}
            Kind::Reply => rank.take(from, words, datagram.payload),
            _ => {
                let mut transfer_memory =
                    TransferMemory { memory: &mut rank.memory, transfers: &mut transfers[side] };
                match end.transfer(datagram, &mut transfer_memory) {
                    Event::Nothing => {}
                    Event::Stored(stored) => {
                        let [ticket, is_counted] = stored.words_sent() else { panic!("{stored:?}") };
                        rank.stored += is_counted * stored.range.len;
                        let reply = Reply { ticket: *ticket as u32, outcome: Outcome::Written };
                        end.reply(OPERATE, &reply.encode().0, &[], self.now_ns);
                    }
                    Event::Fetched(number) => {
                        let (ticket, _) = transfers[side].gets.remove(&number).unwrap();
                        rank.initiator.complete(from, ticket, None).unwrap();
                    }
                    refused => panic!("seed {}: {refused:?}", self.seed),
                }
            }
        }
    }

    /// Sends the requests of a rank for which there is room. Those to itself are handled at once.
    fn send(&mut self, here: u32) {
        let outgoing = std::mem::take(&mut self.ranks[here as usize].outgoing);
        let mut blocked = BTreeSet::new();
        for (to, waiting) in outgoing {
            let is_sent = !blocked.contains(&to) && self.send_one(here, to, &waiting);
            if !is_sent {
                blocked.insert(to);
                self.ranks[here as usize].outgoing.push((to, waiting));
            }
        }
    }

    fn send_one(&mut self, here: u32, to: u32, waiting: &Waiting) -> bool {
        let pair = [here.min(to), here.max(to)];
        let Some(Link { ends, transfers, .. }) = self.links.iter_mut().find(|link| link.ranks == pair) else {
            let Waiting::Message { words, payload, .. } = waiting else { unreachable!() };
            let rank = &mut self.ranks[here as usize];
            let (words, payload) = rank.serve(words[..].try_into().unwrap(), payload, usize::MAX);
            rank.take(here, words, &payload);
            return true;
        };
        let side = usize::from(here > to);
        let (end, transfers) = (&mut ends[side], &mut transfers[side]);
        let len = match waiting {
            Waiting::Message { handler, words, payload } => {
                return end.request(*handler, words, payload, self.now_ns).is_ok();
            }
            Waiting::Store { ticket, is_counted, at, bytes } => {
                let (words, len) = ([u64::from(*ticket), u64::from(*is_counted)], bytes.len() as u64);
                let place = [at.segment.into(), at.offset, len];
                let Ok(number) = end.store(OPERATE, &words, place, self.now_ns) else { return false };
                transfers.sources.insert(number, bytes.clone());
                len
            }
            Waiting::Get { ticket, at, len, landing } => {
                let place = [at.segment.into(), at.offset, *len];
                let Ok(number) = end.get(place, self.now_ns) else { return false };
                transfers.gets.insert(number, (*ticket, *landing));
                *len
            }
        };
        self.long_transfers += u64::from(len > LONGEST_PIECE as u64);
        true
    }
}
