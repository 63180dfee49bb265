//! The parameters of one launch.

use super::data::{Burst, LaunchData, Shape};
use super::send_overhead::{SendOverhead, cost_of_request, send_overhead};
use crate::stats::{Line, median};
use crate::steady::{self, rises};

/// A delay is beyond the idle time if it is longer by this factor.
const BEYOND_IDLE: f64 = 1.1;

/// The ways to compute the figures of each launch. They are chosen over all launches, so that no median is of figures
/// by two of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways {
    /// The plateau comes from the time to issue, otherwise from the time to the last reply.
    pub(super) by_issuing: bool,
    /// The longest burst is too short for the stream to become steady, and `o_r` is that of a single receive.
    pub(super) is_too_deep: bool,
}

impl Ways {
    /// Chooses the ways for the launches. There is at least one launch.
    pub(super) fn of(launches: &[LaunchData]) -> Self {
        let by_issuing = is_by_issuing(launches);
        let chosen = Self { by_issuing, is_too_deep: false };
        let plateau = rise_over_launches(launches, chosen.times());
        let rtt = median(launches.iter().map(|launch| median(launch.rtt.batches_ns.iter().copied())));
        let Shape { bursts, window, .. } = &launches[0].shape;
        let longest = bursts.last().copied().unwrap_or(0);
        Self { is_too_deep: steady::is_too_deep(longest, rtt, plateau, *window), ..chosen }
    }

    /// Returns the times from which the plateau comes.
    fn times(self) -> fn(&Burst) -> &Vec<f64> {
        if self.by_issuing { |burst| &burst.issue_ns } else { |burst| &burst.done_ns }
    }
}

/// The parameters that one launch gives. All times are in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct SignatureEstimate {
    pub(super) rtt: f64,
    pub(super) o_s: SendOverhead,
    pub(super) longest_burst_o_s: f64,
    pub(super) o_r: f64,
    pub(super) o_r_away: f64,
    /// o_r, or that of a receive by itself if no delay was beyond the idle time.
    pub(super) known_o_r: f64,
    pub(super) o_poll: f64,
    pub(super) plateau: f64,
    pub(super) issue_plateau: f64,
    /// The plateau by the time to the last reply.
    pub(super) done_plateau: f64,
    /// The upper bound of g, independent of the term that sets the plateau.
    pub(super) bound: f64,
    pub(super) half_window_plateau: Option<f64>,
    pub(super) idle: f64,
    pub(super) slope: f64,
    pub(super) latency: f64,
    pub(super) rtt_after_pause: f64,
    /// o_s + o_r of each batch of each delay beyond the idle time.
    pub(super) busy_samples: Vec<f64>,
    /// o_r of each delay of the signature; NaN for a delay that is not beyond the idle time.
    pub(super) o_r_by_delay: Vec<f64>,
    pub(super) plateau_samples: Vec<f64>,
}

impl SignatureEstimate {
    /// Computes the figures of one launch.
    pub(super) fn of(launch: &LaunchData, ways: Ways) -> Self {
        let med = |values: &[f64]| median(values.iter().copied());
        let rtt = med(&launch.rtt.batches_ns);
        let o_s = send_overhead(&launch.issue, launch.timer_ns);
        let o_r_away = med(&launch.o_r_away_ns);
        let undelayed = launch.signature.first();
        let plateau_samples = undelayed.map(|c| rises(&c.bursts, ways.times())).unwrap_or_default();
        let plateau = med(&plateau_samples);
        let issue_plateau = med(&undelayed.map(|c| issue_rises(&c.bursts)).unwrap_or_default());
        let done_plateau = med(&undelayed.map(|c| rises(&c.bursts, |b| &b.done_ns)).unwrap_or_default());
        let longest = undelayed.and_then(|c| c.bursts.last());
        let bound = longest
            .map_or(f64::NAN, |b| steady::slowest_stage_at_most(med(&b.done_ns) - launch.timer_ns, rtt, b.m));
        let half_window = rises(&launch.half_window, |b| &b.done_ns);

        let idle_guess = if o_r_away.is_finite() { plateau - o_s.value_ns - o_r_away } else { 0.0 };
        let mut line = Vec::new();
        let mut busy_samples = Vec::new();
        let mut o_r_by_delay = vec![f64::NAN; launch.signature.len()];
        for (curve, o_r) in launch.signature.iter().zip(&mut o_r_by_delay).skip(1) {
            let d = med(&curve.d_measured_ns);
            // The shortest delay serves the plot, not the fit.
            if curve.d_ns <= BEYOND_IDLE * idle_guess || curve.d_ns <= launch.shape.delays_ns[1] {
                continue;
            }
            let steady = issue_rises(&curve.bursts);
            line.push((d, med(&steady)));
            *o_r = med(&steady) - d - o_s.value_ns;
            busy_samples.extend(steady.iter().zip(&curve.d_measured_ns).map(|(steady, d)| steady - d));
        }
        // The model requires a slope of 1. The fixed slope keeps the error of a fitted slope out of o_r;
        // the fitted slope is a check.
        let busy = line.iter().map(|(d, steady)| steady - d).sum::<f64>() / line.len() as f64;
        let o_r = if ways.is_too_deep { o_r_away } else { busy - o_s.value_ns };
        let known_o_r = if o_r.is_finite() { o_r } else { o_r_away };
        Self {
            rtt,
            o_s,
            longest_burst_o_s: launch.issue.last().map_or(f64::NAN, |b| cost_of_request(b, launch.timer_ns)),
            o_r,
            o_r_away,
            known_o_r,
            o_poll: med(&launch.o_poll_ns),
            plateau,
            issue_plateau,
            done_plateau,
            bound,
            half_window_plateau: (!half_window.is_empty()).then(|| med(&half_window)),
            idle: plateau - (o_s.value_ns + known_o_r),
            slope: Line::through(&line).map_or(f64::NAN, |line| line.slope),
            latency: rtt / 2.0 - o_s.value_ns - o_r,
            rtt_after_pause: med(&launch.rtt_after_pause_ns),
            busy_samples,
            o_r_by_delay,
            plateau_samples,
        }
    }
}

/// Returns the time per message of each batch by the time to issue: the signature's steady time.
pub(super) fn issue_rises(bursts: &[Burst]) -> Vec<f64> {
    rises(bursts, |burst| &burst.issue_ns)
}

fn is_by_issuing(launches: &[LaunchData]) -> bool {
    let messages = launches[0].shape.bursts.last().copied().unwrap_or(1);
    let deviation_ns = burst_deviation(launches);
    steady::is_by_issuing(
        rise_over_launches(launches, |burst| &burst.issue_ns),
        rise_over_launches(launches, |burst| &burst.done_ns),
        deviation_ns,
        messages,
    )
}

/// Returns the median over the launches of the time per message without delay, by these times.
fn rise_over_launches(launches: &[LaunchData], times: fn(&Burst) -> &Vec<f64>) -> f64 {
    median(launches.iter().filter_map(|l| l.signature.first()).map(|c| median(rises(&c.bursts, times))))
}

/// Returns the standard deviation of the time of the longest burst, in nanoseconds.
pub(super) fn burst_deviation(launches: &[LaunchData]) -> f64 {
    steady::burst_deviation(launches.iter().filter_map(|launch| launch.signature.first()?.bursts.last()))
}
