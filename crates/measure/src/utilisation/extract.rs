//! The figures computed from several launches. Each is the median of the values of the launches, with its
//! distribution-free interval, which the resolution of the ticks widens. The value of a launch is a sum over its
//! windows. No figure is clamped.

use super::data::{UtilisationLaunch, UtilisationSizeData, Window, are_alike};
use super::doubts;
use super::record::{Cost, Costs, CounterFigure, MachineCosts, SideCosts, Utilisation, UtilisationSize};
use super::resolution;
use crate::figure::Figure;
use crate::overlap::record::Quantity;
use crate::processor_time::{COUNTERS, Counters, MachineTimes, ProcessTimes};
use crate::reading::Reading;
use crate::record::parameter::{Parameters, Status};
use crate::stats::{Confidence, Interval, median};

/// The counts of one processor behind the work of a machine: idle, waiting for a device, and stolen.
const COUNTS_OF_WORK: f64 = 3.0;
/// A process runs for less than this between the readings of two of its clocks.
const BETWEEN_CLOCKS_NS: f64 = 20e3;
/// Those behind its kernel work: in the kernel, in interrupts, and in soft interrupts.
const COUNTS_OF_KERNEL: f64 = 3.0;

/// Computes figures and warnings from launches. Returns `None` if the launches measured nothing, or differ
/// in their shapes.
pub fn extract(
    data: &[UtilisationLaunch],
    confidence: impl Into<Confidence>,
    precision: f64,
) -> Option<Reading<Utilisation>> {
    let shape = &data.first().filter(|first| !first.shape.sizes.is_empty())?.shape;
    // A record is a file that others may have written: its launches may differ in their shapes.
    let is_like =
        |launch: &UtilisationLaunch| launch.shape == *shape && launch.sizes.len() == shape.sizes.len();
    if !data.iter().all(is_like) {
        return None;
    }
    let launches = Launches { data, confidence: confidence.into() };
    let size = |(at, size_bytes): (usize, usize)| UtilisationSize {
        size_bytes,
        round_trips: launches.costs(at, |size| &size.round_trips, |_| true),
        stream: launches.costs(at, |size| &size.stream, UtilisationSizeData::is_steady),
    };
    let found = Utilisation {
        largest_bytes: None,
        idle: launches.idle(0),
        replier_idle: launches.have_two_machines().then(|| launches.idle(1)),
        sizes: shape.sizes.iter().map(|size| size.size_bytes).enumerate().map(size).collect(),
        launches: data.to_vec(),
    }
    .without_busy_machines();
    let parameters = Parameters::unobservable();
    let doubts = doubts::find(&parameters, &found, precision);
    Some(Reading { parameters, found, doubts })
}

/// A figure of one launch: processor time in a sum of windows.
#[derive(Clone, Copy, Debug)]
struct Spent {
    /// The processor time.
    ns: f64,
    /// The resolution of the processor time.
    resolution_ns: f64,
    /// The step of the processor time; 0 if it has none.
    step_ns: f64,
    /// The time of the windows.
    elapsed_ns: f64,
    messages: f64,
}

/// How the system knows a time of a process.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// By a clock of the thread.
    Clock,
    /// As the difference of two clocks, which are read one after the other.
    TwoClocks,
    /// By a sample at each tick.
    Samples,
}

impl Source {
    /// Returns the step of a time.
    fn step(self, tick_ns: f64) -> f64 {
        match self {
            Self::Samples => tick_ns,
            Self::Clock | Self::TwoClocks => 0.0,
        }
    }

    /// Returns the resolution of a sum over windows.
    fn resolution(self, total: &ProcessTimes, tick_ns: f64, windows: f64) -> f64 {
        match self {
            Self::TwoClocks if tick_ns > 0.0 => windows * BETWEEN_CLOCKS_NS,
            Self::Clock | Self::TwoClocks => 0.0,
            Self::Samples => {
                let all_ns = total.user_ns + total.system_ns;
                let samples = resolution::of_samples(total.system_ns, all_ns, tick_ns);
                samples.hypot(resolution::of_sum(tick_ns, windows))
            }
        }
    }
}

/// What a cost claims if its interval holds 0.
#[derive(Clone, Copy, Debug, PartialEq)]
enum NearZero {
    /// The cost is then at most the upper end.
    IsABound,
    /// The cost may have either sign.
    IsAValue,
}

