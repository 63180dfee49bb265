//! Evaluates a layer's launches stratum by stratum (`netdyno_measure::strata`), for any verb.

use crate::campaign::method::{Method, Terms};
use netdyno_measure::reading::Reading;
use netdyno_measure::record::Found;
use netdyno_measure::strata::{Place, Probe, Strata, Stratum, bounce, doubts, pace_ns, stolen_share};
use netdyno_measure::task::Data;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The evaluation of a layer: of the headline stratum, and of all strata.
pub struct Stratified {
    /// The evaluation of the headline launches.
    pub reading: Reading<Found>,
    /// The strata, from near to far; empty if the processors were not probed.
    pub strata: Vec<Stratum>,
}

/// Returns the launches of the headline stratum.
pub fn headline<'a>(
    method: &dyn Method,
    data: &'a [Data],
    probes: &[Probe],
    strata: &Strata,
) -> Cow<'a, [Data]> {
    let places = places(probes, strata);
    let headline = strata.headline(&places);
    if !method.is_stratified() || places.iter().all(|&place| place == headline) {
        return Cow::Borrowed(data);
    }
    let of_headline = data.iter().zip(&places).filter(|(_, place)| **place == headline);
    Cow::Owned(of_headline.map(|(data, _)| data.clone()).collect())
}

/// Evaluates all launches of a layer, each stratum by itself. Returns `None` if the headline stratum has no
/// usable data.
pub fn read(
    method: &dyn Method,
    data: Vec<Data>,
    probes: &[Probe],
    strata: &Strata,
    terms: &Terms,
) -> Option<Stratified> {
    if probes.is_empty() || !method.is_stratified() {
        return Some(Stratified { reading: method.read(&data, terms)?, strata: Vec::new() });
    }
    let places = places(probes, strata);
    let headline = strata.headline(&places);
    let (mut own, mut all) = (None, Vec::new());
    for place in places.iter().copied().collect::<BTreeSet<Place>>() {
        let is_here = |at: &usize| places.get(*at) == Some(&place);
        let here: Vec<usize> = (0..data.len()).filter(is_here).collect();
        let of_here: Vec<Probe> = here.iter().map(|&at| probes[at].clone()).collect();
        let reading = method.read(&here.iter().map(|&at| data[at].clone()).collect::<Vec<_>>(), terms);
        let mut stratum = described(strata, place, place == headline, &of_here);
        stratum.parameters = reading.as_ref().map(|reading| reading.parameters.clone());
        if place == headline {
            own = reading;
        } else if let Some(reading) = reading {
            stratum.found = Some(Box::new(reading.found));
            stratum.doubts = reading.doubts;
        }
        all.push(stratum);
    }
    let mut reading = own?;
    reading.doubts.extend(doubts(&all));
    Some(Stratified { reading, strata: all })
}

fn places(probes: &[Probe], strata: &Strata) -> Vec<Place> {
    probes.iter().map(|probe| strata.place(probe)).collect()
}

