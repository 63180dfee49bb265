//! The instrument's own test of `breakdown`: it recovers known steps, and what no step explains.
//!
//! `NETDYNO_SEED` sets the first seed, `NETDYNO_RUNS` the number of random stacks.

use crate::truths::seed;
use netdyno_layers::catalogue::{ALL, Layer, parts};
use netdyno_layers::parts::PartsOptions;
use netdyno_layers::sim::{KnownOperation, SimParts};
use netdyno_measure::breakdown::anatomy::Term;
use netdyno_measure::breakdown::data::BreakdownLaunch;
use netdyno_measure::breakdown::extract::extract;
use netdyno_measure::breakdown::pattern::{self, BreakdownPlan};
use netdyno_measure::breakdown::record::Breakdown;
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::stats::Interval;
use netdyno_measure::task::{Data, Task};
use netdyno_protocol::sim::Truth;

/// A stack whose rest lay beside half the width of its interval, among 1500.
const KEPT: u64 = 107712586942651;
/// The number of random stacks, unless `NETDYNO_RUNS` is set.
const RUNS: u64 = 100;
/// The tolerance of a figure as a share of its operation.
const NEAR: f64 = 0.02;
const LAUNCHES: usize = 9;

struct Drawn {
    operations: Vec<KnownOperation>,
    truth: Truth,
    text: String,
}

fn draw(seed: u64) -> Drawn {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ps = |least: f64, most: f64| (least * (most / least).powf(random.f64())) as u64;
    let mut operation = |nth: usize, steps: usize| KnownOperation {
        name: format!("operation {nth}"),
        steps: (0..steps).map(|step| (format!("step {step}"), ps(1e2, 1e8))).collect(),
        rest_ps: if nth.is_multiple_of(2) { ps(1e2, 1e7) } else { 0 },
    };
    let operations = [0, 1, 3, 7, 12].into_iter().enumerate();
    let operations = operations.map(|(nth, steps)| operation(nth, steps)).collect();
    let noise = if random.bool() { 0.0 } else { 0.25 * random.f64() };
    let text = format!("o_s=1us,o_r=1us,g=1us,L=1us,noise={noise:.3}");
    Drawn { operations, truth: text.parse().unwrap(), text }
}

fn found(drawn: &Drawn, seed: u64) -> Breakdown {
    let mut shape = None;
    let mut launch = |launch: usize| {
        let noise_seed = seed.wrapping_mul(1000).wrapping_add(launch as u64);
        let mut layer = SimParts::new(drawn.operations.clone(), drawn.truth.noise, noise_seed);
        let plan = BreakdownPlan { launch, shape: shape.clone(), budget_ns: 1e7, seed: seed ^ launch as u64 };
        let data = pattern::run(&mut layer, &plan, &mut |_| {}).unwrap();
        shape = Some(data.shape.clone());
        data
    };
    // Without noise all launches are equal, and one is repeated: an interval needs six.
    let launches: Vec<BreakdownLaunch> = match drawn.truth.noise.share {
        0.0 => vec![launch(0); 6],
        _ => (0..LAUNCHES).map(launch).collect(),
    };
    extract(&launches, 0.95, NEAR).unwrap().found
}

/// Returns whether a figure is near a value, to a share of the operation. A bound is at or above it. With noise its
/// interval, or the neighbourhood of its width, holds the value: of so many intervals some miss it by chance.
fn is_near(cost: &Parameter, ns: f64, whole_ns: f64, noise: f64) -> bool {
    // A figure is a sum of medians over few launches, each with a part of the noise.
    let near = (NEAR + 0.25 * noise) * whole_ns;
    let is_held = |ci: Interval| {
        let width = 2.0 * ci.half_width();
        (ci.lo - width..=ci.hi + width).contains(&ns)
    };
    let is_within = noise > 0.0 && cost.ci_ns.is_some_and(is_held);
    match (cost.status, cost.value_ns) {
        (Status::Measured, Some(value)) => (value - ns).abs() <= near || is_within,
        (Status::UpperBound, Some(value)) => value >= ns - near || is_within,
        // By chance the operation took longer without the step, which is shorter than the noise of the operation.
        _ => ns <= near,
    }
}

