//! The figures computed from several launches. Each is the median of the values of the launches, with its
//! distribution-free interval. The value of a launch is the median of its batches. No figure is clamped.

use super::data::{CompletionLaunch, CompletionSizeData, CompletionSizeShape};
use super::doubts;
use super::peak::PeakSource;
use super::record::{Completion, CompletionTimes};
use crate::figure::Figure;
use crate::overlap::record::Quantity;
use crate::reading::Reading;
use crate::record::parameter::{Parameter, Parameters, Status};
use crate::row::{self, Singles};
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
        peak: shape.peak.clone(),
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
        let launches = self.data.iter().map(|launch| &launch.sizes[at].alone_ns);
        let singles = Singles::of(&alone, launches, 1);
        let per_message = row::judged(per_message, shape.row, shape.window as f64, singles);
        let peak_bytes_per_s = self.peak(at, shape.size_bytes);
        let share_of_peak = match per_message.status {
            Status::Measured => self.over_launches(|launch| launch.share_of_peak(at)),
            // A bound of the time per message says nothing of the bandwidth but that it is more.
            Status::UpperBound | Status::Unobservable => Quantity::default(),
        };
        CompletionTimes {
            size_bytes: shape.size_bytes,
            half_rtt,
            per_message,
            peak_bytes_per_s,
            share_of_peak,
        }
    }

    /// Returns the peak at one size: that of the whole way, or that of a copy of this size.
    fn peak(&self, at: usize, size_bytes: usize) -> Quantity {
        match self.data.first().map(|first| &first.shape.peak) {
            Some(peak) if peak.source != PeakSource::Copy => {
                Quantity { value: peak.peak_bytes_per_s, ..Quantity::default() }
            }
            _ => self.over_launches(|launch| Some(size_bytes as f64 / launch.ideal_ns(at)? * 1e9)),
        }
    }

    /// Returns the median over the launches that have a value.
    fn over_launches(&self, of: impl Fn(&CompletionLaunch) -> Option<f64>) -> Quantity {
        Figure::over(self.data.iter().filter_map(of), self.confidence).into()
    }

    /// Returns a time from its batches, each of `samples` samples.
    fn time(&self, at: usize, samples: u64, of: impl Fn(&CompletionSizeData) -> &[f64] + Clone) -> Parameter {
        let batches = self.data.iter().map(|launch| of(&launch.sizes[at]));
        Figure::of_batches(batches, samples, self.confidence)
    }
}
