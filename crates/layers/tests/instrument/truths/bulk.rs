//! Random model parameters as functions of the size.

use super::draw::{Drawn, Region, SHALLOW};
use super::{Coverage, Misses, assert_covered, assert_sound, each, seed, truths};
use crate::simulated::known::Known;
use crate::simulated::sizes;
use netdyno_measure::bulk::data::BulkLaunch;
use netdyno_measure::bulk::extract::extract;
use netdyno_measure::bulk::record::{Segment, SizeFigures};
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Limit, Status};
use netdyno_protocol::sim::Truth;

const LARGEST: usize = 32 << 10;

/// Runs short launches of sizes up to 32 KiB.
fn launches(truth: Truth, seed: u64, count: usize) -> Vec<BulkLaunch> {
    sizes(truth, seed, count, LARGEST, 3e8)
}

fn check_size(size: &SizeFigures, truth: &Truth, misses: &mut Misses) {
    let known = Known::of(truth, size.size_bytes);
    let at = size.size_bytes;
    for (name, parameter, truth) in [
        ("T", &size.T, known.one_way),
        ("transfer", &size.transfer, known.transfer),
        ("o_s", &size.o_s, known.o_s),
        ("o_r", &size.o_r, known.o_r),
        ("L", &size.L, known.latency),
    ] {
        match parameter.value_ns {
            Some(found) if parameter.status == Status::Measured => {
                misses.measured(&format!("{name}({at})"), found, truth);
            }
            _ => misses.note(&format!("{name}({at}) is not measured")),
        }
    }
    match (size.g.status, size.g.value_ns) {
        (Status::Measured, Some(found)) => misses.measured(&format!("g({at})"), found, known.slowest_stage()),
        (Status::UpperBound, Some(bound)) if bound < known.slowest_stage() * 0.9999 => {
            misses.note(&format!("g({at}) ≤ {bound}, but it is {}", known.slowest_stage()));
        }
        _ => {}
    }
    let found = size.plateau.limited_by;
    if let Some((limit, plateau)) = known.expected()
        && found != limit
        && found != Limit::Unknown
    {
        misses.note(&format!(
            "at {at} limited by {found:?}, not {limit:?}; plateau {}, not {}",
            size.plateau.value_ns, plateau
        ));
    }
}

/// Compares a measured G with the slope of the slowest stage at the segment's largest sizes.
fn check_segment(segment: &Segment, truth: &Truth, misses: &mut Misses) {
    let (Status::Measured, Some(found)) = (segment.G.status, segment.G.value_ns_per_byte) else { return };
    let g = |bytes: usize| Known::of(truth, bytes).slowest_stage();
    let slope = |from: usize, to: usize| (g(to) - g(from)) / (to - from) as f64;
    let to = segment.to_bytes;
    let (last, before) = (slope(to - to / 8, to), slope(to / 2, to - to / 8));
    // There is no single slope if another stage becomes the slowest in between.
    if (last / before - 1.0).abs() < 0.001 {
        misses.measured(&format!("1000 G up to {to}"), 1e3 * found, 1e3 * last);
    }
}

fn check(region: Region, seed: u64) -> Misses {
    let drawn = Drawn::from(region, seed).with_bytes();
    let truth = drawn.truth();
    let Reading { found: bulk, doubts, .. } = extract(&launches(truth, seed, 1), 0.95, 0.02).unwrap();
    let mut misses = Misses::default();
    bulk.sizes.iter().for_each(|size| check_size(size, &truth, &mut misses));
    bulk.segments.iter().for_each(|segment| check_segment(segment, &truth, &mut misses));
    misses.report(&format!("{} # {region:?}", drawn.spelled()), &doubts)
}

#[test]
fn random_functions_of_the_size_come_back() {
    let seed = seed();
    assert_sound(each(truths(60), seed, |seed| check(SHALLOW[seed as usize % SHALLOW.len()], seed)));
}

#[test]
fn with_noise_the_intervals_cover_random_functions() {
    // The sizes of one parameter set are not independent of each other.
    assert_covered(["T", "transfer", "o_s", "o_r", "g", "L"], 24, |seed| {
        let region = SHALLOW[seed as usize % SHALLOW.len()];
        let drawn = Drawn::from(region, seed).with_bytes().with_noise();
        let truth = drawn.truth();
        let Reading { found: bulk, .. } = extract(&launches(truth, seed, 9), 0.95, 0.02).unwrap();
        let mut coverage = [Coverage::default(); 6];
        for size in &bulk.sizes {
            let known = Known::of(&truth, size.size_bytes);
            let values =
                [known.one_way, known.transfer, known.o_s, known.o_r, known.slowest_stage(), known.latency];
            for (at, (_, parameter)) in size.times().into_iter().enumerate() {
                if let Some(ci) = parameter.ci_ns.filter(|_| parameter.status == Status::Measured) {
                    coverage[at].add(ci.contains(values[at]));
                    if !ci.contains(values[at]) && at == 4 {
                        println!(
                            "{} # {region:?}: g({}) in {ci:?}, is {}",
                            drawn.spelled(),
                            size.size_bytes,
                            values[at]
                        );
                    }
                }
            }
        }
        coverage
    });
}
