//! The message rate of small requests over UDP, and over AF_XDP between two network namespaces, compared with one
//! `send` of a bare datagram of the same length for each message:
//! `cargo bench -p netdyno-stack --bench udp_rate [-- --namespaces A,B]`.
//!
//! Each pair of fresh, pinned, spinning processes runs all patterns in turn, several times. Ratios are taken within a
//! pair; medians and intervals over the pairs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../common/mod.rs"]
mod common;

use common::{pair_by, processors, show};
use netdyno_clock::{calibrate::Clock, place, ticks};
use netdyno_host::interface;
use netdyno_host::region::Region;
use netdyno_host::segment::{Segment, open_segment};
use netdyno_job::member::Control;
use netdyno_measure::stats::median;
use netdyno_stack::am::{Config, Endpoint, Handlers, OpenError, PeerId, Port, Wire, XdpError};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PAIRS: usize = 11;
const ROUNDS: usize = 7;
/// Messages of one kind in a round.
const STREAM: u64 = 5_000;
/// Bare datagrams that may wait at the receiver, so that none is lost.
const BARE_WINDOW: u64 = 128;
/// The length of a request with four words, header included, in bytes.
const LEN: usize = 72;

const TELL: u8 = 0;
const ASK: u8 = 1;

/// The environment variable with the wire of the processes. They are in a network namespace of their own if it is set.
const WIRE: &str = "NETDYNO_BENCH_WIRE";

/// A kind of stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Bare datagrams, each by a `send`, received by a `recv` each.
    Bare,
    /// Requests.
    Am { is_answered: bool, is_corked: bool },
}

/// The kinds, and their names.
const KINDS: [(Kind, &str); 5] = [
    (Kind::Bare, "bare datagrams, one send each"),
    (Kind::Am { is_answered: false, is_corked: false }, "one way"),
    (Kind::Am { is_answered: false, is_corked: true }, "one way, corked"),
    (Kind::Am { is_answered: true, is_corked: false }, "with replies"),
    (Kind::Am { is_answered: true, is_corked: true }, "with replies, corked"),
];

/// Addresses that one process of a pair passes to the other.
#[derive(Serialize, Deserialize)]
struct Card {
    bare: SocketAddr,
    port: Vec<u8>,
    pid: u32,
    descriptor: u32,
    nonce: [u8; 16],
}

/// The cost of a message of one kind in one pair, in nanoseconds.
#[derive(Serialize, Deserialize)]
struct Cost {
    time: f64,
    /// Processor time of the sender's and of the receiver's thread.
    sender: f64,
    receiver: f64,
}

fn main() {
    match common::role() {
        Some(is_requester) => process(is_requester),
        None => compare(),
    }
}

fn compare() {
    let (a, b) = processors();
    let mut arguments = std::env::args().skip_while(|argument| argument != "--namespaces").skip(1);
    let namespaces = arguments.next().map(|names| {
        let (a, b) = names.split_once(',').expect("--namespaces takes two names: A,B");
        [a.to_owned(), b.to_owned()]
    });
    println!("{PAIRS} pairs of processes on processors {a} and {b} ({})", place::distance(a, b));
    // An XDP program changes how a virtual cable passes the kernel's datagrams on. So each wire has its own processes.
    let wires: &[&str] = if namespaces.is_some() { &["am+udp", "am+xdp"] } else { &["am+udp"] };
    let mut costs: Vec<Vec<Vec<Cost>>> = wires.iter().map(|_| Vec::new()).collect();
    for _ in 0..PAIRS {
        for (costs, wire) in costs.iter_mut().zip(wires) {
            let adapt = |rank: usize, command| match &namespaces {
                Some(names) => in_namespace(&names[rank], wire, &command),
                None => command,
            };
            costs.push(pair_by::<Card, Vec<Cost>>((a, b), Duration::from_secs(120), adapt));
        }
    }
    for (wire, pairs) in costs.iter().enumerate() {
        for (at, (kind, name)) in KINDS.into_iter().enumerate() {
            let all = |of: fn(&Cost) -> f64| pairs.iter().map(|costs| of(&costs[at])).collect::<Vec<_>>();
            // Both wires take turns, so that a pair of the one belongs to a pair of the other.
            let ratio = |other: usize| -> Vec<f64> {
                costs[0].iter().zip(pairs).map(|(first, costs)| first[other].time / costs[at].time).collect()
            };
            let name = if kind == Kind::Bare { name.to_owned() } else { format!("{}, {name}", wires[wire]) };
            show(&name, "M/s", &all(|cost| 1e3 / cost.time));
            show("  processor time of the sender", "ns", &all(|cost| cost.sender));
            show("  processor time of the receiver", "ns", &all(|cost| cost.receiver));
            if kind != Kind::Bare {
                show("  against bare datagrams", "x", &ratio(0));
            }
            if wire > 0 {
                show("  against the same without XDP", "x", &ratio(at));
            }
        }
    }
}

