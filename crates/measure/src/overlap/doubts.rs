//! Warnings about the figures of overlap, because of the layer, the machine or the run.

use super::launches::OverlapLaunches;
use super::record::{Overlap, Quantity, SizeOverlap, Trip};
use crate::machine::{coarse_clock, preempted};
use crate::precision::{self, Wanted};
use crate::processor_time::MachineTimes;
use crate::record::doubt::Doubt;
use crate::record::parameter::Parameters;
use crate::show::{Percent, Size, Time};
use crate::stats::{Interval, median};

/// The tolerated deviation of work from its share of the amount asked for.
const NOT_LINEAR: f64 = 0.02;
/// A figure is impossible if its interval lies beyond the limit by this share.
const ODD: f64 = 0.01;
/// The tolerated growth of waiting with work, as a share.
const WAIT_GROWS: f64 = 0.1;
/// Kernel work on other processors counts from this share of a processor on.
const KERNEL_ELSEWHERE: f64 = 0.05;
/// The tolerated difference of two methods for the share that goes behind work.
const DISAGREEMENT: f64 = 0.1;

/// Returns the warnings: the layer or the machine does not behave as the methods assume.
pub(super) fn find(
    launches: &OverlapLaunches<'_>,
    parameters: &Parameters,
    overlap: &Overlap,
    precision: f64,
) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    doubt_work(launches, &mut doubts);
    doubts.extend(doubt_rows(overlap));
    for size in &overlap.sizes {
        doubt_polling(size, &mut doubts);
        doubt_pww(size, &mut doubts);
        doubt_free(size, launches.data.len(), &mut doubts);
    }
    doubt_machine(launches, parameters, &mut doubts);
    doubts.extend(precision::doubt(&wanted(parameters, overlap, precision), launches.data.len(), precision));
    doubts
}

/// Warns if a longer row took less time than a shorter one, so that the bandwidth is negative.
fn doubt_rows(overlap: &Overlap) -> Option<Doubt> {
    let is_odd = |trip: &&Trip| known(&trip.bandwidth_bytes_per_s).is_some_and(|known| known.hi <= 0.0);
    let odd: Vec<String> =
        overlap.trips.iter().filter(is_odd).map(|trip| Size(trip.size_bytes).to_string()).collect();
    (!odd.is_empty()).then(|| {
        let text = format!(
            "messages of {}: a row took less time than one of half as many, so that there is no bandwidth one way",
            odd.join(", ")
        );
        Doubt::about("negative_bandwidth", "one_way", text)
    })
}

/// Warns if work is not linear: both methods assume that k times the work takes k times as long.
fn doubt_work(launches: &OverlapLaunches<'_>, doubts: &mut Vec<Doubt>) {
    let count = launches.data.iter().map(|launch| launch.work.len()).min().unwrap_or(0);
    let stretch = |nth: usize| {
        median(launches.data.iter().map(|launch| launch.work[nth].took_ns / launch.work[nth].asked_ns))
    };
    let stretches: Vec<f64> = (0..count).map(stretch).collect();
    let usual = median(stretches.iter().copied());
    let off = |nth: &usize| (stretches[*nth] / usual - 1.0).abs();
    let Some(worst) = (0..count).max_by(|a, b| off(a).total_cmp(&off(b))) else { return };
    if off(&worst) > NOT_LINEAR {
        doubts.push(Doubt::new(
            "work_not_linear",
            format!(
                "work for {} takes {} more or less than its share of more and less work: intervals are what they were measured to be",
                Time(launches.data[0].work[worst].asked_ns),
                Percent(off(&worst))
            ),
        ));
    }
}

/// Returns the intervals of the odd points in words, for one sentence.
fn at_intervals(intervals: &[&Quantity]) -> String {
    let times: Vec<f64> = intervals.iter().filter_map(|interval| interval.value).collect();
    match times[..] {
        [] => String::new(),
        [one] => Time(one).to_string(),
        [first, .., last] => format!("{} intervals from {} to {}", times.len(), Time(first), Time(last)),
    }
}

