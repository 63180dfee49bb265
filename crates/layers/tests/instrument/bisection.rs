//! The instrument's own test of the bisection with random model parameters: two hosts of known interfaces, whose middle
//! takes one message at a time.
//!
//! If c pairs of a pattern cross the middle, whose time for a message is m, a message of one of them takes max(a, c m).
//! A message of another pair takes a = max(g, o_s + o_r). A window of W messages makes it rtt / W at least.
//!
//! `NETDYNO_SEED` sets the first seed, `NETDYNO_RUNS` the number of random parameters.

use crate::simulated::halves::{Halves, Times};
use crate::truths::draw::log_uniform;
use crate::truths::seed;
use netdyno_measure::contention::direct::CrowdPlan;
use netdyno_measure::contention::extract::extract;
use netdyno_measure::contention::places::{Bisected, Places};
use netdyno_measure::contention::record::Bisection;

/// The number of random parameters, unless `NETDYNO_RUNS` is set.
const RUNS: u64 = 100;
const NEAR: f64 = 0.01;
/// A middle that is slower than all pairs together by this factor halves the rate across, or more.
const SLOW: f64 = 2.0;

/// Random model parameters and hosts of the ranks.
#[derive(Debug)]
struct Drawn {
    times: Times,
    hosts: Vec<usize>,
    cpus: Vec<usize>,
}

fn draw(seed: u64) -> Drawn {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ps = |least: f64, most: f64| (1e3 * log_uniform(&mut random, least, most)) as u64;
    let (o_s, o_r, g, latency) = (ps(5.0, 2e4), ps(5.0, 2e4), ps(1.0, 1e5), ps(1.0, 1e5));
    let alone = g.max(o_s + o_r);
    let middle = (alone as f64 * log_uniform(&mut random, 0.03, 10.0)) as u64;
    let procs = random.usize(4..=9);
    let halves = procs.div_ceil(2);
    // Half of the jobs have equal parts on both hosts.
    let on_first = if random.bool() { halves } else { random.usize(1..procs) };
    let mut hosts: Vec<usize> = (0..procs).map(|rank| usize::from(rank >= on_first)).collect();
    random.shuffle(&mut hosts);
    let mut cpus: Vec<usize> = (0..procs).collect();
    random.shuffle(&mut cpus);
    Drawn { times: Times { o_s, o_r, g, latency, middle }, hosts, cpus }
}

impl Drawn {
    /// Returns the numbers of pairs across and of pairs of neighbours that cross the middle. In the order of the hosts
    /// the first n places are on the first one.
    fn crossing(&self) -> [usize; 2] {
        let first = self.hosts.iter().filter(|&&host| host == 0).count();
        let pairs = self.hosts.len() / 2;
        let across = (0..pairs).filter(|&place| place < first && place + pairs >= first).count();
        [across, usize::from(first % 2 == 1 && first < 2 * pairs)]
    }

    /// Returns the messages per second of a pattern of which `crossing` pairs cross the middle.
    fn rate(&self, crossing: usize, window: usize) -> f64 {
        let Times { o_s, o_r, g, latency, middle } = self.times;
        let rtt = 2 * (o_s + latency + o_r);
        let alone = g.max(o_s + o_r).max(rtt / window as u64) as f64;
        let shared =
            alone.max((crossing as u64 * middle) as f64).max(((rtt + middle) / window as u64) as f64);
        let others = self.hosts.len() / 2 - crossing;
        1e12 * (crossing as f64 / shared + others as f64 / alone)
    }

    fn measured(&self, seed: u64) -> (Bisection, usize) {
        let procs = self.hosts.len();
        let places = Places::of(procs, &self.hosts, &self.cpus);
        let plan = CrowdPlan { launch: 0, procs, shape: None, budget_ns: 1e9, seed };
        let data = Halves::new(self.times, &self.hosts).launch(&plan, &places);
        let found = extract(&[data], 0.95, 0.02).unwrap().found;
        (found.bisection.unwrap(), found.plateau.window)
    }
}

/// Four pairs that all cross the middle wait for each other, with a delay as well as without. Waiting was once told as
/// o_r.
#[test]
fn waiting_for_the_middle_is_no_overhead() {
    let times = Times { o_s: 200_000, o_r: 200_000, g: 1_000_000, latency: 2_000_000, middle: 1_000_000 };
    let cpus: Vec<usize> = (0..8).collect();
    let mut hidden = 0;
    for hosts in [[0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]] {
        let places = Places::of(8, &hosts, &cpus);
        let plan = CrowdPlan { launch: 0, procs: 8, shape: None, budget_ns: 1e9, seed: 1 };
        let reading = extract(&[Halves::new(times, &hosts).launch(&plan, &places)], 0.95, 0.02).unwrap();
        let compared = &reading.found.halves.compared;
        let crowd = |name: &str| compared.iter().find(|one| one.parameter == name).unwrap().crowd.value_ns;
        let is_told = reading.doubts.iter().any(|doubt| doubt.name == "hidden_in_crowd");
        assert_eq!((crowd("o_r").is_none(), crowd("L").is_none()), (is_told, is_told), "{hosts:?}");
        assert!(crowd("o_r").is_none_or(|ns| (ns - 200.0).abs() < 20.0), "{hosts:?}: {:?}", crowd("o_r"));
        hidden += usize::from(is_told);
    }
    assert_eq!(hidden, 1, "the pairs cross the middle with one of the two placements");
}

/// Returns why a bisection contradicts the model parameters.
fn contradictions(drawn: &Drawn, found: &Bisection, window: usize) -> Vec<String> {
    let crossing = drawn.crossing();
    let [across, neighbours] = crossing.map(|crossing| drawn.rate(crossing, window));
    let pairs = drawn.hosts.len() / 2;
    let by = if crossing[0] == pairs { Bisected::Hosts } else { Bisected::HostsInPart };
    let mut wrong = Vec::new();
    if (found.by, found.pairs) != (by, pairs) {
        wrong.push(format!("{} pairs by {:?}, and they are {pairs} by {by:?}", found.pairs, found.by));
    }
    for (name, value, known) in [
        ("the rate across", found.across_per_s.value, across),
        ("the rate of neighbours", found.neighbours_per_s.value, neighbours),
        ("the ratio", found.ratio.value, across / neighbours),
    ] {
        if (value - known).abs() > NEAR * known {
            wrong.push(format!("{name} is {value}, and not {known}"));
        }
    }
    wrong
}

#[test]
fn the_bisection_comes_back_from_random_truths() {
    let first = seed();
    let runs = std::env::var("NETDYNO_RUNS").map_or(RUNS, |n| n.parse().unwrap());
    let (mut wrong, mut slow, mut free) = (Vec::new(), 0, 0);
    for seed in (0..runs).map(|nth| first.wrapping_add(nth)) {
        let drawn = draw(seed);
        let (found, window) = drawn.measured(seed);
        slow += usize::from(found.ratio.value <= 1.0 / SLOW);
        free += usize::from((found.ratio.value - 1.0).abs() <= NEAR);
        let named = |why| format!("NETDYNO_SEED={seed} NETDYNO_RUNS=1 ({drawn:?}, window {window}): {why}");
        wrong.extend(contradictions(&drawn, &found, window).into_iter().map(named));
    }
    println!("{slow} middles halve the rate or more, {free} do not matter, of {runs}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(runs < RUNS || (slow >= 5 && free >= 5), "{slow} and {free} of {runs}");
}
