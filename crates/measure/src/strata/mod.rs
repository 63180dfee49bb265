//! Strata: launches whose processors were equally far apart.
//!
//! A hypervisor moves virtual processors among real ones. The same launch then takes 104 ns in one minute and
//! 404 ns in the next, and a median over both describes neither. Two probes, before and after each launch,
//! therefore measure how long a cache line bounces between the two processors. The probes alone assign
//! launches to strata, never the measured figures: a selection by the outcome would make every interval too
//! narrow.
//!
//! The rule: the launches of all layers are sorted by their bounce. A new stratum begins where a bounce is
//! more than [`ALIKE`] times the one before. If that happens more than three times, only the three widest
//! gaps count. A launch whose two probes differ by more than that factor was moved, and belongs to no
//! stratum. Fewer than [`LAUNCHES_AT_LEAST`] launches of each layer are not divided.
//!
//! A processor may be one of two threads of a core. While another guest of the host keeps the other thread
//! busy, everything takes up to twice as long. The pace of both processors is therefore sampled during the
//! launch. A launch is unsteady if a processor changed its pace, or had a pace that most launches did not
//! have. It belongs to no stratum. If fewer than six launches of a layer remain, they have no interval, and
//! unsteady launches stay among the others.

pub(crate) mod probe;
pub(crate) mod stratum;

pub use probe::{ALIKE, Distance, Look, Pace, Probe, are_alike, bounce, pace_ns, stolen_share};
pub use stratum::{Stratum, doubts};

use crate::record::doubt::Doubt;
use crate::stats::{Interval, median_ranks, sorted};
use probe::have_same_pace;
use std::collections::BTreeMap;
pub(crate) use stratum::MOVED;
use stratum::UNKNOWN;

/// The smallest number of launches of a layer that is divided. The figures of two launches are better kept
/// together.
pub const LAUNCHES_AT_LEAST: usize = 3;
/// The largest number of strata.
const STRATA_AT_MOST: usize = 4;
/// The host is a changing one if the processors differed from the usual state in more than this share of
/// the launches.
const CHANGING: f64 = 0.1;

/// The strata of all launches of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Strata {
    /// The least bounce of each stratum, ascending.
    least: Vec<f64>,
    /// The launches of each stratum, over all layers.
    launches: Vec<usize>,
    /// The pace that each processor had in most launches.
    main_paces: Vec<MainPace>,
    /// True if unsteady launches stay among the others.
    with_unsteady: bool,
    /// True if all launches are one stratum, independent of their probes.
    is_undivided: bool,
    /// The number of probed launches, over all layers.
    probed: usize,
    /// The number of probed launches whose processors differed from most launches: moved, at another
    /// distance, or at another pace.
    changed: usize,
}

/// The pace of a processor in most launches: the shortest and the longest of the medians.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MainPace {
    cpu: usize,
    range_ns: Interval,
}

/// The place of a launch: a stratum, or the reason why it belongs to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The stratum, from near to far.
    Of(usize),
    /// A processor changed its pace, or had another pace than in most launches.
    Unsteady,
    /// The processors were moved.
    Moved,
    /// The launch was not probed.
    Unknown,
}

impl Strata {
    /// Returns one stratum of all launches, for fewer than [`LAUNCHES_AT_LEAST`] launches of a layer.
    pub fn undivided() -> Self {
        Self {
            least: vec![0.0],
            launches: vec![0],
            main_paces: Vec::new(),
            with_unsteady: true,
            is_undivided: true,
            probed: 0,
            changed: 0,
        }
    }

    /// Computes the strata from all probes of a run, one slice for each layer. Unsteady launches are excluded if each layer
    /// has enough steady ones in the headline for an interval at this confidence.
    pub fn of(layers: &[&[Probe]], confidence: f64) -> Self {
        let probes = || layers.iter().copied().flatten();
        let main_paces = main_paces(probes());
        let is_at_main_pace = |probe: &&Probe| is_at_main_pace(&main_paces, probe);
        let (least, launches) = by_bounce(probes().filter(is_at_main_pace));
        let probed = probes().filter(|probe| probe.distance() != Distance::Unknown).count();
        let changed = probed - launches.iter().max().copied().unwrap_or(0);
        let steady =
            Self { least, launches, main_paces, with_unsteady: false, is_undivided: false, probed, changed };
        if layers.iter().all(|probes| steady.has_interval(probes, confidence)) {
            return steady;
        }
        let (least, launches) = by_bounce(probes());
        Self { least, launches, with_unsteady: true, ..steady }
    }

