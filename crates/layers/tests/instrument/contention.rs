//! The instrument's own test of `contention`: simulated interfaces with known parameters, in one virtual
//! time. The code that measures processes must return the values of the LogP model for them.
//!
//! The plateau of one pair is max(g, o_s + o_r, rtt / window). With more processes:
//! * K to one: the receiver takes s = max(g, o_s + o_r) for each message. Each requester sees
//!   max(K s, rtt / window).
//! * Half to half: each pair performs as it does alone.
//! * Across the bisection: as neighbours, because pairs do not notice each other.
//! * One to many: the sender's interface and processor limit the stream as before. The sender has a window
//!   for each replier.

use netdyno_layers::sim::crowd;
use netdyno_measure::contention::data::CrowdData;
use netdyno_measure::contention::direct::CrowdPlan;
use netdyno_measure::contention::extract::extract;
use netdyno_measure::contention::record::Contention;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Limit, Status};
use netdyno_protocol::sim::Truth;

const WITHIN: f64 = 0.01;
/// The limit is not decided if the ratio of the two largest terms is below this.
const UNDECIDED: f64 = 1.06;

struct Known {
    o_s: f64,
    o_r: f64,
    g: f64,
    l: f64,
    rtt: f64,
}

impl Known {
    fn of(truth: &Truth) -> Self {
        let ns = |ps: u64| ps as f64 / 1e3;
        let (o_s, o_r, l) = (ns(truth.o_s_ps), ns(truth.o_r_ps), ns(truth.l_ps));
        Self { o_s, o_r, g: ns(truth.g_ps), l, rtt: 2.0 * (o_s + l + o_r) }
    }

    /// Returns the time that a receiver takes for a message, in ns.
    fn stage(&self) -> f64 {
        self.g.max(self.o_s + self.o_r)
    }

    fn limit(&self, window: usize) -> Option<Limit> {
        let mut terms = [
            (self.g, Limit::Gap),
            (self.o_s + self.o_r, Limit::Processor),
            (self.rtt / window as f64, Limit::Window),
        ];
        terms.sort_by(|a, b| b.0.total_cmp(&a.0));
        (terms[0].0 > UNDECIDED * terms[1].0).then_some(terms[0].1)
    }
}

fn launches(truth: Truth, procs: usize, count: usize, seed: u64) -> Vec<CrowdData> {
    let mut shape = None;
    (0..count)
        .map(|launch| {
            let plan = CrowdPlan {
                launch,
                procs,
                shape: shape.clone(),
                budget_ns: 1e9,
                seed: 1000 * seed + launch as u64,
            };
            let data = crowd::launch(truth, 1, &plan, &mut |_| {}).unwrap();
            shape = Some(data.shape.clone());
            data
        })
        .collect()
}

fn measured(truth: &str, procs: usize) -> (Truth, Reading<Contention>) {
    let truth: Truth = truth.parse().unwrap();
    (truth, extract(&launches(truth, procs, 1, 7), 0.95, 0.02).unwrap())
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= WITHIN * expected + 0.002, "{what}: {found} for {expected}");
}

fn check(text: &str, procs: usize) -> Option<Limit> {
    let (truth, Reading { parameters, found, .. }) = measured(text, procs);
    let known = Known::of(&truth);
    let window = found.plateau.window;
    let what = |name: &str| format!("{name} of {procs} x {text}");
    assert_near(parameters.rtt.value_ns.unwrap(), known.rtt, &what("rtt"));
    assert_near(parameters.o_s.value_ns.unwrap(), known.o_s, &what("o_s"));
    assert_near(parameters.o_r.value_ns.unwrap(), known.o_r, &what("o_r"));
    assert_near(parameters.L.value_ns.unwrap(), known.l, &what("L"));
    for (from, row) in found.pairs.rtt_ns.iter().enumerate() {
        for (to, rtt) in row.iter().enumerate() {
            assert_eq!(rtt.is_none(), from == to);
            assert_near(rtt.unwrap_or(known.rtt), known.rtt, &what("a pair's rtt"));
        }
    }
    assert_near(found.pairs.most_over_least.value, 1.0, &what("longest over shortest"));
    let limit = known.limit(window)?;
    assert_eq!(found.plateau.limited_by, limit, "{}", what("the limit"));
    let alone = known.stage().max(known.rtt / window as f64);
    assert_near(found.plateau.value_ns, alone, &what("the plateau"));
    assert_eq!(parameters.g.status == Status::Measured, limit == Limit::Gap, "{}", what("g"));
    for compared in &found.halves.compared {
        let scale = compared.alone.value_ns.unwrap().max(known.rtt / 2.0);
        let difference = compared.difference_ns.value.abs();
        assert!(difference <= WITHIN * scale, "{}: {difference}", what(&compared.parameter));
        assert!(compared.most_ns - compared.least_ns <= WITHIN * scale, "{}", what("spread of pairs"));
    }
    let many_windows = known.stage().max(known.rtt / (window * found.one_to_many.repliers) as f64);
    assert_near(found.one_to_many.ratio.value, many_windows / alone, &what("one to many"));
    assert_eq!(found.many_to_one.len(), procs - 1);
    for at in &found.many_to_one {
        let k = at.requesters as f64;
        let expected = (k * known.stage()).max(alone) / alone;
        assert_near(at.ratio.value, expected, &what(&format!("g({k})/g(1)")));
        if limit != Limit::Window {
            assert_eq!((at.model, expected), (k, k));
        }
        assert_near(at.slowest_over_fastest.value, 1.0, &what(&format!("shares of {k}")));
    }
    assert_eq!(found.bisection.is_some(), procs >= 4);
    if let Some(bisection) = &found.bisection {
        let pairs = (procs / 2) as f64;
        assert_eq!((bisection.pairs, bisection.model), (procs / 2, 1.0));
        assert_near(bisection.ratio.value, 1.0, &what("across over neighbours"));
        assert_near(bisection.across_per_s.value, pairs * 1e9 / alone, &what("the rate across"));
        assert_near(bisection.neighbours_per_s.value, pairs * 1e9 / alone, &what("the rate of neighbours"));
    }
    for rate in &found.rates {
        assert_near(rate.ratio.value, rate.pairs as f64, &what("rate"));
    }
    Some(limit)
}

