//! The instrument's own test: it recovers known parameters.
//!
//! The plateau max(g, o_s + o_r, rtt / window) decides which parameters are observable
//! (`Known::expected_limit`):
//! * `rtt`, `o_s`, `o_r`, `o_poll` and `L` are always measured.
//! * `g` is measured if g is the largest term. It is an upper bound if the processor's o_s + o_r is the
//!   largest, and unobservable if the window's rtt / window is.
//!
//! Model parameters whose two largest terms are within 6 % of each other are not decided.

use crate::simulated::signatures;
use netdyno_measure::logp::data::LaunchData;
use netdyno_measure::logp::extract::extract;
use netdyno_measure::logp::record::Logp;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Limit, Parameter, Status};
use netdyno_protocol::sim::Truth;

const UNDECIDED: f64 = 1.06;

#[derive(Clone, Copy, Debug)]
struct Known {
    o_s: f64,
    o_r: f64,
    g: f64,
    l: f64,
    o_poll: f64,
    rtt: f64,
    window: f64,
}

impl Known {
    fn of(truth: &Truth) -> Self {
        let ns = |ps: u64| ps as f64 / 1e3;
        let (o_s, o_r, l) = (ns(truth.o_s_ps), ns(truth.o_r_ps), ns(truth.l_ps));
        let window = truth.window as f64;
        Self {
            o_s,
            o_r,
            g: ns(truth.g_ps),
            l,
            o_poll: ns(truth.o_poll_ps),
            rtt: 2.0 * (o_s + l + o_r),
            window,
        }
    }

    fn busy(&self) -> f64 {
        self.o_s + self.o_r
    }

    fn plateau(&self) -> f64 {
        self.g.max(self.busy()).max(self.rtt / self.window)
    }

    /// Returns the term that sets the plateau, if one of them clearly does.
    fn expected_limit(&self) -> Option<Limit> {
        let mut terms =
            [(self.g, Limit::Gap), (self.busy(), Limit::Processor), (self.rtt / self.window, Limit::Window)];
        terms.sort_by(|a, b| b.0.total_cmp(&a.0));
        (terms[0].0 > UNDECIDED * terms[1].0).then_some(terms[0].1)
    }
}

fn measured(truth: Truth) -> Reading<Logp> {
    extract(&signatures(truth, 1, 1, 0.02), 0.95, 0.02).unwrap()
}

/// Returns model parameters around every regime. Some of them are not decided.
fn grid() -> Vec<Truth> {
    let mut truths = Vec::new();
    for (o_s, o_r) in [("1us", "2us"), ("300ns", "100ns"), ("5ns", "60ns"), ("20us", "15us")] {
        for g in ["0ns", "50ns", "700ns", "5us", "55us"] {
            for l in ["0ns", "120ns", "7us", "300us"] {
                for rest in ["", ",capacity=1", ",window=8", ",capacity=7,window=32,o_poll=3ns", ",window=1"]
                {
                    truths.push(format!("o_s={o_s},o_r={o_r},g={g},L={l}{rest}").parse().unwrap());
                }
            }
        }
    }
    truths
}

fn assert_is(parameter: &Parameter, truth: f64, what: &str) {
    assert_eq!(parameter.status, Status::Measured, "{what}");
    let value = parameter.value_ns.unwrap();
    // The absolute tolerance is for an L of 0: virtual time has a resolution of a picosecond.
    assert!((value - truth).abs() <= 0.01 * truth + 0.002, "{what}: {value} for {truth}");
}

