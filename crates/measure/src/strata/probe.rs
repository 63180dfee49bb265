//! The probe of a launch: the distance of its two processors, and the pace of each.

use crate::stats::{Interval, median, quantile_of_sorted, sorted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bounces that differ by no more than this factor are of one stratum.
pub const ALIKE: f64 = 1.3;
/// A processor whose times for the same work differ by no more than this factor keeps its pace.
const SAME_PACE: f64 = 1.15;

/// The result of one probe of two processors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Look {
    /// Round trip of a cache line between the processors: median of some batches.
    pub bounce_ns: f64,
    /// Share of the probe's time that a processor lost to interruptions.
    pub lost_share: f64,
}

/// The pace of a processor during a launch: times of the same piece of work, which uses several execution
/// units of a core at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pace {
    /// The processor.
    pub cpu: usize,
    /// A tenth of the samples was faster.
    pub fast_ns: f64,
    /// Median.
    pub median_ns: f64,
    /// A tenth of the samples was slower.
    pub slow_ns: f64,
    /// Number of samples.
    pub samples: usize,
}

impl Pace {
    /// Returns the pace from samples of the time of the work. `None` without samples.
    pub fn of(cpu: usize, samples_ns: Vec<f64>) -> Option<Self> {
        let ascending = sorted(samples_ns);
        let [fast_ns, median_ns, slow_ns] = [0.1, 0.5, 0.9].map(|q| quantile_of_sorted(&ascending, q));
        let samples = ascending.len();
        (samples > 0).then_some(Self { cpu, fast_ns, median_ns, slow_ns, samples })
    }

    /// Reports whether the processor kept this pace throughout the launch.
    pub(super) fn is_steady(&self) -> bool {
        self.slow_ns <= SAME_PACE * self.fast_ns
    }
}

/// The probes of one launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// The probe before the start of the processes; null if other programs left no time for it.
    pub before: Option<Look>,
    /// The probe after their end.
    pub after: Option<Look>,
    /// Share of the processors' time that the hypervisor gave to other guests in between; null if the system
    /// does not report it.
    pub stolen_share: Option<f64>,
    /// The pace of each watched processor.
    #[serde(default)]
    pub paces: Vec<Pace>,
    /// Number of repeats of the launch, because the processors were moved during it.
    pub repeats: usize,
}

/// The distance of the two processors of a launch, by its probes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distance {
    /// The geometric mean of the bounces of both probes, in nanoseconds.
    Bounce(f64),
    /// The two probes differ: the hypervisor moved the processors during the launch.
    Moved,
    /// The launch was not probed.
    Unknown,
}

impl Probe {
    /// Returns the distance of the two processors.
    pub fn distance(&self) -> Distance {
        // A single look does not show that the processors were moved.
        let looks = self.before.or(self.after).zip(self.after.or(self.before));
        let Some((before, after)) = looks else { return Distance::Unknown };
        let (before, after) = (before.bounce_ns, after.bounce_ns);
        if !(before > 0.0 && after > 0.0) {
            Distance::Unknown
        } else if are_alike(before, after) {
            Distance::Bounce((before * after).sqrt())
        } else {
            Distance::Moved
        }
    }
}

/// Reports whether two bounces are of one stratum. Both have the same unit.
pub fn are_alike(a: f64, b: f64) -> bool {
    a.max(b) <= ALIKE * a.min(b)
}

/// Reports whether two times for the same work are of one pace.
pub(super) fn have_same_pace(a: f64, b: f64) -> bool {
    a.max(b) <= SAME_PACE * a.min(b)
}

/// Returns the median pace of the processors during the launches, in nanoseconds. `None` without samples.
pub fn pace_ns(probes: &[Probe]) -> Option<f64> {
    let medians = probes.iter().flat_map(|probe| &probe.paces).map(|pace| pace.median_ns);
    Some(median(medians)).filter(|ns| ns.is_finite())
}

/// Returns the median bounce of the launches, with the shortest and the longest, in nanoseconds.
pub fn bounce(probes: &[Probe]) -> Option<(f64, Interval)> {
    let bounces = sorted(probes.iter().filter_map(|probe| match probe.distance() {
        Distance::Bounce(ns) => Some(ns),
        _ => None,
    }));
    let (&lo, &hi) = (bounces.first()?, bounces.last()?);
    Some((median(bounces), Interval { lo, hi }))
}

/// Returns the median share of time that the hypervisor gave to other guests. Returns `None` if no launch
/// knows it.
pub fn stolen_share(probes: &[Probe]) -> Option<f64> {
    Some(median(probes.iter().filter_map(|probe| probe.stolen_share))).filter(|share| share.is_finite())
}
