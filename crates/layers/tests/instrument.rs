//! The instrument's own test: parameters that are known come back.
//!
//! What is observable follows a predicate of the truth ([`expected_limit`]): with the
//! plateau max(g, o_s + o_r, rtt / window),
//! * `rtt`, `o_s`, `o_r`, `o_poll` and `L` are always measured;
//! * `g` is measured where g is the largest of the three, an upper bound where the
//!   processor's o_s + o_r is, and unobservable where the window's rtt / window is.
//!
//! Truths in which the two largest are within 6 % of each other are not decided.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "simulated/mod.rs"]
mod simulated;

use netdyno_measure::logp::data::LaunchData;
use netdyno_measure::logp::doubts::is_precise;
use netdyno_measure::logp::extract::{Extracted, extract};
use netdyno_measure::record::{Limit, Parameter, Status};
use netdyno_protocol::sim::Truth;
use simulated::signatures;

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

    /// Which of the three sets the plateau, where one clearly does.
    fn expected_limit(&self) -> Option<Limit> {
        let mut terms =
            [(self.g, Limit::Gap), (self.busy(), Limit::Processor), (self.rtt / self.window, Limit::Window)];
        terms.sort_by(|a, b| b.0.total_cmp(&a.0));
        (terms[0].0 > UNDECIDED * terms[1].0).then_some(terms[0].1)
    }
}

fn measured(truth: Truth) -> Extracted {
    extract(&signatures(truth, 1, 1, 0.02), 0.95, 0.02).unwrap()
}

/// Truths around every regime; those that the predicate does not decide are left out.
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
    // An L of nothing comes back to within a percent of a picosecond-grained round trip.
    assert!((value - truth).abs() <= 0.01 * truth + 0.002, "{what}: {value} for {truth}");
}

#[test]
fn every_observable_parameter_comes_back_within_one_percent() {
    let mut seen = [0; 3];
    for truth in grid() {
        let known = Known::of(&truth);
        let Some(limit) = known.expected_limit() else { continue };
        let Extracted { parameters, plateau, doubts, .. } = measured(truth);
        let what = |name: &str| format!("{name} of {known:?}, capacity {}", truth.capacity);
        assert_is(&parameters.rtt, known.rtt, &what("rtt"));
        assert_is(&parameters.o_s, known.o_s, &what("o_s"));
        assert_is(&parameters.o_r, known.o_r, &what("o_r"));
        assert_is(&parameters.o_poll, known.o_poll, &what("o_poll"));
        assert_is(&parameters.L, known.l, &what("L"));
        assert_eq!(plateau.limited_by, limit, "{}", what("g"));
        // An interface that is what the model says raises no doubt about the model.
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

/// T(M, 0), the time to issue M requests, from the truth alone: without the interface,
/// without events.
///
/// The i-th request is issued once (a) the one before is, (b) the queue has room, that
/// is, the (i - capacity)-th has entered the send stage, and (c) the replies that were
/// found are received. Where g ≥ o_s the j-th request enters the stage at o_s + j g, so
/// that the total is the larger of
///
/// * processor: M o_s + o_r × (replies received while issuing), and
/// * queue: o_s + (M - 1 - capacity) g + o_s,
///
/// and the replies come from rtt - o_r on, one every max(g, o_s + o_r).
fn closed_form_issue_ns(known: &Known, capacity: f64, m: usize) -> f64 {
    let m = m as f64;
    let spacing = known.g.max(known.busy());
    let first_reply = known.rtt - known.o_r;
    let queue = 2.0 * known.o_s + (m - 1.0 - capacity) * known.g;
    let total = |replies: f64| (m * known.o_s + known.o_r * replies).max(queue);
    // One more reply is received while it is there before the last request is issued.
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
        // The closed form knows no window, no cost of empty polls, departures a gap apart,
        // and a queue that does not stop the processor before the processor is the slower.
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
            // Which of two events comes first where the phases of queue and replies meet is
            // beyond the closed form: one message's overhead.
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

/// The standard deviation of each parameter's best estimate from the data of one launch,
/// from the noise alone: every duration has the deviation noise × duration, and the
/// means of what was run are taken.
fn theoretical_deviations(known: &Known, noise: f64, launch: &LaunchData) -> [(&'static str, f64); 5] {
    let square = |x: f64| (noise * x).powi(2);
    let rtt = 2.0 * (square(known.o_s) + square(known.o_r) + square(known.l)) / launch.rtt.samples as f64;
    let burst = launch.issue.last().unwrap();
    let o_s = square(known.o_s) / (burst.m * burst.per_batch * burst.issue_ns.len()) as f64;
    // The rise between bursts of M / 2 and M requests holds the noise of both.
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

/// What `one` returns for each run, of which as many go on at once as there are processors.
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

/// Coverage and width of the intervals over `runs` seeded runs of 9 launches.
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
    // The full proof, 2000 runs, is part of `./check --full`.
    let runs = std::env::var("NETDYNO_RUNS").map_or(100, |n| n.parse().unwrap());
    for (name, c) in coverage("o_s=1us,o_r=2us,g=5us,L=7us,noise=0.05", runs) {
        let share = c.covered as f64 / runs as f64;
        let ratio = c.width / c.theoretical_width;
        println!("{name}: covered {:.1} %, width {ratio:.2} x theoretical", 100.0 * share);
        assert!(share >= 0.93, "{name}: {share}");
        assert!(ratio <= 3.0, "{name}: {ratio}");
    }
}

/// Launches are added until the intervals are narrow enough. Stopping at a narrow interval
/// must not cost the coverage: this runs the rule of the command, with its looks.
#[test]
fn intervals_cover_the_truth_where_they_decide_when_to_stop() {
    let truth: Truth = "o_s=1us,o_r=2us,g=5us,L=7us,noise=0.05".parse().unwrap();
    let known = Known::of(&truth);
    let precision = 0.001;
    let one = |seed: u64| {
        let (mut covered, mut added) = (0, 0);
        let mut data = signatures(truth, seed, 9, precision);
        let mut extracted = extract(&data, 0.95, precision).unwrap();
        while !is_precise(&extracted.parameters, precision) && data.len() < 24 {
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
