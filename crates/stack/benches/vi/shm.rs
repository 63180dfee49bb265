//! Virtual Interfaces over shared memory, compared with the machine's caches and memory: `cargo bench -p
//! netdyno-stack --bench vi_shm`.
//!
//! Each pair of fresh, pinned processes runs all patterns in turn, several times. Ratios are taken
//! within a pair; medians and intervals over the pairs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../common/mod.rs"]
mod common;
mod line;

use common::{Pairs, processors, show};
use line::{LEN, Line, Place, Plan};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::{place, ticks};
use netdyno_host::bytes::Bytes;
use netdyno_job::member::Control;
use netdyno_measure::stats::median;
use netdyno_stack::vi::{Address, Config, Level, Provider};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PAIRS: usize = 15;
const ROUNDS: u64 = 15;
const TRIPS: u64 = 2000;
const LONG: usize = 1 << 20;
/// Writes of `LONG` bytes in a row.
const WRITES: usize = 48;

const SHORT: Plan = Plan { level: Level::Delivery, len: LEN, is_write: false, is_lent: false };
const WRITE: Plan = Plan { len: LONG, is_write: true, ..SHORT };

/// Round trips of 32 bytes, each compared with a bounce of two cache lines.
const TRIP_PLANS: [(&str, Plan); 4] = [
    ("send and receive, Unreliable", Plan { level: Level::Unreliable, ..SHORT }),
    ("send and receive, Delivery", SHORT),
    ("send and receive, Reception", Plan { level: Level::Reception, ..SHORT }),
    ("RDMA write with immediate, Delivery", Plan { is_write: true, ..SHORT }),
];
/// Writes of 1 MiB, each compared with one copy into a segment that the other process has mapped, and
/// the minimum ratio of their speeds.
const WRITE_PLANS: [(&str, Plan, f64); 2] = [
    ("RDMA write of 1 MiB, from the provider's memory", Plan { is_lent: true, ..WRITE }, 0.9),
    ("RDMA write of 1 MiB, from the program's memory", WRITE, 0.6),
];

/// Addresses that one process of a pair passes to the other.
#[derive(Serialize, Deserialize)]
struct Card {
    pid: u32,
    descriptor: u32,
    nonce: [u8; 16],
    places: Vec<Place>,
}

/// Medians in one pair, in nanoseconds: the two-line bounce, the copy, each line, and each kind of write
/// again with every write complete before the next.
type Figures = Vec<f64>;
const BOUNCE: usize = 0;
const COPY: usize = 1;
const FIRST_LINE: usize = 2;
const FIRST_WRITE: usize = FIRST_LINE + TRIP_PLANS.len();
const FIRST_ALONE: usize = FIRST_WRITE + WRITE_PLANS.len();
const FIGURES: usize = FIRST_ALONE + WRITE_PLANS.len();

fn main() {
    match common::role() {
        Some(is_requester) => process(is_requester),
        None => compare(),
    }
}

fn compare() {
    let (a, b) = processors();
    println!("{PAIRS} pairs of processes on processors {a} and {b} ({})", place::distance(a, b));
    let pairs = Pairs::run::<Card>(PAIRS, (a, b), Duration::from_secs(60));
    show("two-line bounce, round trip", "ns", &pairs.of(BOUNCE));
    for (figure, (name, _)) in (FIRST_LINE..).zip(TRIP_PLANS) {
        println!("{name}, {LEN} bytes");
        show("  round trip", "ns", &pairs.of(figure));
        show("  against the two-line bounce (at most 1.6)", "x", &pairs.ratio(figure, BOUNCE));
    }
    show("one copy of 1 MiB into a mapped segment", "ns", &pairs.of(COPY));
    for (nth, (name, _, wanted)) in WRITE_PLANS.iter().enumerate() {
        println!("{name}");
        show("  of several in a row", "ns", &pairs.of(FIRST_WRITE + nth));
        show(&format!("  against one copy (at least {wanted})"), "x", &pairs.ratio(COPY, FIRST_WRITE + nth));
        show("  each complete before the next", "x", &pairs.ratio(COPY, FIRST_ALONE + nth));
    }
}

/// Returns a word of memory that the other process writes.
fn shared(bytes: &Bytes) -> &AtomicU64 {
    bytes.word(1024).unwrap()
}

