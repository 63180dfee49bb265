//! A program that polls the last bytes of an RDMA write, and then reads the other bytes.

use super::end::{End, drive, pair, work};
use crate::common::{Transport, seed, until};
use fastrand::Rng;
use netdyno_stack::vi::*;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The offsets from which an end sends, and to which it is written.
const SENT: usize = 0;
const WRITTEN: usize = 1 << 20;
/// The maximum length of a write: more than one fragment on any wire.
const LONGEST: usize = 3000;
/// The number of last bytes of which one is polled.
const FLAG: usize = 8;
/// The number of writes in a test. `NETDYNO_RUNS` overrides it.
const RUNS: u64 = 10_000;

/// A write, and the byte that is polled.
#[derive(Clone, Copy)]
struct Draw {
    from: usize,
    to: usize,
    len: usize,
    flag: usize,
}

fn draws(seed: u64) -> impl Iterator<Item = Draw> {
    let runs = std::env::var("NETDYNO_RUNS").map_or(RUNS, |runs| runs.parse().unwrap());
    let mut rng = Rng::with_seed(seed);
    (0..runs).map(move |_| {
        let len = rng.usize(1..=LONGEST);
        let flag = len - 1 - rng.usize(..len.min(FLAG));
        Draw { from: SENT + rng.usize(..64), to: WRITTEN + rng.usize(..64), len, flag }
    })
}

/// Polls one byte of each write, and then checks the bytes before it. Returns the number of writes of
/// which a byte was missing.
fn watch(base: usize, draws: impl Iterator<Item = Draw>, begun: &AtomicU64, seen: &AtomicU64) -> u64 {
    let mut early = 0;
    for (nth, draw) in (1..).zip(draws) {
        // SAFETY: the byte is in the memory of an end, and this thread only accesses it by atomics.
        let byte = |at| unsafe { AtomicU8::from_ptr(with_exposed_provenance_mut(base + draw.to + at)) };
        until("a write that is begun", || begun.load(Ordering::Acquire) >= nth);
        until("the byte of a write", || byte(draw.flag).load(Ordering::Acquire) == 1);
        early += u64::from((0..draw.flag).any(|at| byte(at).load(Ordering::Relaxed) != 1));
        seen.store(nth, Ordering::Release);
    }
    early
}

pub fn no_byte_of_a_write_is_seen_before_those_in_front_of_the_last_ones(transport: &Transport) {
    let seed = seed();
    for level in [Level::Delivery, Level::Reception] {
        let (mut ends, [ours, _theirs]) = pair(transport, level);
        ends[0].write(SENT, &[1; LONGEST + 64]);
        let base = ends[1].remote(0).address as usize;
        let [begun, seen] = [const { AtomicU64::new(0) }; 2];
        let early = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| watch(base, draws(seed), &begun, &seen));
            for (nth, draw) in (1..).zip(draws(seed)) {
                ends[1].write(draw.to, &vec![0; draw.len]);
                begun.store(nth, Ordering::Release);
                let to = Operation::Write(ends[1].remote(draw.to));
                let segments = [ends[0].segment(draw.from, draw.len)];
                ends[0].post(ours, Side::Send, &work(to, &segments));
                let mut is_done = false;
                drive(&mut ends, "a write that is seen", |ends: &mut [End; 2]| {
                    is_done = is_done || ends[0].done(ours, Side::Send).is_some();
                    is_done && seen.load(Ordering::Acquire) == nth
                });
            }
            watcher.join().unwrap()
        });
        assert_eq!(early, 0, "{level:?}");
    }
}