fn doubt_polling(size: &SizeOverlap, doubts: &mut Vec<Doubt>) {
    let bytes = Size(size.size_bytes);
    let odd: Vec<&Quantity> =
        size.polling.iter().filter(|p| is_above_one(&p.availability)).map(|p| &p.interval_ns).collect();
    if !odd.is_empty() {
        doubts.push(Doubt::about(
            "availability_above_one",
            "polling.availability",
            format!("with {bytes} work was faster with messages than without, at {}", at_intervals(&odd)),
        ));
    }
    let silent: Vec<&Quantity> = size
        .polling
        .iter()
        .filter(|p| p.bandwidth_bytes_per_s.value.is_none_or(|rate| rate <= 0.0))
        .map(|p| &p.interval_ns)
        .collect();
    if !silent.is_empty() {
        doubts.push(Doubt::about(
            "nothing_arrived",
            "polling.bandwidth",
            format!("with {bytes} no message arrived while polling, at {}", at_intervals(&silent)),
        ));
    }
}

/// Returns the interval of a figure; its value alone if there are too few launches for an interval.
fn known(quantity: &Quantity) -> Option<Interval> {
    quantity.ci.or_else(|| quantity.value.map(|value| [value, value].into()))
}

fn is_above_one(availability: &Quantity) -> bool {
    known(availability).is_some_and(|known| known.lo > 1.0 + ODD)
}

fn doubt_pww(size: &SizeOverlap, doubts: &mut Vec<Doubt>) {
    let bytes = Size(size.size_bytes);
    let named = |is_odd: &dyn Fn(&super::record::WorkPoint) -> bool| {
        let odd: Vec<&Quantity> = size.pww.iter().filter(|p| is_odd(p)).map(|p| &p.alone_ns).collect();
        (!odd.is_empty()).then(|| at_intervals(&odd))
    };
    if let Some(at) = named(&|p| is_above_one(&p.availability)) {
        doubts.push(Doubt::about(
            "availability_above_one",
            "pww.availability",
            format!("with {bytes} a whole cycle was shorter than its work alone, at {at}"),
        ));
    }
    let is_negative = |p: &super::record::WorkPoint| {
        let tolerated = ODD * p.alone_ns.value.unwrap_or(0.0).abs() + 1.0;
        known(&p.stolen_ns).is_some_and(|known| known.hi < -tolerated)
    };
    if let Some(at) = named(&is_negative) {
        doubts.push(Doubt::about(
            "negative_stolen",
            "pww.stolen",
            format!("with {bytes} work took less time with messages than without, at {at}"),
        ));
    }
    let Some(without) = size.pww.first().and_then(|p| p.wait_ns.ci) else { return };
    let grows =
        |p: &super::record::WorkPoint| p.wait_ns.ci.is_some_and(|ci| ci.lo > (1.0 + WAIT_GROWS) * without.hi);
    if let Some(at) = named(&grows) {
        doubts.push(Doubt::about(
            "wait_grows",
            "pww.wait",
            format!("with {bytes} waiting took longer after work than without work, at {at}"),
        ));
    }
}

fn doubt_free(size: &SizeOverlap, launches: usize, doubts: &mut Vec<Doubt>) {
    let Some(free) = &size.free else { return };
    let bytes = Size(size.size_bytes);
    if 2 * free.confirmed < launches {
        doubts.push(Doubt::about(
            "knee_not_confirmed",
            "free",
            format!(
                "with {bytes} only {} of {launches} launches confirm it: a cycle does not stay level and then grow by all further work",
                free.confirmed
            ),
        ));
    }
    if known(&free.share).is_some_and(|known| known.hi < -ODD) {
        doubts.push(Doubt::about(
            "negative_free",
            "free",
            format!("with {bytes} work makes a cycle longer by more than it takes itself"),
        ));
    }
    let finding = &size.finding;
    let (Some(ci), Some(cycle), Some(calls), Some(stolen)) =
        (free.share.ci, finding.cycle_ns.value, finding.calls_ns.value, finding.stolen_ns.value)
    else {
        return;
    };
    let by_pww = 1.0 - (calls + stolen) / cycle;
    if by_pww < ci.lo - DISAGREEMENT || by_pww > ci.hi + DISAGREEMENT {
        doubts.push(Doubt::about(
            "methods_disagree",
            "free",
            format!(
                "with {bytes} {} of a cycle goes behind long work, and {} of it behind the most work that is free",
                Percent(by_pww),
                Percent(free.share.value.unwrap_or(f64::NAN))
            ),
        ));
    }
}

