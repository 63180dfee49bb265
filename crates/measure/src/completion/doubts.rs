//! Warnings about the figures of `completion`, because of the layer, the machine or the run.

use super::data::CompletionSizeShape;
use super::peak::PeakSource;
use super::record::{Completion, CompletionTimes};
use crate::machine::{coarse_for_some, preempted};
use crate::precision::{self, Timed, Wanted};
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameters, Status};
use crate::row::Stream;
use crate::show::{Bytes, Percent, rate, sizes_between};
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
    doubts.extend(short_rows(found));
    doubts.extend(above_peak(found));
    doubts.extend(coarse_for_some(&times(found), median_timer(found)));
    doubts.extend(preempted("requester", launches.iter().map(|l| (l.preemptions, l.took_ns))));
    doubts.extend(precision::doubt(&wanted(parameters, found, precision), launches.len(), precision));
    doubts
}

/// A row is short if a window is more than this share of it.
const SHORT: f64 = 0.05;

/// Warns of rows that are too short to tell the slowest stage from one that is nearly as slow.
fn short_rows(found: &Completion) -> Option<Doubt> {
    let shapes = &found.launches.first()?.shape.sizes;
    let is_measured = |size: &&CompletionTimes| size.per_message.status == Status::Measured;
    let measured = found.sizes.iter().zip(shapes).filter(|(size, _)| is_measured(size));
    let share = |shape: &CompletionSizeShape| shape.window as f64 / shape.row as f64;
    let short: Vec<(usize, f64)> = measured
        // A row of long messages is shorter than the window, and never waits for it.
        .filter(|(_, shape)| shape.row > shape.window as u64)
        .map(|(size, shape)| (size.size_bytes, share(shape)))
        .filter(|(_, share)| *share > SHORT)
        .collect();
    let sizes: Vec<usize> = short.iter().map(|(bytes, _)| *bytes).collect();
    let most = short.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let text = format!(
        "stream, {}: rows last so long that they have few windows, so that a stage that is slower than \
         the next one by less than {} may not show: the time per message is too short by that at most",
        sizes_between(&sizes)?,
        Percent(most)
    );
    Some(Doubt::about("short_rows", "per_message", text))
}

/// Warns if a stream is faster than the peak, by the interval of its share.
fn above_peak(found: &Completion) -> Option<Doubt> {
    let is_above = |size: &&CompletionTimes| size.share_of_peak.ci.is_some_and(|ci| ci.lo > 1.0);
    let above: Vec<usize> = found.sizes.iter().filter(is_above).map(|size| size.size_bytes).collect();
    let peak = found.peak.peak_bytes_per_s.map_or_else(String::new, |peak| format!("{}, ", rate(peak)));
    let text = format!(
        "{}: a stream is faster than the peak ({peak}{}), so that this is no peak of the way: {}",
        sizes_between(&above)?,
        found.peak.how,
        if found.peak.source == PeakSource::Given { "give a larger one" } else { "give it with --peak" }
    );
    Some(Doubt::about("above_peak", "share_of_peak", text))
}

fn median_timer(found: &Completion) -> f64 {
    median(found.launches.iter().map(|launch| launch.timer_ns))
}

/// Returns all figures with a value, with their names.
fn times(found: &Completion) -> Vec<Timed> {
    let shapes = found.launches.first().map_or(&[][..], |launch| &launch.shape.sizes);
    let all = found.sizes.iter().zip(shapes).flat_map(|(size, shape)| {
        // Half of a round trip, and a message of a row.
        let together = [2.0, shape.row as f64];
        together.into_iter().zip(size.times()).filter_map(|(together, (name, time))| {
            Timed::of(format!("{name} of {}", Bytes(size.size_bytes)), time, together)
        })
    });
    all.collect()
}

/// Returns all figures, which must be precise to a share of themselves.
pub(crate) fn wanted(_parameters: &Parameters, found: &Completion, precision: f64) -> Vec<Wanted> {
    precision::to_a_share(times(found), precision, median_timer(found))
}

#[cfg(test)]
mod tests {
    use crate::completion::data::{
        CompletionLaunch, CompletionShape, CompletionSizeData, CompletionSizeShape,
    };
    use crate::completion::extract::extract;

    #[test]
    fn only_rows_that_wait_for_the_window_can_be_short() {
        let is_short = |row: u64, window: usize| {
            let size = CompletionSizeShape { size_bytes: 1 << 26, trips: 1, row, window, rest_ns: 0.0 };
            let times = || vec![5e6; 3];
            let data = CompletionSizeData {
                half_rtt_ns: times(),
                alone_ns: times(),
                issue_ns: times(),
                done_ns: times(),
                copy_ns: Vec::new(),
            };
            let launch = CompletionLaunch {
                shape: CompletionShape { sizes: vec![size], ..CompletionShape::default() },
                sizes: vec![data],
                ..CompletionLaunch::default()
            };
            let found = extract(&vec![launch; 9], 0.95, 0.02).unwrap();
            assert!(found.found.sizes[0].per_message.value_ns.is_some());
            found.doubts.iter().any(|doubt| doubt.name == "short_rows")
        };
        assert!(is_short(16, 8));
        assert!(!is_short(800, 8));
        // The rows of a message of milliseconds.
        assert!(!is_short(1, 64));
    }
}
