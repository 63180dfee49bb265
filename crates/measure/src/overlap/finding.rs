//! The meaning of the figures of a size, by the predicates of docs/overlap.md.
//!
//! * Long work: all points of post-work-wait whose work is at least twice a cycle without work.
//! * Hidden share: the waiting that long work removes, less the posting that it adds, over the waiting
//!   without work. A layer that moves data only when the next message is posted hides nothing. If
//!   post-work-wait was not run, the longest work of the search for the most free work takes the place of
//!   long work, if it is long.
//! * A launch without long work has no share: its cycles without work were slower than those that chose the
//!   intervals.
//! * Progress: [`super::progress`].
//! * Payers: a payer's cost counts if its interval, as a share of the cycle without work, lies above
//!   [`PAYS`]. It does not count if the interval lies below.

use super::data::{OverlapLaunch, PwwBatch, TripData};
use super::launches::{OverlapLaunches, over_batches};
use super::progress::{NONE, ProgressEvidence, judge};
use super::record::{Finding, Payer, Progress, Quantity, SizeOverlap};
use crate::show::{Percent, Time};
use crate::stats::median;

/// A cost counts if it is at least this share of a cycle.
pub(super) const PAYS: f64 = 0.05;
/// Work is long if it takes at least this many cycles without work.
const LONG: f64 = 2.0;

/// Returns an empty finding, for a size without figures.
pub(super) fn unknown() -> Finding {
    Finding {
        progress: Progress::CannotTell,
        hidden_share: Quantity::default(),
        receive_ns: Quantity::default(),
        cycle_ns: Quantity::default(),
        calls_ns: Quantity::default(),
        stolen_ns: Quantity::default(),
        others_ns: Quantity::default(),
        payers: Vec::new(),
        undecided: Vec::new(),
        reason: None,
        text: String::new(),
    }
}

/// The costs of cycles with long work and of a cycle without work, in one launch.
#[derive(Clone, Copy, Debug)]
struct Costs {
    cycle: f64,
    hidden: f64,
    /// The waiting that long work removes, as a share of the cycle.
    saved: f64,
    /// The waiting after long work, with the posting that work adds.
    left: f64,
    /// The time to post without work.
    post: f64,
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
        let post = over_batches(none, |batch| batch.post_ns);
        // Posting may become shorter, because interruptions of posting without work fall into long work.
        let added = (over_long(|batch| batch.post_ns) - post).max(0.0);
        let left = over_long(|batch| batch.wait_ns) + added;
        Some(Self {
            cycle,
            hidden: (waiting - left) / waiting,
            saved: (waiting - left) / cycle,
            left,
            post,
            calls: over_long(PwwBatch::calls_ns),
            stolen: over_long(|batch| batch.work_ns - batch.alone_ns),
            others: over_long(|batch| batch.others_ns.unwrap_or(f64::NAN)),
        })
    }

    /// Computes the same costs from the search for the most free work, which begins with long work.
    /// The search does not show which side pays the processor time.
    fn of_search(launch: &OverlapLaunch, at: usize) -> Option<Self> {
        let knee = launch.sizes[at].knee.as_ref()?;
        let longest = knee.looks.iter().max_by(|a, b| a.work_ns.total_cmp(&b.work_ns))?;
        let cycle = knee.base_ns;
        let waiting = median(knee.looks.iter().filter_map(|look| look.base_wait_ns));
        // Records of earlier versions do not have the posting.
        let base_post = median(knee.looks.iter().filter_map(|look| look.base_post_ns));
        let added = longest.post_ns.map_or(0.0, |post_ns| (post_ns - base_post).max(0.0));
        let unknown = f64::NAN;
        let left = match longest.work_ns >= LONG * cycle {
            true => longest.wait_ns.unwrap_or(unknown) + added,
            false => unknown,
        };
        let (hidden, saved) = match longest.wait_ns {
            Some(_) => ((waiting - left) / waiting, (waiting - left) / cycle),
            // Records of earlier versions do not have the waiting.
            None => (knee.free_ns / cycle, unknown),
        };
        let post = cycle - waiting;
        Some(Self { cycle, hidden, saved, left, post, calls: unknown, stolen: unknown, others: unknown })
    }

    /// Returns the share of `alone_ns`, less posting, that long work removes. `alone_ns` is the time of the
    /// messages of a cycle alone.
    fn hidden_of_trip(&self, alone_ns: f64) -> f64 {
        let alone = alone_ns - self.post;
        if alone > 0.0 { 1.0 - self.left / alone } else { f64::NAN }
    }

    /// Returns the posting and the waiting for one of the `batch` messages of a cycle, on average.
    fn of_one_message(&self, batch: usize) -> Self {
        let batch = batch as f64;
        Self { post: self.post / batch, left: self.left / batch, ..*self }
    }
}

