//! Decides whether messages make progress while no call is made. The predicate on intervals is described in
//! docs/overlap.md.
//!
//! * The hidden share is the share of the waiting without work that long work hides.
//! * Without work both directions disturb each other, and each side waits for the fluctuations of the
//!   other. That waiting is longer than a message needs, and long work removes the difference. The hidden
//!   share is therefore also computed of the time of the messages of a cycle alone: the half round trip, and
//!   the time per message of a row for each further message, less posting.
//! * Messages make progress by themselves if the first share lies above [`WHOLE`], and partly if it lies
//!   between [`NONE`] and [`WHOLE`]. In addition the second share must lie above [`NONE`] (for progress by
//!   themselves, not below [`WHOLE`]). Alternatively work must remove more of a cycle than fluctuations add
//!   to it ([`FLUCTUATION`]). Nothing is hidden if one of the two shares lies below [`NONE`].
//! * If a message takes hardly any time besides its posting ([`TOO_LITTLE`]), only the alternative counts.
//! * Nothing hidden means progress inside calls only, provided that there was something to hide. The
//!   receive by itself happens inside a call on every layer. If it is all of the waiting, only data that
//!   move inside it prove progress inside calls: a time that grows with the size, and of which nothing is
//!   hidden. That comparison is of one message of a batch, on average. In a whole batch a message moves while
//!   earlier ones are received, so that the receives alone take nearly as long as the messages.

use super::record::{Progress, Quantity};
use crate::show::{Percent, Time, counted};
use crate::stats::Interval;

/// From this share on, all of the waiting is hidden.
pub(super) const WHOLE: f64 = 0.9;
/// Up to this share, none of the waiting is hidden.
pub(super) const NONE: f64 = 0.1;
/// Both sides together fluctuate by less than this share of a cycle. The mean of the longer of two times is
/// their mean plus 0.56 standard deviations. Each deviation is at most a quarter of a cycle, and rarely are
/// both that large.
const FLUCTUATION: f64 = 0.25;
/// If a message's time besides posting is at most this share of its whole time, it is too little for a
/// decision. An error of 1 % in either time is then 10 % of the time that could be hidden.
const TOO_LITTLE: f64 = 0.1;
/// From this share of the waiting after long work on, the receive by itself may be all of that waiting.
const RECEIVE_ALONE: f64 = 0.8;
/// From this share of the waiting after long work on, the waiting is for data.
const DATA: f64 = 0.5;
/// Of data that move inside the call, at most this share is hidden.
const LITTLE: f64 = 0.04;
/// The largest number of launches that the advice asks for.
const LAUNCHES_AT_MOST: f64 = 1000.0;

/// The evidence from the launches about messages of one size.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProgressEvidence {
    /// Number of launches, with a value or without.
    pub(super) launches: usize,
    /// Number of messages each way in a cycle.
    pub(super) batch: usize,
    /// Share of the waiting without work that long work hides.
    pub(super) hidden: Quantity,
    /// The hidden part as a share of the time of the messages of a cycle alone, less posting.
    pub(super) hidden_of_trip: Quantity,
    /// The same share for one message of a cycle, on average.
    pub(super) hidden_of_message: Quantity,
    /// The time of the messages of a cycle alone, less posting, as a share of their whole time.
    pub(super) alone_share: Quantity,
    /// The waiting that long work removes, as a share of a cycle.
    pub(super) saved_share: Quantity,
    /// The duration of the receive of one message by itself.
    pub(super) receive_ns: Quantity,
    /// The duration of these receives as a share of the waiting after long work.
    pub(super) receive_share: Quantity,
    /// The growth of one message's time since the smallest size, as a share of the waiting after long work for
    /// one message, on average.
    pub(super) data_share: Quantity,
}

