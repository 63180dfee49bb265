//! The figures of a result that can be compared, each with its value in every launch.

use super::Figure;
use crate::launches::LaunchFigures;
use netdyno_measure::bulk::extract::extract;
use netdyno_measure::bulk::record::{Bulk, SizeFigures};
use netdyno_measure::contention;
use netdyno_measure::contention::record::Contention;
use netdyno_measure::overlap::data::OverlapLaunch;
use netdyno_measure::overlap::record::{Overlap, Quantity};
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Found, LayerResult, Logp, Parameter, Plateau, Status};
use netdyno_measure::registration::data::RegistrationLaunch;
use netdyno_measure::registration::record::Registration;
use netdyno_measure::stats::median;
use std::slice;

/// A figure of a result.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name.
    pub name: &'static str,
    /// Bytes of user data in a message.
    pub size_bytes: usize,
    /// Its unit.
    pub unit: &'static str,
    /// The figure in the record.
    pub figure: Figure,
    /// The value in every launch, in their order; `None` for a launch without one.
    pub launches: Vec<Option<f64>>,
}

/// The name of the time per message in the steady state, for results without a measured g.
pub const PLATEAU: &str = "plateau";

/// Returns all figures of a result.
pub fn of(result: &LayerResult) -> Vec<Candidate> {
    match &result.found {
        Found::Logp(logp) => of_signature(result, logp),
        Found::Bulk(bulk) => of_sizes(result, bulk),
        Found::Contention(found) => of_crowd(result, found),
        Found::Overlap(found) => of_overlap(found),
        Found::Registration(found) => of_registration(found),
        // Validations of dials are not compared.
        Found::Validate(_) => Vec::new(),
    }
}

fn of_signature(result: &LayerResult, logp: &Logp) -> Vec<Candidate> {
    let launches: Vec<LaunchFigures> = logp.launches.iter().map(LaunchFigures::of).collect();
    let candidate = |name, figure, at: usize| Candidate {
        name,
        size_bytes: result.size_bytes,
        unit: "ns",
        figure,
        launches: launches.iter().map(|launch| launch.values[at]).collect(),
    };
    let times = result.parameters.times().into_iter().enumerate();
    let mut candidates: Vec<Candidate> = times.map(|(at, (name, p))| candidate(name, in_ns(p), at)).collect();
    if let Some(at) = crate::launches::NAMES.iter().position(|&name| name == "g") {
        candidates.push(candidate(PLATEAU, plateau(&logp.plateau, logp.launches.len()), at));
    }
    candidates
}

/// Returns the figures of one pair alone. Ratios within a launch are not compared across records.
fn of_crowd(result: &LayerResult, found: &Contention) -> Vec<Candidate> {
    let each_launch: Vec<Option<Reading<Contention>>> = found
        .launches
        .iter()
        .map(|launch| contention::extract::extract(slice::from_ref(launch), 0.95, 0.0))
        .collect();
    let candidate = |name, figure, of: &dyn Fn(&Reading<Contention>) -> Option<f64>| Candidate {
        name,
        size_bytes: result.size_bytes,
        unit: "ns",
        figure,
        launches: each_launch.iter().map(|launch| of(launch.as_ref()?).filter(|ns| ns.is_finite())).collect(),
    };
    let times = result.parameters.times().into_iter().enumerate();
    let mut candidates: Vec<Candidate> = times
        .map(|(at, (name, p))| {
            candidate(name, in_ns(p), &|launch| match name {
                "g" => Some(launch.found.plateau.value_ns),
                _ => launch.parameters.times()[at].1.value_ns,
            })
        })
        .collect();
    let steady = plateau(&found.plateau, found.launches.len());
    candidates.push(candidate(PLATEAU, steady, &|launch| Some(launch.found.plateau.value_ns)));
    candidates
}