/// Returns the command, to be run in a network namespace over a wire.
fn in_namespace(name: &str, wire: &str, command: &Command) -> Command {
    let mut there = Command::new("ip");
    there.args(["netns", "exec", name]).arg(command.get_program()).args(command.get_args()).env(WIRE, wire);
    there
}

/// Counts of the handlers.
#[derive(Default)]
struct Tally {
    requests: u64,
    replies: u64,
}

/// Words of shared memory, which the replier owns. No datagram tells what they tell, so that the streams alone are
/// measured.
struct Words(Arc<Region>);

impl Words {
    /// The number of the current stream, from 1; 0 while there is none.
    fn stream(&self) -> &AtomicU64 {
        self.0.word(1024)
    }

    /// The kind of the current stream.
    fn kind(&self) -> &AtomicU64 {
        self.0.word(1088)
    }

    /// The messages of the current stream that have arrived.
    fn count(&self) -> &AtomicU64 {
        self.0.word(1152)
    }

    /// The stream that the replier has seen last.
    fn seen(&self) -> &AtomicU64 {
        self.0.word(1216)
    }

    /// Processor time of the replier's thread when it saw that stream, in nanoseconds.
    fn processor_ns(&self) -> &AtomicU64 {
        self.0.word(1280)
    }
}

fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn endpoint(bind: IpAddr) -> Endpoint<Tally> {
    let mut handlers = Handlers::<Tally>::new();
    handlers.on_request(TELL, |tally, _| tally.requests += 1);
    handlers.on_request(ASK, |tally, request| {
        tally.requests += 1;
        let words = request.words();
        request.reply(0, words);
    });
    handlers.on_reply(0, |tally, _| tally.replies += 1);
    Endpoint::new(handlers, Config::new().bind((bind, 0).into())).unwrap()
}

fn process(is_requester: bool) {
    let mut control = Control::<Option<Card>>::from_stdin().unwrap();
    let wire = std::env::var(WIRE).ok();
    let address = match wire {
        Some(_) => interface::addresses().unwrap().into_iter().find(IpAddr::is_ipv4).unwrap(),
        None => Ipv4Addr::LOCALHOST.into(),
    };
    let mut endpoint = endpoint(address);
    let port = match wire.as_deref() {
        Some("am+xdp") => open_over_xdp(&mut endpoint),
        _ => endpoint.open_port(Wire::Udp).unwrap(),
    };
    let bare = UdpSocket::bind((address, 0)).unwrap();
    bare.set_nonblocking(true).unwrap();
    let segment = Segment::create(4096).unwrap();
    let card = Card {
        bare: bare.local_addr().unwrap(),
        port: port.address(),
        pid: std::process::id(),
        descriptor: segment.descriptor(),
        nonce: segment.nonce(),
    };
    control.send(&card).unwrap();
    let card = control.receive(Duration::from_secs(20)).unwrap().unwrap();
    bare.connect(card.bare).unwrap();
    let peer = endpoint.connect(port, &card.port).unwrap();
    let tally = Tally::default();
    if is_requester {
        let words = Words(open_segment(card.pid, card.descriptor, card.nonce, 4096).unwrap().into());
        control.send(&Side { bare, endpoint, peer, tally, words }.request_all()).unwrap();
    } else {
        Side { bare, endpoint, peer, tally, words: Words(segment.region) }.reply();
    }
    // The launching process ends both.
    std::thread::sleep(Duration::from_secs(20));
}

/// Opens a port over AF_XDP. The kernel frees the socket of an ended process a moment later.
fn open_over_xdp(endpoint: &mut Endpoint<Tally>) -> Port {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match endpoint.open_port(Wire::Xdp) {
            Err(OpenError::Xdp(XdpError::System { error, .. }))
                if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            port => return port.unwrap(),
        }
    }
}

