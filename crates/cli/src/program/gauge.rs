//! Compares several measurements of one link: chooses the one with the least severe warnings, and collects
//! these.

use netdyno_apparatus_fi::page::spell_own;
use netdyno_measure::logp::extract::each_launch;
use netdyno_measure::record::{Found, LayerResult};
use netdyno_measure::show::Time;
use netdyno_protocol::dial::parameters::Own;
use netdyno_protocol::dial::table::Dial;

/// Warnings that make a figure unfit for the computation of dials: the machine was busy, or the figure is no
/// valid time.
const GRAVE: &[&str] =
    &["two_groups", "preempted", "negative", "o_r_two_ways", "delay_slope", "launches_without_value"];
/// Launches of one link on an idle machine differ by at most this factor, or by at most this time in
/// nanoseconds.
const LAUNCHES_AGREE: (f64, f64) = (1.5, 500.0);
/// Parameters of measurements that agree differ by at most this factor, or by at most this time in nanoseconds.
const MEASUREMENTS_AGREE: (f64, f64) = (1.15, 300.0);
/// The figures of a launch, in the order of [`each_launch`].
const FIGURES: [&str; 4] = ["rtt", "o_s", "o_r", "g"];

/// One measurement of a link.
#[derive(Clone, Debug)]
pub struct Gauge {
    /// The link's own parameters, as far as they were observed.
    pub own: Own,
    /// The warnings, one sentence each.
    pub doubts: Vec<String>,
}

impl Gauge {
    /// Evaluates the result of a verb. `wanted` are the parameters that the dials need.
    pub fn of(result: &LayerResult, own: Own, wanted: &[Dial]) -> Self {
        let mut doubts: Vec<String> = result
            .doubts
            .iter()
            .filter(|doubt| GRAVE.contains(&doubt.name.as_str()))
            .map(|doubt| match &doubt.about {
                Some(about) => format!("{about}: {}", doubt.text),
                None => doubt.text.clone(),
            })
            .collect();
        if let Found::Logp(logp) = &result.found {
            doubts.extend(disagreements(&each_launch(&logp.launches)));
        }
        let unseen = wanted.iter().filter(|&&dial| own.get(dial).is_none());
        doubts.extend(unseen.map(|dial| format!("{dial} could not be seen")));
        Self { own, doubts }
    }

    fn is_grave(&self) -> bool {
        !self.doubts.is_empty()
    }

    /// Reports whether both measurements saw the same parameters, with nearly the same values.
    fn agrees_with(&self, other: &Self) -> bool {
        let (factor, time_ns) = MEASUREMENTS_AGREE;
        Dial::ALL.into_iter().all(|dial| match (self.own.get(dial), other.own.get(dial)) {
            (Some(a), Some(b)) => {
                // A gap per byte is not a time.
                let least = if dial == Dial::GapPerByte { 0.0 } else { time_ns };
                !differ(a.min(b), a.max(b), (factor, least))
            }
            (None, None) => true,
            _ => false,
        })
    }

    /// Returns the number of parameters that were not seen.
    fn missing(&self, wanted: &[Dial]) -> usize {
        wanted.iter().filter(|&&dial| self.own.get(dial).is_none()).count()
    }

    /// Returns the severity of the warnings. A missing parameter outweighs every warning.
    fn weight(&self, wanted: &[Dial]) -> (usize, usize) {
        (self.missing(wanted), self.doubts.len())
    }
}

/// Reports whether the link should be measured again: the last measurement has severe warnings, and the one before it
/// does not agree. If both agree, the warnings are those of the link itself, as where its overhead and flight overlap.
pub fn should_repeat(gauges: &[Gauge], wanted: &[Dial]) -> bool {
    match gauges {
        [] => true,
        [.., before, last] => last.missing(wanted) > 0 || last.is_grave() && !last.agrees_with(before),
        [last] => last.is_grave(),
    }
}

