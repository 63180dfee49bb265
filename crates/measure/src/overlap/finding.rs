//! What the figures of a size mean, by a predicate that docs/overlap.md writes down.
//!
//! * Long work: that of all points of post-work-wait at which the work asked for is at least
//!   twice a cycle without work.
//! * Share of the waiting that goes behind work: what long work takes off the waiting, less what
//!   it adds to posting, over the waiting without work. A layer that moves what is there when the
//!   next message is posted has hidden nothing. Where post-work-wait was not run, the most work
//!   that is free as a share of the cycle.
//! * Progress is made without being called where the interval of that share lies above
//!   [`WHOLE`], only inside calls where it lies below [`NONE`], partly where it lies between.
//! * Somebody pays where the interval of what they pay, as a share of the cycle without work,
//!   lies above [`PAYS`]; they do not where it lies below.

use super::data::{OverlapLaunch, PwwBatch};
use super::extract::{Launches, over_batches};
use super::record::{Finding, Payer, Progress, Quantity, SizeOverlap};
use crate::show::{Percent, Time};
use crate::stats::median;

/// From this share on all of the waiting goes behind work.
pub(super) const WHOLE: f64 = 0.9;
/// Up to this share none of it does.
pub(super) const NONE: f64 = 0.1;
/// From this share of a cycle on somebody pays.
pub(super) const PAYS: f64 = 0.05;
/// Work is long from so many cycles without work on.
const LONG: f64 = 2.0;

/// What stands where nothing was read yet.
pub(super) fn unknown() -> Finding {
    Finding {
        progress: Progress::CannotTell,
        hidden_share: Quantity::default(),
        cycle_ns: Quantity::default(),
        calls_ns: Quantity::default(),
        stolen_ns: Quantity::default(),
        others_ns: Quantity::default(),
        payers: Vec::new(),
        undecided: Vec::new(),
        text: String::new(),
    }
}

/// What a launch says of cycles with long work, and of one without.
#[derive(Clone, Copy, Debug)]
struct Costs {
    cycle: f64,
    hidden: f64,
    calls: f64,
    stolen: f64,
    others: f64,
}

impl Costs {
    fn of(launch: &OverlapLaunch, at: usize) -> Option<Self> {
        let shape = &launch.shape.sizes[at].pww;
        let batches = &launch.sizes[at].pww;
        let none = batches.first()?;
        let cycle = over_batches(none, PwwBatch::cycle_ns);
        let is_long = |nth: &usize| shape[*nth].asked_ns >= LONG * cycle;
        let long: Vec<usize> = (0..batches.len()).filter(is_long).collect();
        let over_long =
            |of: fn(&PwwBatch) -> f64| median(long.iter().map(|&nth| over_batches(&batches[nth], of)));
        let waiting = over_batches(none, |batch| batch.wait_ns);
        let added = over_long(|batch| batch.post_ns) - over_batches(none, |batch| batch.post_ns);
        Some(Self {
            cycle,
            // Posting may become shorter: what interrupts it without work interrupts long work.
            hidden: (waiting - over_long(|batch| batch.wait_ns) - added.max(0.0)) / waiting,
            calls: over_long(PwwBatch::calls_ns),
            stolen: over_long(|batch| batch.work_ns - batch.alone_ns),
            others: over_long(|batch| batch.others_ns.unwrap_or(f64::NAN)),
        })
    }
}

/// What the launches say about the size at the index `at`.
pub(super) fn of(launches: &Launches<'_>, at: usize, size: &SizeOverlap) -> Finding {
    let cost = |of: fn(&Costs) -> f64| {
        launches.quantity(|launch| Costs::of(launch, at).map_or(f64::NAN, |costs| of(&costs)))
    };
    let mut finding = Finding {
        hidden_share: cost(|costs| costs.hidden),
        cycle_ns: cost(|costs| costs.cycle),
        calls_ns: cost(|costs| costs.calls),
        stolen_ns: cost(|costs| costs.stolen),
        others_ns: cost(|costs| costs.others),
        ..unknown()
    };
    if size.pww.is_empty()
        && let Some(free) = &size.free
    {
        (finding.hidden_share, finding.cycle_ns) = (free.share, free.cycle_ns);
    }
    finding.progress = progress(&finding.hidden_share);
    let shares = [
        (Payer::Calls, cost(|costs| costs.calls / costs.cycle)),
        (Payer::Stolen, cost(|costs| costs.stolen / costs.cycle)),
        (Payer::Others, cost(|costs| costs.others / costs.cycle)),
    ];
    for (payer, share) in shares {
        match pays(&share) {
            Some(true) => finding.payers.push(payer),
            Some(false) => {}
            None => finding.undecided.push(payer),
        }
    }
    finding.text = text(&finding);
    finding
}

