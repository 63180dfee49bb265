//! Random model parameters of several processes at once.

use super::draw::{Drawn, Region, SHALLOW};
use super::{Misses, assert_sound, each, seed, truths};
use crate::simulated::known::Known;
use netdyno_layers::sim::crowd;
use netdyno_measure::contention::data::CrowdData;
use netdyno_measure::contention::direct::CrowdPlan;
use netdyno_measure::contention::extract::extract;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::Status;
use netdyno_protocol::sim::Truth;

fn launch(truth: Truth, procs: usize, seed: u64) -> CrowdData {
    let plan = CrowdPlan { launch: 0, procs, shape: None, budget_ns: 1e9, seed };
    crowd::launch(truth, 1, &plan, &mut |_| {}).unwrap()
}

fn check(region: Region, seed: u64) -> Misses {
    let drawn = Drawn::from(region, seed).with_cheap_polls();
    let truth = drawn.truth();
    let procs = 2 + seed as usize % 3;
    let Reading { parameters, found, doubts } = extract(&[launch(truth, procs, seed)], 0.95, 0.02).unwrap();
    let window = found.plateau.window;
    let known = Known::of(&Truth { window, ..truth }, 1);
    let mut misses = Misses::default();
    for (name, parameter, truth) in [
        ("rtt", &parameters.rtt, 2.0 * known.one_way),
        ("o_s", &parameters.o_s, known.o_s),
        ("o_r", &parameters.o_r, known.o_r),
        ("L", &parameters.L, known.latency),
    ] {
        match parameter.value_ns {
            Some(found) if parameter.status == Status::Measured => misses.measured(name, found, truth),
            _ => misses.note(&format!("{name} is not measured")),
        }
    }
    match (parameters.g.status, parameters.g.value_ns) {
        (Status::Measured, Some(found)) => misses.measured("g", found, known.slowest_stage()),
        (Status::UpperBound, Some(bound)) if bound < known.slowest_stage() * 0.9995 => {
            misses.note(&format!("g ≤ {bound}, but it is {}", known.slowest_stage()));
        }
        _ => {}
    }
    if let Some((limit, plateau)) = known.expected()
        && found.plateau.limited_by != limit
    {
        let (is, steady) = (found.plateau.limited_by, found.plateau.value_ns);
        misses.note(&format!("limited by {is:?}, not {limit:?}; plateau {steady}, not {plateau}"));
    }
    misses.report(&format!("{} # {region:?}, {procs} processes, window {window}", drawn.spelled()), &doubts)
}

#[test]
fn random_crowds_come_back() {
    let seed = seed();
    assert_sound(each(truths(60), seed, |seed| check(SHALLOW[seed as usize % SHALLOW.len()], seed)));
}
