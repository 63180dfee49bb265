//! Compares the round trip of a short request and its reply from C over `libam.so` with that of Rust over
//! `netdyno_stack::am`: `cargo bench -p netdyno-libam`. Both have 128 bits of arguments and travel over shared memory.
//!
//! The two alternate, each time in fresh, pinned processes. A ratio is taken within a pair of runs; medians and intervals
//! are over the pairs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../tests/library/mod.rs"]
mod library;
mod ranks;

use library::Library;
use netdyno_clock::place;
use netdyno_job::place::Place;
use netdyno_job::pmi::Pmi;
use netdyno_measure::stats::{quantile_of_sorted, sorted};
use netdyno_stack::am::{Config, Endpoint, Handlers};
use ranks::show;
use std::process::Command;
use std::time::Instant;

const PAIRS: usize = 61;
const TRIPS: u32 = 2000;
const BATCHES: usize = 101;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("rust") {
        return rust();
    }
    let (a, b) = place::choose_pair(&place::allowed().unwrap()).unwrap();
    assert_ne!(a, b, "this benchmark polls and needs two processors");
    let library = Library::built();
    let program = library.compile("pingpong");
    let mut figures = Vec::new();
    for _ in 0..PAIRS {
        let c = run(|| library.command(&program), &[TRIPS.to_string(), a.to_string(), b.to_string()]);
        let own = std::env::current_exe().unwrap();
        let rust = run(|| Command::new(&own), &["rust".into(), a.to_string(), b.to_string()]);
        figures.push((c, rust));
    }
    println!("{PAIRS} pairs of runs on processors {a} and {b} ({})", place::distance(a, b));
    show("C, round trip in ns", figures.iter().map(|(c, _)| *c).collect());
    show("Rust, round trip in ns", figures.iter().map(|(_, rust)| *rust).collect());
    show("C / Rust (at most 1.15)", figures.iter().map(|(c, rust)| c / rust).collect());
}

/// Runs two ranks of a command, and returns the figure that rank 0 prints.
fn run(command: impl Fn() -> Command, arguments: &[String]) -> f64 {
    let rank = |_| {
        let mut command = command();
        command.args(arguments);
        command
    };
    ranks::output(rank).trim().parse().unwrap()
}

#[derive(Default)]
struct State {
    answers: u32,
    is_over: bool,
}

/// A rank in Rust.
fn rust() {
    let place = Place::of_this_process().unwrap().unwrap();
    let cpu = std::env::args().nth(2 + place.rank).unwrap().parse().unwrap();
    place::pin(cpu).unwrap();
    let mut pmi = Pmi::open(place).unwrap();
    let mut handlers = Handlers::<State>::new();
    handlers.on_request(0, |_, request| {
        let [a, b, ..] = request.words();
        request.reply(0, [a, b]);
    });
    handlers.on_request(1, |state, _| state.is_over = true);
    handlers.on_reply(0, |state, _| state.answers += 1);
    let mut endpoint = Endpoint::new(handlers, Config::new()).unwrap();
    let peer = ranks::connect(&mut endpoint, place.rank, &mut pmi);
    let mut state = State::default();
    pmi.gather(&[]).unwrap();
    if place.rank == 1 {
        while !state.is_over {
            endpoint.poll(&mut state).unwrap();
        }
        return;
    }
    let mut batches = Vec::new();
    for _ in 0..BATCHES {
        let began = Instant::now();
        for trip in 0..TRIPS {
            let before = state.answers;
            endpoint.request(&mut state, peer, 0, [trip.into(), 2]).unwrap();
            while state.answers == before {
                endpoint.poll(&mut state).unwrap();
            }
        }
        batches.push(began.elapsed().as_nanos() as f64 / f64::from(TRIPS));
    }
    println!("{:.2}", quantile_of_sorted(&sorted(batches), 0.5));
    endpoint.request(&mut state, peer, 1, []).unwrap();
}
