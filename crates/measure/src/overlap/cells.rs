//! The cells of a launch: each is one thing to measure. A pass takes a batch of each cell, in another order
//! every time. Drift in the course of a launch therefore affects all cells alike.

use super::data::{OverlapLaunch, PollingBatch, PwwBatch, TripShape, WorkInterval};
use super::worker::MessageBatch;
use crate::bench::Bench;
use crate::layer::{LayerError, Messenger};
use crate::stats::trimmed_mean;

/// Time for work without messages in a batch, and the smallest number of repetitions.
const ALONE_NS: f64 = 400e3;
pub(super) const ALONE_AT_LEAST: u32 = 2;

/// A batch of measurements of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum OverlapCell {
    /// Round trips and rows: size.
    Trip(usize),
    /// The polling method: size and interval.
    Polling(usize, usize),
    /// Post-work-wait: size and interval.
    Pww(usize, usize),
    /// The receive by itself: size.
    Receive(usize),
}

/// Returns all cells of a launch.
pub(super) fn all(data: &OverlapLaunch) -> Vec<OverlapCell> {
    let mut cells: Vec<OverlapCell> = (0..data.shape.trips.len()).map(OverlapCell::Trip).collect();
    for (at, size) in data.shape.sizes.iter().enumerate() {
        cells.extend((0..size.polling.len()).map(|interval| OverlapCell::Polling(at, interval)));
        cells.extend((0..size.pww.len()).map(|interval| OverlapCell::Pww(at, interval)));
        cells.extend((size.receive.repeats > 0).then_some(OverlapCell::Receive(at)));
    }
    cells
}

impl OverlapCell {
    /// Adds a batch to `data`. If `work_first`, it measures work without messages before the same work with
    /// messages, otherwise after it.
    pub(super) fn measure<M: Messenger>(
        self,
        bench: &mut Bench<'_, M>,
        data: &mut OverlapLaunch,
        work_first: bool,
    ) -> Result<(), LayerError> {
        match self {
            Self::Trip(at) => {
                let TripShape { size_bytes, trips, row, rest_ns } = data.shape.trips[at];
                let trip = &mut data.trips[at];
                // The last messages of the previous measurement may still be on their way. The gap of a message
                // ends with its send, and the other process may have begun that gap as late as its answer.
                let start = bench.layer.now();
                bench.exchange(size_bytes)?;
                let sent_ns = bench.since(start);
                bench.set_rest(sent_ns);
                bench.rest();
                bench.set_rest(rest_ns);
                let halves: Vec<f64> = (0..trips)
                    .map(|_| {
                        bench.rest();
                        Ok(bench.exchange(size_bytes)? / 2.0)
                    })
                    .collect::<Result<_, LayerError>>()?;
                trip.half_rtt_ns.push(trimmed_mean(halves));
                trip.samples += trips as u64;
                trip.per_message_ns.push(rise(bench, size_bytes, row)?);
            }
            Self::Polling(at, interval) => {
                let size = &data.shape.sizes[at];
                let batch =
                    polling(bench, size.size_bytes, data.shape.queue, size.polling[interval], work_first)?;
                data.sizes[at].polling[interval].push(batch);
            }
            Self::Pww(at, interval) => {
                let size = &data.shape.sizes[at];
                let messages = MessageBatch { bytes: size.size_bytes, count: data.shape.batch };
                let batch = pww(bench, messages, size.pww[interval], work_first)?;
                data.sizes[at].pww[interval].push(batch);
            }
            Self::Receive(at) => {
                let size = &data.shape.sizes[at];
                let between = bench.layer.work(size.receive.asked_ns);
                let value = bench.receive_alone(size.size_bytes, between, size.receive.repeats)?;
                data.sizes[at].receive_ns.extend(value);
            }
        }
        Ok(())
    }
}

impl WorkInterval {
    /// Returns how often the work is repeated without messages. Such work needs no answers, and therefore
    /// less time.
    fn repeats_alone(&self) -> u32 {
        self.repeats.min((ALONE_NS / self.asked_ns) as u32).max(ALONE_AT_LEAST)
    }
}

/// Returns the time per message of a row in one direction, in nanoseconds.
pub(super) fn rise<M: Messenger>(
    bench: &mut Bench<'_, M>,
    bytes: usize,
    row: usize,
) -> Result<f64, LayerError> {
    let shorter = bench.row(bytes, row)?;
    Ok((bench.row(bytes, 2 * row)? - shorter) / row as f64)
}

fn polling<M: Messenger>(
    bench: &mut Bench<'_, M>,
    bytes: usize,
    queue: usize,
    interval: WorkInterval,
    work_first: bool,
) -> Result<PollingBatch, LayerError> {
    let work = bench.layer.work(interval.asked_ns);
    let mut alone_ns = f64::NAN;
    if work_first {
        alone_ns = bench.measured_delay(work, interval.repeats_alone());
    }
    let polled = bench.polling(bytes, queue, work, interval.repeats.into())?;
    if !work_first {
        alone_ns = bench.measured_delay(work, interval.repeats_alone());
    }
    Ok(PollingBatch {
        polls: polled.polls,
        messages: polled.messages,
        took_ns: polled.took_ns,
        alone_ns,
        others_ns: polled.others_ns,
    })
}

fn pww<M: Messenger>(
    bench: &mut Bench<'_, M>,
    messages: MessageBatch,
    interval: WorkInterval,
    work_first: bool,
) -> Result<PwwBatch, LayerError> {
    let work = bench.layer.work(interval.asked_ns);
    let mut alone_ns = f64::NAN;
    if work_first {
        alone_ns = bench.work_alone(work, interval.repeats_alone());
    }
    let cycled = bench.cycles(messages, work, interval.repeats)?;
    if !work_first {
        alone_ns = bench.work_alone(work, interval.repeats_alone());
    }
    Ok(PwwBatch {
        post_ns: cycled.post_ns,
        work_ns: cycled.work_ns,
        wait_ns: cycled.wait_ns,
        alone_ns,
        others_ns: cycled.others_ns,
    })
}
