//! The figures of a result and of its launches, for every verb.

use crate::figure::{Figure, times};
use crate::{
    breakdown, bulk, completion, contention, logp, memory, onesided, overlap, registration, utilisation,
    validation,
};
use netdyno_measure::record::{Found, LayerResult};

/// Returns all figures of a result: its parameters, then those of its verb.
pub fn figures(result: &LayerResult) -> Vec<Figure> {
    let size = result.size_bytes;
    let mut figures = times(&result.parameters, size);
    let mut per_byte = Figure::per_byte("G", size, &result.parameters.G);
    match &result.found {
        Found::Logp(_) | Found::Contention(_) => {}
        // The parameters are also those of the smallest size.
        Found::Bulk(_) => {
            per_byte.compared_as = Some("G".into());
            figures.iter_mut().for_each(|figure| figure.compared_as = None);
        }
        Found::Breakdown(_)
        | Found::Completion(_)
        | Found::Memory(_)
        | Found::Onesided(_)
        | Found::Overlap(_)
        | Found::Registration(_)
        | Found::Utilisation(_)
        | Found::Validate(_) => {
            figures.iter_mut().for_each(|figure| figure.compared_as = None);
        }
    }
    figures.push(per_byte);
    figures.extend(match &result.found {
        Found::Logp(found) => logp::figures(found, size),
        Found::Breakdown(found) => breakdown::figures(found, size),
        Found::Bulk(found) => bulk::figures(found, size),
        Found::Completion(found) => completion::figures(found),
        Found::Contention(found) => contention::figures(found, size),
        Found::Memory(found) => memory::figures(found),
        Found::Onesided(found) => onesided::figures(found),
        Found::Overlap(found) => overlap::figures(found),
        Found::Registration(found) => registration::figures(found, size),
        Found::Utilisation(found) => utilisation::figures(found),
        Found::Validate(found) => validation::figures(found),
    });
    figures
}

/// Returns the compared figures of each launch by itself. A launch without figures has none.
pub fn of_launches(result: &LayerResult) -> Vec<Vec<Figure>> {
    let size = result.size_bytes;
    match &result.found {
        Found::Logp(found) => logp::of_launches(found, size),
        Found::Bulk(found) => bulk::of_launches(found, size),
        Found::Completion(found) => completion::of_launches(found),
        Found::Contention(found) => contention::of_launches(found, size),
        Found::Memory(found) => memory::of_launches(found),
        Found::Onesided(found) => onesided::of_launches(found),
        Found::Overlap(found) => overlap::of_launches(found),
        Found::Registration(found) => registration::of_launches(found),
        Found::Utilisation(found) => utilisation::of_launches(found),
        Found::Breakdown(found) => breakdown::of_launches(found, size),
        Found::Validate(_) => Vec::new(),
    }
}
