//! Whether messages make progress while no call is made: a predicate on intervals, which
//! docs/overlap.md writes down.
//!
//! * The share of the waiting without work that goes behind long work says how much is hidden.
//! * Without work both directions disturb each other, and each side waits for the fluctuations of the
//!   other: that waiting is longer than a message needs, and long work takes off the difference. So the
//!   share is also taken of the time of one message alone, its half round trip less posting.
//! * Progress is made by itself where the first share lies above [`WHOLE`], partly where it lies between
//!   [`NONE`] and [`WHOLE`]; if the second one lies above [`NONE`] as well (for the whole, not below
//!   [`WHOLE`]), or work takes more off a cycle than fluctuations add to it, [`FLUCTUATION`]. Nothing is
//!   hidden where one of both shares lies below [`NONE`].
//! * Where a message takes hardly anything beside its posting, [`TOO_LITTLE`], only that last one counts.
//! * Nothing hidden means progress inside calls only, if there was something to hide. The receive by
//!   itself is inside a call on every layer. Where it is all that is waited for, only data that move in
//!   it tell: a time that grows with the size, none of which is hidden.

use super::record::{Progress, Quantity};
use crate::show::{Percent, Time};
use crate::stats::Interval;

/// From this share on all of the waiting goes behind work.
pub(super) const WHOLE: f64 = 0.9;
/// Up to this share none of it does.
pub(super) const NONE: f64 = 0.1;
/// Both sides together fluctuate by less than this share of a cycle: the mean of the longer of two times is
/// their mean and 0.56 deviations, of which each is a quarter at most, and rarely both are.
const FLUCTUATION: f64 = 0.25;
/// A message that takes no larger share of its time beside posting is too little to tell by: an error of a
/// hundredth in either time is a tenth of what could be hidden.
const TOO_LITTLE: f64 = 0.1;
/// From this share of the waiting after long work on, the receive by itself may be all of it.
const RECEIVE_ALONE: f64 = 0.8;
/// From this share of the waiting after long work on, data are what is waited for.
const DATA: f64 = 0.5;
/// Of data that move inside the call, no larger share is hidden.
const LITTLE: f64 = 0.04;
/// More launches than these are not asked for.
const LAUNCHES_AT_MOST: f64 = 1000.0;

/// What the launches say of messages of one size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// Share of the waiting without work that goes behind long work.
    pub(super) hidden: Quantity,
    /// The same as a share of the time of one message alone, less posting.
    pub(super) hidden_of_trip: Quantity,
    /// The time of one message alone, less posting, as a share of the whole of it.
    pub(super) alone_share: Quantity,
    /// What long work takes off the waiting, as a share of a cycle.
    pub(super) saved_share: Quantity,
    /// The receive by itself.
    pub(super) receive_ns: Quantity,
    /// That as a share of the waiting after long work.
    pub(super) receive_share: Quantity,
    /// What the time of one message has grown by since the smallest size, as a share of the waiting
    /// after long work.
    pub(super) data_share: Quantity,
}

/// How messages make progress, or why that is not told and what would tell.
pub(super) fn judge(evidence: &Evidence) -> Result<Progress, String> {
    let Evidence { hidden, hidden_of_trip: of_trip, .. } = evidence;
    let Some(ci) = hidden.ci else {
        return Err(format!(
            "{} are too few for an interval: use --launches 9 or more",
            match hidden.launches {
                1 => "1 launch".into(),
                count => format!("{count} launches"),
            }
        ));
    };
    if ci.lo > NONE && is_too_little(evidence) {
        return Err(too_little(evidence));
    }
    if ci.lo > NONE && is_no_fluctuation(evidence) {
        if ci.lo >= WHOLE {
            return match is_whole_of_fluctuation(evidence) {
                true => Err(fluctuating(hidden, of_trip)),
                false => Ok(Progress::ByItself),
            };
        }
        if ci.hi < WHOLE {
            return Ok(Progress::Partly);
        }
    }
    let is_none = |ci: &Interval| ci.hi <= NONE;
    if is_none(&ci) || of_trip.ci.as_ref().is_some_and(is_none) {
        return match is_receive_alone(evidence) {
            true => Err(nothing_to_hide(evidence)),
            false => Ok(Progress::OnlyInCalls),
        };
    }
    Err(undecided(hidden, of_trip, ci))
}

/// Whether a message takes hardly more than posting it, and work takes off no more than fluctuations add.
fn is_too_little(evidence: &Evidence) -> bool {
    evidence.alone_share.ci.is_some_and(|ci| ci.lo <= TOO_LITTLE) && !saves_more_than_fluctuations(evidence)
}

/// Whether work takes more off the waiting than what the fluctuations of both sides have added to it.
fn is_no_fluctuation(evidence: &Evidence) -> bool {
    let is_hidden = evidence.hidden_of_trip.ci.is_none_or(|ci| ci.lo > NONE);
    is_hidden || saves_more_than_fluctuations(evidence)
}