#[test]
fn a_crowd_of_known_interfaces_gives_the_ratios_of_the_model() {
    let mut seen = [0; 3];
    for procs in [2, 5, 8] {
        for overheads in ["o_s=1us,o_r=2us", "o_s=5ns,o_r=60ns"] {
            for g in ["0ns", "700ns", "55us"] {
                for l in ["120ns", "7us"] {
                    for rest in ["", ",capacity=1,o_poll=3ns", ",window=2", ",window=32,capacity=7"] {
                        match check(&format!("{overheads},g={g},L={l}{rest}"), procs) {
                            Some(Limit::Gap) => seen[0] += 1,
                            Some(Limit::Processor) => seen[1] += 1,
                            Some(Limit::Window) => seen[2] += 1,
                            Some(Limit::Unknown) | None => {}
                        }
                    }
                }
            }
        }
    }
    println!("gap {}, processor {}, window {}", seen[0], seen[1], seen[2]);
    assert!(seen.iter().all(|&n| n >= 15), "{seen:?}");
}

/// Noise slows a stream by some thousandths, because the queue in front of one of its four stages may run
/// empty. That happens less often if K windows meet. So ratios to one pair are only within 1 %. Pairs are
/// equal to each other, so the intervals of their differences must contain 0.
#[test]
fn with_noise_pairs_in_the_crowd_are_as_alone() {
    let truth: Truth = "o_s=1us,o_r=2us,g=5us,L=7us,noise=0.05".parse().unwrap();
    let (mut covered, mut intervals) = (0, 0);
    for seed in 0..20 {
        let found = extract(&launches(truth, 4, 9, seed), 0.95, 0.02).unwrap().found;
        assert_near(found.one_to_many.ratio.value, 1.0, "one to many");
        for at in &found.many_to_one {
            assert_near(at.ratio.value, at.model, "many to one");
        }
        let bisection = found.bisection.unwrap().ratio;
        assert_near(bisection.value, 1.0, "across over neighbours");
        covered += usize::from(bisection.ci.unwrap().contains(1.0));
        intervals += 1;
        for compared in &found.halves.compared {
            assert_near(compared.ratio.unwrap().value, 1.0, &compared.parameter);
            covered += usize::from(compared.difference_ns.ci.unwrap().contains(0.0));
            intervals += 1;
        }
    }
    println!("covered {covered} of {intervals}");
    assert!(covered * 100 >= intervals * 90, "{covered} of {intervals}");
}

/// Strong noise hides that processor and window hold a pair back. The gap is then not called measured.
#[test]
fn with_strong_noise_no_gap_of_processor_and_window_is_called_measured() {
    for text in [
        "o_s=320ns,o_r=10.5us,g=2ns,L=408us,window=95,noise=0.2,noise_shape=normal",
        "o_s=1us,o_r=1us,g=2ns,L=408us,window=400,noise=0.2,noise_shape=normal",
        "o_s=1us,o_r=2us,g=2ns,L=7us,window=8,noise=0.2,noise_shape=normal",
    ] {
        for seed in 1..=4 {
            let launches = launches(text.parse().unwrap(), 4, 9, seed);
            let g = extract(&launches, 0.95, 0.02).unwrap().parameters.g;
            assert_ne!(g.status, Status::Measured, "{text}, seed {seed}: {g:?}");
        }
    }
}

/// A poll that finds nothing delays the reply that comes during it. The pace of a processor that is busy with such polls
/// is not called the gap, and a gap that is far above them is still measured.
#[test]
fn the_pace_of_empty_polls_is_not_called_a_gap() {
    let mut measured = 0;
    for overheads in ["o_s=10us,o_r=1us", "o_s=1us,o_r=10us", "o_s=1us,o_r=2us", "o_s=100ns,o_r=200ns"] {
        for g in ["10ns", "4us", "60us"] {
            for rest in ["L=1us,window=2", "L=1us,window=3", "L=7us,window=8", "L=7us", "L=30us,window=4"] {
                for o_poll in ["500ns", "4us", "5us", "20us"] {
                    let text = format!("{overheads},g={g},{rest},o_poll={o_poll}");
                    let truth: Truth = text.parse().unwrap();
                    let g = extract(&launches(truth, 2, 1, 7), 0.95, 0.02).unwrap().parameters.g;
                    println!("{text}: {:?} {:?}", g.status, g.value_ns);
                    let known = Known::of(&truth);
                    match (g.status, g.value_ns) {
                        (Status::Measured, Some(value)) => {
                            assert_near(value, known.g, &text);
                            measured += 1;
                        }
                        (Status::UpperBound, Some(value)) => {
                            assert!(value >= 0.99 * known.g, "{text}: {g:?}")
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    assert!(measured >= 60, "{measured}");
}

#[test]
fn the_same_seed_gives_the_same_launch() {
    let truth: Truth = "o_s=1us,o_r=2us,g=5us,L=7us,noise=0.05".parse().unwrap();
    assert_eq!(launches(truth, 4, 1, 3), launches(truth, 4, 1, 3));
    assert_ne!(launches(truth, 4, 1, 3), launches(truth, 4, 1, 4));
}
