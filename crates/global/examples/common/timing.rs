//! The part of a program that is timed.

use netdyno_global::{Combination, Error, GlobalPointer, Traffic, World};
use std::time::Instant;

/// Messages that use every slot of a ring and its payload: more than a window.
const FIRST_MESSAGES: usize = 512;
/// Bytes of each of them: a page.
const FIRST_BYTES: usize = 4096;

/// The part that was timed: the most of any rank in each respect.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    time_ns: u64,
    /// The time in which the rank was ready to run, and another program had its processor.
    waited_ns: u64,
    traffic: Traffic,
}

impl Part {
    /// Returns the time from the barrier before the part to the barrier behind it. At least a nanosecond, so that
    /// there is a rate.
    pub fn seconds(&self) -> f64 {
        self.time_ns.max(1) as f64 * 1e-9
    }

    /// Returns the times and the counts as one line for other programs.
    pub fn in_words(&self) -> String {
        let Traffic { sent, sent_bytes, received, got_bytes, round_trips, collectives } = self.traffic;
        format!(
            "counts: time_s={:.9} waited_s={:.9} sent={sent} sent_bytes={sent_bytes} received={received} \
             got_bytes={got_bytes} round_trips={round_trips} collectives={collectives}",
            self.seconds(),
            self.waited_ns as f64 * 1e-9
        )
    }

    /// Returns the most of any rank.
    fn most(self, world: &mut World) -> Result<Self, Error> {
        let Self { time_ns, waited_ns, traffic } = self;
        let Traffic { sent, sent_bytes, received, got_bytes, round_trips, collectives } = traffic;
        let mut words = [time_ns, waited_ns, sent, sent_bytes, received, got_bytes, round_trips, collectives];
        world.all_reduce(Combination::Max, &mut words)?;
        let [time_ns, waited_ns, sent, sent_bytes, received, got_bytes, round_trips, collectives] = words;
        let traffic = Traffic { sent, sent_bytes, received, got_bytes, round_trips, collectives };
        Ok(Self { time_ns, waited_ns, traffic })
    }
}

/// Runs the part of a program that is timed, at all ranks. The rings between ranks are used before it: a system provides a
/// page when it is touched first, which may take longer than a short program.
pub fn timed<T>(
    world: &mut World,
    work: impl FnOnce(&mut World) -> Result<T, Error>,
) -> Result<(T, Part), Error> {
    use_rings(world)?;
    world.barrier()?;
    let (began, waited, before) = (Instant::now(), waited_ns(), world.traffic());
    let done = work(world)?;
    let traffic = world.traffic().since(before);
    world.barrier()?;
    let time_ns = began.elapsed().as_nanos() as u64;
    Ok((done, Part { time_ns, waited_ns: waited_ns() - waited, traffic }.most(world)?))
}

/// Sends requests with payloads to all ranks and gets replies with payloads, so that no page of a ring is new.
fn use_rings(world: &mut World) -> Result<(), Error> {
    let segment = world.allocate(FIRST_BYTES)?;
    world.barrier()?;
    for rank in (0..world.ranks()).filter(|rank| *rank != world.rank()).collect::<Vec<_>>() {
        let there = GlobalPointer { rank, segment: segment.number(), offset: 0 };
        for _ in 0..FIRST_MESSAGES {
            world.put(there, &[0; FIRST_BYTES])?;
        }
        for _ in 0..FIRST_MESSAGES {
            world.get(there, segment, 0, FIRST_BYTES)?;
        }
        world.sync()?;
    }
    world.barrier()?;
    world.free(segment)
}

/// Returns the time for which this thread has waited for a processor (proc(5), `schedstat`); 0 where the kernel does not
/// say.
fn waited_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').nth(1).and_then(|waited| waited.parse().ok()).unwrap_or(0)
}
