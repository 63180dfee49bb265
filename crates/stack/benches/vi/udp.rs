//! Virtual Interfaces over UDP on loopback, compared with bare datagrams, which are received by polling
//! or by blocking: `cargo bench -p netdyno-stack --bench vi_udp`.
//!
//! Each pair of fresh, pinned processes runs all patterns in turn, several times. Ratios are taken
//! within a pair; medians and intervals over the pairs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../common/mod.rs"]
mod common;
mod line;

use common::{Pairs, processors, show};
use line::{LEN, Line};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::{place, ticks};
use netdyno_host::region::Region;
use netdyno_host::segment::{Segment, open_segment};
use netdyno_job::member::Control;
use netdyno_measure::stats::{quantile_of_sorted, sorted};
use netdyno_stack::vi::{Address, Config, Level, Provider, UdpOptions, WireKind};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PAIRS: usize = 15;
const ROUNDS: usize = 20;
/// Round trips of each kind in a round.
const TRIPS: usize = 600;

/// The kinds of round trips: bare datagrams received by polling, bare datagrams received by blocking,
/// and messages of a VI.
const BARE: usize = 0;
const BLOCKING: usize = 1;
const KINDS: usize = 4;
/// The kind of round trips at each reliability level.
const LEVELS: [(usize, Level); 2] = [(2, Level::Delivery), (3, Level::Reception)];

/// Addresses that one process of a pair passes to the other.
#[derive(Serialize, Deserialize)]
struct Card {
    sockets: [SocketAddr; 2],
    host: Vec<u8>,
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
    let pairs = Pairs::run::<Card>(PAIRS, (a, b), Duration::from_secs(120));
    show("bare datagrams, looked for, round trip, p50", "ns", &pairs.of(BARE));
    show("bare datagrams, waited for, p50", "ns", &pairs.of(BLOCKING));
    for (kind, level) in LEVELS {
        println!("vi+udp, {level:?}");
        show("  round trip, p50", "ns", &pairs.of(kind));
        show("  against those looked for (delivery: at most 1.25)", "x", &pairs.ratio(kind, BARE));
        show("  against those waited for (at most 0.6)", "x", &pairs.ratio(kind, BLOCKING));
    }
}

fn provider() -> Provider {
    let bind = SocketAddr::from(([127, 0, 0, 1], 0));
    let wire = WireKind::Udp(UdpOptions::new().bind(bind));
    Provider::open(Config::new(wire)).unwrap()
}

/// The kind of the current round trip. It is in the replier's memory and not sent over the network,
/// because the network may lose it.
enum Word {
    Ours(Segment),
    Theirs(Region),
}

impl Word {
    fn get(&self) -> &AtomicU64 {
        match self {
            Self::Ours(segment) => segment.region.word(1024),
            Self::Theirs(region) => region.word(1024),
        }
    }
}

fn process(is_requester: bool) {
    let mut control = Control::<Option<Card>>::from_stdin().unwrap();
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets[BARE].set_nonblocking(true).unwrap();
    // The replier checks the current kind now and then.
    sockets[BLOCKING].set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut lines = LEVELS.map(|(_, level)| Line::open(provider(), level));
    let segment = Segment::create(4096).unwrap();
    let card = Card {
        sockets: sockets.each_ref().map(|socket| socket.local_addr().unwrap()),
        host: lines.iter().flat_map(|line| line.provider.host()).collect(),
        pid: std::process::id(),
        descriptor: segment.descriptor(),
        nonce: segment.nonce(),
    };
    control.send(&card).unwrap();
    let card = control.receive(Duration::from_secs(20)).unwrap().unwrap();
    for (socket, peer) in sockets.iter().zip(card.sockets) {
        socket.connect(peer).unwrap();
    }
    for (line, host) in lines.iter_mut().zip(card.host.chunks(card.host.len() / 2)) {
        let to = Address { host: host.to_vec(), discriminator: b"bench".to_vec() };
        line.provider.ask(line.vi, b"bench", to, true, Some(Duration::from_secs(20))).unwrap();
    }
    for line in &mut lines {
        while line.provider.answer(line.vi).unwrap().is_none() {}
    }
    if is_requester {
        let word = Word::Theirs(open_segment(card.pid, card.descriptor, card.nonce, 4096).unwrap());
        control.send(&request(&sockets, &mut lines, &word)).unwrap();
    } else {
        reply(&sockets, &mut lines, &Word::Ours(segment));
    }
    // The launching process ends both.
    std::thread::sleep(Duration::from_secs(20));
}

fn request(sockets: &[UdpSocket; 2], lines: &mut [Line; 2], word: &Word) -> Figures {
    let clock = Clock::calibrate();
    let mut samples = vec![Vec::new(); KINDS];
    for round in 0..ROUNDS {
        // Every second round runs in the opposite order, so that no kind is always first.
        let mut order: Vec<usize> = (0..KINDS).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for kind in order {
            word.get().store(kind as u64, Ordering::Release);
            for trip in 0..TRIPS + TRIPS / 10 {
                let began = ticks::now();
                match kind {
                    BARE | BLOCKING => bare_trip(&sockets[kind]),
                    _ => lines[kind - LEVELS[0].0].trip(),
                }
                let ns = (ticks::now() - began) as f64 * clock.tick_ns;
                // In the first trips the caches are cold, and the replier still waits for another kind.
                if trip >= TRIPS / 10 {
                    samples[kind].push(ns);
                }
            }
        }
    }
    samples.into_iter().map(|samples| quantile_of_sorted(&sorted(samples), 0.5)).collect()
}

fn reply(sockets: &[UdpSocket; 2], lines: &mut [Line; 2], word: &Word) -> ! {
    let mut room = [0; LEN];
    loop {
        match word.get().load(Ordering::Acquire) as usize {
            kind @ (BARE | BLOCKING) => {
                if receive(&sockets[kind], &mut room) {
                    sockets[kind].send(&room).unwrap();
                }
            }
            kind => drop(lines[kind - LEVELS[0].0].echo()),
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

fn bare_trip(socket: &UdpSocket) {
    let mut room = [7; LEN];
    socket.send(&room).unwrap();
    while !receive(socket, &mut room) {}
}