/// The work of a machine in a sum of windows, as shares of one processor.
#[derive(Clone, Copy, Debug)]
struct MachineShares {
    busy: f64,
    softirq: f64,
    elsewhere: Option<f64>,
    /// The work of all others than the processes.
    others: f64,
    /// The resolutions of all work, of interrupts, and of kernel work elsewhere.
    resolution: f64,
    softirq_resolution: f64,
    elsewhere_resolution: f64,
    /// The step of all of them.
    step: f64,
    elapsed_ns: f64,
}

impl MachineShares {
    /// Returns the resolution of the work that is neither of the processes nor kernel work elsewhere.
    fn unexplained_resolution(&self) -> f64 {
        self.elsewhere.map_or(self.resolution, |_| self.resolution.hypot(self.elsewhere_resolution))
    }
}

/// Several launches of the same shape.
struct Launches<'a> {
    data: &'a [UtilisationLaunch],
    confidence: Confidence,
}

impl Launches<'_> {
    /// Returns the costs of the windows that `of` selects. Launches in which `is_sound` does not hold give no
    /// figure.
    fn costs(
        &self,
        at: usize,
        of: fn(&UtilisationSizeData) -> &Vec<Window>,
        is_sound: fn(&UtilisationSizeData) -> bool,
    ) -> Costs {
        let sound = self.data.iter().filter(|launch| is_sound(&launch.sizes[at]));
        let sound: Vec<(&UtilisationLaunch, &[Window])> =
            sound.map(|launch| (launch, &of(&launch.sizes[at])[..])).collect();
        let alike: Vec<_> = sound.iter().copied().filter(|(_, windows)| are_alike(windows)).collect();
        Costs {
            requester: self.side(&sound, 0),
            replier: self.side(&alike, 1),
            machine: self.machine(&alike, 0),
            replier_machine: self.have_two_machines().then(|| self.machine(&alike, 1)),
        }
    }

    fn side(&self, launches: &[(&UtilisationLaunch, &[Window])], side: usize) -> SideCosts {
        let cost = |of: fn(&ProcessTimes) -> f64, source: Source| {
            let spent = launches.iter().map(|(launch, windows)| {
                let total = total(windows, side);
                Spent {
                    ns: of(&total),
                    resolution_ns: source.resolution(&total, launch.tick_ns[side], windows.len() as f64),
                    step_ns: source.step(launch.tick_ns[side]),
                    elapsed_ns: total.elapsed_ns,
                    messages: messages(windows),
                }
            });
            self.cost(&spent.collect::<Vec<_>>(), NearZero::IsABound)
        };
        let counter = |nth: usize| {
            let values = launches.iter().filter_map(|(_, windows)| {
                let counted = windows.iter().map(|window| counters(window, side).all()[nth]);
                Some(counted.sum::<Option<f64>>()? / messages(windows))
            });
            let per_message: Quantity = Figure::over(values, self.confidence).into();
            per_message.value.map(|_| CounterFigure { name: COUNTERS[nth].into(), per_message })
        };
        let busy = cost(ProcessTimes::busy_ns, Source::Clock);
        SideCosts {
            user: part_of(&busy, cost(|times| times.user_ns, Source::Samples)),
            system: part_of(&busy, cost(|times| times.system_ns, Source::Samples)),
            busy,
            helpers: cost(|times| times.helpers_ns, Source::TwoClocks),
            counters: (0..COUNTERS.len()).filter_map(counter).collect(),
        }
    }

    fn machine(&self, launches: &[(&UtilisationLaunch, &[Window])], side: usize) -> MachineCosts {
        let net: Vec<(MachineShares, f64)> = launches
            .iter()
            .filter_map(|(launch, windows)| {
                Some((net(shares(launch, windows, side)?, idle(launch, side)?), messages(windows)))
            })
            .collect();
        let cost = |of: fn(&MachineShares) -> Option<[f64; 2]>, near_zero| {
            let spent = net.iter().filter_map(|(shares, messages)| {
                let [share, resolution] = of(shares)?;
                let elapsed_ns = shares.elapsed_ns;
                Some(Spent {
                    ns: share * elapsed_ns,
                    resolution_ns: resolution * elapsed_ns,
                    step_ns: shares.step * elapsed_ns,
                    elapsed_ns,
                    messages: *messages,
                })
            });
            self.cost(&spent.collect::<Vec<_>>(), near_zero)
        };
        MachineCosts {
            busy: cost(|shares| Some([shares.busy, shares.resolution]), NearZero::IsABound),
            softirq: cost(|shares| Some([shares.softirq, shares.softirq_resolution]), NearZero::IsABound),
            elsewhere: cost(
                |shares| Some([shares.elsewhere?, shares.elsewhere_resolution]),
                NearZero::IsABound,
            ),
            unexplained: cost(
                |shares| {
                    Some([shares.others - shares.elsewhere.unwrap_or(0.0), shares.unexplained_resolution()])
                },
                NearZero::IsAValue,
            ),
        }
    }

    fn have_two_machines(&self) -> bool {
        self.data.iter().any(|launch| !launch.one_machine)
    }

    /// Returns the work of others on the side's machine while nothing is sent.
    fn idle(&self, side: usize) -> Quantity {
        let idle: Vec<MachineShares> = self.data.iter().filter_map(|launch| idle(launch, side)).collect();
        let figure = Figure::over(idle.iter().map(|shares| shares.others), self.confidence);
        let step = median(idle.iter().map(|shares| shares.step));
        widened(figure.into(), resolution::of_median(idle.iter().map(|shares| shares.resolution), step))
    }

    /// Returns a cost from its value in each launch.
    fn cost(&self, spent: &[Spent], near_zero: NearZero) -> Cost {
        let shares = || spent.iter().map(|one| one.ns / one.elapsed_ns);
        let each = || spent.iter().map(|one| one.ns / one.messages);
        let resolution = |of: fn(&Spent) -> f64| {
            let step = median(spent.iter().map(|one| one.step_ns / of(one)));
            resolution::of_median(spent.iter().map(|one| one.resolution_ns / of(one)), step)
        };
        let (of_share, of_each) = (resolution(|one| one.elapsed_ns), resolution(|one| one.messages));
        let samples = spent.iter().map(|one| one.messages).sum::<f64>() as u64;
        let mut share = widened(Figure::over(shares(), self.confidence).into(), of_share);
        let mut per_message = Figure::over(each(), self.confidence).parameter(each(), samples);
        per_message.ci_ns = per_message.ci_ns.map(|ci| farther(ci, of_each));
        // Few launches have no interval. The value is then known to the resolution only.
        let within = |value: Option<f64>, ci: Option<Interval>, resolution: f64| {
            ci.or_else(|| value.map(|value| farther(Interval { lo: value, hi: value }, resolution)))
        };
        let share_within = within(share.value, share.ci, of_share);
        let each_within = within(per_message.value_ns, per_message.ci_ns, of_each);
        // Without ticks a cost has no resolution, and 0 is a value like any other.
        let is_hidden = |within: Option<Interval>, resolution: f64| {
            resolution > 0.0 && within.is_some_and(|within| within.lo <= 0.0)
        };
        if near_zero == NearZero::IsABound
            && (is_hidden(share_within, of_share) || is_hidden(each_within, of_each))
        {
            share.value = share_within.map(|within| within.hi);
            per_message.value_ns = each_within.map(|within| within.hi);
            per_message.status = Status::UpperBound;
        }
        Cost { share, per_message }
    }
}

