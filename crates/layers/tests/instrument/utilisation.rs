//! The instrument's own test of `utilisation` with random model parameters: the processor time of both sides comes
//! back, as a share and for each message, whatever a waiting process costs, and nothing stays unexplained.
//!
//! `NETDYNO_SEED` sets the first seed, `NETDYNO_RUNS` the number of random parameters.

use crate::simulated::known::Known;
use crate::truths::draw::{Drawn, SHALLOW};
use crate::truths::seed;
use netdyno_layers::sim::SimRequester;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::Status;
use netdyno_measure::utilisation::data::UtilisationLaunch;
use netdyno_measure::utilisation::extract::extract;
use netdyno_measure::utilisation::pattern::{self, UtilisationPlan};
use netdyno_measure::utilisation::record::{Cost, Costs, Utilisation, UtilisationSize};
use netdyno_protocol::sim::Truth;

/// The number of random parameters, unless `NETDYNO_RUNS` is set.
const RUNS: u64 = 75;
/// The relative tolerance of a figure without noise. Its absolute tolerance is 2 ps.
const NEAR: f64 = 0.01;
/// The same for a stream of which two stages are about equally fast: its period is not exactly that of the slowest.
const NEAR_UNDECIDED: f64 = 0.06;
/// Work that stays unexplained, as a share of a processor, comes from rounding.
const ROUNDING: f64 = 1e-6;
const PRECISION: f64 = 0.02;
/// Launches with noise. Without noise all launches are equal, and one is repeated: an interval needs six.
const LAUNCHES: usize = 9;

/// Returns random parameters as `--truth` takes them.
fn draw(seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let drawn = Drawn::from(SHALLOW[(seed % SHALLOW.len() as u64) as usize], seed).with_bytes();
    let drawn = if seed.is_multiple_of(4) { drawn.with_noise() } else { drawn };
    let spin = [0.0, 1.0, random.f64()][random.usize(..3)];
    let softirq_ns = if random.bool() { 0.0 } else { random.f64() * 2000.0 };
    format!("{},spin={spin},softirq={softirq_ns}ns", drawn.spelled())
}

fn launches(truth: Truth, seed: u64) -> Vec<UtilisationLaunch> {
    let mut shape = None;
    let mut launch = |launch: usize| {
        let (budget_ns, seed) = (1e7, seed.wrapping_mul(1000).wrapping_add(launch as u64));
        let largest_bytes = [1 << 10, 16 << 10, 100_000][(seed % 3) as usize];
        let plan = UtilisationPlan { launch, shape: shape.clone(), largest_bytes, budget_ns, seed };
        let data = pattern::run(&mut SimRequester::new(truth, seed), &plan, &mut |_| {}).unwrap();
        shape = Some(data.shape.clone());
        data
    };
    match truth.noise.share {
        0.0 => vec![launch(0); 6],
        _ => (0..LAUNCHES).map(launch).collect(),
    }
}

/// The known values of one kind of window.
struct Window {
    /// Time between two requests.
    period: f64,
    /// The longest such time that noise explains.
    longest: f64,
    /// Processor time of the calls for each request, at the requester and at the replier.
    calls: [f64; 2],
    /// The relative tolerance of what depends on the period.
    near: f64,
}

/// Returns the mean of the latest of `window` messages with the same noise, in standard deviations. A wire that keeps
/// the order delivers none of them before it. Of the shapes drawn here, Laplace's has the latest: with a scale of
/// sqrt(1/2), its largest of n is at ln(n / 2) + 0.577 scales, and none is drawn beyond 3.9 deviations.
fn latest(window: usize) -> f64 {
    ((window as f64 / 2.0).ln() + 0.577).max(0.0).min(3.9 * 2f64.sqrt()) / 2f64.sqrt()
}

/// Returns the known values, for a stream with `window` messages in flight.
fn known(truth: &Truth, bytes: usize, window: usize) -> [Window; 2] {
    let (one, small) = (Known::of(truth, bytes), Known::of(truth, 1));
    // The next request may have to wait for the stage that carries the data of this one.
    let trip = (2.0 * one.one_way).max(one.g);
    let round_trip = Window { period: trip, longest: trip, calls: [one.o_s + one.o_r; 2], near: NEAR };
    let by_window = (one.one_way + small.one_way) / window as f64;
    // Two stages that are about equally fast wait for each other at times, and so do a stage and the window.
    let window_is_alike = (by_window / one.steady() - 1.0).abs() <= NEAR_UNDECIDED;
    let near = if one.expected().is_some() && !window_is_alike { NEAR } else { NEAR_UNDECIDED };
    let period = one.steady().max(by_window);
    let stream = Window {
        period,
        longest: period.max(by_window * (1.0 + truth.noise.share * latest(window))),
        calls: [one.o_s + small.o_r, one.o_r + small.o_s],
        near,
    };
    [round_trip, stream]
}

