//! Bulk transfers of Active Messages over shared memory, compared with one copy between two mapped
//! segments, and with other layers that are installed: `cargo bench -p netdyno-stack --bench bulk`.
//!
//! Each pair of fresh, pinned processes runs all patterns in turn, several times. Ratios are taken
//! within a pair; medians and intervals over the pairs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../common/mod.rs"]
mod common;
mod others;

use common::{pair, processors, show};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::{place, ticks};
use netdyno_host::bytes::Bytes;
use netdyno_host::segment::NONCE_LEN;
use netdyno_job::member::Control;
use netdyno_measure::stats::median;
use netdyno_stack::am::{Config, Endpoint, Handlers, Memory, PeerId, Remote, Wire};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const PAIRS: usize = 15;
const ROUNDS: usize = 9;
/// Transfers in a row.
const TRANSFERS: usize = 48;
const LEN: usize = 1 << 20;

const STORED: u8 = 0;
const FETCHED: u8 = 0;

/// Addresses that one process of a pair passes to the other, through the process that launched both.
#[derive(Serialize, Deserialize)]
struct Card {
    port: Vec<u8>,
    /// Keys of memory that the library allocated, and of other memory.
    keys: [Vec<u8>; 2],
    /// A segment to copy to and from.
    pid: u32,
    descriptor: u32,
    nonce: [u8; NONCE_LEN],
}

/// A timed pattern.
#[derive(Clone, Copy)]
enum Pattern {
    /// One copy into the peer's segment, and out of it.
    CopyThere,
    CopyHere,
    Store(usize),
    /// Each store is answered before the next.
    StoreAlone(usize),
    Get(usize),
    GetAlone(usize),
}

/// Indices of memory that the library allocated, and of other memory, in the order of the keys.
const MAPPED: usize = 0;
const ELSEWHERE: usize = 1;

const PATTERNS: [Pattern; 10] = [
    Pattern::CopyThere,
    Pattern::CopyHere,
    Pattern::Store(MAPPED),
    Pattern::Get(MAPPED),
    Pattern::Store(ELSEWHERE),
    Pattern::Get(ELSEWHERE),
    Pattern::StoreAlone(MAPPED),
    Pattern::GetAlone(MAPPED),
    Pattern::StoreAlone(ELSEWHERE),
    Pattern::GetAlone(ELSEWHERE),
];

/// Medians of one pair, in nanoseconds per transfer, in the order of the patterns.
type Figures = [f64; PATTERNS.len()];

fn main() {
    match common::role() {
        Some(is_requester) => process(is_requester),
        None => compare(),
    }
}

fn compare() {
    let (a, b) = processors();
    println!("{PAIRS} pairs of processes on processors {a} and {b} ({}), {LEN} bytes", place::distance(a, b));
    let mut pairs = Vec::new();
    let mut beside = others::Others::default();
    for _ in 0..PAIRS {
        pairs.push(pair::<Card, Figures>((a, b), Duration::from_secs(60)));
        beside.run(LEN, (a, b));
    }
    let rate = |at: usize| -> Vec<f64> { pairs.iter().map(|ns| LEN as f64 / ns[at]).collect() };
    let ratio = |at: usize, copy: usize| -> Vec<f64> { pairs.iter().map(|ns| ns[copy] / ns[at]).collect() };
    show("one copy into a mapped segment", "GB/s", &rate(0));
    show("one copy out of a mapped segment", "GB/s", &rate(1));
    let lines = [
        ("store into memory of the library", 2, 0, "at least 0.9"),
        ("get from memory of the library", 3, 1, "at least 0.9"),
        ("store into other memory", 4, 0, "at least 0.6"),
        ("get from other memory", 5, 1, "at least 0.6"),
    ];
    for (what, at, copy, bound) in lines {
        show(what, "GB/s", &rate(at));
        show(&format!("  against one copy ({bound})"), "x", &ratio(at, copy));
        show("  each one answered before the next", "x", &ratio(at + 4, copy));
    }
    beside.show();
}

/// Counts of the handlers.
#[derive(Default)]
struct Tally {
    ended: usize,
}