/// Returns how messages make progress, or the reason why the evidence does not decide, with advice.
pub(super) fn judge(evidence: &ProgressEvidence) -> Result<Progress, String> {
    let ProgressEvidence { hidden, hidden_of_trip: of_trip, .. } = evidence;
    let Some(ci) = hidden.ci else { return Err(too_few(evidence)) };
    if ci.lo > NONE && is_too_little(evidence) {
        return Err(too_little(evidence));
    }
    if ci.lo > NONE && is_no_fluctuation(evidence) {
        if ci.lo >= WHOLE {
            return match is_whole_of_fluctuation(evidence) {
                true => Err(fluctuating(evidence)),
                false => Ok(Progress::ByItself),
            };
        }
        if ci.hi < WHOLE {
            return Ok(Progress::Partly);
        }
        return Err(undecided(evidence, ci));
    }
    let is_none = |ci: &Interval| ci.hi <= NONE;
    let is_none_of_trip = !is_short(evidence) && of_trip.ci.as_ref().is_some_and(is_none);
    if is_none(&ci) || is_none_of_trip {
        return match is_receive_alone(evidence) {
            true => Err(nothing_to_hide(evidence)),
            false => Ok(Progress::OnlyInCalls),
        };
    }
    Err(undecided(evidence, ci))
}

fn too_few(evidence: &ProgressEvidence) -> String {
    let with_value = evidence.hidden.launches;
    let are = if with_value == 1 { "is" } else { "are" };
    let without = match evidence.launches.saturating_sub(with_value) {
        0 => String::new(),
        count => format!(
            " ({} had cycles without work so slow that no work was twice as long: is the machine busy?)",
            counted(count, "other", "others")
        ),
    };
    format!(
        "{} with a value {are} too few for an interval{without}: use --launches 9 or more",
        counted(with_value, "launch", "launches")
    )
}

/// Reports that a message takes hardly longer than its posting, and that work removes no more than
/// fluctuations add.
fn is_too_little(evidence: &ProgressEvidence) -> bool {
    is_short(evidence) && !saves_more_than_fluctuations(evidence)
}

/// Reports that a message takes hardly longer than its posting. An error of both times is then a large share of the
/// time besides posting.
fn is_short(evidence: &ProgressEvidence) -> bool {
    evidence.alone_share.ci.is_some_and(|ci| ci.lo <= TOO_LITTLE)
}

/// Reports that work removes more waiting than the fluctuations of both sides have added.
fn is_no_fluctuation(evidence: &ProgressEvidence) -> bool {
    let is_hidden = evidence.hidden_of_trip.ci.is_none_or(|ci| ci.lo > NONE);
    is_hidden || saves_more_than_fluctuations(evidence)
}

fn saves_more_than_fluctuations(evidence: &ProgressEvidence) -> bool {
    evidence.saved_share.ci.is_some_and(|ci| ci.lo > FLUCTUATION)
}

/// Reports that all of the waiting is hidden only because it contains the fluctuations of both sides.
fn is_whole_of_fluctuation(evidence: &ProgressEvidence) -> bool {
    let is_left = evidence.hidden_of_trip.ci.is_some_and(|ci| ci.hi < WHOLE);
    is_left && !saves_more_than_fluctuations(evidence)
}

/// Reports that the receive by itself may be all of the waiting after long work, without waiting for data.
fn is_receive_alone(evidence: &ProgressEvidence) -> bool {
    let is_less = |ci: Interval| ci.hi < RECEIVE_ALONE;
    // Records of earlier versions have no time of the receive: they are judged as those versions did.
    let Some(receive) = evidence.receive_share.ci else { return false };
    let is_of_data = evidence.data_share.ci.is_some_and(|ci| ci.lo >= DATA);
    let is_unhidden = evidence.hidden_of_message.ci.is_some_and(|ci| ci.lo <= LITTLE);
    !(is_less(receive) || (is_of_data && is_unhidden))
}

