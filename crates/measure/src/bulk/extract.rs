//! The figures computed from several launches.
//!
//! As with the LogP signature, every figure is computed for each launch first. Its value is the median over
//! the launches, its interval the distribution-free interval of that median. No figure is clamped.
//!
//! For each size n:
//! * `T(n)`: half of a round trip of n bytes both ways.
//! * `transfer(n)`: a request of n bytes until its small reply.
//! * `o_s(n)`: short bursts of requests of n bytes alone, from quiet.
//! * `o_r(n)`: one receive of n bytes after staying away. It is an upper bound if the receive had to wait for
//!   a part of the bytes.
//! * `L(n)` = T(n) - o_s(n) - o_r(n). It cannot be observed if the data of transfers come from the replier, or if
//!   o_r(n) is a bound.
//! * `g(n)`: the steady time per message of a stream, max(g(n), o_s(n) + o_r, rtt / window), unless the
//!   processor or the window sets it. The rule is that of the signature.
//!
//! T(n) over all launches decides the segments; the lines are fitted to the figures of each launch (`lines`).
//! `G` is the slope of g(n). If the largest size of a segment only bounds g(n), that bound per byte is the
//! upper bound of G.

use super::data::{BulkLaunch, Direction};
use super::doubts;
use super::estimate::{SizeEstimate, steady_rises};
use super::launches::BulkLaunches;
use super::record::{Bulk, SizeFigures};
use super::signature::signatures;
use crate::logp::send_overhead::send_overhead;
use crate::reading::Reading;
use crate::record::parameter::{Parameters, Status};
use crate::record::plateau::{Limit, Plateau};
use crate::stats::Confidence;
use crate::steady::{self, Evidence, limited_by};

/// Makes o_r an upper bound if more than this share of the receives waited for a part of the message.
const WAITED: f64 = 0.05;

/// Computes figures and warnings from launches. Returns `None` if the launches measured nothing, or differ
/// in their sizes.
pub fn extract(
    data: &[BulkLaunch],
    confidence: impl Into<Confidence>,
    precision: f64,
) -> Option<Reading<Bulk>> {
    let first = data.first().filter(|first| !first.sizes.is_empty())?;
    let sizes: Vec<usize> = first.sizes.iter().map(|size| size.size_bytes).collect();
    // A record is a file that others may have written: its launches may differ in their sizes.
    let same =
        |launch: &BulkLaunch| launch.sizes.iter().map(|size| size.size_bytes).eq(sizes.iter().copied());
    if !data.iter().all(same) || !sizes.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let confidence = confidence.into();
    let launches = BulkLaunches::of(data, sizes, confidence);
    let (signatures, of_signatures) = signatures(data, confidence, precision);
    let bulk = Bulk { signatures, ..launches.bulk() };
    let parameters = launches.parameters(&bulk);
    let mut doubts = doubts::find(&launches, &parameters, &bulk, precision);
    doubts.extend(of_signatures);
    Some(Reading { parameters, found: bulk, doubts })
}

