//! Compares one result of A with one of B, parameter by parameter.

use super::alike::Alike;
use super::candidates::{self, Candidate};
use super::{Change, Compared, Pair, Setting, Terms, Verdict, differences};
use crate::logp::PLATEAU;
use crate::overlap::FREE_WORK;
use netdyno_measure::record::{Doubt, LayerResult, Status};
use netdyno_measure::stats::{
    Interval, median_interval_of_sorted, quantile_of_sorted, sorted, widening_by_drift,
};
use netdyno_measure::strata::Stratum;
use netdyno_measure::unpaired;

/// The units of figures that are costs, but for [`FREE_WORK`], of which more is better.
const COSTS: [&str; 2] = ["ns", "ns_per_byte"];

/// Compares two results.
pub fn pair(alike: &Alike, interleaved: bool, terms: Terms) -> Pair {
    let Alike { a, b, doubt: unlike } = alike;
    let mut doubts = differences::of_settings(a, b);
    let (in_a, mut in_b) = (candidates::of(a), candidates::of(b));
    let (mut parameters, mut only_in_a) = (Vec::new(), Vec::new());
    // Warnings about parameters, each with the sizes that it concerns.
    let mut of_parameters: Vec<(Doubt, Vec<usize>)> = Vec::new();
    for one in &in_a {
        let like = |other: &Candidate| (&other.name, other.size_bytes) == (&one.name, one.size_bytes);
        let Some(at) = in_b.iter().position(like) else {
            only_in_a.push(one.size_bytes);
            continue;
        };
        let other = in_b.remove(at);
        if one.figure.value.is_none() && other.figure.value.is_none() {
            continue;
        }
        if one.name == PLATEAU && parameters.iter().any(|p| is_measured_g(p, one.size_bytes)) {
            continue;
        }
        let is_alike = unlike.is_none();
        let (compared, warnings) = parameter(one, &other, is_alike, interleaved, terms);
        for doubt in warnings {
            match of_parameters.iter_mut().find(|(other, _)| *other == doubt) {
                Some((_, sizes)) => sizes.push(compared.size_bytes),
                None => of_parameters.push((doubt, vec![compared.size_bytes])),
            }
        }
        parameters.push(compared);
    }
    doubts.extend(of_parameters.into_iter().map(|(doubt, sizes)| at_sizes(doubt, &sizes, &parameters)));
    let only_in_b = in_b.iter().map(|candidate| candidate.size_bytes).collect();
    doubts.extend(differences::of_sizes(only_in_a, only_in_b));
    doubts.extend(unlike.clone());
    doubts.extend(differences::own_doubts(a, b));
    Pair { verb: a.verb().into(), size_bytes: a.size_bytes, a: setting(a), b: setting(b), parameters, doubts }
}

/// Names the sizes that a warning concerns, unless it concerns all at which its parameter is compared.
fn at_sizes(doubt: Doubt, sizes: &[usize], parameters: &[Compared]) -> Doubt {
    let is_same = |of: &&Compared| Some(&*of.parameter) == doubt.about.as_deref();
    if parameters.iter().filter(is_same).count() == sizes.len() {
        return doubt;
    }
    let sizes: Vec<String> = sizes.iter().map(|size| format!("{size} B")).collect();
    Doubt { text: format!("at {}: {}", sizes.join(", "), doubt.text), ..doubt }
}