#[test]
fn every_observable_parameter_comes_back_within_one_percent() {
    let mut seen = [0; 3];
    for truth in grid() {
        let known = Known::of(&truth);
        let Some(limit) = known.expected_limit() else { continue };
        let Reading { parameters, found: Logp { plateau, .. }, doubts } = measured(truth);
        let what = |name: &str| format!("{name} of {known:?}, capacity {}", truth.capacity);
        assert_is(&parameters.rtt, known.rtt, &what("rtt"));
        assert_is(&parameters.o_s, known.o_s, &what("o_s"));
        assert_is(&parameters.o_r, known.o_r, &what("o_r"));
        assert_is(&parameters.o_poll, known.o_poll, &what("o_poll"));
        assert_is(&parameters.L, known.l, &what("L"));
        assert_eq!(plateau.limited_by, limit, "{}", what("g"));
        // An interface that follows the model raises no warning about the model.
        for name in
            ["overheads_overlap", "delay_slope", "o_r_two_ways", "late_replies", "negative", "prediction"]
        {
            let doubt = doubts.iter().find(|doubt| doubt.name == name);
            assert_eq!(doubt, None, "{known:?}, capacity {}", truth.capacity);
        }
        let doubted = |name: &str| doubts.iter().any(|doubt| doubt.name == name);
        assert_eq!(doubted("processor_bound"), limit == Limit::Processor, "{}", what("g"));
        assert_eq!(doubted("window_bound"), limit == Limit::Window, "{}", what("g"));
        match limit {
            Limit::Gap => {
                assert_is(&parameters.g, known.g, &what("g"));
                seen[0] += 1;
            }
            Limit::Processor => {
                assert_eq!(parameters.g.status, Status::UpperBound, "{}", what("g"));
                let bound = parameters.g.value_ns.unwrap();
                assert!(bound >= known.g && (bound / known.plateau() - 1.0).abs() < 0.01, "{}", what("g"));
                seen[1] += 1;
            }
            Limit::Window => {
                assert_eq!(parameters.g.status, Status::Unobservable, "{}", what("g"));
                assert_eq!(parameters.g.value_ns, None);
                assert!((plateau.value_ns / known.plateau() - 1.0).abs() < 0.01, "{}", what("g"));
                seen[2] += 1;
            }
            Limit::Unknown => unreachable!("no truth expects it"),
        }
    }
    println!("gap {}, processor {}, window {}", seen[0], seen[1], seen[2]);
    assert!(seen.iter().sum::<usize>() >= 60 && seen.iter().all(|&n| n >= 15), "{seen:?}");
}

/// Culler et al. (1996) find of remote procedure calls that the overhead is the bottleneck: g = o_s + o_r. The
/// signature must say so of an interface for which it holds, and deny it of one with a larger gap.
#[test]
fn the_overhead_is_the_bottleneck_only_where_it_is() {
    for (gap, holds) in [("0ns", true), ("12us", true), ("24us", false), ("160us", false)] {
        for noise in ["", ",noise=0.05"] {
            // Like remote procedure calls over loopback: o_s + o_r = 16 us.
            let truth = format!("o_s=12us,o_r=4us,g={gap},L=20us{noise}").parse().unwrap();
            let Reading { parameters, found, doubts } =
                extract(&signatures(truth, 1, 9, 0.02), 0.95, 0.02).unwrap();
            let [o_s, o_r, g] = [&parameters.o_s, &parameters.o_r, &parameters.g].map(|p| p.ci_ns.unwrap());
            let what = format!("g={gap}{noise}: {g:?} {o_s:?} {o_r:?}");
            let limit = if holds { Limit::Processor } else { Limit::Gap };
            assert_eq!(found.plateau.limited_by, limit, "{what}");
            assert_eq!(doubts.iter().any(|doubt| doubt.name == "processor_bound"), holds, "{what}");
            // The upper bound of g is o_s + o_r within the intervals. A stream of varying steps is a little slower.
            assert_eq!(g.lo <= 1.02 * (o_s.hi + o_r.hi), holds, "{what}");
            assert!(!holds || g.hi >= o_s.lo + o_r.lo, "{what}");
        }
    }
}

