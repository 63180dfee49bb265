//! The steady state of a stream of requests: the bursts that measure it, and the term that sets it.
//!
//! A message of a stream takes max(g, o_s + o_r, rtt / W) in the steady state, where W is the window (Culler
//! et al. 1996, section 3). If the window sets the pace, replies come in clumps of W. The time of a burst
//! over its length is then a staircase with steps of W. The two compared bursts therefore consist of whole
//! windows.

use crate::logp::data::Burst;
use crate::record::plateau::Limit;
use crate::stats::{Interval, deviation_of_neighbours};
use std::cmp::Ordering;

/// A time that a pilot has measured counts as at least this long, because it divides other times.
pub(crate) const SHORTEST_NS: f64 = 1e-3;
/// Idle time below this share of the plateau counts as none.
const NO_IDLE: f64 = 0.03;
/// The window sets the plateau if a smaller window raises it by this share of the ratio of the two windows.
const WINDOW_AT_WORK: f64 = 0.95;
/// With a window of 1 the window sets the plateau if a message takes at most this many round trips.
const A_ROUND_TRIP: f64 = 1.05;
/// The shorter of the two bursts contains at least this many windows, because the first window fills the
/// pipeline.
const WINDOWS_AT_LEAST: usize = 2;
/// The longest burst that is lengthened to whole windows, in messages.
const WHOLE_WINDOWS_AT_MOST: usize = 1 << 16;
/// The longest burst has this many times the messages that fit on the way.
pub(crate) const BURST_OVER_DEPTH: usize = 4;
/// From this share of a round trip on, a gap with its noise may outlast the round trip.
const GAP_MAY_OUTLAST: f64 = 0.6;
/// The rest lasts this many gaps, because a gap may take longer than usual.
const GAPS_OF_REST: f64 = 2.0;
/// An empty poll is costly if it exceeds both this share of o_s + o_r and this share of o_r. A poll shorter
/// than a receive delays no request, because a receive takes its place once replies come.
const COSTLY_POLL: f64 = 0.2;
const COSTLY_POLL_OF_RECEIVE: f64 = 0.8;
/// If polls are costly, a burst issues this many requests beyond the pipeline's depth without a poll.
const AHEAD: usize = 16;
/// This share of the wanted number of requests without a poll is enough, because the wanted number comes
/// from figures of short runs.
const ENOUGH_UNPOLLED: f64 = 0.8;
/// The noise of a round trip counts for at most this share against the hypothesis that the window sets the
/// pace.
const NOISE_AT_MOST: f64 = 0.25;
/// Issuing is steady if the rates of requests and of replies agree to this share.
const STEADY: f64 = 0.02;
/// A rise below this share of the time per message of a whole burst contradicts that burst.
const CONTRADICTION: f64 = 0.5;
/// Growing queues explain at most this many times the share that they are expected to cost.
const GROWING_AT_MOST: f64 = 3.0;
/// The share by which noise slows a stream down, see [`starvation`]. Simulated pipelines of four equal stages
/// gave the factors; both are on the safe side.
const STARVATION: f64 = 2.0;
const STARVATION_OF_WINDOW: f64 = 12.0;
/// The standard deviation of the time of a burst is about this share of that of as many independent stage
/// times in a row.
const BURST_DEVIATION: f64 = 0.8;

/// Returns the lengths of the two bursts whose difference gives the time per message. They are about
/// `longest` messages and half of that, rounded up to whole windows if the window is shorter.
pub(crate) fn pair(longest: usize, window: usize) -> [usize; 2] {
    let half = longest / 2;
    if window > half || 2 * WINDOWS_AT_LEAST * window > WHOLE_WINDOWS_AT_MOST {
        return [half, longest];
    }
    let windows = half.div_ceil(window).max(WINDOWS_AT_LEAST);
    [windows * window, 2 * windows * window]
}

/// Returns the lengths of all bursts up to `longest`: powers of two, and at the end the two of [`pair`].
pub(crate) fn bursts(longest: usize, window: usize) -> Vec<usize> {
    let [half, whole] = pair(longest, window);
    (0..usize::BITS).map(|log| 1 << log).take_while(|&m| m < half).chain([half, whole]).collect()
}

