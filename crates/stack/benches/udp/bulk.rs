//! Bulk transfers over UDP on loopback, with and without loss, compared with libfabric's reliable
//! datagrams over UDP: `cargo bench -p netdyno-stack --bench udp_bulk`.
//!
//! Each pair of fresh, pinned, spinning processes first moves one MiB at a time and waits for the
//! answer, and then overlaps many transfers. Ratios are taken within a pair; medians and intervals over
//! the pairs. `fi_pingpong` runs between the pairs, if it is installed.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../common/mod.rs"]
mod common;

use common::{pair, processors, show};
use netdyno_clock::calibrate::Clock;
use netdyno_clock::{place, ticks};
use netdyno_job::member::Control;
use netdyno_stack::am::{Config, Endpoint, Faults, Handlers, Memory, PeerId, Remote, Wire};
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::time::Duration;

const PAIRS: usize = 15;
const LEN: usize = 1 << 20;
/// Transfers of each kind in a pair, and warm-up transfers before them.
const TRANSFERS: usize = 48;
const COLD: usize = 8;
/// Number of overlapping stores.
const OVERLAP: u32 = 8;
/// Shares of datagrams lost in each direction.
const LOSSES: [f64; 2] = [0.0, 0.01];

const STORED: u8 = 0;
const FETCHED: u8 = 0;
const NEXT: u8 = 0;

#[derive(Serialize, Deserialize)]
struct Card {
    ports: Vec<Vec<u8>>,
    keys: Vec<Vec<u8>>,
}

/// MB/s of one pair at one loss.
#[derive(Serialize, Deserialize)]
struct Rates {
    store: f64,
    overlapping_store: f64,
    get: f64,
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
    let mut libfabric = Vec::new();
    for _ in 0..PAIRS {
        pairs.push(pair::<Card, Vec<Rates>>((a, b), Duration::from_secs(120)));
        libfabric.extend(fi_pingpong(a, b));
    }
    let all = |loss: usize, of: fn(&Rates) -> f64| -> Vec<f64> {
        pairs.iter().map(|rates: &Vec<Rates>| of(&rates[loss])).collect()
    };
    for (at, loss) in LOSSES.iter().enumerate() {
        println!("\n{} % of datagrams lost each way", 100.0 * loss);
        show("store of 1 MiB, until it is answered", "MB/s", &all(at, |rates| rates.store));
        show("stores of 1 MiB that overlap", "MB/s", &all(at, |rates| rates.overlapping_store));
        show("get of 1 MiB", "MB/s", &all(at, |rates| rates.get));
    }
    let ratio = |of: fn(&Rates) -> f64| -> Vec<f64> {
        pairs.iter().map(|rates| of(&rates[1]) / of(&rates[0])).collect()
    };
    println!("\n1 % loss against none (at least 0.5)");
    show("store", "x", &ratio(|rates| rates.store));
    show("stores that overlap", "x", &ratio(|rates| rates.overlapping_store));
    show("get", "x", &ratio(|rates| rates.get));
    println!();
    if libfabric.len() < PAIRS {
        println!("no fi_pingpong that works: not compared with libfabric");
        return;
    }
    let against: Vec<f64> = all(0, |rates| rates.store).iter().zip(&libfabric).map(|(a, b)| a / b).collect();
    show("libfabric udp;ofi_rxd, fi_pingpong of 1 MiB", "MB/s", &libfabric);
    show("store of 1 MiB against that (at least 1.5)", "x", &against);
}

/// Returns the bandwidth of libfabric's own benchmark, in MB/s.
fn fi_pingpong(a: usize, b: usize) -> Option<f64> {
    const LEN: &str = "1048576";
    let start = |cpu: usize, more: &[&str]| {
        let cpu = cpu.to_string();
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu, "fi_pingpong", "-p", "udp;ofi_rxd", "-e", "rdm", "-S", LEN, "-I", "200"]);
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().ok()
    };
    let mut server = start(b, &[])?;
    std::thread::sleep(Duration::from_millis(300));
    let output = start(a, &["127.0.0.1"]).and_then(|client| client.wait_with_output().ok());
    // The server may wait for a client that has failed.
    let _ = server.kill();
    let _ = server.wait();
    // Columns: bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec
    let text = String::from_utf8(output?.stdout).ok()?;
    let line = text.lines().find(|line| line.trim_start().starts_with("1m"))?;
    line.split_whitespace().nth(5)?.parse().ok()
}

/// Counts of the handlers.
#[derive(Default)]
struct Tally {
    done: u32,
    /// The index of the endpoint to serve next.
    next: Option<usize>,
}