fn saves_more_than_fluctuations(evidence: &Evidence) -> bool {
    evidence.saved_share.ci.is_some_and(|ci| ci.lo > FLUCTUATION)
}

/// Whether all of the waiting is hidden only because the fluctuations of both sides are a part of it.
fn is_whole_of_fluctuation(evidence: &Evidence) -> bool {
    let is_left = evidence.hidden_of_trip.ci.is_some_and(|ci| ci.hi < WHOLE);
    is_left && !saves_more_than_fluctuations(evidence)
}

/// Whether the receive by itself may be all that is waited for after long work, no data among it.
fn is_receive_alone(evidence: &Evidence) -> bool {
    let is_less = |ci: Interval| ci.hi < RECEIVE_ALONE;
    // Records of versions that did not time it are judged as those versions did.
    let Some(receive) = evidence.receive_share.ci else { return false };
    let is_of_data = evidence.data_share.ci.is_some_and(|ci| ci.lo >= DATA);
    let is_unhidden = evidence.hidden_of_trip.ci.is_some_and(|ci| ci.lo <= LITTLE);
    !(is_less(receive) || (is_of_data && is_unhidden))
}

fn nothing_to_hide(evidence: &Evidence) -> String {
    let time = |ns: Option<f64>| Time(ns.unwrap_or(f64::NAN));
    let waiting = evidence.receive_ns.value.zip(evidence.receive_share.value).map(|(ns, share)| ns / share);
    format!(
        "after long work {} are left to wait for, and the receive by itself takes {}, which no work hides: \
         larger messages would tell (--sizes)",
        time(waiting),
        time(evidence.receive_ns.value)
    )
}

fn too_little(evidence: &Evidence) -> String {
    format!(
        "all but {} of a message's time is posting, too much to see what work hides of the rest: larger messages \
         would tell (--sizes)",
        Percent(evidence.alone_share.value.unwrap_or(f64::NAN).max(0.0))
    )
}

fn fluctuating(hidden: &Quantity, of_trip: &Quantity) -> String {
    let share = |quantity: &Quantity| Percent(quantity.value.unwrap_or(f64::NAN));
    format!(
        "long work takes {} off the waiting without work, in which each side waits for the other's fluctuations, \
         and {} off the time of one message alone: larger messages would tell (--sizes)",
        share(hidden),
        share(of_trip)
    )
}

fn undecided(hidden: &Quantity, of_trip: &Quantity, ci: Interval) -> String {
    let lies_across =
        |ci: Interval| [NONE, WHOLE].into_iter().find(|bound| ci.contains(*bound)).map(|bound| (ci, bound));
    let of_trip_ci = of_trip.ci.filter(|ci| ci.lo <= NONE);
    match (lies_across(ci), of_trip_ci.and_then(lies_across)) {
        (Some((ci, bound)), _) => {
            format!("the share of the waiting that goes behind work is {}", across(hidden, ci, bound))
        }
        (None, Some((ci, bound))) => format!(
            "long work takes {} off the waiting without work, and of the time of one message alone {}",
            Percent(hidden.value.unwrap_or(f64::NAN)),
            across(of_trip, ci, bound)
        ),
        (None, None) => "the intervals decide nothing: more launches may tell (--launches)".into(),
    }
}

