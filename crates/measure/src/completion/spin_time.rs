//! The best time to spin before blocking: the shortest one with which round trips are near those of polling, up to
//! the largest size (Speight et al. 1999, section 4.2, propose to spin before blocking).
//!
//! A way is near polling at a size if the upper end of the interval of its ratio to polling is at most
//! [`NEAR`], so that a wide interval makes no way near. A way that is faster than polling is near as well: where others
//! take the processors, polling may be the slower way.

use super::record::{SpinTime, SpinTimes};
use super::ways::{Way, Ways};
use crate::record::LayerResult;

/// The largest ratio of half round trips that is near.
pub const NEAR: f64 = 1.05;

impl SpinTimes {
    /// Returns the spin times of each layer that was measured by polling and with several or one of them.
    /// `spin_ns` returns the time that a way to wait spins before it blocks, by its name: 0 if it blocks at once.
    pub fn of(results: &[LayerResult], spin_ns: impl Fn(&str) -> Option<f64>, confidence: f64) -> Vec<Self> {
        let all = Ways::of(results, confidence);
        all.iter()
            .filter(|ways| ways.base.polls())
            .filter_map(|ways| Self::of_layer(ways, &spin_ns))
            .collect()
    }

    fn of_layer(ways: &Ways<'_>, spin_ns: impl Fn(&str) -> Option<f64>) -> Option<Self> {
        let spun = |way: &Way<'_>| Some(SpinTime::of(ways, way, spin_ns(way.name)?));
        let mut tried: Vec<SpinTime> = ways.others.iter().filter_map(spun).collect();
        tried.sort_by(|one, other| one.spin_ns.total_cmp(&other.spin_ns));
        let reach = tried.iter().filter_map(|spin| spin.near_to_bytes).max();
        // Of several that reach as far the shortest one takes the least processor time.
        let best = tried.iter().position(|spin| reach.is_some() && spin.near_to_bytes == reach);
        let has_spun = tried.iter().any(|spin| spin.spin_ns > 0.0);
        has_spun.then(|| Self { layer: ways.layer.into(), polling: ways.base.name.into(), tried, best })
    }
}

