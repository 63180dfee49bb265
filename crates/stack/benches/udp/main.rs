//! Active Messages over UDP on loopback, compared with a ping-pong of bare datagrams, with and without
//! loss: `cargo bench -p netdyno-stack --bench udp [-- --plot FILE.svg]`.
//!
//! Each pair of fresh, pinned, spinning processes runs all patterns in turn, several times. Ratios are
//! taken within a pair; medians and intervals over the pairs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../common/mod.rs"]
mod common;
mod plot;

use common::{median_and_interval, pair, processors, show};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::{place, ticks};
use netdyno_host::segment::{Segment, open_segment};
use netdyno_job::member::Control;
use netdyno_measure::stats::{quantile_of_sorted, sorted};
use netdyno_stack::am::{Config, Endpoint, Faults, Handlers, PeerId, Wire};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PAIRS: usize = 15;
const ROUNDS: usize = 20;
/// Round trips of each kind in a round.
const TRIPS: usize = 600;
/// Shares of datagrams lost in each direction; there are no other faults.
const LOSSES: [f64; 5] = [0.0, 0.001, 0.01, 0.05, 0.2];
/// Index of the bare ping-pong.
const BARE: usize = 0;
/// Length of four words, in bytes.
const BARE_LEN: usize = 32;

const ECHO: u8 = 0;

/// Addresses that one process of a pair passes to the other.
#[derive(Serialize, Deserialize)]
struct Card {
    bare: SocketAddr,
    ports: Vec<Vec<u8>>,
    pid: u32,
    descriptor: u32,
    nonce: [u8; 16],
}

/// Round-trip times of one kind in one pair, in nanoseconds.
#[derive(Serialize, Deserialize)]
struct Trips {
    mean: f64,
    p50: f64,
    p99: f64,
    p999: f64,
}

impl Trips {
    fn of(samples: &[f64]) -> Self {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let samples = sorted(samples.to_vec());
        let quantile = |share| quantile_of_sorted(&samples, share);
        Self { mean, p50: quantile(0.5), p99: quantile(0.99), p999: quantile(0.999) }
    }
}