/// Returns T(M, 0), the time to issue M requests, in ns. It follows from the parameters alone, without a
/// simulation.
///
/// Request i is issued when three conditions hold:
///
/// * Request i - 1 is issued.
/// * The queue has room: request i - capacity has entered the send stage.
/// * The replies that were found are received.
///
/// If g ≥ o_s, request j enters the stage at o_s + j g. The total is therefore the larger of
///
/// * processor: M o_s + o_r × (replies received while issuing), and
/// * queue: o_s + (M - 1 - capacity) g + o_s.
///
/// The replies arrive from rtt - o_r on, one every max(g, o_s + o_r).
fn closed_form_issue_ns(known: &Known, capacity: f64, m: usize) -> f64 {
    let m = m as f64;
    let spacing = known.g.max(known.busy());
    let first_reply = known.rtt - known.o_r;
    let queue = 2.0 * known.o_s + (m - 1.0 - capacity) * known.g;
    let total = |replies: f64| (m * known.o_s + known.o_r * replies).max(queue);
    // One more reply counts if it arrives before the last request is issued.
    let mut replies = 0.0;
    while replies < m - 1.0 && first_reply + replies * spacing <= total(replies) - known.o_s {
        replies += 1.0;
    }
    total(replies)
}

#[test]
fn the_simulated_signature_matches_its_closed_form() {
    let mut compared = 0;
    for truth in grid() {
        let known = Known::of(&truth);
        // The closed form has no window and no cost of empty polls, and departures are a gap apart. In
        // it, the queue does not fill before the first reply if the processor is the slower stage.
        let first_reply = known.rtt - known.o_r;
        let queued_by_then = first_reply / known.o_s - first_reply / known.g;
        let stops_early = known.busy() > known.g && queued_by_then > truth.capacity as f64;
        if truth.window < 65536 || known.o_poll > 0.0 || known.g < known.o_s || stops_early {
            continue;
        }
        let launch = &signatures(truth, 1, 1, 0.02)[0];
        for burst in &launch.signature[0].bursts {
            let simulated = burst.issue_ns[0];
            let expected = closed_form_issue_ns(&known, truth.capacity as f64, burst.m);
            // The closed form does not know which event comes first when the queue fills as replies arrive.
            // That changes the time by the overheads of one message.
            let slack = known.busy() + 1e-3 * expected;
            assert!(
                (simulated - expected).abs() <= slack,
                "{known:?} capacity {} M {}: {simulated} for {expected}",
                truth.capacity,
                burst.m
            );
            if burst.m as f64 * known.o_s < known.rtt - known.o_r && burst.m <= truth.capacity {
                assert!((simulated - burst.m as f64 * known.o_s).abs() < 1e-6, "send only is exact");
            }
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}

/// Returns the standard deviation of each parameter's best estimate from the data of one launch, in ns. Only
/// the noise contributes: each duration has the deviation noise × duration, and the estimates are means.
fn theoretical_deviations(known: &Known, noise: f64, launch: &LaunchData) -> [(&'static str, f64); 5] {
    let square = |x: f64| (noise * x).powi(2);
    let rtt = 2.0 * (square(known.o_s) + square(known.o_r) + square(known.l)) / launch.rtt.samples as f64;
    let burst = launch.issue.last().unwrap();
    let o_s = square(known.o_s) / (burst.m * burst.per_batch * burst.issue_ns.len()) as f64;
    // The slope between bursts of M / 2 and M requests has the noise of both.
    let longest = *launch.shape.bursts.last().unwrap() as f64;
    let per_rise = 1.5 * longest / (longest / 2.0).powi(2);
    let passes = launch.signature[0].d_measured_ns.len() as f64;
    let g = square(known.g) * per_rise / passes;
    let busy = (square(known.o_s) + square(known.o_r)) * per_rise / (4.0 * passes);
    [
        ("rtt", rtt.sqrt()),
        ("o_s", o_s.sqrt()),
        ("o_r", (busy + o_s).sqrt()),
        ("g", g.sqrt()),
        ("L", (rtt / 4.0 + busy).sqrt()),
    ]
}

#[derive(Clone, Copy, Default)]
struct Coverage {
    covered: usize,
    width: f64,
    theoretical_width: f64,
}

/// Returns the results of `one` for all runs, not in their order. There is one thread for each processor.
fn on_all_processors<T: Send>(runs: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let one = &one;
        let workers: Vec<_> = (0..threads)
            .map(|t| scope.spawn(move || (t..runs).step_by(threads).map(one).collect::<Vec<_>>()))
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

/// Returns the coverage and the width of the intervals over `runs` seeded runs of 9 launches.
fn coverage(text: &str, runs: usize) -> [(&'static str, Coverage); 5] {
    let truth: Truth = text.parse().unwrap();
    let known = Known::of(&truth);
    let truths = [("rtt", known.rtt), ("o_s", known.o_s), ("o_r", known.o_r), ("g", known.g), ("L", known.l)];
    let one = |seed: usize| {
        let launches = signatures(truth, seed as u64, 9, 0.02);
        let extracted = extract(&launches, 0.95, 0.02).unwrap();
        let deviations = theoretical_deviations(&known, truth.noise.share, &launches[0]);
        let parameters = extracted.parameters.times();
        std::array::from_fn::<_, 5, _>(|at| {
            let (name, value) = truths[at];
            let ci = parameters.iter().find(|(n, _)| *n == name).unwrap().1.ci_ns.unwrap();
            Coverage {
                covered: usize::from(ci.contains(value)),
                width: ci.hi - ci.lo,
                theoretical_width: 2.0 * 1.96 * deviations[at].1 / 3.0,
            }
        })
    };
    let mut sums = truths.map(|(name, _)| (name, Coverage::default()));
    for run in on_all_processors(runs, one) {
        for (sum, one) in sums.iter_mut().zip(run) {
            sum.1.covered += one.covered;
            sum.1.width += one.width / runs as f64;
            sum.1.theoretical_width += one.theoretical_width / runs as f64;
        }
    }
    sums
}

#[test]
fn with_noise_the_intervals_cover_the_truth() {
    // `./check --full` does 2000 runs.
    let runs = std::env::var("NETDYNO_RUNS").map_or(60, |n| n.parse().unwrap());
    for (name, c) in coverage("o_s=1us,o_r=2us,g=5us,L=7us,noise=0.05", runs) {
        let share = c.covered as f64 / runs as f64;
        let ratio = c.width / c.theoretical_width;
        println!("{name}: covered {:.1} %, width {ratio:.2} x theoretical", 100.0 * share);
        assert!(share >= 0.93, "{name}: {share}");
        assert!(ratio <= 3.0, "{name}: {ratio}");
    }
}

/// The command adds launches until the intervals are narrow enough. To stop at a narrow interval must not
/// reduce the coverage. So this test adds launches by the command's rule, and looks as often.
#[test]
fn intervals_cover_the_truth_where_they_decide_when_to_stop() {
    let truth: Truth = "o_s=1us,o_r=2us,g=5us,L=7us,noise=0.05".parse().unwrap();
    let known = Known::of(&truth);
    let precision = 0.001;
    let one = |seed: u64| {
        let (mut covered, mut added) = (0, 0);
        let mut data = signatures(truth, seed, 9, precision);
        let mut extracted = extract(&data, 0.95, precision).unwrap();
        while !extracted.is_precise(precision) && data.len() < 24 {
            let seed = (seed + 1) * 1_000_003 + data.len() as u64;
            data.extend(signatures(truth, seed, 3, precision));
            extracted = extract(&data, 0.95, precision).unwrap();
            added += 3;
        }
        let p = &extracted.parameters;
        let each =
            [(&p.rtt, known.rtt), (&p.o_s, known.o_s), (&p.o_r, known.o_r), (&p.g, known.g), (&p.L, known.l)];
        for (parameter, truth) in each {
            covered += usize::from(parameter.ci_ns.unwrap().contains(truth));
        }
        (covered, each.len(), added)
    };
    let (mut covered, mut intervals, mut added) = (0, 0, 0);
    for one in on_all_processors(30, |seed| one(seed as u64)) {
        covered += one.0;
        intervals += one.1;
        added += one.2;
    }
    println!("covered {covered} of {intervals}, {added} launches were added");
    assert!(added > 30, "the rule has added {added} launches: the test asks too little");
    assert!(covered * 100 >= intervals * 93, "{covered} of {intervals}");
}
