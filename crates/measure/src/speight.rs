//! The figures of Speight et al. (1999), section 5: what each change of a messaging layer gains.
//!
//! All values are half round trips of launches that were interleaved, paired by launch.

use crate::figure::Figure;
use crate::overlap::data::OverlapLaunch;
use crate::overlap::record::Quantity;
use crate::pairing::are_of_one_stratum;
use crate::record::LayerResult;
use crate::stats::median;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A curve of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Bare UDP sockets.
    Udp,
    /// A bare Virtual Interface.
    Vi,
    /// MPI over UDP.
    MpiOverUdp,
    /// MPI over Virtual Interfaces, with nothing changed.
    Baseline,
    /// The same without acknowledgements of the message layer.
    NoAcks,
    /// The same without copies of long messages.
    NoCopies,
    /// The same with a thread that wakes the program by a variable.
    Spinning,
    /// All three changes.
    AllThree,
    /// All three changes, and no messaging thread.
    WithoutThread,
}

impl Variant {
    /// All variants, in the order of the figures.
    pub const ALL: [Self; 9] = [
        Self::Udp,
        Self::Vi,
        Self::MpiOverUdp,
        Self::Baseline,
        Self::NoAcks,
        Self::NoCopies,
        Self::Spinning,
        Self::AllThree,
        Self::WithoutThread,
    ];

    /// The variants that figure 9 compares with the baseline, and the last one.
    pub const CHANGES: [Self; 5] =
        [Self::NoAcks, Self::NoCopies, Self::Spinning, Self::AllThree, Self::WithoutThread];

    /// Returns the name in records and on pages.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Vi => "bare VI",
            Self::MpiOverUdp => "MPI, UDP",
            Self::Baseline => "MPI, VI",
            Self::NoAcks => "no acks",
            Self::NoCopies => "no copies",
            Self::Spinning => "spinning",
            Self::AllThree => "all three",
            Self::WithoutThread => "without thread",
        }
    }
}

/// The results of section 5, by launch.
#[derive(Debug)]
pub struct Section5<'a> {
    results: &'a [LayerResult],
    confidence: f64,
}

impl<'a> Section5<'a> {
    /// Reads the results. Those with other labels are left out.
    pub fn of(results: &'a [LayerResult], confidence: f64) -> Self {
        Self { results, confidence }
    }

    /// Returns the result of a variant.
    pub fn result(&self, variant: Variant) -> Option<&'a LayerResult> {
        self.results.iter().find(|result| result.label.as_deref() == Some(variant.label()))
    }

    /// Returns the sizes that the variants of MPI have, ascending.
    pub fn sizes(&self) -> Vec<usize> {
        let baseline = self.result(Variant::Baseline).and_then(|result| result.found.overlap());
        baseline.map_or(Vec::new(), |found| found.trips.iter().map(|trip| trip.size_bytes).collect())
    }

    /// Returns by what share a change shortens the half round trip of the baseline: the mean over the sizes of a range,
    /// as a median over launches. It is nothing if their launches are of different strata.
    pub fn gain(&self, change: Variant, sizes: RangeInclusive<usize>) -> Quantity {
        self.over_pairs(change, Variant::Baseline, sizes, |changed, baseline| 1.0 - changed / baseline)
    }

    /// Returns the ratio of the half round trips of two variants: the mean over the sizes of a range, as a median over
    /// launches.
    pub fn ratio(&self, above: Variant, below: Variant, sizes: RangeInclusive<usize>) -> Quantity {
        self.over_pairs(above, below, sizes, |above, below| above / below)
    }

    fn over_pairs(
        &self,
        first: Variant,
        second: Variant,
        sizes: RangeInclusive<usize>,
        of: impl Fn(f64, f64) -> f64,
    ) -> Quantity {
        let (Some(first), Some(second)) = (self.result(first), self.result(second)) else {
            return Quantity::default();
        };
        if !are_of_one_stratum(first, second) {
            return Quantity::default();
        }
        let (Some(first), Some(second)) = (first.found.overlap(), second.found.overlap()) else {
            return Quantity::default();
        };
        let seconds: BTreeMap<usize, BTreeMap<usize, f64>> =
            second.launches.iter().map(|launch| (launch.launch, half_rtts(launch, &sizes))).collect();
        let mean = |launch: &OverlapLaunch| {
            let second = seconds.get(&launch.launch)?;
            let pairs = half_rtts(launch, &sizes);
            let values: Vec<f64> =
                pairs.iter().filter_map(|(size, first)| Some(of(*first, *second.get(size)?))).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        Figure::over(first.launches.iter().filter_map(mean), self.confidence).into()
    }
}

/// Returns the half round trips of a launch, by size. Those that are not positive are left out.
fn half_rtts(launch: &OverlapLaunch, sizes: &RangeInclusive<usize>) -> BTreeMap<usize, f64> {
    let trips = launch.trips.iter().filter(|trip| sizes.contains(&trip.size_bytes));
    let halves = trips.map(|trip| (trip.size_bytes, median(trip.half_rtt_ns.iter().copied())));
    halves.filter(|(_, ns)| *ns > 0.0).collect()
}
