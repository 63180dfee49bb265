//! The instrument's own test of `completion` with random model parameters: half of a round trip comes back, and
//! a time per message that is called measured is that of the steady state.
//!
//! `NETDYNO_SEED` sets the first seed, `NETDYNO_RUNS` the number of random parameters.

use crate::simulated::known::Known;
use crate::truths::draw::{Drawn, SHALLOW, log_uniform};
use crate::truths::seed;
use netdyno_layers::sim::SimRequester;
use netdyno_measure::completion::data::{CompletionLaunch, CompletionSizeShape};
use netdyno_measure::completion::extract::extract;
use netdyno_measure::completion::pattern::{self, CompletionPlan};
use netdyno_measure::completion::peak::{Peak, PeakSource};
use netdyno_measure::completion::record::{Completion, CompletionTimes};
use netdyno_measure::reading::Reading;
use netdyno_measure::record::Status;
use netdyno_protocol::sim::Truth;

/// The number of random parameters, unless `NETDYNO_RUNS` is set.
const RUNS: u64 = 300;
/// The relative tolerance of a figure without noise. Its absolute tolerance is 2 ps.
const NEAR: f64 = 0.01;
const PRECISION: f64 = 0.02;
/// Launches with noise. Without noise all launches are equal, and one is repeated: an interval needs six.
const LAUNCHES: usize = 9;

fn draw(seed: u64) -> Drawn {
    let drawn = Drawn::from(SHALLOW[(seed % SHALLOW.len() as u64) as usize], seed).with_bytes();
    if seed.is_multiple_of(4) { drawn.with_noise() } else { drawn }
}

/// Returns the peak of the simulated interface, as if the user had given it.
fn peak(truth: &Truth) -> Peak {
    Peak::of(PeakSource::Given, peak_bytes_per_s(truth), "")
}

fn peak_bytes_per_s(truth: &Truth) -> f64 {
    1e12 / truth.gap_per_byte_ps.max(1.0)
}

fn launches(truth: Truth, seed: u64) -> Vec<CompletionLaunch> {
    let mut shape = None;
    let mut launch = |launch: usize| {
        let (budget_ns, seed) = (1e7, seed.wrapping_mul(1000).wrapping_add(launch as u64));
        let largest_bytes = [1 << 10, 64 << 10, 1_000_000][(seed % 3) as usize];
        let plan = CompletionPlan {
            launch,
            shape: shape.clone(),
            largest_bytes,
            peak: peak(&truth),
            budget_ns,
            seed,
        };
        let data = pattern::run(&mut SimRequester::new(truth, seed), &plan, &mut |_| {}).unwrap();
        shape = Some(data.shape.clone());
        data
    };
    match truth.noise.share {
        0.0 => vec![launch(0); 6],
        _ => (0..LAUNCHES).map(launch).collect(),
    }
}

/// Returns why the times of a size contradict the truth.
///
/// A row begins with a window of requests. Until the second slowest stage has worked off what they pile up before it,
/// it sets the pace. A row that is too short for that has a warning, and a time per message between both.
fn contradictions(
    truth: &Truth,
    size: &CompletionTimes,
    shape: &CompletionSizeShape,
    has_short_rows: bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let noise = truth.noise.share;
    let known = Known::of(truth, size.size_bytes);
    // The standard error of the median over nine launches is 0.42 of the noise of a sample.
    let is_near = |value: f64, known: f64| (value - known).abs() <= (NEAR + 2.5 * noise) * known + 0.002;
    if !size.half_rtt.value_ns.is_some_and(|value| is_near(value, known.one_way)) {
        wrong.push(format!("half_rtt: {:?} for {}", size.half_rtt.value_ns, known.one_way));
    }
    let steady = known.steady();
    let is_right = match (size.per_message.status, size.per_message.value_ns) {
        (Status::Measured, Some(value)) => {
            let share = shape.window as f64 / shape.row as f64;
            let differ_by_little = 1.0 - known.second_stage() / steady < share;
            // A row that is too short for this has a warning.
            let is_short = share > 0.05 && has_short_rows;
            is_near(value, steady)
                || (differ_by_little && is_short && value <= steady && value >= steady * (1.0 - share))
        }
        (Status::UpperBound, Some(value)) => value >= steady * (1.0 - NEAR - 2.5 * noise),
        _ => noise > 0.0,
    };
    if !is_right {
        wrong.push(format!("per_message: {:?} for {steady}", size.per_message));
    }
    let ideal_ns = size.size_bytes as f64 / peak_bytes_per_s(truth) * 1e9;
    let is_right = match (size.per_message.status, size.per_message.value_ns, size.share_of_peak.value) {
        (Status::Measured, Some(each_ns), Some(share)) => (share * each_ns / ideal_ns - 1.0).abs() < 1e-9,
        (status, _, share) => status != Status::Measured && share.is_none(),
    };
    if !is_right {
        wrong.push(format!("share_of_peak: {:?} for {ideal_ns} ns", size.share_of_peak));
    }
    wrong
}

