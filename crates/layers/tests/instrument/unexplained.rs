//! The instrument's own test of the sum of `utilisation` with random model parameters: work of other programs, which the
//! processes and the idle machine do not explain, comes back as `unexplained`, and the doubt of that name says whether it
//! is too much or too little.
//!
//! `NETDYNO_SEED` sets the first seed, `NETDYNO_RUNS` the number of random parameters.

use crate::simulated::others::{AmongOthers, Others};
use crate::truths::draw::{Drawn, SHALLOW, log_uniform};
use crate::truths::seed;
use netdyno_measure::reading::Reading;
use netdyno_measure::utilisation::extract::extract;
use netdyno_measure::utilisation::pattern::{self, UtilisationPlan};
use netdyno_measure::utilisation::record::Utilisation;

/// The number of random parameters, unless `NETDYNO_RUNS` is set.
const RUNS: u64 = 60;
const NEAR: f64 = 0.01;
/// The instrument ignores a smaller share of a processor.
const NEGLIGIBLE: f64 = 0.01;
/// The instrument calls a machine busy from this share of its three processors on.
const BUSY: f64 = 0.15;

/// Measures beside others.
fn measured(spelled: &str, others: Others, seed: u64) -> Reading<Utilisation> {
    let plan = UtilisationPlan { launch: 0, shape: None, largest_bytes: 1 << 10, budget_ns: 1e7, seed };
    let mut requester = AmongOthers::new(spelled.parse().unwrap(), others, seed);
    let data = pattern::run(&mut requester, &plan, &mut |_| {}).unwrap();
    // Without noise all launches are equal. An interval needs six.
    extract(&vec![data; 6], 0.95, 0.02).unwrap()
}

/// Returns why a result contradicts the work of others.
fn contradictions(others: Others, found: &Reading<Utilisation>) -> Vec<String> {
    let mut wrong = Vec::new();
    let known = others.awake - others.asleep;
    let costs = found.found.sizes.iter().flat_map(|size| size.kinds());
    for (kind, costs) in costs {
        let share = costs.machine.unexplained.share.value;
        if !share.is_some_and(|share| (share - known).abs() <= NEAR * known.abs() + 1e-6) {
            wrong.push(format!("unexplained of {kind}: {share:?} and not {known}"));
        }
    }
    let doubts: Vec<_> = found.doubts.iter().filter(|doubt| doubt.name == "unexplained").collect();
    let word = if known > 0.0 { "the machine did more than" } else { "the machine did less than" };
    let are_right = match doubts[..] {
        [] => known.abs() <= NEGLIGIBLE * (1.0 + NEAR),
        [doubt] => known.abs() >= NEGLIGIBLE * (1.0 - NEAR) && doubt.text.contains(word),
        _ => false,
    };
    if !are_right {
        wrong.push(format!("{known} are unexplained, and the doubts are {doubts:?}"));
    }
    wrong
}

#[test]
fn work_of_others_is_unexplained() {
    let first = seed();
    let runs = std::env::var("NETDYNO_RUNS").map_or(RUNS, |n| n.parse().unwrap());
    let (mut wrong, mut doubted) = (Vec::new(), 0);
    for seed in (0..runs).map(|nth| first.wrapping_add(nth)) {
        let mut random = fastrand::Rng::with_seed(seed);
        let spelled = Drawn::from(SHALLOW[(seed % SHALLOW.len() as u64) as usize], seed).spelled();
        let asleep = if random.bool() { 0.0 } else { BUSY * random.f64() };
        let awake = [0.0, log_uniform(&mut random, 1e-3, 1.0)][random.usize(..2)];
        let others = Others { asleep, awake };
        let found = measured(&spelled, others, seed);
        doubted += usize::from(found.doubts.iter().any(|doubt| doubt.name == "unexplained"));
        let named = |why| format!("NETDYNO_SEED={seed} NETDYNO_RUNS=1 ({spelled}, {others:?}): {why}");
        wrong.extend(contradictions(others, &found).into_iter().map(named));
    }
    println!("{doubted} of {runs} have the doubt");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(runs < RUNS || (5..runs as usize - 5).contains(&doubted), "{doubted} of {runs} have the doubt");
}