struct Line {
    endpoint: Endpoint<Tally>,
    peer: PeerId,
    remote: Option<Remote>,
    local: Memory,
}

fn endpoint(loss: f64) -> Endpoint<Tally> {
    let mut handlers = Handlers::<Tally>::new();
    handlers.on_store(STORED, |_, stored| stored.reply(STORED, []));
    handlers.on_reply(STORED, |tally, _| tally.done += 1);
    handlers.on_fetched(FETCHED, |tally, _| tally.done += 1);
    handlers.on_refused(|_, refused| panic!("{refused}"));
    handlers.on_request(NEXT, |tally, request| {
        tally.next = Some(request.words()[0] as usize);
        request.reply(STORED, []);
    });
    let faults = Faults { loss, ..Faults::NONE };
    let seed = u64::from(std::process::id());
    Endpoint::new(handlers, Config::new().faults(faults).seed(seed)).unwrap()
}

fn process(is_requester: bool) {
    let mut control = Control::<Option<Card>>::from_stdin().unwrap();
    let mut endpoints = LOSSES.map(endpoint);
    let ports = endpoints.each_mut().map(|endpoint| endpoint.open_port(Wire::Udp).unwrap());
    let memories = endpoints.each_mut().map(|endpoint| endpoint.allocate(LEN).unwrap());
    let card = Card {
        ports: ports.iter().map(|port| port.address()).collect(),
        keys: memories.iter().map(Memory::key).collect(),
    };
    control.send(&card).unwrap();
    let card = control.receive(Duration::from_secs(20)).unwrap().unwrap();
    let mut tally = Tally::default();
    let mut lines: Vec<Line> = endpoints
        .into_iter()
        .zip(ports)
        .zip(memories)
        .zip(&card.ports)
        .map(|(((mut endpoint, port), local), address)| {
            let peer = endpoint.connect(port, address).unwrap();
            Line { endpoint, peer, remote: None, local }
        })
        .collect();
    if is_requester {
        let mut rates = Vec::new();
        for ((line, key), next) in lines.iter_mut().zip(&card.keys).zip(1..) {
            line.remote = Some(line.endpoint.attach(&mut tally, line.peer, key).unwrap());
            rates.push(line.measure(&mut tally));
            // Tells the replier to serve the next endpoint.
            line.endpoint.request(&mut tally, line.peer, NEXT, [next]).unwrap();
            line.wait(&mut tally, 1);
        }
        drop(lines);
        control.send(&rates).unwrap();
    } else {
        let mut at = 0;
        // The last answer may be lost as well, so the replier serves the last endpoint until it is
        // closed.
        while lines[at].endpoint.poll(&mut tally).is_ok() {
            at = tally.next.take().filter(|&next| next < lines.len()).unwrap_or(at);
        }
    }
    // The launching process ends both.
    std::thread::sleep(Duration::from_secs(20));
}

impl Line {
    fn wait(&mut self, tally: &mut Tally, count: u32) {
        while tally.done < count {
            self.endpoint.poll(tally).unwrap();
        }
        tally.done -= count;
    }

    fn measure(&mut self, tally: &mut Tally) -> Rates {
        let clock = Clock::calibrate();
        let bytes = vec![7; LEN];
        let remote = self.remote.unwrap();
        let mut rate = |count: usize, transfer: &mut dyn FnMut(&mut Self, &mut Tally)| {
            (0..COLD).for_each(|_| transfer(self, tally));
            let began = ticks::now();
            (0..count).for_each(|_| transfer(self, tally));
            let ns = (ticks::now() - began) as f64 * clock.tick_ns;
            count as f64 * LEN as f64 * 1e3 / ns
        };
        let store = rate(TRANSFERS, &mut |line, tally| {
            line.endpoint.store(tally, remote.at(0), &bytes, STORED, []).unwrap();
            line.wait(tally, 1);
        });
        let overlapping_store = rate(TRANSFERS / OVERLAP as usize, &mut |line, tally| {
            for _ in 0..OVERLAP {
                line.endpoint.store(tally, remote.at(0), &bytes, STORED, []).unwrap();
            }
            line.wait(tally, OVERLAP);
        }) * f64::from(OVERLAP);
        let get = rate(TRANSFERS, &mut |line, tally| {
            let local = line.local.clone();
            line.endpoint.get(tally, remote.at(0), local.range(0, LEN), FETCHED, []).unwrap();
            line.wait(tally, 1);
        });
        Rates { store, overlapping_store, get }
    }
}