/// Returns a part of a cost. A bound of it that is above the whole is replaced by that of the whole.
fn part_of(whole: &Cost, mut part: Cost) -> Cost {
    if part.per_message.status == Status::UpperBound {
        // Few launches have no interval.
        let least = |bound: Option<f64>, whole: Option<f64>, ci: Option<Interval>| {
            let most = ci.map(|ci| ci.hi).or(whole).unwrap_or(f64::INFINITY);
            Some(bound?.min(most))
        };
        part.share.value = least(part.share.value, whole.share.value, whole.share.ci);
        let each = &whole.per_message;
        part.per_message.value_ns = least(part.per_message.value_ns, each.value_ns, each.ci_ns);
    }
    part
}

fn farther(ci: Interval, by: f64) -> Interval {
    Interval { lo: ci.lo - by, hi: ci.hi + by }
}

fn widened(quantity: Quantity, resolution: f64) -> Quantity {
    Quantity { ci: quantity.ci.map(|ci| farther(ci, resolution)), ..quantity }
}

fn messages(windows: &[Window]) -> f64 {
    windows.iter().map(|window| window.messages as f64).sum()
}

fn times(window: &Window, side: usize) -> ProcessTimes {
    if side == 0 { window.requester } else { window.replier }
}

fn counters(window: &Window, side: usize) -> Counters {
    if side == 0 { window.requester_counters } else { window.replier_counters }
}

