//! Compares accesses to global memory with the Active Messages that could carry them, over shared memory:
//!
//!     cargo bench -p netdyno-global --bench access
//!
//! A read of 8 B is compared with a request of four words and its reply of four, and a blocking bulk write with a store of
//! the same length that is answered. The two alternate, each time in fresh, pinned processes. A ratio is taken within a
//! pair of runs; medians and intervals are over the pairs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../../libam/benches/ranks/mod.rs"]
mod ranks;

use netdyno_clock::place;
use netdyno_global::{Config, Segment, World};
use netdyno_job::place::Place;
use netdyno_job::pmi::Pmi;
use netdyno_measure::stats::median;
use netdyno_stack::am::{self, Endpoint, Handlers, PeerId, Remote, Wire};
use ranks::show;
use std::process::Command;
use std::time::{Duration, Instant};

const PAIRS: usize = 41;
const BATCHES: usize = 51;
/// What is accessed: a word, and bulk of two lengths, in bytes. Accesses in a batch.
const ACCESSES: [(usize, u32); 3] = [(8, 2000), (64 << 10, 100), (1 << 20, 10)];
const LONGEST: usize = ACCESSES[2].0;

/// The median times of the accesses, in nanoseconds.
type Figures = [f64; ACCESSES.len()];

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("global") => over_global(),
        Some("am") => over_am(),
        _ => compare(),
    }
}

fn compare() {
    let (a, b) = place::choose_pair(&place::allowed().unwrap()).unwrap();
    assert_ne!(a, b, "this benchmark polls and needs two processors");
    println!("{PAIRS} pairs of runs on processors {a} and {b} ({})", place::distance(a, b));
    let pairs: Vec<[Figures; 2]> =
        (0..PAIRS).map(|_| ["global", "am"].map(|layer| run(layer, [a, b]))).collect();
    let lines = [
        ("read 8 B", "request and reply of four words", "at most 1.1"),
        ("write 64 KiB", "store 64 KiB, answered", "about 1"),
        ("write 1 MiB", "store 1 MiB, answered", "about 1"),
    ];
    for (nth, (global, am, goal)) in lines.into_iter().enumerate() {
        show(&format!("access: {global}, ns"), pairs.iter().map(|[ours, _]| ours[nth]).collect());
        show(&format!("its message: {am}, ns"), pairs.iter().map(|[_, am]| am[nth]).collect());
        show(&format!("  ratio ({goal})"), pairs.iter().map(|[ours, am]| ours[nth] / am[nth]).collect());
    }
}

/// Runs two ranks of this program.
fn run(layer: &str, processors: [usize; 2]) -> Figures {
    let own = std::env::current_exe().unwrap();
    let said = ranks::output(|rank| {
        let mut command = Command::new(&own);
        command.args([layer, &processors[rank].to_string()]);
        command
    });
    let figures: Vec<f64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
    figures.try_into().unwrap()
}

fn pin() {
    place::pin(std::env::args().nth(2).unwrap().parse().unwrap()).unwrap();
}

/// Measures an access: the median over batches. The first batch touches the pages, and does not count.
fn measure(count: u32, mut access: impl FnMut()) -> f64 {
    let batches = (0..=BATCHES).map(|_| {
        let began = Instant::now();
        (0..count).for_each(|_| access());
        began.elapsed().as_nanos() as f64 / f64::from(count)
    });
    median(batches.skip(1))
}

fn print(figures: Figures) {
    println!("{}", figures.map(|ns| format!("{ns:.3}")).join(" "));
}

fn over_global() {
    pin();
    let mut config = Config::default();
    config.wire = Some(Wire::Shm);
    let mut world = World::launched(config).unwrap();
    let segment = world.allocate(LONGEST).unwrap();
    world.barrier().unwrap();
    if world.rank() == 0 {
        let bytes = vec![7; LONGEST];
        print(ACCESSES.map(|(len, count)| measure(count, || access(&mut world, segment, &bytes[..len]))));
    }
    world.finish().unwrap();
}

/// Reads a word of the other rank, or writes bulk there.
fn access(world: &mut World, segment: Segment, bytes: &[u8]) {
    let there = netdyno_global::GlobalPointer { rank: 1, ..world.pointer(segment, 0) };
    if bytes.len() == ACCESSES[0].0 {
        world.read_u64(there).unwrap();
    } else {
        world.write(there, bytes).unwrap();
    }
}

#[derive(Default)]
struct State {
    answers: u32,
    is_over: bool,
}

/// A pair of endpoints, seen from rank 0.
struct Asker {
    endpoint: Endpoint<State>,
    state: State,
    peer: PeerId,
    remote: Remote,
    bytes: Vec<u8>,
}

fn over_am() {
    pin();
    let place = Place::of_this_process().unwrap().unwrap();
    let mut pmi = Pmi::open(place).unwrap();
    let mut handlers = Handlers::<State>::new();
    handlers.on_request(0, |_, request| {
        let words = request.words();
        request.reply(0, words);
    });
    handlers.on_request(1, |state, _| state.is_over = true);
    handlers.on_refused(|_, refused| panic!("{refused}"));
    handlers.on_store(0, |_, stored| stored.reply(0, []));
    handlers.on_reply(0, |state, _| state.answers += 1);
    let mut endpoint = Endpoint::new(handlers, am::Config::new()).unwrap();
    let memory = endpoint.allocate(LONGEST).unwrap();
    let peer = ranks::connect(&mut endpoint, place.rank, &mut pmi);
    let keys = pmi.gather(&memory.key()).unwrap();
    let mut state = State::default();
    pmi.gather(&[]).unwrap();
    if place.rank == 1 {
        while !state.is_over {
            endpoint.poll(&mut state).unwrap();
        }
        return;
    }
    let remote = endpoint.attach(&mut state, peer, &keys[1]).unwrap();
    let mut asker = Asker { endpoint, state, peer, remote, bytes: vec![7; LONGEST] };
    print(ACCESSES.map(|(len, count)| measure(count, || asker.ask(len))));
    asker.endpoint.request(&mut asker.state, peer, 1, []).unwrap();
    // The request must arrive before this side ends.
    let until = Instant::now() + Duration::from_secs(5);
    while asker.endpoint.poll(&mut asker.state).is_ok() && Instant::now() < until {}
}

impl Asker {
    /// Sends a request of four words, or a store, and waits for the answer.
    fn ask(&mut self, len: usize) {
        let Self { endpoint, state, peer, remote, bytes } = self;
        let before = state.answers;
        if len == ACCESSES[0].0 {
            endpoint.request(state, *peer, 0, [1, 2, 3, 4]).unwrap();
        } else {
            endpoint.store(state, remote.at(0), &bytes[..len], 0, []).unwrap();
        }
        while state.answers == before {
            endpoint.poll(state).unwrap();
        }
    }
}
