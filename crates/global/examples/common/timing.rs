//! The part of a program that is timed.

use netdyno_global::{Combination, Error, Traffic, World};
use std::time::Instant;

/// The part that was timed: the most of any rank in each respect.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    time_ns: u64,
    traffic: Traffic,
}

impl Part {
    /// Returns the time from the barrier before the part to the barrier behind it. At least a nanosecond, so that
    /// there is a rate.
    pub fn seconds(&self) -> f64 {
        self.time_ns.max(1) as f64 * 1e-9
    }

    /// Returns the time and the counts as one line for other programs.
    pub fn in_words(&self) -> String {
        let Traffic { sent, sent_bytes, received, got_bytes, round_trips, collectives } = self.traffic;
        format!(
            "counts: time_s={:e} sent={sent} sent_bytes={sent_bytes} received={received} got_bytes={got_bytes} \
             round_trips={round_trips} collectives={collectives}",
            self.seconds()
        )
    }
}

/// Runs the part of a program that is timed, at all ranks.
pub fn timed<T>(
    world: &mut World,
    work: impl FnOnce(&mut World) -> Result<T, Error>,
) -> Result<(T, Part), Error> {
    world.barrier()?;
    let (began, before) = (Instant::now(), world.traffic());
    let done = work(world)?;
    let traffic = world.traffic().since(before);
    world.barrier()?;
    let time_ns = began.elapsed().as_nanos() as u64;
    Ok((done, Part { time_ns, traffic }.most(world)?))
}

impl Part {
    /// Returns the most of any rank.
    fn most(self, world: &mut World) -> Result<Self, Error> {
        let Traffic { sent, sent_bytes, received, got_bytes, round_trips, collectives } = self.traffic;
        let mut words = [self.time_ns, sent, sent_bytes, received, got_bytes, round_trips, collectives];
        world.all_reduce(Combination::Max, &mut words)?;
        let [time_ns, sent, sent_bytes, received, got_bytes, round_trips, collectives] = words;
        let mut traffic = self.traffic;
        (traffic.sent, traffic.sent_bytes, traffic.received) = (sent, sent_bytes, received);
        (traffic.got_bytes, traffic.round_trips, traffic.collectives) = (got_bytes, round_trips, collectives);
        Ok(Self { time_ns, traffic })
    }
}