/// Adds the warnings about the clock and the system.
fn doubt_machine(launches: &OverlapLaunches<'_>, parameters: &Parameters, doubts: &mut Vec<Doubt>) {
    let timer = median(launches.data.iter().map(|launch| launch.timer_ns));
    doubts.extend(coarse_clock(parameters.rtt.value_ns, timer));
    doubts.extend(preempted("worker", launches.data.iter().map(|l| (l.preemptions, l.took_ns))));
    doubts.extend(kernel_elsewhere(launches));
}

/// Warns if the kernel worked more on other processors than the worker's than it does without messages, because
/// availability does not count that.
fn kernel_elsewhere(launches: &OverlapLaunches<'_>) -> Option<Doubt> {
    let share = |machine: &Option<MachineTimes>| {
        machine.as_ref().and_then(|machine| Some(machine.elsewhere_ns? / machine.elapsed_ns))
    };
    let more = launches.figure(|launch| {
        let both = share(&launch.machine).zip(share(&launch.machine_alone));
        both.map_or(f64::NAN, |(with, alone)| with - alone)
    });
    let is_clear = more.ci.is_none_or(|ci| ci.lo > 0.0);
    (more.value > KERNEL_ELSEWHERE && is_clear).then(|| {
        let interval = more.ci.map_or(String::new(), |ci| format!(" [{}, {}]", Percent(ci.lo), Percent(ci.hi)));
        let text = format!(
            "while the methods ran, the kernel used {}{interval} of a processor more on other processors than the \
             worker's than without messages, the calls of the other side among it: availability does not count it",
            Percent(more.value)
        );
        Doubt::new("kernel_elsewhere", text)
    })
}

/// Returns all figures that must be precise. Half round trips must be so to a share of themselves.
/// Availability and the free share of a cycle are shares, and must be so to the share asked for.
pub(crate) fn wanted(_parameters: &Parameters, overlap: &Overlap, precision: f64) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for trip in &overlap.trips {
        let value = trip.half_rtt.value_ns.unwrap_or(f64::NAN);
        wanted.push(Wanted {
            name: format!("the half round trip of {}", Size(trip.size_bytes)),
            value,
            ci: trip.half_rtt.ci_ns,
            half_width: precision * value.abs(),
        });
    }
    for size in &overlap.sizes {
        let share = |what: &str, quantity: &Quantity| Wanted {
            name: format!("{what} with {}", Size(size.size_bytes)),
            value: quantity.value.unwrap_or(f64::NAN),
            ci: quantity.ci,
            half_width: precision,
        };
        wanted.extend(size.polling.iter().map(|p| share("availability while polling", &p.availability)));
        wanted.extend(size.pww.iter().map(|p| share("availability in post-work-wait", &p.availability)));
        wanted.extend(size.free.iter().map(|free| share("the share that is free", &free.share)));
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap::data::OverlapLaunch;

    /// Doubts launches in which the kernel worked elsewhere for these shares with messages and without.
    fn told(shares: &[(Option<f64>, Option<f64>)]) -> Option<Doubt> {
        let of = |elsewhere_ns| MachineTimes { elapsed_ns: 1.0, elsewhere_ns, ..MachineTimes::default() };
        let launch = |&(with, alone)| OverlapLaunch {
            machine: Some(of(with)),
            machine_alone: Some(of(alone)),
            ..OverlapLaunch::default()
        };
        let launches: Vec<OverlapLaunch> = shares.iter().map(launch).collect();
        kernel_elsewhere(&OverlapLaunches::of(&launches, 0.95))
    }

    #[test]
    fn kernel_work_on_other_processors_is_told() {
        assert!(
            told(&[(Some(0.4), Some(0.0)); 9])
                .unwrap()
                .text
                .contains("40 % [40 %, 40 %] of a processor more")
        );
        // Two launches have no interval.
        assert!(told(&[(Some(0.4), Some(0.1)); 2]).unwrap().text.contains("30 % of a processor more"));
        assert_eq!(told(&[(Some(0.04), Some(0.0)); 9]), None);
        assert_eq!(told(&[(None, None); 9]), None);
        // The other process polls by system calls.
        assert_eq!(told(&[(Some(0.8), Some(0.78)); 9]), None);
        // Nothing is sure.
        let unsure: Vec<_> = (0..9).map(|nth| (Some(0.1 * f64::from(nth)), Some(0.3))).collect();
        assert_eq!(told(&unsure), None);
    }
}