/// Returns why the costs contradict the truth.
fn contradictions(truth: &Truth, costs: &Costs, known: &Window) -> Vec<String> {
    let mut wrong = Vec::new();
    let noise = truth.noise.share;
    // `of_period` returns the known time for each message, if the period is the given one.
    let mut check = |name: &str, cost: &Cost, of_period: &dyn Fn(f64) -> f64| {
        // Noise of a period is noise of the time that a process waits.
        let near = known.near + 2.5 * noise;
        let is_between = |value: f64, [a, b]: [f64; 2]| {
            let tolerance = |wanted: f64| near * wanted.abs() + 0.002;
            (a.min(b) - tolerance(a.min(b))..=a.max(b) + tolerance(a.max(b))).contains(&value)
        };
        let periods = [known.period, known.longest];
        let (wanted_ns, wanted) = (periods.map(of_period), periods.map(|period| of_period(period) / period));
        let (share, each) = (cost.share.value, cost.per_message.value_ns);
        let is_right = match cost.per_message.status {
            Status::Measured => {
                each.is_some_and(|each| is_between(each, wanted_ns))
                    && share.is_some_and(|share| is_between(share, wanted))
            }
            Status::UpperBound => false,
            Status::Unobservable => share.is_none() && each.is_none(),
        };
        if !is_right {
            wrong.push(format!("{name}: {share:?}, {each:?} ns of {wanted_ns:?} in {periods:?}"));
        }
    };
    for ((name, side), calls_ns) in costs.sides().into_iter().zip(known.calls) {
        let busy_ns = |period: f64| calls_ns + truth.spin * (period - calls_ns);
        check(name, &side.busy, &busy_ns);
        check(name, &side.user, &busy_ns);
        check(name, &side.system, &|_| 0.0);
        check(name, &side.helpers, &|_| 0.0);
    }
    let softirq_ns = 2.0 * truth.softirq_ps as f64 / 1e3;
    check("elsewhere", &costs.machine.elsewhere, &|_| softirq_ns);
    check("softirq", &costs.machine.softirq, &|_| softirq_ns);
    let unexplained = costs.machine.unexplained.share.value;
    if !unexplained.is_some_and(|share| share.abs() < ROUNDING) {
        wrong.push(format!("unexplained: {unexplained:?}"));
    }
    wrong
}

fn contradictions_of_all(truth: &Truth, found: &Reading<Utilisation>) -> Vec<String> {
    let shape = &found.found.launches[0].shape;
    let of_size = |(nth, size): (usize, &UtilisationSize)| {
        let kinds = size.kinds().into_iter().zip(known(truth, size.size_bytes, shape.sizes[nth].window));
        let all = kinds.flat_map(|((kind, costs), known)| {
            let named = move |why: String| format!("{kind} of {} B: {why}", size.size_bytes);
            contradictions(truth, costs, &known).into_iter().map(named)
        });
        all.collect::<Vec<_>>()
    };
    let mut wrong: Vec<String> = found.found.sizes.iter().enumerate().flat_map(of_size).collect();
    for name in ["unexplained", "coarse_ticks", "uneven_windows", "busy_machine", "stolen"] {
        if found.doubts.iter().any(|doubt| doubt.name == name) {
            wrong.push(format!("the doubt {name} without a cause"));
        }
    }
    if truth.noise.share == 0.0 && !found.is_precise(PRECISION) {
        wrong.push("figures without noise are not precise: measuring would not stop".into());
    }
    wrong
}

#[test]
fn processor_time_comes_back_from_random_truths() {
    let first = seed();
    let runs = std::env::var("NETDYNO_RUNS").map_or(RUNS, |n| n.parse().unwrap());
    let (mut wrong, mut measured, mut streams) = (Vec::new(), 0, 0);
    for seed in (0..runs).map(|nth| first.wrapping_add(nth)) {
        let spelled = draw(seed);
        let truth: Truth = spelled.parse().unwrap();
        let found = extract(&launches(truth, seed), 0.95, PRECISION).unwrap();
        let sizes = &found.found.sizes;
        measured += sizes.iter().filter(|size| size.stream.requester.busy.share.value.is_some()).count();
        streams += sizes.len();
        let named = |why| format!("NETDYNO_SEED={seed} NETDYNO_RUNS=1 ({spelled}): {why}");
        wrong.extend(contradictions_of_all(&truth, &found).into_iter().map(named));
    }
    println!("{measured} of {streams} streams are measured");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(runs < RUNS || 10 * measured > 9 * streams, "{measured} of {streams} streams are measured");
}
