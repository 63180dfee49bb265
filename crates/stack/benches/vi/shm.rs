//! Virtual Interfaces over shared memory against what the machine's caches and its memory can do:
//! `cargo bench -p netdyno-stack --bench vi_shm`.
//!
//! Every pair of fresh, pinned processes runs all of it in turn, several times over; ratios are taken
//! within a pair, medians and intervals over the pairs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../common/mod.rs"]
mod common;
mod line;

use common::{pair, processors, show};
use line::{LEN, Line};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::{place, ticks};
use netdyno_host::region::Region;
use netdyno_host::segment::{Segment, open_segment};
use netdyno_job::member::Control;
use netdyno_measure::stats::median;
use netdyno_stack::vi::{Address, Config, Level, Provider};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PAIRS: usize = 15;
const ROUNDS: u64 = 15;
const TRIPS: u64 = 2000;

/// The kinds of round trips: two lines of memory, and messages at each level.
const LEVELS: [Level; 3] = [Level::Unreliable, Level::Delivery, Level::Reception];
const KINDS: usize = 1 + LEVELS.len();

/// What one process of a pair tells the other.
#[derive(Serialize, Deserialize)]
struct Card {
    pid: u32,
    descriptor: u32,
    nonce: [u8; 16],
}

/// Medians of each kind in one pair, in nanoseconds.
type Figures = Vec<f64>;

fn main() {
    match common::role() {
        Some(is_requester) => process(is_requester),
        None => compare(),
    }
}

fn compare() {
    let (a, b) = processors();
    println!("{PAIRS} pairs of processes on processors {a} and {b} ({}), {LEN} bytes", place::distance(a, b));
    let pairs: Vec<Figures> =
        (0..PAIRS).map(|_| pair::<Card, Figures>((a, b), Duration::from_secs(60))).collect();
    let all = |kind: usize| -> Vec<f64> { pairs.iter().map(|kinds| kinds[kind]).collect() };
    show("two-line bounce, round trip", "ns", &all(0));
    for (kind, level) in (1..).zip(LEVELS) {
        println!("vi+shm, {level:?}");
        show("  send and receive, round trip", "ns", &all(kind));
        let ratios: Vec<f64> = pairs.iter().map(|kinds| kinds[kind] / kinds[0]).collect();
        show("  against the two-line bounce (at most 1.6)", "x", &ratios);
    }
}

/// A line of memory that the other process writes.
fn shared(region: &Region) -> &AtomicU64 {
    region.word(1024)
}

fn process(is_requester: bool) {
    let mut control = Control::<Option<Card>>::from_stdin().unwrap();
    let segment = Segment::create(4096).unwrap();
    let card = Card { pid: std::process::id(), descriptor: segment.descriptor(), nonce: segment.nonce() };
    let mut names = [card.pid, 0];
    control.send(&card).unwrap();
    let card = control.receive(Duration::from_secs(20)).unwrap().unwrap();
    names[1] = card.pid;
    let theirs = open_segment(card.pid, card.descriptor, card.nonce, 4096).unwrap();
    let mut lines = LEVELS.map(|level| connected(level, names));
    if is_requester {
        control.send(&request(&mut lines, [&segment.region, &theirs])).unwrap();
    } else {
        reply(&mut lines, [&segment.region, &theirs]);
    }
    // The launching side ends both.
    std::thread::sleep(Duration::from_secs(20));
}

/// A VI that is connected with the other process's.
fn connected(level: Level, names: [u32; 2]) -> Line {
    let mut line = Line::open(Provider::open(Config::default()).unwrap(), level);
    let [ours, theirs] = names.map(|name| format!("bench-{name}-{level:?}").into_bytes());
    let to = Address { host: line.provider.host(), discriminator: theirs };
    line.provider.ask(line.vi, &ours, to, true, Some(Duration::from_secs(20))).unwrap();
    while line.provider.answer(line.vi).unwrap().is_none() {}
    line
}

fn request(lines: &mut [Line; 3], [ours, theirs]: [&Region; 2]) -> Figures {
    let clock = Clock::calibrate();
    let mut rounds = [const { Vec::new() }; KINDS];
    let mut note = |kind: usize, began: u64| {
        rounds[kind].push((ticks::now() - began) as f64 * clock.tick_ns / TRIPS as f64);
    };
    for round in 0..ROUNDS {
        let began = ticks::now();
        for n in round * TRIPS + 1..=(round + 1) * TRIPS {
            shared(theirs).store(n, Ordering::Release);
            while shared(ours).load(Ordering::Acquire) != n {}
        }
        note(0, began);
        for (kind, line) in (1..).zip(lines.iter_mut()) {
            let began = ticks::now();
            (0..TRIPS).for_each(|_| line.trip());
            note(kind, began);
        }
    }
    rounds.into_iter().map(median).collect()
}

fn reply(lines: &mut [Line; 3], [ours, theirs]: [&Region; 2]) {
    for round in 0..ROUNDS {
        for n in round * TRIPS + 1..=(round + 1) * TRIPS {
            while shared(ours).load(Ordering::Acquire) != n {}
            shared(theirs).store(n, Ordering::Release);
        }
        for line in lines.iter_mut() {
            let mut left = TRIPS;
            while left > 0 {
                left -= u64::from(line.echo());
            }
        }
    }
}