/// Returns the time of the messages of a cycle alone, in one direction: that of the first one, and for each
/// further one the time per message of a row. `at` is the index of the size among those of round trips.
fn batch_alone_ns(launch: &OverlapLaunch, at: usize) -> f64 {
    let TripData { half_rtt_ns, per_message_ns, .. } = &launch.trips[at];
    let first_ns = median(half_rtt_ns.iter().copied());
    match launch.shape.batch {
        1 => first_ns,
        batch => first_ns + (batch - 1) as f64 * median(per_message_ns.iter().copied()),
    }
}

/// Returns the evidence about progress at the index `at`, from the costs of each launch.
fn evidence(
    launches: &OverlapLaunches<'_>,
    at: usize,
    costs: impl Fn(&OverlapLaunch) -> Option<Costs>,
) -> ProgressEvidence {
    let size_bytes = launches.data[0].shape.sizes[at].size_bytes;
    let over = |of: &dyn Fn(&OverlapLaunch, &Costs) -> f64| {
        launches.quantity(|launch| costs(launch).map_or(f64::NAN, |costs| of(launch, &costs)))
    };
    let trip = |launch: &OverlapLaunch, nth: usize| median(launch.trips[nth].half_rtt_ns.iter().copied());
    let own = launches.data[0].trips.iter().position(|trip| trip.size_bytes == size_bytes);
    let of_size = |launch: &OverlapLaunch| own.map_or(f64::NAN, |nth| trip(launch, nth));
    let of_batch = |launch: &OverlapLaunch| own.map_or(f64::NAN, |nth| batch_alone_ns(launch, nth));
    let batch = launches.data[0].shape.batch;
    let receive = |launch: &OverlapLaunch| median(launch.sizes[at].receive_ns.iter().copied());
    ProgressEvidence {
        launches: launches.data.len(),
        hidden: over(&|_, costs| costs.hidden),
        batch,
        hidden_of_trip: over(&|launch, costs| costs.hidden_of_trip(of_batch(launch))),
        hidden_of_message: over(&|launch, costs| costs.of_one_message(batch).hidden_of_trip(of_size(launch))),
        alone_share: over(&|launch, costs| 1.0 - costs.post / of_batch(launch)),
        saved_share: over(&|_, costs| costs.saved),
        receive_ns: launches.quantity(receive),
        receive_share: over(&|launch, costs| receive(launch) / costs.of_one_message(batch).left),
        data_share: over(&|launch, costs| {
            let costs = costs.of_one_message(batch);
            (of_size(launch) - costs.post - trip(launch, 0)) / costs.left
        }),
    }
}