/// An interval that lies across a bound, and how many launches would make it narrow enough.
fn across(share: &Quantity, ci: Interval, bound: f64) -> String {
    let value = share.value.unwrap_or(f64::NAN);
    // The half-width of an interval falls with the root of the launches.
    let needed = share.launches as f64 * (ci.half_width() / (value - bound)).powi(2);
    let advice = match needed.is_finite() && needed <= LAUNCHES_AT_MOST {
        true => format!(
            "about {:.0} launches would tell (--launches, --max-time)",
            needed.max(share.launches as f64 + 1.0).round()
        ),
        false => "it is so near that more launches may not tell".into(),
    };
    format!(
        "{} [{}, {}], across the bound of {}: {advice}",
        Percent(value),
        Percent(ci.lo),
        Percent(ci.hi),
        Percent(bound)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(lo: f64, hi: f64) -> Quantity {
        Quantity { value: Some(f64::midpoint(lo, hi)), ci: Some([lo, hi].into()), launches: 9 }
    }

    fn hidden(lo: f64, hi: f64) -> Evidence {
        Evidence { hidden: within(lo, hi), ..Evidence::default() }
    }

    #[test]
    fn progress_is_said_where_the_interval_decides() {
        for (lo, hi, expected) in [
            (0.95, 0.99, Some(Progress::ByItself)),
            (0.9, 1.2, Some(Progress::ByItself)),
            (0.85, 0.95, None),
            (0.2, 0.8, Some(Progress::Partly)),
            (0.05, 0.2, None),
            (-0.3, 0.1, Some(Progress::OnlyInCalls)),
            (0.0, 1.0, None),
        ] {
            assert_eq!(judge(&hidden(lo, hi)).ok(), expected, "{lo} to {hi}");
        }
        let without = Quantity { value: Some(0.95), ci: None, launches: 2 };
        let why = judge(&Evidence { hidden: without, ..Evidence::default() }).unwrap_err();
        assert_eq!(why, "2 launches are too few for an interval: use --launches 9 or more");
    }

    #[test]
    fn what_both_directions_disturb_is_not_hidden() {
        // Seen over MPICH: without work both sides copy at once and disturb each other.
        let mut evidence = Evidence { hidden_of_trip: within(-0.02, 0.01), ..hidden(0.031, 0.101) };
        assert_eq!(judge(&evidence), Ok(Progress::OnlyInCalls));
        evidence.hidden = within(0.12, 0.2);
        assert_eq!(judge(&evidence), Ok(Progress::OnlyInCalls));
        evidence.hidden_of_trip = within(0.11, 0.15);
        assert_eq!(judge(&evidence), Ok(Progress::Partly));
        evidence.hidden_of_trip = within(0.05, 0.15);
        let why = judge(&evidence).unwrap_err();
        assert!(why.contains("16 % off the waiting") && why.contains("10 % [5 %, 15 %]"), "{why}");
    }

    #[test]
    fn what_fluctuates_is_not_the_whole_of_the_waiting() {
        // A seed of the random truths: overheads of 14 µs that vary by a tenth, around a message of 0.4 µs.
        let small = Evidence {
            hidden_of_trip: within(0.77, 0.8),
            saved_share: within(0.06, 0.08),
            ..hidden(0.92, 0.93)
        };
        let why = judge(&small).unwrap_err();
        assert!(why.contains("fluctuations") && why.contains("larger messages"), "{why}");
        assert_eq!(judge(&Evidence { hidden_of_trip: within(0.85, 0.95), ..small }), Ok(Progress::ByItself));
        // A gap that is longer than the message takes is no fluctuation.
        assert_eq!(judge(&Evidence { saved_share: within(0.3, 0.4), ..small }), Ok(Progress::ByItself));
    }

    #[test]
    fn a_message_that_is_hardly_more_than_its_posting_tells_nothing() {
        // Seeds of the random truths: overheads of 5 and 17 µs, messages that take 0.1 and 0.2 µs besides.
        let small = Evidence {
            alone_share: within(0.01, 0.04),
            hidden_of_trip: within(0.15, 0.5),
            ..hidden(0.12, 0.41)
        };
        let why = judge(&small).unwrap_err();
        assert!(why.contains("all but 2.5 %") && why.contains("larger messages"), "{why}");
        assert!(judge(&Evidence { hidden_of_trip: within(0.91, 0.97), ..hidden(0.94, 0.95) }).is_ok());
        assert!(judge(&Evidence { hidden: within(0.94, 0.95), ..small }).is_err());
        // Nothing hidden is seen all the same, and so is a gap that is longer than the posting.
        assert_eq!(judge(&Evidence { hidden: within(-0.1, 0.05), ..small }), Ok(Progress::OnlyInCalls));
        assert_eq!(judge(&Evidence { saved_share: within(0.3, 0.4), ..small }), Ok(Progress::Partly));
    }

    #[test]
    fn where_the_receive_is_all_that_is_left_the_size_tells() {
        let receive = Evidence {
            hidden_of_trip: within(0.0, 0.02),
            receive_ns: within(900.0, 1100.0),
            receive_share: within(0.9, 1.1),
            ..hidden(0.0, 0.02)
        };
        let why = judge(&receive).unwrap_err();
        assert!(why.contains("1 µs are left to wait for") && why.contains("larger messages"), "{why}");
        // A call that copies the data is where they move.
        let copies = Evidence { data_share: within(0.8, 0.9), ..receive };
        assert_eq!(judge(&copies), Ok(Progress::OnlyInCalls));
        let offloaded = Evidence { hidden_of_trip: within(0.05, 0.08), ..copies };
        assert!(judge(&offloaded).is_err());
        // Where the sender's gap is what is waited for without work, most of a cycle is saved.
        let gap = Evidence { hidden: within(0.4, 0.5), saved_share: within(0.3, 0.4), ..receive };
        assert_eq!(judge(&gap), Ok(Progress::Partly));
        let waits = Evidence { receive_share: within(0.3, 0.5), ..receive };
        assert_eq!(judge(&waits), Ok(Progress::OnlyInCalls));
    }

    #[test]
    fn a_reason_says_what_would_tell() {
        let why = judge(&hidden(0.05, 0.2)).unwrap_err();
        assert_eq!(
            why,
            "the share of the waiting that goes behind work is 12.5 % [5 %, 20 %], across the bound of 10 %: \
             about 81 launches would tell (--launches, --max-time)"
        );
        assert!(judge(&hidden(0.0, 0.2)).unwrap_err().contains("more launches may not tell"));
    }
}