    /// Reports whether a layer has enough launches in its headline for an interval. A layer without probes
    /// has no influence.
    fn has_interval(&self, probes: &[Probe], confidence: f64) -> bool {
        let places: Vec<Place> = probes.iter().map(|probe| self.place(probe)).collect();
        let headline = self.headline(&places);
        let count = places.iter().filter(|&&place| place == headline).count();
        probes.is_empty() || (matches!(headline, Place::Of(_)) && median_ranks(count, confidence).is_some())
    }

    /// Reports that the host changed during the run. It then also changes until the next run.
    pub fn is_of_changing_host(&self) -> bool {
        self.changed as f64 > CHANGING * self.probed as f64
    }

    /// Returns the warning about a changing host.
    pub fn doubt(&self) -> Option<Doubt> {
        let text = || {
            format!(
                "the host changed the processors: in {} of {} launches they moved, changed their pace, or differed from most, \
                 and in another run they may be otherwise again",
                self.changed, self.probed
            )
        };
        self.is_of_changing_host().then(|| Doubt::new("host_changes", text()))
    }

    /// Reports whether each watched processor had the pace of most launches during this one.
    pub fn is_at_main_pace(&self, probe: &Probe) -> bool {
        is_at_main_pace(&self.main_paces, probe)
    }

    /// Returns the place of a launch.
    pub fn place(&self, probe: &Probe) -> Place {
        match probe.distance() {
            _ if self.is_undivided => Place::Of(0),
            Distance::Moved => Place::Moved,
            _ if !self.with_unsteady && !self.is_at_main_pace(probe) => Place::Unsteady,
            // The stratum whose least bounce is the nearest from below.
            Distance::Bounce(ns) => match self.least.iter().rposition(|&least| least <= ns) {
                Some(at) => Place::Of(at),
                None => Place::Unknown,
            },
            // If all launches have one distance, this one has the same.
            Distance::Unknown if self.least.len() == 1 => Place::Of(0),
            Distance::Unknown => Place::Unknown,
        }
    }

    /// Returns the place whose launches give the figures of a layer with launches in `places`. It is the
    /// stratum with the most launches over all layers, the nearer one of two, so that layers can be compared.
    /// A layer without launches there takes its own largest place.
    pub fn headline(&self, places: &[Place]) -> Place {
        let count = |place: Place| places.iter().filter(|&&other| other == place).count();
        let of_all = (0..self.launches.len()).rev().max_by_key(|&at| self.launches[at]).map(Place::Of);
        let all = (0..self.least.len()).map(Place::Of).chain([Place::Unsteady, Place::Unknown, Place::Moved]);
        let largest = || all.rev().max_by_key(|&place| count(place));
        of_all.filter(|&place| count(place) > 0).or_else(largest).unwrap_or(Place::Unknown)
    }

    /// Returns the name of a place.
    pub fn name(&self, place: Place) -> String {
        match place {
            Place::Moved => MOVED.into(),
            Place::Unsteady => "unsteady".into(),
            Place::Unknown => UNKNOWN.into(),
            Place::Of(_) if self.least.len() == 1 => "all".into(),
            Place::Of(0) => "near".into(),
            Place::Of(at) if at + 1 == self.least.len() => "far".into(),
            Place::Of(1) if self.least.len() == 3 => "middle".into(),
            Place::Of(at) => format!("middle {at}"),
        }
    }
}

/// Returns the least bounce and the number of launches of each stratum.
fn by_bounce<'a>(probes: impl Iterator<Item = &'a Probe>) -> (Vec<f64>, Vec<usize>) {
    let bounces = sorted(probes.filter_map(|probe| match probe.distance() {
        Distance::Bounce(ns) => Some(ns),
        _ => None,
    }));
    let mut gaps: Vec<usize> =
        (1..bounces.len()).filter(|&at| !are_alike(bounces[at - 1], bounces[at])).collect();
    gaps.sort_by(|&a, &b| (bounces[b] / bounces[b - 1]).total_cmp(&(bounces[a] / bounces[a - 1])));
    gaps.truncate(STRATA_AT_MOST - 1);
    gaps.sort_unstable();
    let begins: Vec<usize> = (!bounces.is_empty()).then_some(0).into_iter().chain(gaps).collect();
    let ends = begins.iter().skip(1).copied().chain([bounces.len()]);
    let launches = begins.iter().zip(ends).map(|(begin, end)| end - begin).collect();
    (begins.iter().map(|&at| bounces[at]).collect(), launches)
}