fn progress(hidden: &Quantity) -> Progress {
    match hidden.ci {
        Some(ci) if ci.lo >= WHOLE => Progress::ByItself,
        Some(ci) if ci.hi <= NONE => Progress::OnlyInCalls,
        Some(ci) if ci.lo > NONE && ci.hi < WHOLE => Progress::Partly,
        _ => Progress::CannotTell,
    }
}

fn pays(share: &Quantity) -> Option<bool> {
    match share.ci? {
        ci if ci.lo >= PAYS => Some(true),
        ci if ci.hi < PAYS => Some(false),
        _ => None,
    }
}

fn text(finding: &Finding) -> String {
    let share = finding.hidden_share.value.map(|share| Percent(share).to_string());
    let progress = match (finding.progress, share) {
        (Progress::ByItself, Some(share)) => {
            format!("messages make progress without being called, {share} of the waiting goes behind work")
        }
        (Progress::Partly, Some(share)) => {
            format!(
                "messages make some progress without being called, {share} of the waiting goes behind work"
            )
        }
        (Progress::OnlyInCalls, Some(share)) => {
            format!("messages make progress inside calls only, {share} of the waiting goes behind work")
        }
        _ => "the data do not tell whether messages make progress without being called".into(),
    };
    format!("{progress}; {}", who_pays(finding))
}

fn who_pays(finding: &Finding) -> String {
    let Some(cycle_ns) = finding.calls_ns.value.and(finding.cycle_ns.value) else {
        return "who pays processor time was not measured".into();
    };
    let is_unknown = |payer: &Payer| *payer == Payer::Others && finding.others_ns.value.is_none();
    let undecided: Vec<Payer> =
        finding.undecided.iter().copied().filter(|payer| !is_unknown(payer)).collect();
    let mut text = match (&finding.payers[..], &undecided[..]) {
        ([], []) => "nobody pays processor time".into(),
        ([], _) => "who pays processor time is not decided".into(),
        (payers, _) => format!(
            "the processor time of a cycle, {} without work, is paid by {}",
            Time(cycle_ns),
            listed(finding, payers)
        ),
    };
    if !undecided.is_empty() {
        text.push_str(&format!("; not decided: {}", listed(finding, &undecided)));
    }
    if finding.undecided.iter().any(is_unknown) {
        text.push_str("; what other threads pay is not known");
    }
    text
}

/// Who pays, and how much.
fn listed(finding: &Finding, payers: &[Payer]) -> String {
    let paid = |payer: &Payer| {
        let (who, ns) = match payer {
            Payer::Calls => ("inside the calls", finding.calls_ns.value),
            Payer::Stolen => ("out of its work", finding.stolen_ns.value),
            Payer::Others => ("another thread of its process", finding.others_ns.value),
        };
        format!("{who} ({})", Time(ns.unwrap_or(f64::NAN)))
    };
    let worker = if payers.first() == Some(&Payer::Others) { "" } else { "the worker " };
    format!("{worker}{}", payers.iter().map(paid).collect::<Vec<_>>().join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(lo: f64, hi: f64) -> Quantity {
        Quantity { value: Some(f64::midpoint(lo, hi)), ci: Some([lo, hi].into()), launches: 9 }
    }

    #[test]
    fn progress_is_said_where_the_interval_decides() {
        for (lo, hi, expected) in [
            (0.95, 0.99, Progress::ByItself),
            (0.9, 1.2, Progress::ByItself),
            (0.85, 0.95, Progress::CannotTell),
            (0.2, 0.8, Progress::Partly),
            (0.05, 0.2, Progress::CannotTell),
            (-0.3, 0.1, Progress::OnlyInCalls),
            (0.0, 1.0, Progress::CannotTell),
        ] {
            assert_eq!(progress(&within(lo, hi)), expected, "{lo} to {hi}");
        }
        let without = Quantity { value: Some(0.95), ci: None, launches: 2 };
        assert_eq!(progress(&without), Progress::CannotTell);
    }

    #[test]
    fn who_pays_is_said_where_intervals_decide() {
        assert_eq!(pays(&within(0.05, 0.06)), Some(true));
        assert_eq!(pays(&within(-0.5, 0.04)), Some(false));
        assert_eq!(pays(&within(0.04, 0.06)), None);
        let known = Finding { cycle_ns: within(9e3, 11e3), calls_ns: within(1e3, 3e3), ..unknown() };
        assert_eq!(who_pays(&known), "nobody pays processor time");
        assert_eq!(who_pays(&unknown()), "who pays processor time was not measured");
        let both = Finding { payers: vec![Payer::Calls, Payer::Stolen], ..known.clone() };
        assert!(who_pays(&both).contains("by the worker inside the calls (2 µs) and out of its work ("));
        let unseen = Finding { payers: vec![Payer::Calls], undecided: vec![Payer::Others], ..known };
        assert_eq!(
            who_pays(&unseen),
            "the processor time of a cycle, 10 µs without work, is paid by the worker inside the calls (2 µs); \
             what other threads pay is not known"
        );
    }
}