/// Returns the half round trips and the free work, by size.
fn of_overlap(found: &Overlap) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (at, trip) in found.trips.iter().enumerate() {
        let of = |launch: &OverlapLaunch| Some(median(launch.trips.get(at)?.half_rtt_ns.iter().copied()));
        candidates.push(Candidate {
            name: "half_rtt",
            size_bytes: trip.size_bytes,
            unit: "ns",
            figure: in_ns(&trip.half_rtt),
            launches: found.launches.iter().map(|launch| of(launch).filter(|ns| ns.is_finite())).collect(),
        });
    }
    for (at, size) in found.sizes.iter().enumerate() {
        let Some(free) = &size.free else { continue };
        let of = |launch: &OverlapLaunch| Some(launch.sizes.get(at)?.knee.as_ref()?.free_ns);
        let Quantity { value, ci, launches } = free.work_ns;
        candidates.push(Candidate {
            name: "free_work",
            size_bytes: size.size_bytes,
            unit: "ns",
            figure: Figure { status: Status::Measured, value, ci, launches },
            launches: found.launches.iter().map(|launch| of(launch).filter(|ns| ns.is_finite())).collect(),
        });
    }
    candidates
}

/// Returns the costs of registration by size.
fn of_registration(found: &Registration) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (at, size) in found.sizes.iter().enumerate() {
        for (nth, (name, cost)) in size.times().into_iter().enumerate() {
            let of = |launch: &RegistrationLaunch| {
                Some(median(launch.sizes.get(at)?.batches()[nth].iter().copied()))
            };
            candidates.push(Candidate {
                name,
                size_bytes: size.size_bytes,
                unit: "ns",
                figure: in_ns(cost),
                launches: found
                    .launches
                    .iter()
                    .map(|launch| of(launch).filter(|ns| ns.is_finite()))
                    .collect(),
            });
        }
    }
    candidates
}

/// Returns the figures of each size, and G of the largest sizes. G has no value for a single launch,
/// because a launch by itself may give other segments.
fn of_sizes(result: &LayerResult, bulk: &Bulk) -> Vec<Candidate> {
    let each_launch: Vec<Option<Bulk>> = bulk
        .launches
        .iter()
        .map(|launch| extract(slice::from_ref(launch), 0.95, 0.0).map(|reading| reading.found))
        .collect();
    let mut candidates = Vec::new();
    for figures in &bulk.sizes {
        let size_bytes = figures.size_bytes;
        let launches = |of: &dyn Fn(&SizeFigures) -> Option<f64>| {
            let value =
                |launch: &Option<Bulk>| of(launch.as_ref()?.at(size_bytes)?).filter(|ns| ns.is_finite());
            each_launch.iter().map(value).collect::<Vec<_>>()
        };
        let candidate = |name, figure, launches| Candidate { name, size_bytes, unit: "ns", figure, launches };
        for (at, (name, p)) in figures.times().into_iter().enumerate() {
            let of_launch = |figures: &SizeFigures| match name {
                "g" => Some(figures.plateau.value_ns),
                _ => figures.times()[at].1.value_ns,
            };
            candidates.push(candidate(name, in_ns(p), launches(&of_launch)));
        }
        let steady = launches(&|figures| Some(figures.plateau.value_ns));
        candidates.push(candidate(PLATEAU, plateau(&figures.plateau, bulk.launches.len()), steady));
    }
    let per_byte = &result.parameters.G;
    candidates.push(Candidate {
        name: "G",
        size_bytes: result.size_bytes,
        unit: "ns_per_byte",
        figure: Figure {
            status: per_byte.status,
            value: per_byte.value_ns_per_byte,
            ci: per_byte.ci_ns_per_byte,
            launches: per_byte.launches,
        },
        launches: Vec::new(),
    });
    candidates
}

fn plateau(plateau: &Plateau, launches: usize) -> Figure {
    Figure { status: Status::Measured, value: Some(plateau.value_ns), ci: plateau.ci_ns, launches }
}

fn in_ns(p: &Parameter) -> Figure {
    Figure { status: p.status, value: p.value_ns, ci: p.ci_ns, launches: p.launches }
}
