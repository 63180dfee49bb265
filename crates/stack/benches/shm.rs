//! Active Messages over shared memory, compared with the machine's caches and, if `ucx_perftest` is
//! installed, with UCX: `cargo bench -p netdyno-stack`.
//!
//! Each pair of fresh, pinned processes runs all patterns in turn, several times. Ratios are taken
//! within a pair; medians and intervals over the pairs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

mod common;

use common::{pair, processors, show};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::{place, ticks};
use netdyno_host::segment::{Segment, open_segment};
use netdyno_job::member::Control;
use netdyno_measure::stats::median;
use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId, Wire};
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PAIRS: usize = 21;
const ROUNDS: usize = 15;
const TRIPS: u64 = 2_000;
const STREAM: u64 = 50_000;

const ECHO: u8 = 0;
const COUNT: u8 = 1;

/// Addresses that one process of a pair passes to the other, through the process that launched both.
#[derive(Serialize, Deserialize)]
struct Card {
    port: Vec<u8>,
    pid: u32,
    descriptor: u32,
    nonce: [u8; 16],
}

/// Medians of one pair, in nanoseconds per round trip or message.
#[derive(Serialize, Deserialize)]
struct Figures {
    two_lines: f64,
    one_line: f64,
    round_trip: f64,
    one_way: f64,
    with_replies: f64,
}

fn main() {
    match common::role() {
        Some(is_requester) => process(is_requester),
        None => compare(),
    }
}

fn compare() {
    let (a, b) = processors();
    println!("{PAIRS} pairs of processes on processors {a} and {b} ({})", place::distance(a, b));
    let mut pairs = Vec::new();
    let mut ucx = Vec::new();
    for _ in 0..PAIRS {
        pairs.push(pair::<Card, Figures>((a, b), Duration::from_secs(60)));
        ucx.extend(ucx_messages_per_second(a, b));
    }
    let all = |of: fn(&Figures) -> f64| pairs.iter().map(of).collect::<Vec<_>>();
    show("two-line bounce, round trip", "ns", &all(|f| f.two_lines));
    show("one-line bounce, round trip", "ns", &all(|f| f.one_line));
    show("4-word request and reply", "ns", &all(|f| f.round_trip));
    show("  against the two-line bounce (at most 1.25)", "x", &all(|f| f.round_trip / f.two_lines));
    show("4-word requests, one way", "M/s", &all(|f| 1e3 / f.one_way));
    show("4-word requests, with replies", "M/s", &all(|f| 1e3 / f.with_replies));
    if ucx.len() < pairs.len() {
        println!("ucx_perftest is not installed (Debian: ucx-utils): not compared with UCX");
        return;
    }
    let against_ucx = |of: fn(&Figures) -> f64| {
        pairs.iter().zip(&ucx).map(|(f, ucx)| 1e9 / of(f) / ucx).collect::<Vec<_>>()
    };
    show("UCX am_bw 32 B over posix", "M/s", &ucx.iter().map(|rate| rate / 1e6).collect::<Vec<_>>());
    show("  one way against it (at least 4)", "x", &against_ucx(|f| f.one_way));
    show("  with replies against it (at least 2)", "x", &against_ucx(|f| f.with_replies));
}

/// Counts of the handlers.
#[derive(Default)]
struct Tally {
    requests: u64,
    replies: u64,
}

struct Side {
    endpoint: Endpoint<Tally>,
    peer: PeerId,
    tally: Tally,
    lines: Segment,
    their_lines: netdyno_host::region::Region,
}

fn process(is_requester: bool) {
    let mut control = Control::<Option<Card>>::from_stdin().unwrap();
    let mut handlers = Handlers::<Tally>::new();
    handlers.on_request(ECHO, |tally, request| {
        tally.requests += 1;
        let words = request.words();
        request.reply(ECHO, words);
    });
    handlers.on_request(COUNT, |tally, _| tally.requests += 1);
    handlers.on_reply(ECHO, |tally, _| tally.replies += 1);
    let mut endpoint = Endpoint::new(handlers, Config::new().medium_bytes(64)).unwrap();
    let port = endpoint.open_port(Wire::Shm).unwrap();
    let lines = Segment::create(4096).unwrap();
    let card = Card {
        port: port.address(),
        pid: std::process::id(),
        descriptor: lines.descriptor(),
        nonce: lines.nonce(),
    };
    control.send(&card).unwrap();
    let card = control.receive(Duration::from_secs(20)).unwrap().unwrap();
    let peer = endpoint.connect(port, &card.port).unwrap();
    let their_lines = open_segment(card.pid, card.descriptor, card.nonce, 4096).unwrap();
    let mut side = Side { endpoint, peer, tally: Tally::default(), lines, their_lines };
    if is_requester {
        control.send(&request(&mut side)).unwrap();
    } else {
        reply(&mut side);
    }
    // The launching process ends both.
    std::thread::sleep(Duration::from_secs(20));
}