fn nothing_to_hide(evidence: &ProgressEvidence) -> String {
    let time = |ns: Option<f64>| Time(ns.unwrap_or(f64::NAN));
    let receiving = evidence.receive_ns.value.map(|ns| evidence.batch as f64 * ns);
    let waiting = receiving.zip(evidence.receive_share.value).map(|(ns, share)| ns / share);
    let receive =
        if evidence.batch == 1 { "the receive by itself takes" } else { "the receives by themselves take" };
    format!(
        "after long work {} are left to wait for, and {receive} {}, which no work hides: larger messages \
         would tell (--sizes)",
        time(waiting),
        time(receiving)
    )
}

fn too_little(evidence: &ProgressEvidence) -> String {
    format!(
        "all but {} of {} time is posting, too much to see what work hides of the rest: larger messages \
         would tell (--sizes)",
        Percent(evidence.alone_share.value.unwrap_or(f64::NAN).max(0.0)),
        if evidence.batch == 1 { "a message's" } else { "the messages'" }
    )
}

/// Names the messages of a cycle.
fn messages_of_cycle(evidence: &ProgressEvidence) -> &'static str {
    if evidence.batch == 1 { "one message" } else { "the messages" }
}

fn fluctuating(evidence: &ProgressEvidence) -> String {
    let share = |quantity: &Quantity| Percent(quantity.value.unwrap_or(f64::NAN));
    format!(
        "long work takes {} off the waiting without work, in which each side waits for the other's fluctuations, \
         and {} off the time of {} alone: larger messages would tell (--sizes)",
        share(&evidence.hidden),
        share(&evidence.hidden_of_trip),
        messages_of_cycle(evidence)
    )
}

fn undecided(evidence: &ProgressEvidence, ci: Interval) -> String {
    let ProgressEvidence { hidden, hidden_of_trip: of_trip, .. } = evidence;
    let lies_across =
        |ci: Interval| [NONE, WHOLE].into_iter().find(|bound| ci.contains(*bound)).map(|bound| (ci, bound));
    let of_trip_ci = of_trip.ci.filter(|ci| ci.lo <= NONE);
    match (lies_across(ci), of_trip_ci.and_then(lies_across)) {
        (Some((ci, bound)), _) => {
            format!("the share of the waiting that goes behind work is {}", across(hidden, ci, bound))
        }
        (None, Some((ci, bound))) => format!(
            "long work takes {} off the waiting without work, and of the time of {} alone {}",
            Percent(hidden.value.unwrap_or(f64::NAN)),
            messages_of_cycle(evidence),
            across(of_trip, ci, bound)
        ),
        (None, None) => "the intervals decide nothing: more launches may tell (--launches)".into(),
    }
}