fn total(windows: &[Window], side: usize) -> ProcessTimes {
    windows.iter().map(|window| times(window, side)).fold(ProcessTimes::default(), |one, other| one + other)
}

/// Returns the work of the side's machine. Returns `None` without accounts of it.
fn shares(launch: &UtilisationLaunch, windows: &[Window], side: usize) -> Option<MachineShares> {
    let machines: Vec<MachineTimes> =
        windows.iter().map(|window| window.machines()[side]).collect::<Option<_>>()?;
    let processors = machines.first()?.processors as f64;
    let tick_ns = machines.first()?.tick_ns;
    let sum = |of: fn(&MachineTimes) -> f64| machines.iter().map(of).sum::<f64>();
    let elapsed_ns = sum(|machine| machine.elapsed_ns);
    let elsewhere: Option<f64> = machines.iter().map(|machine| machine.elsewhere_ns).sum();
    let of_process = |side: usize| {
        let total = total(windows, side);
        total.busy_ns() / total.elapsed_ns
    };
    let of_processes = if launch.one_machine { of_process(0) + of_process(1) } else { of_process(side) };
    let busy = sum(|machine| machine.busy_ns) / elapsed_ns;
    let of_counts = |counts: f64| resolution::of_sum(tick_ns, counts * processors * machines.len() as f64);
    let of_kernel = |ns: f64| {
        let samples = resolution::of_samples(ns, processors * elapsed_ns, tick_ns);
        samples.hypot(of_counts(COUNTS_OF_KERNEL)) / elapsed_ns
    };
    Some(MachineShares {
        busy,
        softirq: sum(|machine| machine.softirq_ns) / elapsed_ns,
        elsewhere: elsewhere.map(|ns| ns / elapsed_ns),
        others: busy - of_processes,
        resolution: of_counts(COUNTS_OF_WORK) / elapsed_ns,
        softirq_resolution: of_kernel(sum(|machine| machine.softirq_ns)),
        elsewhere_resolution: of_kernel(elsewhere.unwrap_or(0.0)),
        step: tick_ns / elapsed_ns,
        elapsed_ns,
    })
}

/// Returns the work of the side's machine while nothing is sent.
fn idle(launch: &UtilisationLaunch, side: usize) -> Option<MachineShares> {
    shares(launch, &launch.idle, side)
}

/// Returns the work without that while nothing is sent. A process that polls is busy even then. Its own work
/// is therefore not part of the work that is subtracted.
fn net(with: MachineShares, idle: MachineShares) -> MachineShares {
    MachineShares {
        busy: with.busy - idle.others,
        softirq: with.softirq - idle.softirq,
        elsewhere: with.elsewhere.zip(idle.elsewhere).map(|(with, idle)| with - idle),
        others: with.others - idle.others,
        resolution: with.resolution.hypot(idle.resolution),
        softirq_resolution: with.softirq_resolution.hypot(idle.softirq_resolution),
        elsewhere_resolution: with.elsewhere_resolution.hypot(idle.elsewhere_resolution),
        step: with.step,
        elapsed_ns: with.elapsed_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three launches have no interval.
    #[test]
    fn a_cost_below_the_steps_of_the_system_is_a_bound_with_few_launches_too() {
        let launches = Launches { data: &[], confidence: 0.95.into() };
        let cost = |count: usize, ns: f64| {
            let one = Spent { ns, resolution_ns: 1e7, step_ns: 1e7, elapsed_ns: 1e9, messages: 1000.0 };
            launches.cost(&vec![one; count], NearZero::IsABound)
        };
        for count in [1, 3, 9] {
            let (none, half) = (cost(count, 0.0), cost(count, 5e8));
            assert_eq!(none.per_message.status, Status::UpperBound, "{count} launches");
            assert!(none.per_message.value_ns > Some(0.0) && none.share.value > Some(0.0));
            assert_eq!(half.per_message.status, Status::Measured, "{count} launches");
            assert_eq!((half.per_message.value_ns, half.share.value), (Some(5e5), Some(0.5)));
        }
    }
}