/// One process: a bare socket, and an endpoint with one peer.
struct Side {
    bare: UdpSocket,
    endpoint: Endpoint<Tally>,
    peer: PeerId,
    tally: Tally,
    words: Words,
}

impl Side {
    fn request_all(&mut self) -> Vec<Cost> {
        let clock = Clock::calibrate();
        let mut samples = vec![[const { Vec::new() }; 3]; KINDS.len()];
        let mut stream = 0;
        for round in 0..=ROUNDS {
            // Every second round runs in the opposite order, so that no kind is always first.
            let mut order: Vec<usize> = (0..KINDS.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let theirs = self.begin(&mut stream, at);
                let (began, ours) = (ticks::now(), processor_ns());
                self.request(KINDS[at].0);
                let time = (ticks::now() - began) as f64 * clock.tick_ns;
                let ours = processor_ns() - ours;
                let theirs = self.begin(&mut stream, usize::MAX) - theirs;
                // The first round warms the caches up.
                if round > 0 {
                    for (samples, ns) in samples[at].iter_mut().zip([time, ours as f64, theirs as f64]) {
                        samples.push(ns / STREAM as f64);
                    }
                }
            }
        }
        let cost = |[time, sender, receiver]: &[Vec<f64>; 3]| Cost {
            time: median(time.iter().copied()),
            sender: median(sender.iter().copied()),
            receiver: median(receiver.iter().copied()),
        };
        samples.iter().map(cost).collect()
    }

    /// Tells the replier the kind of the next stream. Returns the processor time of its thread.
    fn begin(&mut self, stream: &mut u64, kind: usize) -> u64 {
        *stream += 1;
        self.words.kind().store(kind as u64, Ordering::Relaxed);
        self.words.count().store(0, Ordering::Relaxed);
        self.words.stream().store(*stream, Ordering::Release);
        while self.words.seen().load(Ordering::Acquire) != *stream {}
        self.words.processor_ns().load(Ordering::Relaxed)
    }

    fn arrived(&self) -> u64 {
        self.words.count().load(Ordering::Acquire)
    }

    /// Sends a stream, until all of it has arrived and is answered.
    fn request(&mut self, kind: Kind) {
        let Kind::Am { is_answered, is_corked } = kind else { return self.send_bare() };
        let handler = if is_answered { ASK } else { TELL };
        let Self { endpoint, peer, tally, words, .. } = self;
        tally.replies = 0;
        if is_corked {
            endpoint.cork();
        }
        for n in 0..STREAM {
            endpoint.request(tally, *peer, handler, [n, 2, 3, 4]).unwrap();
        }
        endpoint.uncork();
        while words.count().load(Ordering::Acquire) < STREAM || (is_answered && tally.replies < STREAM) {
            endpoint.poll(tally).unwrap();
        }
    }

    fn send_bare(&mut self) {
        let room = [7; LEN];
        for n in 0..STREAM {
            while n - self.arrived() >= BARE_WINDOW {}
            self.bare.send(&room).unwrap();
        }
        while self.arrived() < STREAM {}
    }

    /// Takes all streams, until the requester has closed.
    fn reply(&mut self) {
        let Self { bare, endpoint, tally, words, .. } = self;
        let mut seen = 0;
        let mut kind = None;
        let mut count = 0;
        let mut room = [0; LEN];
        loop {
            let stream = words.stream().load(Ordering::Acquire);
            if stream != seen {
                seen = stream;
                count = 0;
                kind = KINDS.get(words.kind().load(Ordering::Relaxed) as usize);
                tally.requests = 0;
                words.processor_ns().store(processor_ns(), Ordering::Relaxed);
                words.seen().store(seen, Ordering::Release);
            }
            let arrived = match kind {
                None => {
                    // Acknowledges the last messages of the stream before.
                    if endpoint.poll(tally).is_err() {
                        return;
                    }
                    continue;
                }
                Some((Kind::Bare, _)) => count + u64::from(receive(bare, &mut room)),
                Some(_) => {
                    endpoint.poll(tally).unwrap();
                    tally.requests
                }
            };
            if arrived != count {
                count = arrived;
                words.count().store(count, Ordering::Release);
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
