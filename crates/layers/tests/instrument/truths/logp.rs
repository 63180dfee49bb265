//! Random model parameters of the LogP signature.

use super::draw::{Drawn, Region, SHALLOW};
use super::{Coverage, Misses, assert_covered, assert_sound, each, seed, truths};
use crate::simulated::known::Known;
use crate::simulated::signatures;
use netdyno_measure::logp::extract::extract;
use netdyno_measure::logp::record::Logp;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Limit, Status};

/// Warnings that say why the term that sets the plateau is unknown.
const UNKNOWN: [&str; 2] = ["pipeline_too_deep", "paced_by_polls"];

/// Returns the region for a seed. Only signatures are tested with deep pipelines.
fn region(seed: u64) -> Region {
    SHALLOW.get(seed as usize % (SHALLOW.len() + 1)).copied().unwrap_or(Region::Deep)
}

fn check(region: Region, seed: u64) -> Misses {
    let drawn = Drawn::from(region, seed);
    let truth = drawn.truth();
    let known = Known::of(&truth, 1);
    let Reading { parameters, found: Logp { plateau, .. }, doubts } =
        extract(&signatures(truth, seed, 1, 0.02), 0.95, 0.02).unwrap();
    let mut misses = Misses::default();
    for (name, parameter, truth) in [
        ("rtt", &parameters.rtt, 2.0 * known.one_way),
        ("o_s", &parameters.o_s, known.o_s),
        ("o_r", &parameters.o_r, known.o_r),
        ("o_poll", &parameters.o_poll, known.o_poll),
        ("L", &parameters.L, known.latency),
    ] {
        match parameter.value_ns {
            Some(found) if parameter.status == Status::Measured => misses.measured(name, found, truth),
            _ => misses.note(&format!("{name} is not measured")),
        }
    }
    let g = &parameters.g;
    match (g.status, g.value_ns) {
        (Status::Measured, Some(found)) => misses.measured("g", found, known.slowest_stage()),
        (Status::UpperBound, Some(bound)) if bound < known.slowest_stage() * 0.9999 => {
            misses.note(&format!("g ≤ {bound}, but it is {}", known.slowest_stage()));
        }
        _ => {}
    }
    let found = plateau.limited_by;
    if let Some((limit, expected)) = known.expected()
        && found != limit
        && (found != Limit::Unknown || !doubts.iter().any(|doubt| UNKNOWN.contains(&doubt.name.as_str())))
    {
        misses.note(&format!(
            "limited by {found:?}, not {limit:?}; plateau {}, not {}",
            plateau.value_ns, expected
        ));
    }
    for name in ["overheads_overlap", "delay_slope", "o_r_two_ways", "late_replies", "negative", "prediction"]
    {
        if let Some(doubt) = doubts.iter().find(|doubt| doubt.name == name) {
            misses.note(&format!("doubt without a cause, {name}: {}", doubt.text));
        }
    }
    misses.report(&format!("{} # {region:?}", drawn.spelled()), &doubts)
}

#[test]
fn random_truths_come_back() {
    let seed = seed();
    assert_sound(each(truths(140), seed, |seed| check(region(seed), seed)));
}

#[test]
fn with_noise_the_intervals_cover_random_truths() {
    let names = ["rtt", "o_s", "o_r", "g", "L"];
    assert_covered(names, 30, |seed| {
        let region = region(seed);
        let drawn = Drawn::from(region, seed).with_noise();
        let truth = drawn.truth();
        let known = Known::of(&truth, 1);
        let Reading { parameters, doubts, .. } =
            extract(&signatures(truth, seed, 9, 0.02), 0.95, 0.02).unwrap();
        let values = [2.0 * known.one_way, known.o_s, known.o_r, known.slowest_stage(), known.latency];
        let parameters = parameters.times();
        let doubts: Vec<&str> = doubts.iter().map(|doubt| doubt.name.as_str()).collect();
        std::array::from_fn(|at| {
            let mut coverage = Coverage::default();
            let parameter = parameters.iter().find(|(name, _)| *name == names[at]).unwrap().1;
            if let Some(ci) = parameter.ci_ns.filter(|_| parameter.status == Status::Measured) {
                let covered = ci.contains(values[at]);
                coverage.add(covered);
                if !covered {
                    println!(
                        "--truth {} # {region:?}: {} in {ci:?}, is {} ({})",
                        drawn.spelled(),
                        names[at],
                        values[at],
                        doubts.join(", ")
                    );
                }
            }
            coverage
        })
    });
}
