//! The share of the data that a processor carries itself, and the share of the time that it leaves for
//! computation.

use super::data::Direction;
use super::estimate::SizeEstimate;
use super::launches::BulkLaunches;
use super::record::{BulkOverlap, Carried, Overlaps};
use crate::record::parameter::Status;
use crate::show::{Bytes, Number, Percent};

/// The time of one call by itself is at most this many times its time in a stream, in which the data are in
/// caches.
const BEYOND_STREAM: f64 = 2.0;
/// The largest number of stages that store a message and forward it.
pub(super) const HOPS: f64 = 2.5;

impl BulkLaunches<'_> {
    /// Returns the share of data that the processors of both sides carry, over the sizes of `run`.
    pub(super) fn overlap(&self, run: (usize, usize)) -> BulkOverlap {
        let (from, to) = run;
        // The figures of sizes whose bursts contradict each other are unreliable. A receive that waits for a part
        // of the message takes the time of the wire.
        let reliable = || (from..=to).filter(|&at| !self.contradicts(at));
        let sending = self.carried(run, &reliable().collect::<Vec<_>>(), |e| e.o_s);
        let whole: Vec<usize> = reliable().filter(|&at| !self.receive_waits(at)).collect();
        let receiving = self.carried(run, &whole, |e| e.o_r);
        let verb = match self.direction() {
            Direction::Store => "Sending",
            Direction::Get => "Starting a get",
        };
        let finding =
            format!("{} {}", finding(verb, "o_s(n)", &sending), finding("Receiving", "o_r(n)", &receiving));
        BulkOverlap { sending, receiving, finding }
    }

    /// Returns the share of data that a processor with the overhead `of` carries, over the sizes of a run, by those
    /// at the indices `at`.
    fn carried(
        &self,
        (from, to): (usize, usize),
        at: &[usize],
        of: impl Fn(&SizeEstimate) -> f64 + Copy,
    ) -> Carried {
        let overheads = self.slopes(at, of);
        let stream = self.slopes(at, |e| e.steady);
        let way = self.slopes(at, |e| e.latency);
        let shares = overheads.iter().zip(&stream).zip(&way).map(|((overhead, stream), way)| {
            if is_paced_by_bytes(*stream, *overhead, *way) { overhead / stream } else { f64::NAN }
        });
        let (share, slope) = (self.over(shares), self.over(overheads));
        let is_known = share.launches == slope.launches;
        let status = if slope.value.is_finite() { Status::Measured } else { Status::Unobservable };
        Carried {
            overlaps: Overlaps::of(share.ci.filter(|_| is_known)),
            per_byte: slope.per_byte(status, slope.launches as u64),
            share: Some(share.value).filter(|share| is_known && share.is_finite()),
            share_ci: share.ci.filter(|_| is_known),
            from_bytes: self.sizes[at.first().copied().unwrap_or(from)],
            to_bytes: self.sizes[at.last().copied().unwrap_or(to)],
        }
    }
}

/// Reports whether bytes set the pace of a stream. All arguments are nanoseconds per byte.
///
/// No stage takes longer for a byte than the stream does, and [`HOPS`] stages bound the time of a byte on
/// the way. Otherwise something else sets the pace. An example is a peer that is busy with each message for
/// a time independent of its size.
fn is_paced_by_bytes(stream: f64, overhead: f64, way: f64) -> bool {
    overhead <= BEYOND_STREAM * stream && way <= HOPS * stream
}

/// Says in a sentence what the share of a processor in the transfer means.
fn finding(verb: &str, name: &str, carried: &Carried) -> String {
    let per_byte = Number(carried.per_byte.value_ns_per_byte.unwrap_or(f64::NAN));
    let range = format!("from {} to {}", Bytes(carried.from_bytes), Bytes(carried.to_bytes));
    let rise = |share| {
        format!(
            "{name} rises by {per_byte} ns/B {range}, {} of what a byte takes in a stream",
            Percent(share)
        )
    };
    match (carried.overlaps, carried.share) {
        (Overlaps::Nothing, Some(share)) => format!(
            "{verb} cannot be overlapped with computation, the processor carries the data itself: {}.",
            rise(share)
        ),
        (Overlaps::Partly, Some(share)) => {
            format!("{verb} can be overlapped with computation in part: {}.", rise(share))
        }
        (Overlaps::Fully, Some(_)) => {
            format!("{verb} can be overlapped with computation: {name} hardly depends on the size {range}.")
        }
        _ => format!("{verb}: the data do not say whether it can be overlapped with computation."),
    }
}
