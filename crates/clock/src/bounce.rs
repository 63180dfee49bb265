//! Measures the cache-line round trip between two processors: one line is transferred there, and another line
//! back.
//!
//! The system reports once which caches two processors share. A hypervisor may move virtual CPUs between
//! physical ones at any time and without notice. The real distance may therefore change within a minute.

use crate::calibrate::Clock;
use crate::place::pin;
use crate::ticks::now;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Round trips in one batch.
const TRIPS: u64 = 64;
/// Maximum number of batches.
const BATCHES: usize = 61;
/// Minimum number of batches for a result.
const BATCHES_AT_LEAST: usize = 5;
/// After this time no new batch starts if there are enough.
const AT_MOST_NS: f64 = 10e6;
/// After this time the measurement no longer waits for a reply.
const GIVE_UP_NS: f64 = 60e6;
/// Polls between two readings of the clock.
const LOOKS: u32 = 1000;
/// A batch that takes this many times the median was interrupted.
const INTERRUPTED: f64 = 1.5;
/// Value that either side writes to end the measurement.
const OVER: u64 = u64::MAX;

/// The result of one measurement of two processors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounce {
    /// Median time of a round trip, over batches.
    pub round_trip_ns: f64,
    /// Share of the time that interruptions of either processor took, from 0 to 1.
    pub lost_share: f64,
}

/// A cache line together with its neighbour, which an adjacent-line prefetcher fetches with it.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Measures the cache-line round trip between `a` and `b`, which must differ. It takes a few milliseconds.
/// Returns `None` if other programs leave the two processors too little time.
///
/// # Errors
/// Returns an I/O error if this process may not run on one of them, or if the system starts no thread.
pub fn bounce(clock: &Clock, a: usize, b: usize) -> io::Result<Option<Bounce>> {
    let (there, back) = (Line::default(), Line::default());
    let batches = thread::scope(|scope| {
        let answering = thread::Builder::new().spawn_scoped(scope, || {
            let pinned = pin(b);
            match &pinned {
                Ok(()) => answer(&there.0, &back.0),
                Err(_) => back.0.store(OVER, Ordering::Release),
            }
            pinned
        })?;
        let asking = thread::Builder::new().spawn_scoped(scope, || {
            let asked = pin(a).map(|()| ask(clock, &there.0, &back.0));
            there.0.store(OVER, Ordering::Release);
            asked
        });
        if asking.is_err() {
            there.0.store(OVER, Ordering::Release);
        }
        let panicked = |_| io::Error::other("a thread that bounced lines panicked");
        let batches = asking?.join().map_err(panicked)??;
        answering.join().map_err(panicked)??;
        Ok::<Vec<f64>, io::Error>(batches)
    })?;
    Ok(summary(batches))
}

/// Replies to every line until the measurement ends.
fn answer(there: &AtomicU64, back: &AtomicU64) {
    let mut last = 0;
    while last != OVER {
        let seen = there.load(Ordering::Acquire);
        if seen != last {
            back.store(seen, Ordering::Release);
            last = seen;
        }
    }
}

/// Returns the time of each batch in nanoseconds.
fn ask(clock: &Clock, there: &AtomicU64, back: &AtomicU64) -> Vec<f64> {
    let (at_most, give_up) = (clock.ticks(AT_MOST_NS), clock.ticks(GIVE_UP_NS));
    let mut batches = Vec::with_capacity(BATCHES);
    let begin = now();
    let mut nth = 0;
    // Beside other programs the two threads rarely run at the same time, so the first batches get more time.
    let limit = |batches: usize| if batches < BATCHES_AT_LEAST { give_up } else { at_most };
    while batches.len() < BATCHES && now() - begin < limit(batches.len()) {
        let began = now();
        for _ in 0..TRIPS {
            nth += 1;
            there.store(nth, Ordering::Release);
            let mut looks = 0;
            while back.load(Ordering::Acquire) != nth {
                looks += 1;
                let is_late = looks % LOOKS == 0 && now() - begin > give_up;
                if is_late || (looks % LOOKS == 0 && back.load(Ordering::Acquire) == OVER) {
                    return batches;
                }
            }
        }
        batches.push((now() - began) as f64 * clock.tick_ns);
    }
    batches
}

fn summary(mut batches: Vec<f64>) -> Option<Bounce> {
    if batches.len() < BATCHES_AT_LEAST {
        return None;
    }
    batches.sort_by(f64::total_cmp);
    let median = batches[batches.len() / 2];
    let lost = batches.iter().filter(|&&ns| ns > INTERRUPTED * median).fold(0.0, |sum, ns| sum + ns - median);
    let all: f64 = batches.iter().sum();
    Some(Bounce { round_trip_ns: median / TRIPS as f64, lost_share: lost / all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::allowed;

    #[test]
    fn lines_bounce_between_two_processors() {
        let clock = Clock::calibrate();
        let allowed = allowed().unwrap();
        let [a, b, ..] = allowed[..] else { return };
        let before = crate::place::allowed().unwrap();
        // On a busy machine a single measurement may fail.
        let seen = (0..100).find_map(|_| bounce(&clock, a, b).unwrap());
        let Bounce { round_trip_ns, lost_share } = seen.unwrap();
        assert!(round_trip_ns > clock.resolution_ns, "{round_trip_ns}");
        assert!((0.0..1.0).contains(&lost_share), "{lost_share}");
        assert_eq!(crate::place::allowed().unwrap(), before, "the calling thread stays where it was");
    }

    #[test]
    fn a_processor_that_is_not_ours_is_an_error() {
        let clock = Clock::calibrate();
        let ours = allowed().unwrap()[0];
        assert!(bounce(&clock, ours, 100_000).is_err());
        assert!(bounce(&clock, 100_000, ours).is_err());
    }

    #[test]
    fn interruptions_are_lost_time() {
        assert_eq!(summary(vec![64.0; 4]), None);
        let quiet = summary(vec![6400.0; 9]).unwrap();
        assert_eq!(quiet, Bounce { round_trip_ns: 100.0, lost_share: 0.0 });
        let disturbed = summary([vec![6400.0; 9], vec![70_400.0]].concat()).unwrap();
        assert_eq!(disturbed, Bounce { round_trip_ns: 100.0, lost_share: 0.5 });
    }
}