impl BulkLaunches<'_> {
    fn bulk(&self) -> Bulk {
        let sizes: Vec<SizeFigures> = (0..self.sizes.len()).map(|at| self.size(at)).collect();
        let runs = self.runs(&sizes);
        let segments = runs.iter().map(|&(from, to)| self.segment(&sizes, from, to)).collect();
        let changes = runs.windows(2).map(|pair| self.change(&sizes, pair[0], pair[1].0)).collect();
        Bulk {
            largest_bytes: None,
            small_bytes: self.data[0].shape.small_bytes,
            direction: self.direction(),
            transfer: self.data[0].shape.transfer,
            segments,
            changes,
            classic: self.classic(|e| e.one_way),
            classic_of_transfer: (sizes.iter().all(|size| size.transfer.value_ns.is_some()))
                .then(|| self.classic(|e| e.transfer)),
            overlap: self.overlap(runs[runs.len() - 1]),
            signatures: Vec::new(),
            sizes,
            launches: self.data.to_vec(),
        }
    }

    #[allow(non_snake_case, reason = "the notation of the LogP papers")]
    fn size(&self, at: usize) -> SizeFigures {
        let size_bytes = self.sizes[at];
        let T = {
            let halves = self.batches(at, |_, s| s.rtt_ns.iter().map(|ns| ns / 2.0).collect());
            self.figure(at, |e| e.one_way).parameter(halves, self.count(at, |s| s.rtt_samples))
        };
        let transfer = self.figure(at, |e| e.transfer).parameter(
            self.batches(at, |_, s| s.transfer_ns.clone()),
            self.count(at, |s| s.transfer_samples),
        );
        let alone = self.batches(at, |launch, size| {
            let m = send_overhead(&size.issue, launch.timer_ns).m;
            let burst = size.issue.iter().find(|burst| burst.m == m);
            let each = |ns: &f64| (ns - launch.timer_ns) / m as f64;
            burst.map(|burst| burst.issue_ns.iter().map(each).collect()).unwrap_or_default()
        });
        let o_s = self.sampled(self.figure(at, |e| e.o_s), alone);
        let mut o_r = self
            .figure(at, |e| e.o_r)
            .parameter(self.batches(at, |_, s| s.o_r_ns.clone()), self.count(at, |s| s.o_r_samples));
        if self.receive_waits(at) {
            o_r.status = Status::UpperBound;
        }
        let mut L = self.sampled(
            self.figure(at, |e| e.latency),
            self.estimates.iter().map(|sizes| sizes[at].latency).collect(),
        );
        // The requester does not see what the replier's processor does for the bytes of a get. Less a bound of o_r,
        // L would be too small.
        if self.direction() == Direction::Get || o_r.status == Status::UpperBound {
            L = L.without_value();
        }
        let plateau = self.plateau(at);
        let g_of = |of: fn(&SizeEstimate) -> f64| {
            let samples = self.batches(at, |_, s| steady_rises(s, self.issuing_is_steady[at]));
            self.sampled(self.figure(at, of), samples)
        };
        let mut g = g_of(|e| e.steady);
        match plateau.limited_by {
            Limit::Gap => {
                let share = self.starvation(at, plateau.value_ns, plateau.window);
                let by_done_ns = self.figure(at, |e| e.done).value;
                g.ci_ns = g.ci_ns.map(|ci| steady::gap_interval(ci, share, by_done_ns));
            }
            Limit::Processor => {
                g = g_of(|e| e.steady.max(e.bound));
                g.status = Status::UpperBound;
            }
            Limit::Window | Limit::Unknown => g = g.without_value(),
        }
        let bytes = size_bytes as f64;
        SizeFigures {
            size_bytes,
            // If the bursts contradict each other, the rate is that of one whole burst.
            streaming: match self.contradicts(at) {
                true => Self::rate(bytes, self.figure(at, |e| e.bound)),
                false => Self::rate(bytes, self.figure(at, |e| e.steady)),
            },
            single: Self::rate(bytes, self.figure(at, |e| e.one_way)),
            transferred: transfer.value_ns.map(|_| Self::rate(bytes, self.figure(at, |e| e.transfer))),
            T,
            transfer,
            o_s,
            o_r,
            g,
            L,
            plateau,
        }
    }

    /// Reports that so many receives waited for a part of the message that o_r is a bound.
    pub(super) fn receive_waits(&self, at: usize) -> bool {
        self.count(at, |s| s.o_r_waited) as f64 > WAITED * self.count(at, |s| s.o_r_samples) as f64
    }

    fn plateau(&self, at: usize) -> Plateau {
        let steady = self.figure(at, |e| e.steady);
        let idle = self.figure(at, |e| e.idle);
        let half = self.figure(at, |e| e.half_window).value;
        let half_window_ns = half.is_finite().then_some(half);
        let rtt = self.request_rtt(at);
        let shape = self.data[0].shape.sizes.get(at);
        let window = shape.map_or(0, |size| size.window);
        let evidence = Evidence {
            window,
            smaller_ns: half_window_ns,
            noise: self.noise_of_trips(at),
            starvation: self.starvation(at, steady.value, window),
        };
        Plateau {
            limited_by: if self.contradicts(at) || self.is_too_deep(at) || self.is_paced_by_polls(at) {
                Limit::Unknown
            } else {
                limited_by(steady.value, idle.value, idle.ci, evidence, rtt)
            },
            value_ns: steady.value,
            ci_ns: steady.ci,
            window,
            half_window_ns,
            idle_ns: Some(idle.value).filter(|ns| ns.is_finite()),
        }
    }

    /// Returns the parameters at the smallest size, and G of the largest sizes.
    fn parameters(&self, bulk: &Bulk) -> Parameters {
        let smallest = &bulk.sizes[0];
        let trips = self.batches(0, |_, size| size.rtt_ns.clone());
        let polls = self.data.iter().flat_map(|launch| launch.o_poll_ns.clone()).collect();
        Parameters {
            rtt: self.figure(0, |e| 2.0 * e.one_way).parameter(trips, smallest.T.samples),
            o_s: smallest.o_s.clone(),
            o_r: smallest.o_r.clone(),
            o_poll: self.sampled(self.o_poll(), polls),
            g: smallest.g.clone(),
            L: smallest.L.clone(),
            G: bulk.segments[bulk.segments.len() - 1].G.clone(),
        }
    }
}
