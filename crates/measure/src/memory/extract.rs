//! The figures computed from several launches: those of one-sided operations.

use super::data::MemoryLaunch;
use super::doubts;
use super::record::RemoteMemory;
use crate::onesided::data::OnesidedLaunch;
use crate::onesided::extract::figures;
use crate::reading::Reading;
use crate::record::parameter::{Parameters, PerByte};
use crate::stats::Confidence;

/// Computes figures and warnings from launches. Returns `None` if the launches measured nothing, or differ in their
/// shapes.
pub fn extract(
    data: &[MemoryLaunch],
    confidence: impl Into<Confidence>,
    precision: f64,
) -> Option<Reading<RemoteMemory>> {
    let launches: Vec<OnesidedLaunch> = data.iter().map(|launch| launch.0.clone()).collect();
    let mut found = figures(&launches, confidence)?;
    // Two sizes of bulk writes cannot tell whether the gap per byte is constant.
    found.operations.iter_mut().for_each(|operation| operation.G = PerByte::unobservable());
    let (parameters, found) = (Parameters::unobservable(), RemoteMemory(found));
    let doubts = doubts::find(&found, precision);
    Some(Reading { parameters, found, doubts })
}