/// Returns the time per message of each batch: the rise of `times` between the two longest bursts.
pub(crate) fn rises(bursts: &[Burst], times: impl Fn(&Burst) -> &Vec<f64>) -> Vec<f64> {
    let [.., half, whole] = bursts else { return Vec::new() };
    let messages = whole.m.saturating_sub(half.m) as f64;
    let pairs = times(whole).iter().zip(times(half));
    pairs.map(|(whole_ns, half_ns)| (whole_ns - half_ns) / messages).collect()
}

/// Returns the number of messages that fit on the way, at most the window.
pub(crate) fn depth(rtt_ns: f64, per_message_ns: f64, window: usize) -> usize {
    ((rtt_ns / per_message_ns).ceil() as usize).min(window)
}

/// Reports that bursts up to `longest` are too short for the stream to become steady.
pub(crate) fn is_too_deep(longest: usize, rtt_ns: f64, per_message_ns: f64, window: usize) -> bool {
    let depth = (rtt_ns / per_message_ns).min(window as f64);
    // The shorter of the two bursts that are compared fills the pipeline.
    2.0 * depth > longest as f64
}

/// Returns an upper bound of the time of any stage for a message, from the time to the last reply of a
/// burst of `messages`. Each stage serves the messages one after the other, and a round trip of one message
/// comes on top. The rise between two bursts may not show a stage that is only slightly slower than the
/// others. That stage is still below this bound.
pub(crate) fn slowest_stage_at_most(done_ns: f64, rtt_ns: f64, messages: usize) -> f64 {
    (done_ns - rtt_ns) / messages.saturating_sub(1).max(1) as f64
}

/// Reports that two bursts contradict each other: their rise gives a time per message that is not positive,
/// or less than half of that of the longer burst as a whole. One of the bursts was disturbed.
pub(crate) fn contradict(rise_ns: f64, whole_ns: f64) -> bool {
    // Times that are not finite count as a contradiction.
    rise_ns.partial_cmp(&(CONTRADICTION * whole_ns)) != Some(Ordering::Greater)
}

/// Returns the rest after a reply until the layer is quiet, in nanoseconds; 0 if no rest is needed. If the
/// gap is longer than a round trip, the stage that sets it is still busy when the reply arrives.
pub(crate) fn rest_ns(plateau_ns: f64, rtt_ns: f64) -> f64 {
    if plateau_ns >= GAP_MAY_OUTLAST * rtt_ns { GAPS_OF_REST * plateau_ns } else { 0.0 }
}

/// The processor time of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overheads {
    pub(crate) o_s_ns: f64,
    pub(crate) o_r_ns: f64,
}

/// Returns the number of requests that a burst issues before its first poll. Both bursts of a comparison
/// issue the same number. Polls before the first reply find nothing. If polls are costly, they would set
/// the pace, and the burst omits them.
///
/// The replies to the requests beyond the pipeline's depth wait at the requester. A later poll then finds a
/// reply even if replies come unevenly. The number includes twice the replies that arrive during one empty
/// poll.
pub(crate) fn unpolled(o_poll_ns: f64, overheads: Overheads, plateau_ns: f64, depth: usize) -> usize {
    let Overheads { o_s_ns, o_r_ns } = overheads;
    if o_poll_ns <= COSTLY_POLL * (o_s_ns + o_r_ns) || o_poll_ns <= COSTLY_POLL_OF_RECEIVE * o_r_ns {
        return 0;
    }
    let during_poll = (2.0 * o_poll_ns / plateau_ns) as usize;
    // A record is a file that others may have written: its figures may have any value.
    depth.saturating_add(depth / 2).saturating_add(during_poll).saturating_add(AHEAD)
}

/// Reports that empty polls set the pace of bursts that issued `granted` requests before their first poll.
/// In that case [`unpolled`] asks for more requests, and no burst was long enough.
pub(crate) fn is_paced_by_polls(
    granted: usize,
    o_poll_ns: f64,
    overheads: Overheads,
    plateau_ns: f64,
    depth: usize,
) -> bool {
    let wanted = unpolled(o_poll_ns, overheads, plateau_ns, depth);
    (granted as f64) < ENOUGH_UNPOLLED * wanted as f64
}