/// Returns a stratum without its figures.
fn described(strata: &Strata, place: Place, is_headline: bool, probes: &[Probe]) -> Stratum {
    let found = bounce(probes).filter(|_| !matches!(place, Place::Unsteady | Place::Moved));
    Stratum {
        name: strata.name(place),
        is_headline,
        bounce_ns: found.map(|(median, _)| median),
        bounce_range_ns: found.map(|(_, range)| range),
        pace_ns: pace_ns(probes),
        unsteady: probes.iter().filter(|probe| !strata.is_at_main_pace(probe)).count(),
        stolen_share: stolen_share(probes),
        launches: probes.len(),
        parameters: None,
        found: None,
        doubts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::method::{HostState, Signature};
    use netdyno_layers::catalogue::Layer;
    use netdyno_layers::sim::SimRequester;
    use netdyno_measure::strata::Look;
    use netdyno_measure::task::{AnySize, Subject};

    const TERMS: Terms = Terms {
        launch: 0,
        budget_ns: 1e7,
        share_ns: 1e7,
        precision: 0.02,
        confidence: 0.95,
        seed: 1,
        host: HostState::Simulated,
        layer: Layer::Sim,
    };

    /// Returns launches of a simulated layer and their probes; `bounces` has the times before and after each.
    fn launches(bounces: &[(f64, f64)]) -> (Vec<Data>, Vec<Probe>) {
        let mut data: Vec<Data> = Vec::new();
        let mut probes = Vec::new();
        for (launch, &(before, after)) in bounces.iter().enumerate() {
            let task = Signature.task(&Terms { launch, ..TERMS }, &data);
            let truth = if before < 300.0 {
                "o_s=10ns,o_r=10ns,g=60ns,L=40ns"
            } else {
                "o_s=20ns,o_r=30ns,g=90ns,L=150ns"
            };
            let layer = SimRequester::new(truth.parse().unwrap(), launch as u64);
            data.push(AnySize(layer).measure(&task, &mut |_| {}).unwrap());
            let look = |bounce_ns| Some(Look { bounce_ns, lost_share: 0.0 });
            let (before, after) = (look(before), look(after));
            probes.push(Probe {
                launch,
                before,
                after,
                stolen_share: Some(0.0),
                paces: Vec::new(),
                repeats: 0,
            });
        }
        (data, probes)
    }

    #[test]
    fn a_figure_is_of_the_larger_stratum_and_the_others_have_their_own() {
        let (near, far) = ((119.0, 121.0), (538.0, 530.0));
        let bounces =
            [near, far, near, far, near, (119.0, 538.0), near, near, far, far, far, near, near, far, near];
        let (data, probes) = launches(&bounces);
        let strata = Strata::of(&[&probes], 0.95);
        let of_headline = headline(&Signature, &data, &probes, &strata);
        assert_eq!(of_headline.len(), 8);
        let Stratified { reading, strata } = read(&Signature, data, &probes, &strata, &TERMS).unwrap();
        let found: Vec<_> = strata
            .iter()
            .map(|stratum| {
                let rtt = stratum.parameters.as_ref().unwrap().rtt.clone();
                (
                    &stratum.name[..],
                    stratum.is_headline,
                    stratum.launches,
                    rtt.value_ns.unwrap().round(),
                    rtt.ci_ns.is_some(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("near", true, 8, 120.0, true),
                ("far", false, 6, 400.0, true),
                ("moved", false, 1, 120.0, false)
            ]
        );
        assert_eq!(reading.parameters.rtt.value_ns.map(f64::round), Some(120.0));
        assert_eq!(reading.found.launches(), 8);
        assert!(reading.doubts.iter().any(|doubt| doubt.name == "processors_moved"));
        assert!(!reading.doubts.iter().any(|doubt| doubt.name == "two_groups"));
        assert!(strata[0].found.is_none() && strata[1].found.is_some());
    }

    /// A difference in the outcome that the probes do not explain forms no strata: it remains a warning.
    #[test]
    fn what_the_probe_does_not_explain_stays_a_doubt() {
        let (data, mut probes) = launches(&[(119.0, 119.0), (538.0, 538.0)].repeat(4));
        for probe in &mut probes {
            probe.before = probes_alike(probe.before);
            probe.after = probe.before;
        }
        let strata = Strata::of(&[&probes], 0.95);
        let Stratified { reading, strata } = read(&Signature, data, &probes, &strata, &TERMS).unwrap();
        assert_eq!(strata.len(), 1);
        assert_eq!((&strata[0].name[..], strata[0].launches), ("all", 8));
        assert!(reading.doubts.iter().any(|doubt| doubt.name == "two_groups"));
    }

    fn probes_alike(look: Option<Look>) -> Option<Look> {
        look.map(|look| Look { bounce_ns: 300.0, ..look })
    }

    #[test]
    fn without_probes_there_are_no_strata() {
        let (data, _) = launches(&[(119.0, 119.0); 3]);
        let strata = Strata::of(&[], 0.95);
        assert_eq!(headline(&Signature, &data, &[], &strata).len(), 3);
        let Stratified { strata, .. } = read(&Signature, data, &[], &strata, &TERMS).unwrap();
        assert!(strata.is_empty());
    }
}
