//! Warnings about the figures of `completion`, because of the layer, the machine or the run.

use super::record::Completion;
use crate::machine::{coarse_for_some, preempted};
use crate::precision::{self, Wanted};
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Parameters};
use crate::row::Stream;
use crate::show::Bytes;
use crate::stats::median;

/// Returns the warnings: a figure has another meaning than its name says, or is not precise.
pub(super) fn find(parameters: &Parameters, found: &Completion, precision: f64) -> Vec<Doubt> {
    let launches = &found.launches;
    let stream =
        Stream { subject: "stream", things: "messages", figure: ("per_message", "time per message") };
    let sizes = || found.sizes.iter().map(|size| (size.size_bytes, &size.per_message));
    let mut doubts = Vec::new();
    doubts.extend(stream.window_bound(sizes()));
    doubts.extend(stream.hidden("pace_hidden", sizes().map(|(_, each)| each)));
    doubts.extend(coarse_for_some(&times(found), median_timer(found)));
    doubts.extend(preempted("requester", launches.iter().map(|l| (l.preemptions, l.took_ns))));
    doubts.extend(precision::doubt(&wanted(parameters, found, precision), launches.len(), precision));
    doubts
}

fn median_timer(found: &Completion) -> f64 {
    median(found.launches.iter().map(|launch| launch.timer_ns))
}

/// Returns all figures with a value, with their names.
fn times(found: &Completion) -> Vec<(String, &Parameter)> {
    let all = found.sizes.iter().flat_map(|size| {
        let bytes = Bytes(size.size_bytes);
        size.times().map(|(name, time)| (format!("{name} of {bytes}"), time))
    });
    all.filter(|(_, time)| time.value_ns.is_some()).collect()
}

/// Returns all figures, which must be precise to a share of themselves.
pub(crate) fn wanted(_parameters: &Parameters, found: &Completion, precision: f64) -> Vec<Wanted> {
    precision::to_a_share(times(found), precision, median_timer(found))
}
