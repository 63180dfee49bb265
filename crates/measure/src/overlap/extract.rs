//! The figures computed from several launches. Each is the median of the values of the launches, with its
//! distribution-free interval. The value of a launch is the median of its batches. No figure is clamped.

use super::data::{OverlapLaunch, OverlapSizeData, PollingBatch, PwwBatch};
use super::doubts;
use super::finding;
use super::launches::{OverlapLaunches, over_batches};
use super::plan::{METHODS, Method};
use super::record::{Free, Overlap, PollPoint, Quantity, SizeOverlap, Trip, WorkPoint};
use crate::reading::Reading;
use crate::record::parameter::{Parameter, Parameters};
use crate::stats::median;

const NS_PER_S: f64 = 1e9;

/// Computes figures and warnings from launches. Returns `None` if the launches measured nothing, or had
/// different shapes.
pub fn extract(data: &[OverlapLaunch], confidence: f64, precision: f64) -> Option<Reading<Overlap>> {
    let first = data.first().filter(|first| !first.trips.is_empty())?;
    // A record is a file that others may have written: its launches may differ in sizes or intervals.
    if !data.iter().all(|launch| launch.shape == first.shape && launch.is_whole()) {
        return None;
    }
    let launches = OverlapLaunches::of(data, confidence);
    let overlap = launches.overlap();
    let parameters = launches.parameters();
    let doubts = doubts::find(&launches, &parameters, &overlap, precision);
    Some(Reading { parameters, found: overlap, doubts })
}

impl OverlapLaunch {
    /// Reports that the launch has data for all of its shape, and messages in its cycles.
    fn is_whole(&self) -> bool {
        let shape = &self.shape;
        let of_size = |(data, shape): (&OverlapSizeData, &super::data::OverlapSizeShape)| {
            data.polling.len() == shape.polling.len() && data.pww.len() == shape.pww.len()
        };
        shape.batch > 0
            && self.trips.len() == shape.trips.len()
            && self.sizes.len() == shape.sizes.len()
            && self.sizes.iter().zip(&shape.sizes).all(of_size)
    }
}

impl OverlapLaunches<'_> {
    fn overlap(&self) -> Overlap {
        let shape = &self.data[0].shape;
        let ran = |method: &Method| {
            shape.sizes.iter().any(|size| match method {
                Method::Polling => !size.polling.is_empty(),
                Method::Pww => !size.pww.is_empty(),
                Method::Max => size.knee_cycles > 0,
            })
        };
        Overlap {
            methods: METHODS.into_iter().filter(ran).collect(),
            queue: shape.queue,
            batch: shape.batch,
            progress_by: shape.progress_by,
            trips: (0..shape.trips.len()).map(|at| self.trip(at)).collect(),
            sizes: (0..shape.sizes.len()).map(|at| self.size(at)).collect(),
            launches: self.data.to_vec(),
        }
    }

    fn trip(&self, at: usize) -> Trip {
        let size_bytes = self.data[0].shape.trips[at].size_bytes;
        let bytes = size_bytes as f64;
        Trip {
            size_bytes,
            half_rtt: self.half_rtt(at, 1.0),
            bandwidth_bytes_per_s: self.quantity(|launch| {
                let ns = median(launch.trips[at].per_message_ns.iter().copied());
                // The cost of the clock may exceed a short time. No rate follows from that.
                if ns > 0.0 { bytes / ns * NS_PER_S } else { f64::NAN }
            }),
        }
    }

    /// Returns the half round trip at the index `at`, times a factor.
    fn half_rtt(&self, at: usize, factor: f64) -> Parameter {
        let of = |launch: &OverlapLaunch| factor * median(launch.trips[at].half_rtt_ns.iter().copied());
        let batches = self.data.iter().flat_map(|launch| &launch.trips[at].half_rtt_ns);
        let samples = self.data.iter().map(|launch| launch.trips[at].samples).fold(0, u64::saturating_add);
        self.figure(of).parameter(batches.map(|ns| factor * ns), samples)
    }

    fn size(&self, at: usize) -> SizeOverlap {
        let shape = &self.data[0].shape.sizes[at];
        let bytes = shape.size_bytes;
        let mut size = SizeOverlap {
            size_bytes: bytes,
            polling: (0..shape.polling.len()).map(|interval| self.poll_point(at, interval, bytes)).collect(),
            pww: (0..shape.pww.len()).map(|interval| self.work_point(at, interval, bytes)).collect(),
            free: (shape.knee_cycles > 0).then(|| self.free(at)),
            finding: finding::unknown(),
        };
        size.finding = finding::of(self, at, &size);
        size
    }

    fn poll_point(&self, at: usize, interval: usize, bytes: usize) -> PollPoint {
        let of = |value: fn(&PollingBatch) -> f64| {
            self.quantity(|launch| over_batches(&launch.sizes[at].polling[interval], value))
        };
        let mut bandwidth = of(|batch| batch.messages as f64 / batch.took_ns);
        bandwidth = scaled(bandwidth, bytes as f64 * NS_PER_S);
        PollPoint {
            interval_ns: of(|batch| batch.alone_ns),
            availability: of(|batch| batch.polls as f64 * batch.alone_ns / batch.took_ns),
            bandwidth_bytes_per_s: bandwidth,
            others_share: of(|batch| batch.others_ns.unwrap_or(f64::NAN) / batch.took_ns),
        }
    }

    fn work_point(&self, at: usize, interval: usize, bytes: usize) -> WorkPoint {
        let of = |value: fn(&PwwBatch) -> f64| {
            self.quantity(|launch| over_batches(&launch.sizes[at].pww[interval], value))
        };
        let bytes_of_cycle = self.data[0].shape.batch as f64 * bytes as f64;
        let cycles = of(|batch| 1.0 / batch.cycle_ns());
        WorkPoint {
            alone_ns: of(|batch| batch.alone_ns),
            post_ns: of(|batch| batch.post_ns),
            work_ns: of(|batch| batch.work_ns),
            wait_ns: of(|batch| batch.wait_ns),
            cycle_ns: of(PwwBatch::cycle_ns),
            stolen_ns: of(|batch| batch.work_ns - batch.alone_ns),
            availability: of(|batch| batch.alone_ns / batch.cycle_ns()),
            bandwidth_bytes_per_s: scaled(cycles, bytes_of_cycle * NS_PER_S),
            others_ns: of(|batch| batch.others_ns.unwrap_or(f64::NAN)),
        }
    }

    fn free(&self, at: usize) -> Free {
        let of = |value: fn(&super::data::FreeWork) -> f64| {
            self.quantity(|launch| launch.sizes[at].knee.as_ref().map_or(f64::NAN, value))
        };
        let is_confirmed =
            |launch: &&OverlapLaunch| launch.sizes[at].knee.as_ref().is_some_and(|knee| knee.is_confirmed);
        Free {
            cycle_ns: of(|knee| knee.base_ns),
            work_ns: of(|knee| knee.free_ns),
            share: of(|knee| knee.free_ns / knee.base_ns),
            confirmed: self.data.iter().filter(is_confirmed).count(),
        }
    }

    fn parameters(&self) -> Parameters {
        Parameters { rtt: self.half_rtt(0, 2.0), ..Parameters::unobservable() }
    }
}

fn scaled(quantity: Quantity, factor: f64) -> Quantity {
    Quantity {
        value: quantity.value.map(|value| factor * value),
        ci: quantity.ci.map(|ci| [factor * ci.lo, factor * ci.hi].into()),
        launches: quantity.launches,
    }
}