/// Describes an interval that contains a bound, and the number of launches that would make it narrow
/// enough.
fn across(share: &Quantity, ci: Interval, bound: f64) -> String {
    let value = share.value.unwrap_or(f64::NAN);
    // The half-width of an interval falls with the square root of the number of launches.
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

    fn hidden(lo: f64, hi: f64) -> ProgressEvidence {
        ProgressEvidence { batch: 1, hidden: within(lo, hi), ..ProgressEvidence::default() }
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
        let why = judge(&ProgressEvidence { hidden: without, ..ProgressEvidence::default() }).unwrap_err();
        assert_eq!(why, "2 launches with a value are too few for an interval: use --launches 9 or more");
        let slow = ProgressEvidence { launches: 9, hidden: without, ..ProgressEvidence::default() };
        assert!(judge(&slow).unwrap_err().contains("(7 others had cycles without work so slow"));
    }

    #[test]
    fn what_both_directions_disturb_is_not_hidden() {
        // Observed over MPICH: without work both sides copy at once and disturb each other.
        let mut evidence = ProgressEvidence { hidden_of_trip: within(-0.02, 0.01), ..hidden(0.031, 0.101) };
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
        // A seed of the random model parameters: overheads of 14 µs that vary by a tenth, and a message of
        // 0.4 µs.
        let small = ProgressEvidence {
            hidden_of_trip: within(0.77, 0.8),
            saved_share: within(0.06, 0.08),
            ..hidden(0.92, 0.93)
        };
        let why = judge(&small).unwrap_err();
        assert!(why.contains("fluctuations") && why.contains("larger messages"), "{why}");
        assert_eq!(
            judge(&ProgressEvidence { hidden_of_trip: within(0.85, 0.95), ..small }),
            Ok(Progress::ByItself)
        );
        // A gap longer than the time of a message is no fluctuation.
        assert_eq!(
            judge(&ProgressEvidence { saved_share: within(0.3, 0.4), ..small }),
            Ok(Progress::ByItself)
        );
    }

    #[test]
    fn a_message_that_is_hardly_more_than_its_posting_tells_nothing() {
        // Seeds of the random model parameters: overheads of 5 and 17 µs, and messages of 0.1 and 0.2 µs
        // besides.
        let small = ProgressEvidence {
            alone_share: within(0.01, 0.04),
            hidden_of_trip: within(0.15, 0.5),
            ..hidden(0.12, 0.41)
        };
        let why = judge(&small).unwrap_err();
        assert!(why.contains("all but 2.5 %") && why.contains("larger messages"), "{why}");
        assert!(
            judge(&ProgressEvidence { hidden_of_trip: within(0.91, 0.97), ..hidden(0.94, 0.95) }).is_ok()
        );
        assert!(judge(&ProgressEvidence { hidden: within(0.94, 0.95), ..small }).is_err());
        // The data still show nothing hidden, and a gap longer than the posting.
        assert_eq!(
            judge(&ProgressEvidence { hidden: within(-0.1, 0.05), ..small }),
            Ok(Progress::OnlyInCalls)
        );
        assert_eq!(judge(&ProgressEvidence { saved_share: within(0.3, 0.4), ..small }), Ok(Progress::Partly));
        // A share of so short a time does not prove that nothing is hidden either.
        let of_trip =
            ProgressEvidence { hidden: within(-0.1, 0.41), hidden_of_trip: within(-0.9, 0.08), ..small };
        assert!(judge(&of_trip).is_err());
        assert_eq!(
            judge(&ProgressEvidence { alone_share: within(0.3, 0.4), ..of_trip }),
            Ok(Progress::OnlyInCalls)
        );
    }

    #[test]
    fn where_the_receive_is_all_that_is_left_the_size_tells() {
        let receive = ProgressEvidence {
            hidden_of_trip: within(0.0, 0.02),
            hidden_of_message: within(0.0, 0.02),
            receive_ns: within(900.0, 1100.0),
            receive_share: within(0.9, 1.1),
            ..hidden(0.0, 0.02)
        };
        let why = judge(&receive).unwrap_err();
        assert!(why.contains("1 µs are left to wait for") && why.contains("larger messages"), "{why}");
        // If a call copies the data, the data move inside it.
        let copies = ProgressEvidence { data_share: within(0.8, 0.9), ..receive };
        assert_eq!(judge(&copies), Ok(Progress::OnlyInCalls));
        let offloaded = ProgressEvidence { hidden_of_message: within(0.05, 0.08), ..copies };
        assert!(judge(&offloaded).is_err());
        let why = judge(&ProgressEvidence { batch: 4, ..receive }).unwrap_err();
        assert!(why.contains("4 µs are left to wait for, and the receives by themselves take 4 µs"), "{why}");
        // If the waiting without work is for the sender's gap, work saves most of a cycle.
        let gap = ProgressEvidence { hidden: within(0.4, 0.5), saved_share: within(0.3, 0.4), ..receive };
        assert_eq!(judge(&gap), Ok(Progress::Partly));
        // An interval across 90 % leaves open how much is hidden, but something is.
        let across = ProgressEvidence { hidden: within(0.88, 0.93), receive_share: within(0.3, 0.5), ..gap };
        assert!(judge(&across).unwrap_err().contains("across the bound of 90 %"));
        let waits = ProgressEvidence { receive_share: within(0.3, 0.5), ..receive };
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
