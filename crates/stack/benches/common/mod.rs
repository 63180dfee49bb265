//! Shared parts of the benchmarks: pairs of fresh, pinned processes, and figures with intervals.

#![allow(dead_code, reason = "each benchmark uses its part")]

use netdyno_clock::place;
use netdyno_job::workers::{Event, Workers};
use netdyno_measure::stats::{median_interval_of_sorted, quantile_of_sorted, sorted};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::process::Command;
use std::time::Duration;

/// Returns two processors that a benchmark may spin on.
pub fn processors() -> (usize, usize) {
    let (a, b) = place::choose_pair(&place::allowed().unwrap()).unwrap();
    assert_ne!(a, b, "this benchmark spins and needs two processors");
    (a, b)
}

/// Launches this program as `requester A` and `replier B`, exchanges the cards of the two processes, and
/// returns the requester's figures.
pub fn pair<Card, Figures>(on: (usize, usize), timeout: Duration) -> Figures
where
    Card: Serialize + DeserializeOwned,
    Figures: DeserializeOwned,
{
    pair_by::<Card, Figures>(on, timeout, |_, command| command)
}

/// Launches a pair as [`pair`] does. `adapt` may change the command of each rank.
pub fn pair_by<Card, Figures>(
    (a, b): (usize, usize),
    timeout: Duration,
    adapt: impl Fn(usize, Command) -> Command,
) -> Figures
where
    Card: Serialize + DeserializeOwned,
    Figures: DeserializeOwned,
{
    let mut workers = Workers::new();
    for (rank, (role, cpu)) in [("requester", a), ("replier", b)].into_iter().enumerate() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([role, &cpu.to_string()]);
        workers.launch(adapt(rank, command)).unwrap();
    }
    let mut cards = [None, None];
    while cards.iter().any(Option::is_none) {
        match workers.next::<Card>(Duration::from_secs(20)).unwrap().unwrap() {
            (rank, Event::Message(card)) => cards[rank] = Some(card),
            (rank, Event::Ended(end)) => panic!("process {rank} {end}"),
        }
    }
    workers.send(0, &cards[1]).unwrap();
    workers.send(1, &cards[0]).unwrap();
    match workers.next::<Figures>(timeout).unwrap().unwrap() {
        (_, Event::Message(figures)) => figures,
        (rank, Event::Ended(end)) => panic!("process {rank} {end}"),
    }
}

/// Pins this process, if it is one of a pair. Returns whether it is the requester; `None` if it is the
/// process that launches pairs.
pub fn role() -> Option<bool> {
    let is_requester = match std::env::args().nth(1)?.as_str() {
        "requester" => true,
        "replier" => false,
        _ => return None,
    };
    place::pin(std::env::args().nth(2).unwrap().parse().unwrap()).unwrap();
    Some(is_requester)
}

/// Figures of several pairs, in the same order for each pair.
pub struct Pairs(Vec<Vec<f64>>);

impl Pairs {
    /// Runs `count` pairs, one after the other.
    pub fn run<Card>(count: usize, on: (usize, usize), timeout: Duration) -> Self
    where
        Card: Serialize + DeserializeOwned,
    {
        Self((0..count).map(|_| pair::<Card, Vec<f64>>(on, timeout)).collect())
    }

    /// Returns one figure of each pair.
    pub fn of(&self, figure: usize) -> Vec<f64> {
        self.0.iter().map(|figures| figures[figure]).collect()
    }

    /// Returns the ratio of two figures, for each pair.
    pub fn ratio(&self, above: usize, below: usize) -> Vec<f64> {
        self.0.iter().map(|figures| figures[above] / figures[below]).collect()
    }
}

/// Returns the median over pairs and its 95 % interval.
pub fn median_and_interval(values: &[f64]) -> (f64, [f64; 2]) {
    let values = sorted(values.to_vec());
    let interval = median_interval_of_sorted(&values, 0.95).unwrap();
    (quantile_of_sorted(&values, 0.5), [interval.lo, interval.hi])
}

/// Prints one line: the median over pairs, its unit and its interval.
pub fn show(what: &str, unit: &str, values: &[f64]) {
    let (median, [lo, hi]) = median_and_interval(values);
    println!("{what:<48} {median:>8.2} {unit:<4} [{lo:.2}, {hi:.2}]");
}