fn contradictions_of_all(truth: &Truth, found: &Reading<Completion>) -> Vec<String> {
    let sizes = &found.found.sizes;
    let shapes = &found.found.launches[0].shape.sizes;
    let has = |name: &str| found.doubts.iter().any(|doubt| doubt.name == name);
    let of_size = |(size, shape): (&CompletionTimes, &CompletionSizeShape)| {
        contradictions(truth, size, shape, has("short_rows"))
            .into_iter()
            .map(|why| format!("{} B: {why}", size.size_bytes))
            .collect()
    };
    let mut wrong: Vec<String> = sizes.iter().zip(shapes).flat_map::<Vec<String>, _>(of_size).collect();
    if truth.noise.share == 0.0 && (has("imprecise") || !found.is_precise(PRECISION)) {
        wrong.push("figures without noise are not precise: measuring would not stop".into());
    }
    if sizes.iter().any(|size| size.per_message.status == Status::UpperBound) != has("window_bound") {
        wrong.push("a bound and its doubt do not go together".into());
    }
    wrong
}

/// Returns the first seed and the number of runs.
fn seeds() -> (u64, u64) {
    let first = seed();
    (first, std::env::var("NETDYNO_RUNS").map_or(RUNS, |n| n.parse().unwrap()))
}

/// Returns parameters far outside of what any layer has: without relation to each other, over many magnitudes.
fn far_outside(seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut draw = |from, to| log_uniform(&mut random, from, to);
    let (o_s, o_r, g, l) = (draw(0.01, 1e7), draw(0.01, 1e7), draw(0.01, 1e8), draw(0.01, 1e9));
    let (per_byte, capacity, window) = (draw(1e-4, 100.0), draw(1.0, 1e5) as usize, draw(1.0, 1e6) as usize);
    format!(
        "o_s={o_s:.3}ns,o_r={o_r:.3}ns,g={g:.3}ns,L={l:.3}ns,G={per_byte:.6}ns/B,capacity={capacity},window={window}"
    )
}

/// The gap is longer than the round trip here. Without a rest between trips it would be taken for the round trip.
#[test]
fn times_far_below_a_nanosecond_come_back() {
    let spelled = "o_s=0.023ns,o_r=0.076ns,g=0.264ns,L=0.016ns,G=0.000237ns/B,capacity=965,window=3";
    let truth: Truth = spelled.parse().unwrap();
    let wrong = contradictions_of_all(&truth, &extract(&launches(truth, 0), 0.95, PRECISION).unwrap());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn figures_come_back_from_truths_far_outside_the_grid() {
    let (first, runs) = seeds();
    let (mut wrong, mut measured) = (Vec::new(), 0);
    for seed in (0..runs).map(|nth| first.wrapping_add(nth)) {
        let spelled = far_outside(seed);
        let truth: Truth = spelled.parse().unwrap();
        let found = extract(&launches(truth, seed), 0.95, PRECISION).unwrap();
        measured += found.found.sizes.iter().filter(|size| size.share_of_peak.value.is_some()).count();
        wrong.extend(
            contradictions_of_all(&truth, &found)
                .into_iter()
                .map(|why| format!("NETDYNO_SEED={seed} NETDYNO_RUNS=1 ({spelled}): {why}")),
        );
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(runs < RUNS || measured > 0, "no share of the peak is measured");
}

#[test]
fn latency_and_pace_come_back_from_random_truths() {
    let (first, runs) = seeds();
    let (mut wrong, mut measured, mut paces) = (Vec::new(), 0, 0);
    for seed in (0..runs).map(|nth| first.wrapping_add(nth)) {
        let drawn = draw(seed);
        let truth = drawn.truth();
        let found = extract(&launches(truth, seed), 0.95, PRECISION).unwrap();
        let is_measured = |size: &&CompletionTimes| size.per_message.status == Status::Measured;
        measured += found.found.sizes.iter().filter(is_measured).count();
        paces += found.found.sizes.len();
        wrong.extend(
            contradictions_of_all(&truth, &found)
                .into_iter()
                .map(|why| format!("NETDYNO_SEED={seed} NETDYNO_RUNS=1 ({}): {why}", drawn.spelled())),
        );
    }
    println!("{measured} of {paces} times per message are measured");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(runs < RUNS || 2 * measured > paces, "{measured} of {paces} times per message are measured");
}