impl SpinTime {
    fn of(ways: &Ways<'_>, way: &Way<'_>, spin_ns: f64) -> Self {
        let ratios: Vec<_> =
            ways.sizes().map(|size_bytes| (size_bytes, ways.ratio(way, size_bytes))).collect();
        // A ratio without an interval says nothing.
        let upper = ratios.iter().map(|(_, ratio)| ratio.ci.map_or(f64::INFINITY, |ci| ci.hi));
        let near: Vec<f64> = upper.take_while(|upper| *upper <= NEAR).collect();
        let above = ratios[near.len()..].iter().filter_map(|(_, ratio)| ratio.value);
        Self {
            wait: way.name.into(),
            spin_ns,
            from_bytes: ratios.first().map_or(0, |(size_bytes, _)| *size_bytes),
            near_to_bytes: near.len().checked_sub(1).map(|last| ratios[last].0),
            near_ratio_at_most: near.iter().copied().reduce(f64::max),
            ratio_above: above.reduce(f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::data::{
        CompletionLaunch, CompletionShape, CompletionSizeData, CompletionSizeShape,
    };
    use crate::completion::extract::extract;
    use crate::record::{Found, Parameters};

    /// Returns nine launches of a way over two sizes, whose half round trips vary by `spread`.
    fn way(wait: &str, half_rtt_ns: [f64; 2], spread: f64) -> LayerResult {
        let sizes = [1, 64].map(|size_bytes| CompletionSizeShape {
            size_bytes,
            trips: 1,
            row: 1,
            window: 1,
            rest_ns: 0.0,
        });
        let launch = |launch: usize| {
            let off = 1.0 + spread * (launch as f64 - 4.0) / 4.0;
            let of_size = |ns: f64| CompletionSizeData {
                half_rtt_ns: vec![ns * off],
                alone_ns: vec![ns],
                issue_ns: vec![ns],
                done_ns: vec![ns],
                copy_ns: Vec::new(),
            };
            let shape = CompletionShape { sizes: sizes.into(), ..CompletionShape::default() };
            let sizes = half_rtt_ns.map(of_size).into();
            CompletionLaunch { launch, shape, sizes, ..CompletionLaunch::default() }
        };
        let launches: Vec<_> = (0..9).map(launch).collect();
        let found = Found::Completion(extract(&launches, 0.95, 0.02).unwrap().found);
        LayerResult {
            layer: "udp".into(),
            label: Some(wait.into()),
            size_bytes: 1,
            wait: wait.into(),
            cpus: Vec::new(),
            distance: None,
            library: None,
            launcher: None,
            server: None,
            faults: None,
            dials: None,
            profile: None,
            parameters: Parameters::unobservable(),
            strata: Vec::new(),
            probes: Vec::new(),
            found,
            doubts: Vec::new(),
        }
    }

    fn spin_ns(name: &str) -> Option<f64> {
        if name == "block" {
            return Some(0.0);
        }
        name.strip_prefix("spin:")?.strip_suffix("us")?.parse().ok().map(|us: f64| us * 1e3)
    }

    fn of(ways: &[LayerResult]) -> Vec<SpinTimes> {
        SpinTimes::of(ways, spin_ns, 0.95)
    }

    #[test]
    fn the_shortest_of_those_that_reach_farthest_is_the_best() {
        let found = of(&[
            way("spin:100us", [1000.0, 2000.0], 0.0),
            way("spin", [1000.0, 2000.0], 0.0),
            way("block", [9000.0, 9000.0], 0.0),
            way("spin:3us", [1010.0, 4000.0], 0.0),
            way("spin:10us", [1020.0, 2020.0], 0.0),
            way("spin:1us", [2000.0, 2000.0], 0.0),
        ]);
        let [times] = &found[..] else { panic!("{found:?}") };
        let waits: Vec<_> = times.tried.iter().map(|spin| (&spin.wait[..], spin.near_to_bytes)).collect();
        // The size of 64 B is near polling with 1 us, but a smaller one is not.
        let all = [
            ("block", None),
            ("spin:1us", None),
            ("spin:3us", Some(1)),
            ("spin:10us", Some(64)),
            ("spin:100us", Some(64)),
        ];
        assert_eq!((&waits[..], &times.polling[..]), (&all[..], "spin"));
        let best = times.best().unwrap();
        assert_eq!((&best.wait[..], best.from_bytes, best.ratio_above), ("spin:10us", 1, None));
        assert!((best.near_ratio_at_most.unwrap() - 1.02).abs() < 1e-9, "{best:?}");
        assert_eq!(times.tried[2].ratio_above, Some(2.0));
    }

    #[test]
    fn blocking_at_once_is_the_best_where_it_is_near_polling() {
        let found = of(&[
            way("spin", [1000.0, 2000.0], 0.0),
            way("spin:1us", [1000.0, 2000.0], 0.0),
            way("block", [1020.0, 2020.0], 0.0),
        ]);
        assert_eq!(found[0].best().map(|best| (&best.wait[..], best.spin_ns)), Some(("block", 0.0)));
    }

    #[test]
    fn an_interval_that_is_wide_makes_no_way_near() {
        let found = of(&[way("yield", [1000.0; 2], 0.0), way("spin:10us", [1000.0; 2], 0.5)]);
        assert_eq!((found.len(), found[0].best()), (1, None));
    }

    #[test]
    fn without_polling_or_without_spin_times_nothing_is_said() {
        assert_eq!(of(&[way("block", [1000.0; 2], 0.0), way("spin:10us", [1000.0; 2], 0.0)]), []);
        assert_eq!(of(&[way("spin", [1000.0; 2], 0.0), way("block", [1000.0; 2], 0.0)]), []);
        assert_eq!(of(&[]), []);
    }
}