#[test]
fn steps_come_back_from_random_stacks() {
    let first = seed();
    let runs = std::env::var("NETDYNO_RUNS").map_or(RUNS, |n| n.parse().unwrap());
    let mut wrong = Vec::new();
    for seed in std::iter::once(KEPT).chain((0..runs).map(|nth| first.wrapping_add(nth))) {
        let drawn = draw(seed);
        let found = found(&drawn, seed);
        for (costs, known) in found.operations.iter().zip(&drawn.operations) {
            let ns = |ps: u64| ps as f64 / 1e3;
            let whole_ns = ns(known.steps.iter().map(|(_, ps)| ps).sum::<u64>() + known.rest_ps);
            let mut pairs = vec![("whole", &costs.whole, whole_ns)];
            pairs.extend(
                costs
                    .steps
                    .iter()
                    .zip(&known.steps)
                    .map(|(step, (name, ps))| (&name[..], &step.cost, ns(*ps))),
            );
            let noise = drawn.truth.noise.share;
            pairs.push(("the rest", &costs.unexplained, ns(known.rest_ps)));
            let not_near = pairs.into_iter().filter(|(_, cost, ns)| !is_near(cost, *ns, whole_ns, noise));
            wrong.extend(not_near.map(|(name, cost, ns)| {
                format!(
                    "NETDYNO_SEED={seed} NETDYNO_RUNS=1 ({}): {name} of {}: {cost:?} for {ns}",
                    drawn.text, known.name
                )
            }));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_record_of_others_breaks_nothing() {
    let drawn = draw(1);
    let mut layer = SimParts::new(drawn.operations, drawn.truth.noise, 1);
    let plan = BreakdownPlan { launch: 0, shape: None, budget_ns: 1e7, seed: 1 };
    let sound = pattern::run(&mut layer, &plan, &mut |_| {}).unwrap();
    let with = |change: fn(&mut BreakdownLaunch)| {
        let mut launch = sound.clone();
        change(&mut launch);
        extract(&[sound.clone(), launch], 0.95, NEAR).is_some()
    };
    assert!(with(|_| {}) && with(|launch| launch.probes_ns.iter_mut().for_each(Vec::clear)));
    assert!(!with(|launch| launch.probes_ns.truncate(1)));
    assert!(!with(|launch| launch.shape.counts.clear()));
    let alone = |change: fn(&mut BreakdownLaunch)| {
        let mut launch = sound.clone();
        change(&mut launch);
        extract(&[launch], 0.95, NEAR).is_some()
    };
    assert!(!alone(|launch| launch.shape.anatomy.operations[1].whole = usize::MAX));
    assert!(!alone(|launch| launch.shape.anatomy.operations[1].steps[0].terms[0].probe = 10_000));
    assert!(
        !alone(|launch| launch.shape.anatomy.runs.clear()) && !alone(|launch| launch.shape.counts.clear())
    );
    // Comparisons compute from the launches of a record alone.
    assert!(sound.sum(&[Term { probe: usize::MAX, times: 1.0 }]).is_nan());
    assert!(!alone(|launch| launch.shape.anatomy.operations.clear()) && extract(&[], 0.95, NEAR).is_none());
}

/// Every layer that says so is made in parts, of every size, though both threads share their processors with others. Those
/// over AF_XDP need interfaces, and are tested in namespaces (`crates/cli/tests/measuring/namespaces.rs`).
#[test]
fn every_layer_is_made_in_parts() {
    let is_here =
        |layer: &&Layer| layer.has_parts() && !matches!(layer, Layer::Sim | Layer::AmXdp | Layer::ViXdp);
    for layer in ALL.iter().filter(is_here) {
        let fits = |bytes: &usize| *bytes <= layer.longest_in_parts();
        for size_bytes in [0, 1, 32, 33, 1380].into_iter().filter(fits) {
            let mut subject = parts::open(*layer, PartsOptions { size_bytes, partner_cpu: None }).unwrap();
            let plan = BreakdownPlan { launch: 0, shape: None, budget_ns: 1e6, seed: 1 };
            let Data::Breakdown(data) = subject.measure(&Task::Breakdown(plan), &mut |_| {}).unwrap() else {
                panic!("{layer} gave other data")
            };
            let found = extract(&[data], 0.95, NEAR).unwrap().found;
            for operation in &found.operations {
                assert!(operation.whole.value_ns > Some(0.0), "{layer}: {operation:?}");
                let explained: f64 = operation.steps.iter().filter_map(|step| step.cost.value_ns).sum();
                assert!(explained.is_finite(), "{layer}: {operation:?}");
            }
            let names = |name: &str| found.operations.iter().any(|operation| operation.name == name);
            assert!(names("plain round trip"), "{layer}: {found:?}");
        }
    }
}