/// Returns the pace of each processor in most launches. Only launches in which the processor kept its pace
/// count. Their paces are sorted, and a new group begins where two neighbours have not the same pace. Of two
/// groups of equal size the faster one counts.
fn main_paces<'a>(probes: impl Iterator<Item = &'a Probe>) -> Vec<MainPace> {
    let mut by_cpu: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for pace in probes.flat_map(|probe| &probe.paces).filter(|pace| pace.is_steady()) {
        by_cpu.entry(pace.cpu).or_default().push(pace.median_ns);
    }
    let main = |(cpu, medians): (usize, Vec<f64>)| {
        let medians = sorted(medians);
        let groups: Vec<&[f64]> = medians.chunk_by(|&a, &b| have_same_pace(a, b)).collect();
        let largest = groups.into_iter().rev().max_by_key(|group| group.len())?;
        Some(MainPace { cpu, range_ns: Interval { lo: *largest.first()?, hi: *largest.last()? } })
    };
    by_cpu.into_iter().filter_map(main).collect()
}

fn is_at_main_pace(main_paces: &[MainPace], probe: &Probe) -> bool {
    let is_main = |pace: &Pace| {
        let main = main_paces.iter().find(|main| main.cpu == pace.cpu);
        pace.is_steady() && main.is_some_and(|main| main.range_ns.contains(pace.median_ns))
    };
    probe.paces.iter().all(is_main)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn probe(before_ns: f64, after_ns: f64) -> Probe {
        let look = |bounce_ns| Some(Look { bounce_ns, lost_share: 0.0 });
        Probe {
            launch: 0,
            before: look(before_ns),
            after: look(after_ns),
            stolen_share: None,
            paces: Vec::new(),
            repeats: 0,
        }
    }

    #[test]
    fn a_host_that_changes_is_doubted() {
        let strata_of = |bounces: &[f64]| {
            Strata::of(&[&bounces.iter().map(|&ns| probe(ns, ns)).collect::<Vec<_>>()], 0.95)
        };
        let steady = strata_of(&[119.0; 20]);
        assert!(!steady.is_of_changing_host() && steady.doubt().is_none());
        let once = strata_of(&[&[119.0; 19][..], &[538.0]].concat());
        assert!(!once.is_of_changing_host(), "one launch of twenty is none");
        let often = strata_of(&[&[119.0; 17][..], &[538.0; 3]].concat());
        assert!(often.is_of_changing_host());
        assert!(often.doubt().unwrap().text.contains("in 3 of 20 launches"));
        assert!(!Strata::of(&[], 0.95).is_of_changing_host() && !Strata::undivided().is_of_changing_host());
    }

    fn places(bounces: &[f64]) -> (Strata, Vec<Place>) {
        let probes: Vec<Probe> = bounces.iter().map(|&ns| probe(ns, ns)).collect();
        let strata = Strata::of(&[&probes], 0.95);
        let places = probes.iter().map(|probe| strata.place(probe)).collect();
        (strata, places)
    }

    #[test]
    fn too_few_launches_are_not_divided() {
        let strata = Strata::undivided();
        let places =
            [probe(119.0, 119.0), probe(538.0, 538.0), probe(119.0, 538.0)].map(|probe| strata.place(&probe));
        assert_eq!(places, [Place::Of(0); 3]);
        assert_eq!((strata.headline(&places), strata.name(places[0]).as_str()), (Place::Of(0), "all"));
    }

    #[test]
    fn launches_that_find_their_processors_near_or_far_are_two_strata() {
        let (strata, places) = places(&[119.0, 538.0, 121.0, 530.0, 117.0]);
        let [near, far] = [Place::Of(0), Place::Of(1)];
        assert_eq!(places, [near, far, near, far, near]);
        assert_eq!((strata.name(near), strata.name(far)), ("near".into(), "far".into()));
        assert_eq!(strata.headline(&places), near);
        assert_eq!(strata.headline(&[far, far]), far, "a layer without launches there has its own");
        assert_eq!(strata.place(&probe(119.0, 538.0)), Place::Moved);
        assert_eq!(strata.place(&Probe { after: None, ..probe(538.0, 119.0) }), far);
        assert_eq!(strata.place(&Probe { before: None, after: None, ..probe(119.0, 119.0) }), Place::Unknown);
    }

    #[test]
    fn what_drifts_is_one_stratum() {
        let (strata, places) = places(&[100.0, 140.0, 120.0, 175.0, 110.0]);
        let unknown = Probe { before: None, after: None, ..probe(100.0, 100.0) };
        assert_eq!(strata.place(&unknown), Place::Of(0), "there is no other distance");
        assert!(places.iter().all(|&place| place == Place::Of(0)));
        assert_eq!(strata.name(Place::Of(0)), "all");
        let none = Strata::of(&[], 0.95);
        assert_eq!(none.headline(&[Place::Unknown, Place::Unknown, Place::Moved]), Place::Unknown);
        assert_eq!(none.headline(&[Place::Moved]), Place::Moved);
    }

    fn paced(bounce_ns: f64, fast_ns: f64, slow_ns: f64) -> Probe {
        let pace = Pace { cpu: 1, fast_ns, median_ns: fast_ns, slow_ns, samples: 40 };
        Probe { paces: vec![pace], ..probe(bounce_ns, bounce_ns) }
    }

    #[test]
    fn a_tenth_of_the_samples_is_beyond_either_end() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let pace = Pace::of(3, samples).unwrap();
        let expected = Pace { cpu: 3, fast_ns: 10.0, median_ns: 50.0, slow_ns: 90.0, samples: 101 };
        assert_eq!(pace, expected);
        assert_eq!(Pace::of(3, vec![]), None);
        assert_eq!(Pace::of(3, vec![7.0]).unwrap().slow_ns, 7.0);
    }

    #[test]
    fn launches_during_which_a_processor_changed_its_pace_are_left_out() {
        let (steady, mixed, slow) =
            (paced(110.0, 1700.0, 1710.0), paced(112.0, 1700.0, 2900.0), paced(111.0, 2800.0, 2900.0));
        let six = vec![steady.clone(); 6];
        let launches = [six, vec![mixed.clone(), slow.clone(), mixed.clone()]].concat();
        let strata = Strata::of(&[&launches], 0.95);
        let places: Vec<Place> = launches.iter().map(|probe| strata.place(probe)).collect();
        assert_eq!(places, [[Place::Of(0); 6].as_slice(), &[Place::Unsteady; 3]].concat());
        assert_eq!(
            (strata.headline(&places), strata.name(Place::Unsteady).as_str()),
            (Place::Of(0), "unsteady")
        );
        // With fewer launches, or if another layer has fewer, all stay together.
        for layers in [&[&launches[1..]][..], &[&launches[..], &launches[3..]]] {
            let strata = Strata::of(layers, 0.95);
            assert!(layers.iter().copied().flatten().all(|probe| strata.place(probe) == Place::Of(0)));
            assert!(strata.is_at_main_pace(&steady) && !strata.is_at_main_pace(&slow));
        }
    }

    #[test]
    fn a_pace_that_most_launches_have_is_the_main_one_though_others_are_faster() {
        let launches = [vec![paced(110.0, 1400.0, 1410.0)], vec![paced(110.0, 1700.0, 1800.0); 8]].concat();
        let strata = Strata::of(&[&launches], 0.95);
        assert_eq!((strata.place(&launches[0]), strata.place(&launches[1])), (Place::Unsteady, Place::Of(0)));
        // A launch without samples of its pace is not left out.
        assert_eq!(strata.place(&probe(110.0, 110.0)), Place::Of(0));
    }

    #[test]
    fn there_are_a_few_strata_at_most() {
        let bounces: Vec<f64> = (0..9).map(|nth| 100.0 * 1.5f64.powi(nth)).collect();
        let (strata, places) = places(&bounces);
        let names: Vec<String> = (0..4).map(|at| strata.name(Place::Of(at))).collect();
        assert_eq!(names, ["near", "middle 1", "middle 2", "far"]);
        assert!(places.iter().all(|place| matches!(place, Place::Of(0..4))));
    }

    proptest! {
        /// A stratum is an interval of bounces, and depends on the probes alone.
        #[test]
        fn strata_are_intervals(bounces in proptest::collection::vec(10.0..2000.0f64, 1..60)) {
            let (strata, of) = places(&bounces);
            let mut pairs: Vec<(f64, Place)> = bounces.iter().copied().zip(of.iter().copied()).collect();
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            prop_assert!(pairs.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            let headline = strata.headline(&of);
            let count = |place| of.iter().filter(|&&other| other == place).count();
            prop_assert!(of.iter().all(|&place| count(place) <= count(headline)));
        }

        #[test]
        fn no_probe_panics(before in proptest::num::f64::ANY, after in proptest::num::f64::ANY) {
            let probe = probe(before, after);
            let strata = Strata::of(&[std::slice::from_ref(&probe)], 0.95);
            strata.name(strata.headline(&[strata.place(&probe)]));
        }
    }
}