/// A column of the table: its name and its value.
type Column = (&'static str, fn(&Trips) -> f64);

const COLUMNS: [Column; 4] =
    [("mean", |t| t.mean), ("p50", |t| t.p50), ("p99", |t| t.p99), ("p99.9", |t| t.p999)];

fn main() {
    match common::role() {
        Some(is_requester) => process(is_requester),
        None => compare(),
    }
}

fn compare() {
    let (a, b) = processors();
    println!("{PAIRS} pairs of processes on processors {a} and {b} ({})", place::distance(a, b));
    // One entry for the bare ping-pong, then one for each loss.
    let pairs: Vec<Vec<Trips>> =
        (0..PAIRS).map(|_| pair::<Card, Vec<Trips>>((a, b), Duration::from_secs(120))).collect();
    let all = |kind: usize, of: fn(&Trips) -> f64| -> Vec<f64> {
        pairs.iter().map(|trips| of(&trips[kind])).collect()
    };
    let ratio = |of: fn(&Trips) -> f64, above: usize, below: usize| -> Vec<f64> {
        pairs.iter().map(|trips| of(&trips[above]) / of(&trips[below])).collect()
    };
    show("bare datagrams of 32 bytes, round trip, p50", "ns", &all(BARE, |t| t.p50));
    show("4-word request and reply, p50", "ns", &all(1, |t| t.p50));
    show("  against the bare ones, p50 (at most 1.15)", "x", &ratio(|t| t.p50, 1, BARE));
    show("  against the bare ones, mean", "x", &ratio(|t| t.mean, 1, BARE));
    let at_1_percent = 1 + LOSSES.iter().position(|&loss| loss == 0.01).unwrap();
    show("at 1 % loss: p50 against lossless (at most 1.3)", "x", &ratio(|t| t.p50, at_1_percent, 1));

    println!("\n{} round trips at each loss, in µs", PAIRS * ROUNDS * TRIPS);
    let head: String = COLUMNS.iter().map(|(name, _)| format!("{name:>22}")).collect();
    println!("{:>8}{head}", "loss");
    let mut curves: Vec<plot::Curve> =
        COLUMNS.iter().map(|&(name, _)| plot::Curve { name, points: Vec::new() }).collect();
    for (at, loss) in LOSSES.into_iter().enumerate() {
        let mut line = format!("{:>6} %", 100.0 * loss);
        for ((_, of), curve) in COLUMNS.into_iter().zip(&mut curves) {
            let in_us: Vec<f64> = all(1 + at, of).into_iter().map(|ns| ns / 1e3).collect();
            let (median, interval) = median_and_interval(&in_us);
            let [lo, hi] = interval.map(|us| format!("{us:.1}"));
            line.push_str(&format!("{:>22}", format!("{median:.1} [{lo}, {hi}]")));
            curve.points.push(plot::Point { loss, us: median, interval });
        }
        println!("{line}");
    }
    let mut arguments = std::env::args().skip_while(|argument| argument != "--plot").skip(1);
    if let Some(file) = arguments.next() {
        std::fs::write(&file, plot::svg(&curves)).unwrap();
        println!("\nwrote {file}");
    }
}

/// Counts of the handlers.
#[derive(Default)]
struct Tally {
    replies: u64,
}

/// An endpoint with one peer.
struct Line {
    endpoint: Endpoint<Tally>,
    peer: PeerId,
    tally: Tally,
}

struct Side {
    bare: UdpSocket,
    lines: Vec<Line>,
    /// The kind of the current round trip. It is in the replier's memory and not sent over the network,
    /// because the network may lose it.
    kind: AtomicKind,
}

/// A word of shared memory.
enum AtomicKind {
    Ours(Segment),
    Theirs(netdyno_host::region::Region),
}

impl AtomicKind {
    fn word(&self) -> &AtomicU64 {
        match self {
            Self::Ours(segment) => segment.region.word(1024),
            Self::Theirs(region) => region.word(1024),
        }
    }
}

fn endpoint(loss: f64) -> Endpoint<Tally> {
    let mut handlers = Handlers::<Tally>::new();
    handlers.on_request(ECHO, |_, request| {
        let words = request.words();
        request.reply(ECHO, words);
    });
    handlers.on_reply(ECHO, |tally, _| tally.replies += 1);
    let faults = Faults { loss, ..Faults::NONE };
    let seed = u64::from(std::process::id());
    Endpoint::new(handlers, Config::new().faults(faults).seed(seed)).unwrap()
}

fn process(is_requester: bool) {
    let mut control = Control::<Option<Card>>::from_stdin().unwrap();
    let mut endpoints = LOSSES.map(endpoint);
    let ports = endpoints.each_mut().map(|endpoint| endpoint.open_port(Wire::Udp).unwrap());
    let bare = UdpSocket::bind("127.0.0.1:0").unwrap();
    bare.set_nonblocking(true).unwrap();
    let segment = Segment::create(4096).unwrap();
    let card = Card {
        bare: bare.local_addr().unwrap(),
        ports: ports.iter().map(|port| port.address()).collect(),
        pid: std::process::id(),
        descriptor: segment.descriptor(),
        nonce: segment.nonce(),
    };
    control.send(&card).unwrap();
    let card = control.receive(Duration::from_secs(20)).unwrap().unwrap();
    bare.connect(card.bare).unwrap();
    let lines = endpoints
        .into_iter()
        .zip(ports)
        .zip(&card.ports)
        .map(|((mut endpoint, port), address)| {
            let peer = endpoint.connect(port, address).unwrap();
            Line { endpoint, peer, tally: Tally::default() }
        })
        .collect();
    let kind = if is_requester {
        AtomicKind::Theirs(open_segment(card.pid, card.descriptor, card.nonce, 4096).unwrap())
    } else {
        AtomicKind::Ours(segment)
    };
    let mut side = Side { bare, lines, kind };
    if is_requester {
        control.send(&request(&mut side)).unwrap();
    } else {
        reply(&mut side);
    }
    // The launching process ends both.
    std::thread::sleep(Duration::from_secs(20));
}

fn request(side: &mut Side) -> Vec<Trips> {
    let clock = Clock::calibrate();
    let mut samples = vec![Vec::new(); 1 + LOSSES.len()];
    for round in 0..ROUNDS {
        // Every second round runs in the opposite order, so that no kind is always first.
        let mut order: Vec<usize> = (0..=LOSSES.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for kind in order {
            side.kind.word().store(kind as u64, Ordering::Release);
            for trip in 0..TRIPS + TRIPS / 10 {
                let began = ticks::now();
                match kind {
                    BARE => side.bare_trip(),
                    _ => side.lines[kind - 1].trip(),
                }
                let ns = (ticks::now() - began) as f64 * clock.tick_ns;
                // The first trips warm the caches up.
                if trip >= TRIPS / 10 {
                    samples[kind].push(ns);
                }
            }
        }
    }
    samples.iter().map(|samples| Trips::of(samples)).collect()
}

fn reply(side: &mut Side) -> ! {
    let mut room = [0; BARE_LEN];
    loop {
        match side.kind.word().load(Ordering::Acquire) as usize {
            BARE => {
                if receive(&side.bare, &mut room) {
                    side.bare.send(&room).unwrap();
                }
            }
            kind => {
                let Line { endpoint, tally, .. } = &mut side.lines[kind - 1];
                endpoint.poll(tally).unwrap();
            }
        }
    }
}

fn receive(socket: &UdpSocket, room: &mut [u8]) -> bool {
    match socket.recv(room) {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

impl Side {
    fn bare_trip(&mut self) {
        let mut room = [7; BARE_LEN];
        self.bare.send(&room).unwrap();
        while !receive(&self.bare, &mut room) {}
    }
}

impl Line {
    fn trip(&mut self) {
        let wanted = self.tally.replies + 1;
        self.endpoint.request(&mut self.tally, self.peer, ECHO, [1, 2, 3, 4]).unwrap();
        while self.tally.replies < wanted {
            self.endpoint.poll(&mut self.tally).unwrap();
        }
    }
}