/// Returns the measurement with the least severe warnings, the latest of equals. If all have warnings, one
/// more warning lists the values of all measurements.
pub fn best(gauges: &[Gauge], wanted: &[Dial]) -> Option<Gauge> {
    let best = gauges.iter().rev().min_by_key(|gauge| gauge.weight(wanted))?;
    let mut best = best.clone();
    if best.is_grave() && gauges.len() > 1 {
        let all: Vec<String> = gauges.iter().map(|gauge| spell_own(&gauge.own).to_string()).collect();
        best.doubts.push(format!("measured {} times: {}", gauges.len(), all.join("; ")));
    }
    Some(best)
}

/// Reports whether two values differ by more than a factor, and by more than `least`.
fn differ(low: f64, high: f64, (factor, least): (f64, f64)) -> bool {
    high > factor * low.max(0.0) && high - low > least
}

/// Describes the figures on which launches of one link disagree.
fn disagreements(launches: &[[f64; 4]]) -> Vec<String> {
    let figure = |at: usize| {
        let values = launches.iter().map(|launch| launch[at]).filter(|value| value.is_finite());
        let (low, high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        differ(low, high, LAUNCHES_AGREE).then(|| {
            format!(
                "{}: launches disagree, {} to {}: is the machine busy?",
                FIGURES[at],
                Time(low),
                Time(high)
            )
        })
    };
    (0..FIGURES.len()).filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(o_r: f64, doubts: &[&str]) -> Gauge {
        let mut own = Own::UNKNOWN;
        if o_r > 0.0 {
            own.note(Dial::RecvOverhead, o_r);
        }
        Gauge { own, doubts: doubts.iter().map(|&doubt| doubt.to_owned()).collect() }
    }

    #[test]
    fn launches_that_disagree_are_told() {
        let told = |o_r: [f64; 3]| disagreements(&o_r.map(|o_r| [6000.0, 900.0, o_r, 1000.0]));
        assert_eq!(told([1300.0, 1250.0, 1420.0]), [""; 0]);
        // Small figures vary by more than half, which does not matter.
        assert_eq!(told([30.0, 90.0, 300.0]), [""; 0]);
        let told = told([1300.0, 13_000.0, 1250.0]);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("o_r: launches disagree, 1.25 µs to 13 µs"), "{told:?}");
    }

    #[test]
    fn doubted_measurements_that_agree_are_not_repeated() {
        let repeats = |o_r: &[(f64, &[&str])]| {
            let gauges: Vec<Gauge> = o_r.iter().map(|(o_r, doubts)| gauge(*o_r, doubts)).collect();
            should_repeat(&gauges, &[Dial::RecvOverhead])
        };
        assert!(repeats(&[]) && repeats(&[(1.3e3, &["a"])]) && !repeats(&[(1.3e3, &[])]));
        assert!(!repeats(&[(1.3e3, &["a"]), (1.4e3, &["a"])]));
        assert!(repeats(&[(13e3, &["a"]), (1.4e3, &["a"])]) && !repeats(&[(13e3, &["a"]), (1.4e3, &[])]));
        assert!(
            repeats(&[(0.0, &["unseen"]), (1.4e3, &["a"])])
                && repeats(&[(0.0, &["unseen"]), (0.0, &["unseen"])])
        );
    }

    #[test]
    fn the_least_doubted_measurement_counts() {
        let wanted = [Dial::RecvOverhead];
        let gauges = [gauge(13e3, &["a", "b"]), gauge(1.3e3, &[]), gauge(1.4e3, &["a"])];
        assert_eq!(best(&gauges, &wanted).unwrap().own.get(Dial::RecvOverhead), Some(1.3e3));
        // A missing parameter is worse than any warning.
        let gauges = [gauge(0.0, &["unseen"]), gauge(13e3, &["a", "b"])];
        let found = best(&gauges, &wanted).unwrap();
        assert_eq!(found.own.get(Dial::RecvOverhead), Some(13e3));
        assert!(found.doubts.last().unwrap().contains("measured 2 times"), "{found:?}");
        assert!(best(&[], &wanted).is_none());
    }
}
