//! Launches over simulated interfaces, and their known values.

pub mod attended;
pub mod cycle;
pub mod halves;
pub mod known;
pub mod others;

use netdyno_layers::sim::{SimMessenger, SimRequester};
use netdyno_measure::bulk;
use netdyno_measure::bulk::data::{BulkLaunch, Direction};
use netdyno_measure::bulk::pattern::BulkPlan;
use netdyno_measure::bulk::signature::SignaturePlan;
use netdyno_measure::logp;
use netdyno_measure::logp::data::LaunchData;
use netdyno_measure::logp::pattern::{BATCH_MESSAGES, LONGEST_BURST, Plan};
use netdyno_measure::overlap;
use netdyno_measure::overlap::data::OverlapLaunch;
use netdyno_measure::overlap::plan::OverlapPlan;
use netdyno_protocol::sim::Truth;

/// Returns the seed of the interface for one launch of a run.
fn seed_of(seed: u64, launch: usize) -> u64 {
    seed.wrapping_mul(1000).wrapping_add(launch as u64)
}

/// Returns the interface for one launch of a run.
fn requester(truth: Truth, seed: u64, launch: usize) -> SimRequester {
    SimRequester::new(truth, seed_of(seed, launch))
}

/// Runs launches of `plan` for messages. The first launch chooses the shape of all.
pub fn messages(truth: Truth, plan: &OverlapPlan, count: usize) -> Vec<OverlapLaunch> {
    let mut shape = None;
    (0..count)
        .map(|launch| {
            let (seed, shape_so_far) = (plan.seed ^ launch as u64, shape.clone());
            let planned = OverlapPlan { launch, shape: shape_so_far, seed, ..plan.clone() };
            let mut messenger = SimMessenger::new(truth, seed_of(plan.seed, launch));
            let data = overlap::pattern::run(&mut messenger, &planned, &mut |_| {}).unwrap();
            shape = Some(data.shape.clone());
            data
        })
        .collect()
}

/// Runs launches of the LogP signature. The first launch chooses the shape of all.
pub fn signatures(truth: Truth, seed: u64, count: usize, precision: f64) -> Vec<LaunchData> {
    let mut shape = None;
    (0..count)
        .map(|launch| {
            let plan = Plan {
                launch,
                shape: shape.clone(),
                budget_ns: 1e9,
                precision,
                confidence: 0.95,
                seed: seed ^ launch as u64,
                longest_burst: LONGEST_BURST,
                batch_messages: BATCH_MESSAGES,
            };
            let data = logp::pattern::run(&mut requester(truth, seed, launch), &plan, &mut |_| {}).unwrap();
            shape = Some(data.shape.clone());
            data
        })
        .collect()
}

/// Runs launches of stores of all sizes up to the largest. The first launch chooses the shape of all.
pub fn sizes(truth: Truth, seed: u64, count: usize, largest_bytes: usize, budget_ns: f64) -> Vec<BulkLaunch> {
    transfers(truth, Direction::Store, &[], seed, count, (largest_bytes, budget_ns))
}

/// Runs launches of transfers in one direction, of all sizes up to the largest, with the signatures of some
/// sizes. The first launch chooses the shape of all.
pub fn transfers(
    truth: Truth,
    direction: Direction,
    signatures: &[usize],
    seed: u64,
    count: usize,
    (largest_bytes, budget_ns): (usize, f64),
) -> Vec<BulkLaunch> {
    let mut before: Vec<BulkLaunch> = Vec::new();
    for launch in 0..count {
        let plan = BulkPlan {
            launch,
            shape: before.first().map(|data| data.shape.clone()),
            largest_bytes,
            direction,
            signatures: SignaturePlan::of_sizes(signatures, before.first()),
            budget_ns,
            precision: 0.02,
            confidence: 0.95,
            seed: seed ^ launch as u64,
        };
        before.push(bulk::pattern::run(&mut requester(truth, seed, launch), &plan, &mut |_| {}).unwrap());
    }
    before
}
