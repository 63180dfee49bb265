//! The figures computed from several launches. Each is the median of the values of the launches, with its
//! distribution-free interval. The value of a launch is the median of its batches. No figure is clamped.

use super::data::{CompletionLaunch, CompletionSizeData, CompletionSizeShape};
use super::doubts;
use super::record::{Completion, CompletionTimes};
use crate::figure::Figure;
use crate::reading::Reading;
use crate::record::parameter::{Parameter, Parameters};
use crate::row;
use crate::stats::Confidence;

/// Computes figures and warnings from launches. Returns `None` if the launches measured nothing, or differ
/// in their shapes.
pub fn extract(
    data: &[CompletionLaunch],
    confidence: impl Into<Confidence>,
    precision: f64,
) -> Option<Reading<Completion>> {
    let shape = &data.first().filter(|first| !first.shape.sizes.is_empty())?.shape;
    // A record is a file that others may have written: its launches may differ in their shapes.
    let is_like =
        |launch: &CompletionLaunch| launch.shape == *shape && launch.sizes.len() == shape.sizes.len();
    if !data.iter().all(is_like) {
        return None;
    }
    let launches = CompletionLaunches { data, confidence: confidence.into() };
    let found = Completion {
        largest_bytes: None,
        sizes: shape.sizes.iter().enumerate().map(|(at, shape)| launches.times(at, shape)).collect(),
        launches: data.to_vec(),
    };
    let parameters = Parameters::unobservable();
    let doubts = doubts::find(&parameters, &found, precision);
    Some(Reading { parameters, found, doubts })
}

/// Several launches of the same shape.
struct CompletionLaunches<'a> {
    data: &'a [CompletionLaunch],
    confidence: Confidence,
}

impl CompletionLaunches<'_> {
    fn times(&self, at: usize, shape: &CompletionSizeShape) -> CompletionTimes {
        let half_rtt = self.time(at, shape.trips, |data| &data.half_rtt_ns);
        let alone = self.time(at, 1, |data| &data.alone_ns);
        let per_message = self.time(at, shape.row.saturating_mul(3), CompletionSizeData::per_message_ns);
        let per_message = row::judged(per_message, shape.window as f64, alone.value_ns);
        CompletionTimes { size_bytes: shape.size_bytes, half_rtt, per_message }
    }

    /// Returns a time from its batches, each of `samples` samples.
    fn time(&self, at: usize, samples: u64, of: impl Fn(&CompletionSizeData) -> &[f64] + Clone) -> Parameter {
        let batches = self.data.iter().map(|launch| of(&launch.sizes[at]));
        Figure::of_batches(batches, samples, self.confidence)
    }
}