fn parameter(
    a: &Candidate,
    b: &Candidate,
    is_alike: bool,
    interleaved: bool,
    terms: Terms,
) -> (Compared, Vec<Doubt>) {
    let mut compared = Compared {
        parameter: a.name.to_string(),
        size_bytes: a.size_bytes,
        unit: a.unit.into(),
        a: a.figure,
        b: b.figure,
        ratio: None,
        ratio_ci: None,
        change: Change::Unknown,
        verdict: None,
    };
    let mut doubts = Vec::new();
    if is_alike && is_measured_in_both(&compared) {
        let found = if interleaved {
            paired(&a.launches, &b.launches, terms.confidence)
        } else {
            let (in_a, in_b) = (known(&a.launches), known(&b.launches));
            doubts.extend(differences::of_spread(&a.name, &in_a, &in_b));
            doubts.extend(differences::of_gaps(&a.name, "A", a.launches.len(), in_a.len()));
            doubts.extend(differences::of_gaps(&a.name, "B", b.launches.len(), in_b.len()));
            let drift = widening_by_drift(&in_a).max(widening_by_drift(&in_b));
            unpaired::ratio(&in_b, &in_a, terms.confidence)
                .map(|found| (found.ratio, found.ci.map(|ci| widened_by_share(ci, found.ratio, drift))))
        };
        (compared.ratio, compared.ratio_ci) = found.map_or((None, None), |(ratio, ci)| (Some(ratio), ci));
        match (compared.ratio, compared.ratio_ci) {
            (None, _) => doubts = vec![differences::no_ratio(&a.name, a.unit == "ns_per_byte")],
            (Some(_), None) => doubts.push(differences::too_few(&a.name)),
            (Some(_), Some(_)) => {}
        }
        compared.change = change(compared.ratio_ci);
    }
    compared.verdict = terms.fail_on.map(|limit| verdict(&compared, 1.0 + limit));
    (compared, doubts)
}

/// Widens the interval of a ratio by a factor on the logarithms, on which it was found.
fn widened_by_share(ci: Interval, ratio: f64, factor: f64) -> Interval {
    let wider = |end: f64| ratio * (end / ratio).powf(factor);
    Interval { lo: wider(ci.lo), hi: wider(ci.hi) }
}

fn is_measured_g(compared: &Compared, size_bytes: usize) -> bool {
    compared.parameter == "g" && compared.size_bytes == size_bytes && is_measured_in_both(compared)
}

fn is_measured_in_both(compared: &Compared) -> bool {
    [compared.a, compared.b].iter().all(|figure| figure.status == Status::Measured)
}

fn known(launches: &[Option<f64>]) -> Vec<f64> {
    launches.iter().copied().flatten().collect()
}

/// Returns the median ratio over the paired launches, in their order, and its interval, as in the record's own ratios.
fn paired(a: &[Option<f64>], b: &[Option<f64>], confidence: f64) -> Option<(f64, Option<Interval>)> {
    let pairs =
        a.iter().zip(b).map(|(a, b)| Some((*b)? / (*a)?).filter(|_| *a > Some(0.0) && *b > Some(0.0)));
    let in_order = pairs.collect::<Option<Vec<f64>>>()?;
    let ratios = sorted(in_order.iter().copied());
    if ratios.is_empty() {
        return None;
    }
    let ratio = quantile_of_sorted(&ratios, 0.5);
    let ci = median_interval_of_sorted(&ratios, confidence);
    Some((ratio, ci.map(|ci| ci.widened(ratio, widening_by_drift(&in_order)))))
}

fn change(ci: Option<Interval>) -> Change {
    match ci {
        None => Change::Unknown,
        Some(ci) if ci.lo > 1.0 => Change::Larger,
        Some(ci) if ci.hi < 1.0 => Change::Smaller,
        Some(_) => Change::Unclear,
    }
}

/// Judges a ratio against a limit. Times are costs, so that larger is worse. What is no cost is not judged.
fn verdict(compared: &Compared, limit: f64) -> Verdict {
    match (compared.ratio, compared.ratio_ci) {
        (None, _) => Verdict::NotJudged,
        _ if [PLATEAU, FREE_WORK].contains(&&*compared.parameter) => Verdict::NotJudged,
        _ if !COSTS.contains(&&*compared.unit) => Verdict::NotJudged,
        (Some(_), None) => Verdict::Undecided,
        (Some(_), Some(ci)) if ci.lo > limit => Verdict::Fail,
        (Some(_), Some(ci)) if ci.hi < limit => Verdict::Pass,
        (Some(_), Some(_)) => Verdict::Undecided,
    }
}

