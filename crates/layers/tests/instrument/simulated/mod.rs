//! Launches over simulated interfaces, and their known values.

pub mod known;

use netdyno_layers::sim::SimRequester;
use netdyno_measure::bulk;
use netdyno_measure::bulk::data::BulkLaunch;
use netdyno_measure::bulk::pattern::BulkPlan;
use netdyno_measure::logp;
use netdyno_measure::logp::data::LaunchData;
use netdyno_measure::logp::pattern::{BATCH_MESSAGES, LONGEST_BURST, Plan};
use netdyno_protocol::sim::Truth;

/// Returns the interface for one launch of a run.
fn requester(truth: Truth, seed: u64, launch: usize) -> SimRequester {
    SimRequester::new(truth, seed.wrapping_mul(1000).wrapping_add(launch as u64))
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

/// Runs launches of all sizes up to the largest. The first launch chooses the shape of all.
pub fn sizes(truth: Truth, seed: u64, count: usize, largest_bytes: usize, budget_ns: f64) -> Vec<BulkLaunch> {
    let mut shape = None;
    (0..count)
        .map(|launch| {
            let plan = BulkPlan {
                launch,
                shape: shape.clone(),
                largest_bytes,
                budget_ns,
                precision: 0.02,
                confidence: 0.95,
                seed: seed ^ launch as u64,
            };
            let data = bulk::pattern::run(&mut requester(truth, seed, launch), &plan, &mut |_| {}).unwrap();
            shape = Some(data.shape.clone());
            data
        })
        .collect()
}
