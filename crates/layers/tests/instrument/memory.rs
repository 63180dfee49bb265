//! The instrument's own test of `memory`: accesses to simulated memory take the times of the model, whatever its
//! parameters. Their launches are those of `onesided`, whose test with noise is `onesided_truths`.

use crate::onesided_truths::{Drawn, Target, draw, known};
use crate::simulated::attended::AttendedInitiator;
use crate::truths::seed;
use netdyno_layers::sim::SimInitiator;
use netdyno_measure::memory::data::MemoryLaunch;
use netdyno_measure::memory::extract::extract;
use netdyno_measure::memory::pattern::{self, MemoryPlan};
use netdyno_measure::memory::record::{Access, Pace};
use netdyno_measure::onesided::data::{Access as Way, Operation};
use netdyno_measure::onesided::pattern::OnesidedPlan;
use netdyno_measure::record::Status;

/// The number of random parameters.
const RUNS: u64 = 50;
/// The relative tolerance of a time without noise, and the absolute one in nanoseconds.
const NEAR: f64 = 0.01;
const NEAR_NS: f64 = 0.002;

/// Runs a launch over the drawn target.
fn measure(drawn: &Drawn, plan: &MemoryPlan, seed: u64) -> MemoryLaunch {
    match drawn.target {
        Target::Interface => pattern::run(&mut SimInitiator::new(drawn.truth, seed), plan, &mut |_| {}),
        Target::Process(synchronisation) => {
            let mut initiator = AttendedInitiator::new(drawn.truth, synchronisation, seed);
            pattern::run(&mut initiator, plan, &mut |_| {})
        }
    }
    .unwrap()
}

#[test]
fn accesses_come_back_from_random_truths() {
    let first = seed();
    for seed in (0..RUNS).map(|nth| first.wrapping_add(nth)) {
        let mut drawn = draw(seed);
        drawn.truth.noise.share = 0.0;
        let plan = MemoryPlan(OnesidedPlan {
            launch: 0,
            shape: None,
            access: Way::default(),
            largest_bytes: 1 << 20,
            budget_ns: 1e8,
            seed,
        });
        let data = measure(&drawn, &plan, seed);
        // Without noise all launches are equal. An interval needs six.
        let launches: Vec<MemoryLaunch> = vec![data; 6];
        let found = extract(&launches, 0.95, 0.02).unwrap();
        let rows = found.found.rows();
        let words = [Operation::Get, Operation::Put, Operation::FetchAdd].map(|operation| (operation, 8));
        let bulk = [64 << 10, 1 << 20].map(|size| (Operation::Put, size));
        let is_told = drawn.notifies();
        let told = is_told.then_some((Operation::PutNotify, 8));
        for (operation, size_bytes) in words.into_iter().chain(bulk).chain(told) {
            for pace in [Pace::Blocking, Pace::Pipelined] {
                let access = Access { operation, size_bytes, pace };
                let (_, time) = rows.iter().find(|(row, _)| *row == access).unwrap();
                let known = known(&drawn, operation, size_bytes);
                let [unlimited, limited] = known.gaps;
                let is_near =
                    |truth: f64| time.value_ns.is_some_and(|ns| (ns - truth).abs() <= NEAR * truth + NEAR_NS);
                let is_right = match (pace, time.status) {
                    (Pace::Blocking, _) => known.remote.or(known.local).is_some_and(is_near),
                    (Pace::Pipelined, Status::Measured) => is_near(limited),
                    // A bound is not below the truth.
                    (Pace::Pipelined, _) => time.value_ns.is_some_and(|ns| ns >= unlimited * (1.0 - NEAR)),
                };
                assert!(is_right, "NETDYNO_SEED={seed} ({}): {access:?} {time:?}", drawn.text);
            }
        }
        assert_eq!(rows.len(), if is_told { 12 } else { 10 }, "NETDYNO_SEED={seed}");
        let misses = found.doubts.iter().any(|doubt| doubt.name == "missing_operations");
        assert_eq!(misses, !is_told, "NETDYNO_SEED={seed}");
    }
}