/// The requesting side.
struct Asker {
    endpoint: Endpoint<Tally>,
    peer: PeerId,
    tally: Tally,
    remotes: [Remote; 2],
    /// The bytes to store, and the memory to get into.
    bytes: Vec<u8>,
    local: Memory,
    segment: Bytes,
    their_segment: Bytes,
}

fn process(is_requester: bool) {
    let mut control = Control::<Option<Card>>::from_stdin().unwrap();
    let mut handlers = Handlers::<Tally>::new();
    handlers.on_store(STORED, |_, stored| stored.reply(STORED, []));
    handlers.on_reply(STORED, |tally, _| tally.ended += 1);
    handlers.on_fetched(FETCHED, |tally, _| tally.ended += 1);
    handlers.on_refused(|_, refused| panic!("{refused}"));
    let mut endpoint = Endpoint::new(handlers, Config::default()).unwrap();
    let port = endpoint.open_port(Wire::Shm).unwrap();
    let memories = [endpoint.allocate(LEN).unwrap(), endpoint.register(vec![0; LEN].into()).unwrap()];
    let segment = Bytes::in_segment(LEN).unwrap();
    let made = segment.segment().unwrap();
    let card = Card {
        port: port.address(),
        keys: [memories[0].key(), memories[1].key()],
        pid: std::process::id(),
        descriptor: made.descriptor(),
        nonce: made.nonce(),
    };
    control.send(&card).unwrap();
    let card = control.receive(Duration::from_secs(20)).unwrap().unwrap();
    let peer = endpoint.connect(port, &card.port).unwrap();
    let their_segment = Bytes::of_segment(card.pid, card.descriptor, card.nonce, LEN).unwrap();
    let mut tally = Tally::default();
    if !is_requester {
        // Runs until the launching process ends this one, or until the peer has ended.
        while endpoint.poll(&mut tally).is_ok() {}
        return;
    }
    let remotes = card.keys.map(|key| endpoint.attach(&mut tally, peer, &key).unwrap());
    let [_, local] = memories;
    let bytes = vec![7; LEN];
    segment.write(0, &bytes);
    let mut asker = Asker { endpoint, peer, tally, remotes, bytes, local, segment, their_segment };
    control.send(&asker.figures()).unwrap();
    // The launching process ends both.
    std::thread::sleep(Duration::from_secs(20));
}

impl Asker {
    fn figures(&mut self) -> Figures {
        let clock = Clock::calibrate();
        let mut rounds = [const { Vec::new() }; PATTERNS.len()];
        for round in 0..=ROUNDS {
            for (pattern, figures) in PATTERNS.into_iter().zip(&mut rounds) {
                let began = ticks::now();
                self.run(pattern);
                let ns = (ticks::now() - began) as f64 * clock.tick_ns / TRANSFERS as f64;
                // The first round touches the pages.
                if round > 0 {
                    figures.push(ns);
                }
            }
        }
        rounds.map(median)
    }

    fn run(&mut self, pattern: Pattern) {
        let wanted = self.tally.ended + TRANSFERS;
        for _ in 0..TRANSFERS {
            match pattern {
                Pattern::CopyThere => {
                    self.segment.copy(0, &self.their_segment, 0, LEN);
                    self.tally.ended += 1;
                }
                Pattern::CopyHere => {
                    self.their_segment.copy(0, &self.segment, 0, LEN);
                    self.tally.ended += 1;
                }
                Pattern::Store(memory) | Pattern::StoreAlone(memory) => {
                    let Self { endpoint, tally, bytes, .. } = self;
                    endpoint.store(tally, self.remotes[memory].at(0), bytes, STORED, []).unwrap();
                }
                Pattern::Get(memory) | Pattern::GetAlone(memory) => {
                    let Self { endpoint, tally, local, .. } = self;
                    endpoint
                        .get(tally, self.remotes[memory].at(0), local.range(0, LEN), FETCHED, [])
                        .unwrap();
                }
            }
            if let Pattern::StoreAlone(_) | Pattern::GetAlone(_) = pattern {
                while self.endpoint.in_flight(self.peer) > 0 {
                    self.endpoint.poll(&mut self.tally).unwrap();
                }
            }
        }
        while self.tally.ended < wanted {
            self.endpoint.poll(&mut self.tally).unwrap();
        }
    }
}