/// Returns the standard deviation of the time to the last reply of one burst, without drift, in
/// nanoseconds. `bursts` are the batches of bursts of one length in the order of the launches. A launch may
/// have only one batch.
pub(crate) fn burst_deviation<'a>(bursts: impl Iterator<Item = &'a Burst> + Clone) -> f64 {
    let per_batch = bursts.clone().map(|burst| burst.per_batch).next().unwrap_or(1);
    let done_ns: Vec<f64> = bursts.flat_map(|burst| burst.done_ns.iter().copied()).collect();
    deviation_of_neighbours(&done_ns) * (per_batch as f64).sqrt()
}

/// Decides from the rises of both times whether the plateau comes from the time to issue. In the steady
/// state both rises are the same. If times vary, the rise of the time to the last reply is too large,
/// because queues between the stages still grow. The rise of the time to issue has no such error. It is
/// right only once every queue in front of the slowest stage is full.
pub(crate) fn is_by_issuing(issue_ns: f64, done_ns: f64, deviation_ns: f64, messages: usize) -> bool {
    let share = deviation_ns / (done_ns * (messages as f64).sqrt() * BURST_DEVIATION);
    let growing = STARVATION * share / (messages as f64).sqrt();
    let apart = (issue_ns / done_ns - 1.0).abs();
    apart <= STEADY && apart <= GROWING_AT_MOST * growing
}

/// A stream in its steady state, and the variation of its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Varying {
    /// The standard deviation of the time of the longest burst.
    pub(crate) deviation_ns: f64,
    /// The messages of that burst.
    pub(crate) messages: usize,
    pub(crate) plateau_ns: f64,
    pub(crate) rtt_ns: f64,
    pub(crate) window: usize,
    /// True if the plateau comes from the time to issue.
    pub(crate) by_issuing: bool,
}

/// Returns the share by which the plateau may exceed the mean time of the slowest stage. If stage times vary,
/// the slowest stage sometimes has nothing to do, because the stages before it are late or the window is
/// full. The time to issue has no such share unless the window limits the stream, because the first stage
/// always has work.
///
/// Let s be the relative deviation of a stage time. In a burst of M messages the share is about s / √M, by
/// the time of the last passage through equal queues in tandem. In a stream whose window W exceeds the
/// messages on the way d it is about s² / (W - d). It is at most of the order of s.
pub(crate) fn starvation(stream: Varying) -> f64 {
    let is_held_back = stream.window < stream.messages;
    if stream.by_issuing && !is_held_back {
        return 0.0;
    }
    let root = (stream.messages as f64).sqrt();
    let share = stream.deviation_ns / (stream.plateau_ns * root * BURST_DEVIATION);
    let room = (stream.window as f64 - stream.rtt_ns / stream.plateau_ns).max(0.0);
    let by_window = STARVATION_OF_WINDOW * share * share / room;
    let starved = STARVATION * share / root + if is_held_back && share > 0.0 { by_window } else { 0.0 };
    starved.min(STARVATION * share)
}

/// Returns the interval of g from that of the plateau, which may exceed it by the share of [`starvation`]. A queue
/// that filled in the course of the burst makes the time to issue too short, and that to the last reply too long: g
/// lies between them.
pub(crate) fn gap_interval(plateau: Interval, starvation: f64, by_done_ns: f64) -> Interval {
    let lo = if plateau.lo > 0.0 { plateau.lo / (1.0 + starvation) } else { plateau.lo };
    Interval { lo: lo.min(by_done_ns), hi: plateau.hi.max(by_done_ns) }
}

/// The evidence that distinguishes the processor and the window from the slowest stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    pub(crate) window: usize,
    /// Time per message with [`smaller_window`]; `None` if there is no smaller window.
    pub(crate) smaller_ns: Option<f64>,
    /// Standard deviation of a round trip, as a share of it. A window waits for the latest of its replies,
    /// which is later the more replies there are. Noise therefore hides the effect of a large window.
    pub(crate) noise: f64,
    /// The share by which the plateau may exceed the term that sets it ([`starvation`]).
    pub(crate) starvation: f64,
}

/// Returns the window that is compared with `window`: half of it, rounded down.
pub(crate) fn smaller_window(window: usize) -> usize {
    window / 2
}

