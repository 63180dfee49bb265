//! Measures the pace of processors under a workload: how long a fixed amount of computation takes on each.
//!
//! A processor may be one hardware thread of a core whose other thread belongs to another guest of the host.
//! While that thread is busy, all work on this processor takes up to twice as long. Neither the clock nor the
//! steal time that the host reports shows this. A computation that fills several execution units of the core
//! does.

use crate::calibrate::Clock;
use crate::place::pin;
use crate::ticks::{now, serialise};
use std::hint::black_box;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two samples of a processor. A sample takes some microseconds, so that sampling uses less than
/// 0.05 % of the processor.
const INTERVAL: Duration = Duration::from_millis(25);
/// Rounds of the computation in a run, which then takes one or two microseconds.
const ROUNDS: u64 = 1200;
/// Runs of a sample, of which the shortest counts. The first run finds cold caches, and others may be
/// interrupted.
const RUNS: usize = 4;

/// Samples the pace of processors, with one thread for each, until it is ended or dropped.
#[derive(Debug)]
pub struct Watch {
    ending: Arc<Ending>,
    watchers: Vec<(usize, JoinHandle<Vec<f64>>)>,
}

/// Tells the threads that the watch has ended.
#[derive(Debug, Default)]
struct Ending {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Watch {
    /// Starts to watch `cpus`. It skips a processor if this process may not use it, or if the system starts
    /// no thread.
    pub fn begin(clock: &Clock, cpus: &[usize]) -> Self {
        let ending = Arc::new(Ending::default());
        let watchers = cpus.iter().filter_map(|&cpu| {
            let (ending, tick_ns) = (Arc::clone(&ending), clock.tick_ns);
            let watching = thread::Builder::new().name(format!("pace-{cpu}")).spawn(move || match pin(cpu) {
                Ok(()) => ending.sample(tick_ns),
                Err(_) => Vec::new(),
            });
            Some((cpu, watching.ok()?))
        });
        Self { watchers: watchers.collect(), ending }
    }

    /// Ends the watch. Returns for each processor the times of the same computation in nanoseconds, or none
    /// if it could not be used.
    pub fn end(mut self) -> Vec<(usize, Vec<f64>)> {
        self.ending.tell();
        let watchers = std::mem::take(&mut self.watchers);
        watchers.into_iter().map(|(cpu, watching)| (cpu, watching.join().unwrap_or_default())).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ending.tell();
    }
}

impl Ending {
    fn tell(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until the next sample is due. Returns `true` if the watch ends before that.
    fn comes_before_next(&self) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_over, INTERVAL, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Samples the processor to which this thread is pinned.
    fn sample(&self, tick_ns: f64) -> Vec<f64> {
        let mut samples = Vec::new();
        while !self.comes_before_next() {
            let ticks = (0..RUNS).map(|_| {
                let before = now();
                work();
                now() - before
            });
            samples.push(ticks.min().unwrap_or(0) as f64 * tick_ns);
        }
        samples
    }
}

/// Runs six independent chains of operations, which fill several execution units.
fn work() {
    serialise();
    let [mut a, mut b, mut c, mut d, mut e, mut f] = [1u64, 2, 3, 4, 5, 6].map(black_box);
    for round in 0..ROUNDS {
        a = a.wrapping_mul(3).wrapping_add(round);
        b ^= b << 7;
        c = c.wrapping_add(c >> 3);
        d = d.wrapping_mul(5).wrapping_add(a);
        e ^= e >> 9;
        f = f.wrapping_add(b);
    }
    black_box([a, b, c, d, e, f]);
    serialise();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::allowed;

    #[test]
    fn a_watch_samples_each_processor_until_it_ends() {
        let cpus = allowed().unwrap();
        let watch = Watch::begin(&Clock::calibrate(), &cpus);
        // Long enough for a few samples, even beside other tests.
        thread::sleep(20 * INTERVAL);
        let paces = watch.end();
        assert_eq!(paces.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), cpus);
        let is_sampled = |samples_ns: &[f64]| samples_ns.len() > 1 && samples_ns.iter().all(|&ns| ns > 0.0);
        assert!(paces.iter().all(|(_, samples_ns)| is_sampled(samples_ns)), "{paces:?}");
        assert_eq!(allowed().unwrap(), cpus, "the calling thread stays where it was");
    }

    #[test]
    fn a_processor_that_is_not_ours_is_not_watched() {
        let watch = Watch::begin(&Clock::calibrate(), &[100_000]);
        thread::sleep(2 * INTERVAL);
        assert_eq!(watch.end(), [(100_000, vec![])]);
    }
}
