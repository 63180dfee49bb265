//! The instrument's own test with random model parameters: it recovers them.
//!
//! Each parameter set is drawn from one of the regions in which an instrument can be wrong ([`draw`]).
//! Without noise, every figure with the status "measured" is within 1 %. With noise, the intervals of each
//! parameter cover it as often as they promise.
//!
//! `NETDYNO_TRUTHS` sets the number of parameter sets of each kind, `NETDYNO_SEED` the first seed. A miss
//! prints the parameters as `--truth` takes them.

mod bulk;
mod contention;
pub mod draw;
mod logp;

use netdyno_measure::record::Doubt;
use std::env;
use std::fmt::Write;
use std::thread;

/// Returns the number of parameter sets to draw: `NETDYNO_TRUTHS`, or `usually` without it.
fn truths(usually: usize) -> usize {
    env::var("NETDYNO_TRUTHS").map_or(usually, |n| n.parse().unwrap())
}

/// Returns the first seed. Prints it, so that a failure can be replayed.
pub fn seed() -> u64 {
    let seed = env::var("NETDYNO_SEED").map_or_else(|_| fastrand::u64(..1 << 48), |n| n.parse().unwrap());
    println!("NETDYNO_SEED={seed}");
    seed
}

/// Returns the results of `one` for `count` seeds, in the order of the seeds. It uses all processors.
fn each<T: Send>(count: usize, seed: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut found: Vec<(usize, T)> = thread::scope(|scope| {
        let one = &one;
        let of = |thread: usize| {
            move || {
                (thread..count)
                    .step_by(threads)
                    .map(|n| (n, one(seed.wrapping_add(n as u64))))
                    .collect::<Vec<_>>()
            }
        };
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(of(thread))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    found.sort_by_key(|(n, _)| *n);
    found.into_iter().map(|(_, one)| one).collect()
}

/// The errors of one parameter set.
#[derive(Default)]
struct Misses {
    text: String,
    /// The number of measured figures, and how many of them were wrong.
    measured: usize,
    wrong: usize,
}

impl Misses {
    /// Compares a measured figure with the known value.
    fn measured(&mut self, name: &str, found: f64, truth: f64) {
        self.measured += 1;
        // Virtual time has a resolution of a picosecond.
        if (found - truth).abs() > 0.01 * truth.abs() + 0.004 {
            self.wrong += 1;
            let _ = write!(self.text, "\n    {name} = {found}, not {truth}");
        }
    }

    fn note(&mut self, text: &str) {
        let _ = write!(self.text, "\n    {text}");
    }

    fn report(self, spelled: &str, doubts: &[Doubt]) -> Self {
        if !self.text.is_empty() {
            let doubts: Vec<&str> = doubts.iter().map(|doubt| doubt.name.as_str()).collect();
            println!("--truth {spelled} (doubts: {}){}", doubts.join(", "), self.text);
        }
        self
    }
}

/// The number of parameter sets that may have a miss by chance.
const MISSES_BY_CHANCE: usize = 2;

/// Fails if more than one in a thousand measured figures is wrong, or if more than one in 500 parameter sets
/// has a miss. [`MISSES_BY_CHANCE`] sets may always have one, because a test draws few sets.
fn assert_sound(found: Vec<Misses>) {
    let measured: usize = found.iter().map(|one| one.measured).sum();
    let wrong: usize = found.iter().map(|one| one.wrong).sum();
    let missed = found.iter().filter(|one| !one.text.is_empty()).count();
    println!(
        "{} truths: {wrong} of {measured} measured figures are wrong, {missed} truths with a miss",
        found.len()
    );
    assert!(missed <= MISSES_BY_CHANCE + found.len() / 500, "{missed} of {} truths with a miss", found.len());
    assert!(
        missed <= MISSES_BY_CHANCE || wrong * 1000 <= measured,
        "{wrong} of {measured} figures are wrong"
    );
}

/// The coverage of one parameter by its intervals.
#[derive(Clone, Copy, Default)]
struct Coverage {
    covered: usize,
    intervals: usize,
}

impl Coverage {
    fn add(&mut self, covered: bool) {
        self.covered += usize::from(covered);
        self.intervals += 1;
    }

    /// Fails if the coverage is below 95 % by more than 2 %, and by more than three standard errors of
    /// `independent` independent intervals.
    fn assert(self, name: &str, independent: usize) {
        let n = self.intervals as f64;
        let share = self.covered as f64 / n;
        println!("{name}: covered {} of {} ({:.1} %)", self.covered, self.intervals, 100.0 * share);
        let chance = 3.0 * (0.95 * 0.05 / independent as f64).sqrt();
        assert!(share >= 0.95 - chance.max(0.02), "{name}: {share}");
    }
}
