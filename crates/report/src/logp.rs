//! The figures of a LogP signature, over all launches and of single ones, and its findings for the terminal.

use crate::figure::Figure;
use crate::lean;
use crate::lines::Lines;
use crate::transport::transport;
use netdyno_measure::logp::data::{Burst, LaunchData};
use netdyno_measure::logp::extract::{each_launch, extract};
use netdyno_measure::record::{LayerResult, Logp, Plateau, Ratio, TIMES};
use netdyno_measure::show::time;
use netdyno_measure::stats::median;

/// The name of the time per message in the steady state, for results without a measured g.
pub const PLATEAU: &str = "plateau";

/// Writes the distribution of the round trips, the transport statistics, and the shares and ratios.
pub fn write(lines: &mut Lines, result: &LayerResult, logp: &Logp, ratios: &[Ratio]) {
    let beside = lean::beside(result, ratios);
    let texts = [round_trips(result, logp), transport(logp), lean::shares(logp), lean::sentence(&beside)];
    texts.iter().flatten().for_each(|text| lines.wrapped(text, "  ", "    "));
}

fn round_trips(result: &LayerResult, logp: &Logp) -> Option<String> {
    let quantiles = &result.parameters.rtt.quantiles_ns;
    let named = |name: &str| quantiles.get(name).map(|ns| format!("{name} {}", time(*ns)));
    let after_pause = logp.checks.rtt_after_pause.value_ns;
    let after_pause = after_pause.map(|ns| format!("after a pause {}", time(ns)));
    let parts: Vec<String> =
        ["min", "p50", "p99", "max"].into_iter().filter_map(named).chain(after_pause).collect();
    (!parts.is_empty()).then(|| format!("rtt {}", parts.join(", ")))
}

/// Returns the name of a parameter in words.
pub fn in_words(name: &str) -> &str {
    match name {
        "rtt" => "round trip",
        "o_s" => "send overhead",
        "o_r" => "receive overhead",
        "o_poll" => "empty poll",
        "g" => "gap",
        "L" => "latency",
        other => other,
    }
}

/// Returns the figures beside the parameters.
pub fn figures(logp: &Logp, size_bytes: usize) -> Vec<Figure> {
    vec![
        plateau(&logp.plateau, size_bytes, logp.launches.len()),
        Figure::time("rtt_after_pause", size_bytes, &logp.checks.rtt_after_pause),
        Figure::time("o_r_away", size_bytes, &logp.checks.o_r_away),
    ]
}

/// Returns the time per message in the steady state, which comparisons use where g is not measured.
pub fn plateau(plateau: &Plateau, size_bytes: usize, launches: usize) -> Figure {
    let value = (Some(plateau.value_ns), plateau.ci_ns);
    Figure::median(PLATEAU, "ns", size_bytes, value, launches).compared_as(PLATEAU).without_row()
}

/// Returns the parameters of each launch. The way to compute a figure is chosen over all launches, as in the record.
pub fn of_launches(logp: &Logp, size_bytes: usize) -> Vec<Vec<Figure>> {
    let figure = |(name, value): (&'static str, Option<f64>)| {
        let name = if name == "g" { PLATEAU } else { name };
        Figure::median(name, "ns", size_bytes, (value, None), 1).compared_as(name)
    };
    let together = logp.launches.iter().all(is_whole).then(|| each_launch(&logp.launches));
    let of = |(nth, launch): (usize, &LaunchData)| {
        let own = LaunchFigures::of(launch).values;
        let chosen = together.as_ref().map(|each| each[nth]);
        let value = |(name, own): (&'static str, Option<f64>)| {
            let Some([rtt, o_s, o_r, plateau]) = chosen else { return (name, own) };
            let value = match name {
                "rtt" => Some(rtt),
                "o_s" => Some(o_s),
                "o_r" => Some(o_r),
                "g" => Some(plateau),
                // Without an o_r of a delay, L is computed from that of a receive by itself.
                "L" if o_r.is_finite() => Some(rtt / 2.0 - o_s - o_r),
                _ => own,
            };
            (name, value.filter(|ns| ns.is_finite()))
        };
        TIMES.into_iter().zip(own).map(value).map(figure).collect()
    };
    logp.launches.iter().enumerate().map(of).collect()
}

/// The figures of a single launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFigures {
    /// The index in the order of launches.
    pub launch: usize,
    /// The parameters in the order of [`TIMES`], with the plateau in place of g. `None` for a parameter
    /// that the launch's data do not give.
    pub values: [Option<f64>; TIMES.len()],
    /// Cost of one clock reading, in nanoseconds.
    pub timer_ns: f64,
    /// Number of preemptions of the requester.
    pub preemptions: Option<u64>,
}

impl LaunchFigures {
    /// Computes the figures of one launch by the rules of the whole extraction.
    pub fn of(launch: &LaunchData) -> Self {
        let whole = is_whole(launch).then(|| extract(std::slice::from_ref(launch), 0.95, 0.0)).flatten();
        let value = |name: &str| match &whole {
            None => (name == "rtt").then(|| median(launch.rtt.batches_ns.iter().copied())),
            Some(extracted) if name == "g" => Some(extracted.found.plateau.value_ns),
            Some(extracted) => {
                extracted.parameters.times().into_iter().find(|(own, _)| *own == name)?.1.value_ns
            }
        };
        Self {
            launch: launch.launch,
            values: TIMES.map(|name| value(name).filter(|ns| ns.is_finite())),
            timer_ns: launch.timer_ns,
            preemptions: launch.preemptions,
        }
    }
}
/// Reports that a launch has the shape that the extraction requires. A record is a file, and may have been
/// cut or edited.
fn is_whole(launch: &LaunchData) -> bool {
    let ascending = |bursts: &[Burst]| bursts.windows(2).all(|pair| pair[0].m < pair[1].m);
    launch.shape.delays_ns.len() >= launch.signature.len()
        && launch.signature.iter().all(|curve| ascending(&curve.bursts))
        && ascending(&launch.half_window)
        && launch.streams.iter().all(|stream| stream.messages > 0)
        && launch.rtt.histogram_ns.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_measure::logp::data::{Curve, RoundTrips, Stream};

    #[test]
    fn what_is_not_whole_still_has_its_round_trip() {
        let rtt = RoundTrips { batches_ns: vec![1.0, 3.0, 2.0], ..RoundTrips::default() };
        let burst = |m| Burst { m, issue_ns: vec![1.0], done_ns: vec![1.0], ..Burst::default() };
        let curve =
            |ms: &[usize]| Curve { bursts: ms.iter().copied().map(burst).collect(), ..Curve::default() };
        for launch in [
            LaunchData { rtt: rtt.clone(), ..LaunchData::default() },
            LaunchData { rtt: rtt.clone(), signature: vec![curve(&[4, 2])], ..LaunchData::default() },
            LaunchData { rtt: rtt.clone(), signature: vec![curve(&[1, 2]); 3], ..LaunchData::default() },
            LaunchData { rtt: rtt.clone(), half_window: vec![burst(2), burst(2)], ..LaunchData::default() },
            LaunchData { rtt: rtt.clone(), streams: vec![Stream::default()], ..LaunchData::default() },
        ] {
            assert_eq!(LaunchFigures::of(&launch).values[0], Some(2.0));
        }
        assert_eq!(LaunchFigures::of(&LaunchData::default()).values, [None; TIMES.len()]);
    }
}