/// Returns the finding about the size at the index `at`.
pub(super) fn of(launches: &OverlapLaunches<'_>, at: usize, size: &SizeOverlap) -> Finding {
    let cost = |of: fn(&Costs) -> f64| {
        launches.quantity(|launch| Costs::of(launch, at).map_or(f64::NAN, |costs| of(&costs)))
    };
    let evidence = match size.pww.is_empty() {
        false => evidence(launches, at, |launch| Costs::of(launch, at)),
        true => evidence(launches, at, |launch| Costs::of_search(launch, at)),
    };
    let mut finding = Finding {
        hidden_share: evidence.hidden,
        receive_ns: evidence.receive_ns,
        cycle_ns: cost(|costs| costs.cycle),
        calls_ns: cost(|costs| costs.calls),
        stolen_ns: cost(|costs| costs.stolen),
        others_ns: cost(|costs| costs.others),
        ..unknown()
    };
    if size.pww.is_empty()
        && let Some(free) = &size.free
    {
        finding.cycle_ns = free.cycle_ns;
    }
    match judge(&evidence) {
        Ok(progress) => finding.progress = progress,
        Err(_) if size.pww.is_empty() && size.free.is_none() => {
            finding.reason = Some("the polling method alone does not tell: add --method pww".into());
        }
        Err(why) => finding.reason = Some(why),
    }
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
            // Without work both sides wait for each other's fluctuations, too.
            let is_of_fluctuations = finding.hidden_share.value.is_some_and(|share| share > NONE);
            let why = if is_of_fluctuations { ", which is less than fluctuations add to it" } else { "" };
            format!(
                "messages make progress inside calls only: no overlap, {share} of the waiting goes behind work{why}"
            )
        }
        _ => {
            let why = finding.reason.as_ref().map_or(String::new(), |why| format!(", because {why}"));
            format!("the data do not tell whether messages make progress without being called{why}")
        }
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
            "the time of a cycle, {} without work, is paid by {}",
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

/// Returns the payers in words, with their costs.
fn listed(finding: &Finding, payers: &[Payer]) -> String {
    let paid = |payer: &Payer| {
        let (who, ns) = match payer {
            Payer::Calls => ("inside the calls", finding.calls_ns.value),
            Payer::Stolen => ("out of its work", finding.stolen_ns.value),
            Payer::Others => ("another thread of its process", finding.others_ns.value),
        };
        let is_shared = *payer == Payer::Others && payers.first() != Some(&Payer::Others);
        let maybe = if is_shared { ", which the others may contain" } else { "" };
        format!("{who} ({}{maybe})", Time(ns.unwrap_or(f64::NAN)))
    };
    let worker = if payers.first() == Some(&Payer::Others) { "" } else { "the worker " };
    format!("{worker}{}", payers.iter().map(paid).collect::<Vec<_>>().join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap::data::{FreeWork, OverlapSizeData, WorkTrial};

    fn within(lo: f64, hi: f64) -> Quantity {
        Quantity { value: Some(f64::midpoint(lo, hi)), ci: Some([lo, hi].into()), launches: 9 }
    }

    /// A launch that searches with one trial of this work, whose posts take this long.
    fn searched(work_ns: f64, post_ns: Option<f64>) -> OverlapLaunch {
        let look = WorkTrial {
            work_ns,
            cycle_ns: 35e3,
            base_ns: 10e3,
            wait_ns: Some(1e3),
            base_wait_ns: Some(9e3),
            post_ns,
            base_post_ns: post_ns.map(|_| 1e3),
        };
        let knee = FreeWork { looks: vec![look], base_ns: 10e3, ..FreeWork::default() };
        let size = OverlapSizeData { knee: Some(knee), ..OverlapSizeData::default() };
        OverlapLaunch { sizes: vec![size], ..OverlapLaunch::default() }
    }

    #[test]
    fn a_layer_that_moves_data_as_it_posts_has_hidden_nothing() {
        let hidden = |post_ns| Costs::of_search(&searched(25e3, post_ns), 0).unwrap().hidden;
        assert_eq!(hidden(Some(9e3)), 0.0);
        assert_eq!([hidden(Some(1e3)), hidden(Some(0.5e3)), hidden(None)], [8.0 / 9.0; 3]);
    }

    #[test]
    fn work_of_less_than_two_cycles_shows_nothing() {
        let hidden = |work_ns| Costs::of_search(&searched(work_ns, Some(1e3)), 0).unwrap().hidden;
        assert!(hidden(19e3).is_nan() && hidden(20e3) > 0.8);
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
            "the time of a cycle, 10 µs without work, is paid by the worker inside the calls (2 µs); \
             what other threads pay is not known"
        );
    }
}