/// A cache line that the replier writes: in the requester's memory, or in its own.
fn line(region: &netdyno_host::region::Region, nth: usize) -> &AtomicU64 {
    region.word(1024 + 128 * nth)
}

fn request(side: &mut Side) -> Figures {
    let clock = Clock::calibrate();
    let mut rounds = [const { Vec::new() }; 5];
    let per = |ticks: u64, count: u64| ticks as f64 * clock.tick_ns / count as f64;
    for round in 0..ROUNDS as u64 {
        let base = round * TRIPS;
        let (ours, theirs) = (line(&side.lines.region, 0), line(&side.their_lines, 0));
        let began = ticks::now();
        for n in base + 1..=base + TRIPS {
            theirs.store(n, Ordering::Release);
            while ours.load(Ordering::Acquire) != n {}
        }
        rounds[0].push(per(ticks::now() - began, TRIPS));

        let shared = line(&side.their_lines, 1);
        let began = ticks::now();
        for n in base + 1..=base + TRIPS {
            shared.store(2 * n - 1, Ordering::Release);
            while shared.load(Ordering::Acquire) != 2 * n {}
        }
        rounds[1].push(per(ticks::now() - began, TRIPS));

        let began = ticks::now();
        for _ in 0..TRIPS {
            side.ask([1, 2, 3, 4]);
            let wanted = side.tally.replies + 1;
            side.poll_until(|tally| tally.replies == wanted);
        }
        rounds[2].push(per(ticks::now() - began, TRIPS));

        let began = ticks::now();
        for n in 1..STREAM {
            side.endpoint.request(&mut side.tally, side.peer, COUNT, [n, 2, 3, 4]).unwrap();
        }
        // The last request is answered only when all of them have been handled.
        let wanted = side.tally.replies + 1;
        side.ask([1, 2, 3, 4]);
        side.poll_until(|tally| tally.replies == wanted);
        rounds[3].push(per(ticks::now() - began, STREAM));

        let began = ticks::now();
        let wanted = side.tally.replies + STREAM;
        for n in 0..STREAM {
            side.ask([n, 2, 3, 4]);
        }
        side.poll_until(|tally| tally.replies == wanted);
        rounds[4].push(per(ticks::now() - began, STREAM));
    }
    let [two_lines, one_line, round_trip, one_way, with_replies] = rounds.map(median);
    Figures { two_lines, one_line, round_trip, one_way, with_replies }
}

fn reply(side: &mut Side) {
    for round in 0..ROUNDS as u64 {
        let base = round * TRIPS;
        let (ours, theirs) = (line(&side.lines.region, 0), line(&side.their_lines, 0));
        for n in base + 1..=base + TRIPS {
            while ours.load(Ordering::Acquire) != n {}
            theirs.store(n, Ordering::Release);
        }
        let shared = line(&side.lines.region, 1);
        for n in base + 1..=base + TRIPS {
            while shared.load(Ordering::Acquire) != 2 * n - 1 {}
            shared.store(2 * n, Ordering::Release);
        }
        let wanted = side.tally.requests + TRIPS + 2 * STREAM;
        side.poll_until(|tally| tally.requests == wanted);
    }
}

impl Side {
    /// Inlined, as if the program called `request` itself.
    #[inline(always)]
    fn ask(&mut self, words: [u64; 4]) {
        self.endpoint.request(&mut self.tally, self.peer, ECHO, words).unwrap();
    }

    fn poll_until(&mut self, is_done: impl Fn(&Tally) -> bool) {
        while !is_done(&self.tally) {
            self.endpoint.poll(&mut self.tally).unwrap();
        }
    }
}

/// Returns the message rate of UCX's own test, in messages per second, if it is installed.
fn ucx_messages_per_second(a: usize, b: usize) -> Option<f64> {
    let perftest = |cpu: usize, host: &[&str]| {
        let mut command = Command::new("taskset");
        command
            .args([
                "-c",
                &cpu.to_string(),
                "ucx_perftest",
                "-t",
                "am_bw",
                "-s",
                "32",
                "-x",
                "posix",
                "-d",
                "memory",
            ])
            .args(["-n", "1000000", "-p", "13373"])
            .args(host)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn()
    };
    let mut server = perftest(b, &[]).ok()?;
    std::thread::sleep(Duration::from_millis(300));
    let output = perftest(a, &["127.0.0.1"]).ok()?.wait_with_output().ok()?;
    let _ = server.kill();
    let _ = server.wait();
    // The last line has: iterations, three latencies, two bandwidths, two message rates.
    let text = String::from_utf8(output.stdout).ok()?;
    let last = text.lines().rev().find(|line| line.starts_with("Final:"))?;
    last.split_whitespace().last()?.parse().ok()
}
