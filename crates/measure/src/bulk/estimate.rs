//! The figures of one size in one launch.

use super::data::BulkSizeData;
use crate::logp::data::Burst;
use crate::logp::send_overhead::send_overhead;
use crate::stats::median;
use crate::steady::{self, rises};

/// The figures that one launch gives for one size, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SizeEstimate {
    pub(super) one_way: f64,
    /// From the start of a transfer until its end is known.
    pub(super) transfer: f64,
    /// A request of a burst and its reply.
    pub(super) request_rtt: f64,
    pub(super) o_s: f64,
    pub(super) o_r: f64,
    pub(super) latency: f64,
    pub(super) steady: f64,
    /// The steady time by the time to the last reply.
    pub(super) done: f64,
    /// The upper bound of g(n), independent of the term that sets the pace.
    pub(super) bound: f64,
    pub(super) half_window: f64,
    pub(super) idle: f64,
}

impl SizeEstimate {
    /// Reads one size of a launch. `smallest` is the smallest size of that launch.
    pub(super) fn of(
        size: &BulkSizeData,
        smallest: &BulkSizeData,
        timer_ns: f64,
        issuing_is_steady: bool,
    ) -> Self {
        let med = |values: Vec<f64>| median(values);
        let one_way = med(size.rtt_ns.clone()) / 2.0;
        let transfer = med(size.transfer_ns.clone());
        // Records of earlier versions have no transfers.
        let of_halves = one_way + med(smallest.rtt_ns.clone()) / 2.0;
        let request_rtt = if transfer.is_finite() { transfer } else { of_halves };
        let o_s = send_overhead(&size.issue, timer_ns).value_ns;
        let o_r = med(size.o_r_ns.clone());
        let of_done: fn(&Burst) -> &Vec<f64> = |burst| &burst.done_ns;
        let times: fn(&Burst) -> &Vec<f64> =
            if issuing_is_steady { |burst| &burst.issue_ns } else { of_done };
        let steady = median_rise(&size.stream, times);
        let longest = size.stream.last();
        let bound = |burst: &Burst| {
            let done_ns = med(burst.done_ns.clone()) - timer_ns;
            steady::slowest_stage_at_most(done_ns, request_rtt, burst.m)
        };
        let busy = median_rise(&size.delayed, of_done) - med(size.d_measured_ns.clone());
        Self {
            one_way,
            transfer,
            request_rtt,
            o_s,
            o_r,
            latency: one_way - o_s - o_r,
            steady,
            done: median_rise(&size.stream, of_done),
            bound: longest.map_or(f64::NAN, bound),
            half_window: median_rise(&size.half_window, of_done),
            idle: steady - busy,
        }
    }
}

/// Returns the steady time per message of each batch of a stream: by the time to issue if issuing is steady,
/// otherwise by the time to the last reply.
///
/// With stages of varying pace the time to the last reply rises by more than the steady time, because queues
/// between the stages still grow. The time to issue does not, but it needs a burst that fills every queue in
/// front of the slowest stage.
pub(super) fn steady_rises(size: &BulkSizeData, issuing_is_steady: bool) -> Vec<f64> {
    rises(&size.stream, |burst| if issuing_is_steady { &burst.issue_ns } else { &burst.done_ns })
}

/// Returns the rise per message between the medians of the two longest bursts. An interrupted burst affects
/// one of many times, and not a difference of two.
pub(super) fn median_rise(bursts: &[Burst], times: fn(&Burst) -> &Vec<f64>) -> f64 {
    let [.., half, whole] = bursts else { return f64::NAN };
    let median_of = |burst| median(times(burst).iter().copied());
    (median_of(whole) - median_of(half)) / whole.m.saturating_sub(half.m) as f64
}
