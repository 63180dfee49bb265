//! `netdyno soak`: runs the reliable protocol over a simulated network with failures, one seed at a time, and
//! checks it against an oracle.

use crate::options::headings::WHAT;
use crate::records::output::write_stdout;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::progress::Progress;
use crate::verbs::Examples;
use clap::Args;
use netdyno_measure::show::{Percent, Time};
use netdyno_protocol::sim::soak::{self, LOSS_CLASSES, Outcome, Violation};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "soak",
    [
        ("netdyno soak", "run 10000 seeds"),
        ("netdyno soak --seeds 1000000", "run a million"),
        ("netdyno soak --first 77 --seeds 1", "run one seed again"),
    ],
)];

/// Check the reliable protocol on a simulated network that fails
#[derive(Debug, Args)]
pub struct SoakArgs {
    /// Run this many seeds
    #[arg(
        long,
        value_name = "N",
        default_value = "10000",
        value_parser = clap::value_parser!(u64).range(1..=MOST_SEEDS),
        help_heading = WHAT
    )]
    pub seeds: u64,

    /// Begin with this seed
    ///
    /// A seed that failed is shown again with --first SEED --seeds 1.
    #[arg(long, value_name = "SEED", default_value = "0", help_heading = WHAT)]
    pub first: u64,
}

/// Number of seeds that a thread takes at a time.
const CHUNK: u64 = 64;
/// The most seeds of a run: their count has room for the chunks of all threads.
const MOST_SEEDS: u64 = 1 << 62;
/// Interval between two checks for a signal, and between updates of the progress.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the seeds and prints the table. Returns an error with the smallest seed that violates the oracle.
pub fn run(args: &SoakArgs) -> Result<(), Fault> {
    if args.first.checked_add(args.seeds).is_none() {
        return Err(Fault::BadInput(format!(
            "--first {} and --seeds {} go beyond the largest seed",
            args.first, args.seeds
        )));
    }
    let interrupt = Interrupt::catch()?;
    let progress = Progress::new();
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let totals = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(|| work(args, &next, &is_over))).collect();
        while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(LOOK);
            let done = next.load(Ordering::Relaxed).min(args.seeds);
            progress.show(done as f64 / args.seeds as f64, &format!("seed {}", args.first + done));
            if let Err(fault) = interrupt.check() {
                is_over.store(true, Ordering::Relaxed);
                return Err(fault);
            }
        }
        let mut totals = Totals::default();
        let mut violations = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(Ok(part)) => totals.add(&part),
                Ok(Err(violation)) => violations.push(violation),
                Err(_) => {
                    return Err(Fault::Failed(
                        "the simulator has panicked; replay with --first and --seeds".into(),
                    ));
                }
            }
        }
        match violations.into_iter().min_by_key(|violation| violation.seed) {
            None => Ok(totals),
            Some(violation) => Err(Fault::Failed(format!(
                "{violation}; `netdyno soak --first {} --seeds 1` shows it again",
                violation.seed
            ))),
        }
    });
    drop(progress);
    write_stdout(&totals?.table())
}

/// Runs chunks of seeds until none are left. `next` counts the seeds that are taken.
fn work(args: &SoakArgs, next: &AtomicU64, is_over: &AtomicBool) -> Result<Totals, Violation> {
    let mut totals = Totals::default();
    while !is_over.load(Ordering::Relaxed) && next.load(Ordering::Relaxed) < args.seeds {
        let taken = next.fetch_add(CHUNK, Ordering::Relaxed);
        for nth in taken..args.seeds.min(taken + CHUNK) {
            match soak::run(args.first + nth) {
                Ok(outcome) => totals.count(&outcome),
                Err(violation) => {
                    is_over.store(true, Ordering::Relaxed);
                    return Err(violation);
                }
            }
        }
    }
    Ok(totals)
}

/// Sums over the runs of one loss rate.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    runs: u64,
    restarts: u64,
    requests: u64,
    handled_once: u64,
    unknown: u64,
    sent: u64,
    again: u64,
    memory_bytes: usize,
    took_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Totals([Row; LOSS_CLASSES.len()]);

impl Totals {
    fn count(&mut self, outcome: &Outcome) {
        let class = LOSS_CLASSES.iter().position(|&class| class == outcome.loss_percent).unwrap_or(0);
        self.0[class].add(&Row {
            runs: 1,
            restarts: u64::from(outcome.restarted),
            // The requests that a restarted side had handled before are unknown.
            requests: if outcome.restarted { 0 } else { outcome.requests },
            handled_once: if outcome.restarted { 0 } else { outcome.handled },
            unknown: outcome.unresolved,
            sent: outcome.sent,
            again: outcome.retransmitted,
            memory_bytes: outcome.memory_bytes,
            took_ns: outcome.took_ns,
        });
    }

    fn add(&mut self, other: &Self) {
        for (row, other) in self.0.iter_mut().zip(&other.0) {
            row.add(other);
        }
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{:>5} {:>8} {:>11} {:>12} {:>9} {:>8} {:>10} {:>8}\n",
            "loss", "runs", "requests", "handled once", "restarts", "unknown", "sent again", "memory"
        );
        for (class, row) in LOSS_CLASSES.iter().zip(&self.0) {
            text.push_str(&row.line(&format!("{class} %")));
        }
        let mut all = Row::default();
        self.0.iter().for_each(|row| all.add(row));
        text.push_str(&all.line("all"));
        text.push_str(NOTES);
        text.push_str(&format!(
            "mean virtual time of a run: {}\n",
            Time(all.took_ns as f64 / all.runs.max(1) as f64)
        ));
        text
    }
}

const NOTES: &str = "
requests, handled once: in runs without a restart, each handled exactly once and in order
unknown: requests whose fate the survivor of a restart could not know, none handled twice
memory: the most that a connection held
";

impl Row {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.restarts += other.restarts;
        self.requests += other.requests;
        self.handled_once += other.handled_once;
        self.unknown += other.unknown;
        self.sent += other.sent;
        self.again += other.again;
        self.memory_bytes = self.memory_bytes.max(other.memory_bytes);
        self.took_ns += other.took_ns;
    }

    fn line(&self, name: &str) -> String {
        format!(
            "{name:>5} {:>8} {:>11} {:>12} {:>9} {:>8} {:>10} {:>8}\n",
            self.runs,
            self.requests,
            self.handled_once,
            self.restarts,
            self.unknown,
            Percent(self.again as f64 / (self.sent + self.again).max(1) as f64).to_string(),
            format!("{} KiB", self.memory_bytes.div_ceil(1024)),
        )
    }
}