fn setting(result: &LayerResult) -> Setting {
    Setting {
        layer: result.layer.clone(),
        label: result.label.clone(),
        wait: result.wait.clone(),
        cpus: result.cpus.clone(),
        distance: result.distance.clone(),
        faults: result.faults.clone(),
        dials: result.dials.clone(),
        profile: result.profile.clone(),
        launches: result.launches(),
        stratum: result.headline().map(Stratum::in_words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_measure::record::Status;

    fn judged(ci: Option<[f64; 2]>, limit: f64) -> Verdict {
        judged_in("ns", ci, limit)
    }

    fn judged_in(unit: &str, ci: Option<[f64; 2]>, limit: f64) -> Verdict {
        let figure =
            super::super::SideFigure { status: Status::Measured, value: Some(1.0), ci: None, launches: 9 };
        let compared = Compared {
            parameter: "rtt".into(),
            size_bytes: 32,
            unit: unit.into(),
            a: figure,
            b: figure,
            ratio: Some(1.0),
            ratio_ci: ci.map(Interval::from),
            change: change(ci.map(Interval::from)),
            verdict: None,
        };
        verdict(&compared, limit)
    }

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        assert_eq!(judged(Some([1.06, 1.2]), 1.05), Verdict::Fail);
        assert_eq!(judged(Some([1.04, 1.2]), 1.05), Verdict::Undecided);
        assert_eq!(judged(Some([1.05, 1.2]), 1.05), Verdict::Undecided);
        assert_eq!(judged(Some([1.01, 1.04]), 1.05), Verdict::Pass);
        assert_eq!(judged(Some([0.5, 0.6]), 1.0), Verdict::Pass);
        assert_eq!(judged(None, 1.05), Verdict::Undecided);
    }

    #[test]
    fn a_drift_within_a_run_widens_the_interval_by_its_share() {
        let wider = widened_by_share(Interval { lo: 0.5, hi: 2.0 }, 1.0, 2.0);
        assert!((wider.lo - 0.25).abs() < 1e-9 && (wider.hi - 4.0).abs() < 1e-9, "{wider:?}");
        let same = widened_by_share(Interval { lo: 0.9, hi: 1.3 }, 1.1, 1.0);
        assert!((same.lo - 0.9).abs() < 1e-9 && (same.hi - 1.3).abs() < 1e-9, "{same:?}");
    }

    #[test]
    fn a_share_is_no_cost() {
        assert_eq!(judged_in("share", Some([1.06, 1.2]), 1.05), Verdict::NotJudged);
        assert_eq!(judged_in("ns_per_byte", Some([1.06, 1.2]), 1.05), Verdict::Fail);
    }

    #[test]
    fn ratios_that_drift_say_less() {
        let drifting: Vec<Option<f64>> =
            (0..28).map(|nth| Some(1.1 + 0.05 * (f64::from(nth) / 4.0).sin())).collect();
        let mut mixed = drifting.clone();
        fastrand::Rng::with_seed(1).shuffle(&mut mixed);
        let width = |b: &[Option<f64>]| paired(&[Some(1.0); 28], b, 0.95).unwrap().1.unwrap().half_width();
        assert!(width(&drifting) > 2.5 * width(&mixed));
    }

    #[test]
    fn pairs_are_of_launches_that_both_have_a_positive_value() {
        let launches = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        let (ratio, ci) =
            paired(&launches(&[1.0; 6]), &launches(&[2.0, 3.0, 2.0, 2.0, 1.0, 2.0]), 0.95).unwrap();
        assert_eq!((ratio, ci), (2.0, Some(Interval { lo: 1.0, hi: 3.0 })));
        assert_eq!(paired(&launches(&[1.0, 0.0]), &launches(&[1.0, 1.0]), 0.95), None);
        assert_eq!(paired(&[Some(1.0), None], &launches(&[1.0, 1.0]), 0.95), None);
        assert_eq!(paired(&[], &[], 0.95), None);
    }
}
