//! The parameters of single launches, for the spread between launches.

use netdyno_measure::logp::data::{Burst, LaunchData};
use netdyno_measure::logp::extract::extract;
use netdyno_measure::stats::median;

/// The names of [`LaunchFigures::values`], in their order.
pub const NAMES: [&str; 6] = ["rtt", "o_s", "o_r", "o_poll", "g", "L"];

/// The figures of a single launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFigures {
    /// The index in the order of launches.
    pub launch: usize,
    /// The parameters in the order of [`NAMES`], with the plateau in place of g. `None` for a parameter
    /// that the launch's data do not give.
    pub values: [Option<f64>; 6],
    /// Cost of one clock reading, in nanoseconds.
    pub timer_ns: f64,
    /// Number of preemptions of the requester.
    pub preemptions: Option<u64>,
}

impl LaunchFigures {
    /// Computes the figures of one launch by the rules of the whole extraction.
    pub fn of(launch: &LaunchData) -> Self {
        let rtt = || median(launch.rtt.batches_ns.iter().copied());
        let values =
            match is_whole(launch).then(|| extract(std::slice::from_ref(launch), 0.95, 0.0)).flatten() {
                Some(extracted) => {
                    let plateau = extracted.found.plateau.value_ns;
                    extracted
                        .parameters
                        .times()
                        .map(|(name, p)| if name == "g" { Some(plateau) } else { p.value_ns })
                }
                None => [Some(rtt()), None, None, None, None, None],
            };
        Self {
            launch: launch.launch,
            values: values.map(|value| value.filter(|ns| ns.is_finite())),
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
        assert_eq!(LaunchFigures::of(&LaunchData::default()).values, [None; 6]);
    }
}