fn plans() -> impl Iterator<Item = Plan> {
    TRIP_PLANS.iter().map(|(_, plan)| *plan).chain(WRITE_PLANS.iter().map(|(_, plan, _)| *plan))
}

fn process(is_requester: bool) {
    let mut control = Control::<Option<Card>>::from_stdin().unwrap();
    let bytes = Bytes::in_segment(LONG).unwrap();
    let segment = bytes.segment().unwrap();
    let mut lines: Vec<Line> =
        plans().map(|plan| Line::planned(Provider::open(Config::default()).unwrap(), plan)).collect();
    let card = Card {
        pid: std::process::id(),
        descriptor: segment.descriptor(),
        nonce: segment.nonce(),
        places: lines.iter().map(Line::place).collect(),
    };
    let mut names = [card.pid, 0];
    control.send(&card).unwrap();
    let card = control.receive(Duration::from_secs(20)).unwrap().unwrap();
    names[1] = card.pid;
    let theirs = Bytes::of_segment(card.pid, card.descriptor, card.nonce, LONG).unwrap();
    for (nth, line) in lines.iter_mut().enumerate() {
        connect(line, names.map(|name| format!("bench-{name}-{nth}").into_bytes()));
        line.aim(card.places[nth]);
    }
    if is_requester {
        control.send(&request(&mut lines, [&bytes, &theirs])).unwrap();
    } else {
        reply(&mut lines, [&bytes, &theirs]);
    }
    // The launching process ends both.
    std::thread::sleep(Duration::from_secs(20));
}

/// Connects a VI with the other process's VI.
fn connect(line: &mut Line, [ours, theirs]: [Vec<u8>; 2]) {
    let to = Address { host: line.provider.host(), discriminator: theirs };
    line.provider.ask(line.vi, &ours, to, true, Some(Duration::from_secs(20))).unwrap();
    while line.provider.answer(line.vi).unwrap().is_none() {}
}

fn request(lines: &mut [Line], [ours, theirs]: [&Bytes; 2]) -> Figures {
    let clock = Clock::calibrate();
    let mut rounds = [const { Vec::new() }; FIGURES];
    let mut note = |figure: usize, began: u64, trips: usize| {
        rounds[figure].push((ticks::now() - began) as f64 * clock.tick_ns / trips as f64);
    };
    for round in 0..ROUNDS {
        let began = ticks::now();
        for n in round * TRIPS + 1..=(round + 1) * TRIPS {
            shared(theirs).store(n, Ordering::Release);
            while shared(ours).load(Ordering::Acquire) != n {}
        }
        note(BOUNCE, began, TRIPS as usize);
        let (short, long) = lines.split_at_mut(TRIP_PLANS.len());
        for (figure, line) in (FIRST_LINE..).zip(short) {
            let began = ticks::now();
            (0..TRIPS).for_each(|_| line.trip());
            note(figure, began, TRIPS as usize);
        }
        let began = ticks::now();
        (0..WRITES).for_each(|_| ours.copy(0, theirs, 0, LONG));
        note(COPY, began, WRITES);
        for (nth, line) in long.iter_mut().enumerate() {
            let began = ticks::now();
            line.push(WRITES);
            note(FIRST_WRITE + nth, began, WRITES);
            let began = ticks::now();
            (0..WRITES).for_each(|_| line.push(1));
            note(FIRST_ALONE + nth, began, WRITES);
        }
    }
    rounds.into_iter().map(median).collect()
}

fn reply(lines: &mut [Line], [ours, theirs]: [&Bytes; 2]) {
    for round in 0..ROUNDS {
        for n in round * TRIPS + 1..=(round + 1) * TRIPS {
            while shared(ours).load(Ordering::Acquire) != n {}
            shared(theirs).store(n, Ordering::Release);
        }
        let (short, long) = lines.split_at_mut(TRIP_PLANS.len());
        for line in short {
            let mut left = TRIPS;
            while left > 0 {
                left -= u64::from(line.echo());
            }
        }
        for line in long {
            // All writes in a row notify the replier once.
            let mut left = 1 + WRITES;
            while left > 0 {
                left -= usize::from(line.pull());
            }
        }
    }
}