/// Returns the term that sets a plateau: the processor if no idle time is left; the window if a smaller
/// window raises the plateau as the ratio of the two windows; otherwise the slowest stage of the layer.
pub(crate) fn limited_by(
    plateau_ns: f64,
    idle_ns: f64,
    idle_ci: Option<Interval>,
    evidence: Evidence,
    rtt_ns: f64,
) -> Limit {
    // The share of the plateau by which it exceeds that term.
    let starved = evidence.starvation / (1.0 + evidence.starvation);
    let is_none_at = (NO_IDLE + starved) * plateau_ns;
    let no_idle = idle_ns <= is_none_at || idle_ci.is_some_and(|ci| ci.lo <= 0.0);
    let noise = evidence.noise.clamp(0.0, NOISE_AT_MOST);
    let window_at_work = match evidence.smaller_ns {
        Some(smaller_ns) => {
            let ratio = evidence.window as f64 / smaller_window(evidence.window).max(1) as f64;
            smaller_ns >= WINDOW_AT_WORK * (1.0 - noise) * ratio * plateau_ns
        }
        None => plateau_ns <= A_ROUND_TRIP * (1.0 + noise) * rtt_ns,
    };
    match (no_idle, window_at_work) {
        (true, _) => Limit::Processor,
        (false, true) => Limit::Window,
        (false, false) => Limit::Gap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bursts_without_a_window_are_powers_of_two() {
        assert_eq!(bursts(16, 1 << 16), [1, 2, 4, 8, 16]);
        assert_eq!(pair(1024, 1024), [512, 1024]);
    }

    #[test]
    fn a_rise_that_cannot_be_contradicts() {
        assert!(contradict(-9.6, 5.0) && contradict(0.0, 5.0) && contradict(2.0, 5.0));
        assert!(contradict(f64::NAN, 5.0));
        assert!(!contradict(4.9, 5.0) && !contradict(7.0, 5.0));
    }

    #[test]
    fn costly_polls_set_the_pace_of_bursts_that_poll_too_early() {
        // A round trip of 60 µs, 55 ns a message, and polls of 16 µs; then the same with cheap polls.
        let depth = depth(60_000.0, 70.6, usize::MAX);
        let overheads = Overheads { o_s_ns: 35.0, o_r_ns: 20.0 };
        assert!(is_paced_by_polls(1024, 15_866.0, overheads, 70.6, depth));
        assert!(!is_paced_by_polls(
            unpolled(15_866.0, overheads, 70.6, depth),
            15_866.0,
            overheads,
            70.6,
            depth
        ));
        assert!(!is_paced_by_polls(0, 5.0, overheads, 70.6, depth));
    }

    #[test]
    fn polls_that_are_cheaper_than_a_receive_are_not_costly() {
        let costly =
            |o_poll_ns, o_s_ns, o_r_ns| unpolled(o_poll_ns, Overheads { o_s_ns, o_r_ns }, 30.0, 4) > 0;
        // The figures are those of shared memory, where a receive takes 20 to 40 ns.
        assert!(!costly(6.0, 6.4, 20.0) && !costly(6.0, 6.4, 40.0));
        assert!(costly(50.0, 100.0, 10.0) && costly(30.0, 5.0, 30.0));
        assert!(!costly(1.0, 100.0, 1.0));
    }

    #[test]
    fn bursts_hold_whole_windows() {
        assert_eq!(pair(1024, 108), [540, 1080]);
        assert_eq!(pair(8, 3), [6, 12]);
        assert_eq!(bursts(8, 3), [1, 2, 4, 6, 12]);
        assert_eq!(pair(8, 1), [4, 8]);
    }

    proptest! {
        #[test]
        fn the_rise_is_over_whole_windows(log in 3u32..16, window in 1usize..70_000) {
            let longest = 1 << log;
            let [half, whole] = pair(longest, window);
            prop_assert!(whole == 2 * half && whole >= longest);
            if window <= longest / 2 && 4 * window <= WHOLE_WINDOWS_AT_MOST {
                prop_assert_eq!((whole - half) % window, 0);
                prop_assert!(half >= 2 * window || half >= longest / 2);
            }
            let bursts = bursts(longest, window);
            prop_assert!(bursts.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
