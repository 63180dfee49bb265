//! The instrument's own test of `bulk`: it recovers known parameters that are functions of the size.
//!
//! For each size n, the steady state is max(g(n), o_s(n) + o_r(1), rtt(n, 1) / window), where
//! g(n) = g + (n - 1) G:
//! * `T`, `transfer`, `o_s`, `o_r` and `L` are always measured.
//! * `g` has the status that a signature gives it: measured, an upper bound, or unobservable.
//!
//! `G` of a segment is measured if g is measured at the segment's largest size. It then comes back within
//! 1 %. A change of protocol is found if T departs far enough. Two sizes enclose it, as close to each other
//! as the search goes. Without a change of protocol, none is found.

use crate::simulated::known::Known;
use crate::simulated::{sizes, transfers};
use netdyno_layers::sim::SimRequester;
use netdyno_measure::bulk::data::{BulkLaunch, Direction};
use netdyno_measure::bulk::extract::extract;
use netdyno_measure::bulk::pattern::{self, BulkPlan};
use netdyno_measure::bulk::record::{Bulk, Overlaps, SizeFigures};
use netdyno_measure::bulk::search::{DEPARTURE, STEP};
use netdyno_measure::layer::{LayerError, Requester, SizedRequester, Time, Transfer, Work};
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Doubt, Limit, Parameter, Parameters, Status};
use netdyno_protocol::sim::Truth;

const LARGEST: usize = 4 << 20;

/// Returns the relative departure of T at the known change of protocol.
fn departure(truth: &Truth) -> f64 {
    let Some(change) = truth.change else { return 0.0 };
    let before = Known::of(&Truth { change: None, ..*truth }, change.from_bytes).one_way;
    (Known::of(truth, change.from_bytes).one_way / before - 1.0).abs()
}

fn launches(truth: Truth, seed: u64, count: usize) -> Vec<BulkLaunch> {
    sizes(truth, seed, count, LARGEST, 1e9)
}

fn measured(truth: Truth) -> Reading<Bulk> {
    extract(&launches(truth, 1, 1), 0.95, 0.02).unwrap()
}

/// Returns model parameters around every regime.
fn grid() -> Vec<Truth> {
    let mut truths = Vec::new();
    let rests = ["", ",capacity=1", ",window=4", ",O_s=0.1ns/B,O_r=0.05ns/B", ",O_s=2ns/B,O_r=2ns/B"];
    let changes = [
        "",
        ",change=8KiB,change_G=0.25ns/B,change_L=2us",
        ",change=33,change_L=4us",
        ",change=300000,change_G=0.1ns/B,change_L=300us",
        ",change=3MiB,change_G=0.9ns/B",
    ];
    for o in ["o_s=1us,o_r=2us", "o_s=30ns,o_r=40ns"] {
        for g in ["g=50ns", "g=5us"] {
            for l in ["L=200ns", "L=7us"] {
                for rest in rests {
                    for change in changes {
                        truths.push(format!("{o},{g},{l},G=0.5ns/B{rest}{change}").parse().unwrap());
                    }
                }
            }
        }
    }
    truths
}

fn assert_near(p: &Parameter, truth: f64, what: &str) {
    assert_eq!(p.status, Status::Measured, "{what}");
    let value = p.value_ns.unwrap();
    assert!((value - truth).abs() <= 0.01 * truth + 0.002, "{what}: {value} for {truth}");
}

fn check_size(size: &SizeFigures, truth: &Truth, seen: &mut [usize; 3]) {
    let known = Known::of(truth, size.size_bytes);
    let what = |name: &str| format!("{name} at {} of {truth:?}", size.size_bytes);
    assert_near(&size.T, known.one_way, &what("T"));
    assert_near(&size.transfer, known.transfer, &what("transfer"));
    assert_near(&size.o_s, known.o_s, &what("o_s"));
    assert_near(&size.o_r, known.o_r, &what("o_r"));
    assert_near(&size.L, known.latency, &what("L"));
    check_gap(size, &known, &what, seen);
}

/// Compares the steady state and g(n) with the known values, if one term clearly sets them.
fn check_gap(size: &SizeFigures, known: &Known, what: &dyn Fn(&str) -> String, seen: &mut [usize; 3]) {
    let Some((limit, expected)) = known.expected() else { return };
    assert_eq!(size.plateau.limited_by, limit, "{}", what("g"));
    let steady = size.plateau.value_ns;
    assert!((steady / expected - 1.0).abs() < 0.01, "{}: {steady} for {expected}", what("steady"));
    match limit {
        Limit::Gap => {
            assert_near(&size.g, known.slowest_stage(), &what("g"));
            seen[0] += 1;
        }
        Limit::Processor => {
            assert_eq!(size.g.status, Status::UpperBound, "{}", what("g"));
            seen[1] += 1;
        }
        Limit::Window => {
            assert_eq!((size.g.status, size.g.value_ns), (Status::Unobservable, None), "{}", what("g"));
            seen[2] += 1;
        }
        Limit::Unknown => unreachable!("no truth expects it"),
    }
}

/// The known values of gets: the request is small, and the data are in the reply. All figures of the requester
/// come back, and L does not, because the requester does not see the overhead of sending the data.
#[test]
fn known_gets_come_back_within_one_percent() {
    let (mut seen, mut without) = ([0; 3], 0);
    for truth in grid().into_iter().step_by(3) {
        let data = transfers(truth, Direction::Get, &[], 1, 1, (256 << 10, 1e9));
        let Reading { found: bulk, doubts, .. } = extract(&data, 0.95, 0.02).unwrap();
        assert_eq!((bulk.direction, bulk.transfer), (Direction::Get, Transfer::Reply));
        assert!(doubts.iter().any(|doubt| doubt.name == "sender_unseen"), "{truth:?}");
        for size in &bulk.sizes {
            let known = Known::of_get(&truth, size.size_bytes);
            let what = |name: &str| format!("{name} of a get at {} of {truth:?}", size.size_bytes);
            assert_near(&size.T, known.one_way, &what("T"));
            assert_near(&size.transfer, known.transfer, &what("transfer"));
            assert_near(&size.o_s, known.o_s, &what("o_s"));
            assert_near(&size.o_r, known.o_r, &what("o_r"));
            assert_eq!((size.L.status, size.L.value_ns), (Status::Unobservable, None), "{}", what("L"));
            without += usize::from(known.expected().is_none());
            check_gap(size, &known, &what, &mut seen);
        }
    }
    println!("gap {}, processor {}, window {}, undecided {without}", seen[0], seen[1], seen[2]);
    assert!(seen.iter().all(|&n| n >= 50), "{seen:?}");
}

/// Signatures of named sizes give the parameters of transfers of that size: the round trip is that of a transfer,
/// and o_r is that of the message that comes back.
#[test]
fn known_signatures_of_sizes_come_back_within_one_percent() {
    let mut seen = [0; 3];
    let sizes = [1, 8, 2000, 100_001];
    for (nth, truth) in grid().into_iter().step_by(7).enumerate() {
        let (direction, known_of): (_, fn(&Truth, usize) -> Known) = match nth % 2 {
            0 => (Direction::Store, Known::of),
            _ => (Direction::Get, Known::of_get),
        };
        let data = transfers(truth, direction, &sizes, 1, 2, (1 << 10, 1e8));
        let bulk = extract(&data, 0.95, 0.02).unwrap().found;
        let found: Vec<usize> = bulk.signatures.iter().map(|of| of.size_bytes).collect();
        assert_eq!(found, sizes);
        for of in &bulk.signatures {
            let known = known_of(&truth, of.size_bytes);
            let what = |name: &str| format!("{name} in the signature of {} of {truth:?}", of.size_bytes);
            assert_near(&of.parameters.rtt, known.transfer, &what("rtt"));
            assert_near(&of.parameters.o_s, known.o_s, &what("o_s"));
            assert_eq!(of.parameters.L.status, Status::Unobservable, "{}", what("L"));
            let Some((limit, expected)) = known.expected() else { continue };
            let plateau = &of.signature.plateau;
            assert_eq!(plateau.limited_by, limit, "{}", what("g"));
            let off = (plateau.value_ns / expected - 1.0).abs();
            assert!(off < 0.01, "{}: {} for {expected}", what("plateau"), plateau.value_ns);
            match limit {
                Limit::Gap => {
                    assert_near(&of.parameters.g, known.slowest_stage(), &what("g"));
                    seen[0] += 1;
                }
                Limit::Processor => {
                    assert_eq!(of.parameters.g.status, Status::UpperBound, "{}", what("g"));
                    seen[1] += 1;
                }
                Limit::Window => {
                    assert_eq!(of.parameters.g.status, Status::Unobservable, "{}", what("g"));
                    seen[2] += 1;
                }
                Limit::Unknown => unreachable!("no truth expects it"),
            }
        }
    }
    println!("gap {}, processor {}, window {}", seen[0], seen[1], seen[2]);
    assert!(seen.iter().all(|&n| n >= 5), "{seen:?}");
}

#[test]
fn known_functions_of_the_size_come_back_within_one_percent() {
    let (mut seen, mut gaps, mut changes) = ([0; 3], 0, 0);
    let truths = grid();
    // Every third element only, unless `NETDYNO_RUNS` is set.
    let every = if std::env::var_os("NETDYNO_RUNS").is_some() { 1 } else { 3 };
    for truth in truths.iter().step_by(every) {
        let departs = departure(truth);
        let is_decided = truth.change.is_none() || departs > 2.0 * DEPARTURE;
        let Reading { found: bulk, doubts, .. } = measured(*truth);
        for size in &bulk.sizes {
            check_size(size, truth, &mut seen);
        }
        if !is_decided {
            continue;
        }
        for name in ["negative", "receive_waits", "not_linear"] {
            assert_eq!(doubts.iter().find(|doubt| doubt.name == name), None, "{truth:?}");
        }
        assert_eq!(bulk.changes.len(), usize::from(truth.change.is_some()), "{truth:?}: {:?}", bulk.changes);
        for (change, known) in bulk.changes.iter().zip(truth.change) {
            let (above, at_most) = (change.above_bytes, change.at_most_bytes);
            assert!(above < known.from_bytes && known.from_bytes <= at_most, "{truth:?}: {change:?}");
            assert!((at_most - above) as f64 <= (STEP * above as f64).max(1.0), "{truth:?}: {change:?}");
            changes += 1;
        }
        for segment in &bulk.segments {
            let known = Known::of(truth, segment.to_bytes);
            let is_changed = truth.change.is_some_and(|change| segment.from_bytes >= change.from_bytes);
            let per_byte = match truth.change.filter(|_| is_changed) {
                Some(change) => change.gap_per_byte_ps / 1e3,
                None => truth.gap_per_byte_ps / 1e3,
            };
            let what = format!("G from {} to {} of {truth:?}", segment.from_bytes, segment.to_bytes);
            match known.expected().map(|(limit, _)| limit) {
                Some(Limit::Gap) if segment.G.status == Status::Measured => {
                    // Over a few hundred bytes g hardly changes, so the resolution of virtual time limits G.
                    let grain = 0.002 / (segment.to_bytes - segment.from_bytes) as f64;
                    let value = segment.G.value_ns_per_byte.unwrap();
                    assert!(
                        (value - per_byte).abs() <= 0.01 * per_byte + grain,
                        "{what}: {value} for {per_byte}"
                    );
                    gaps += 1;
                }
                Some(Limit::Gap) | Some(Limit::Processor) => {
                    assert_eq!(segment.G.status, Status::UpperBound, "{what}");
                    assert!(segment.G.value_ns_per_byte.unwrap() >= per_byte, "{what}");
                }
                Some(Limit::Window) => assert_eq!(segment.G.status, Status::Unobservable, "{what}"),
                Some(Limit::Unknown) | None => {}
            }
        }
    }
    println!("gap {}, processor {}, window {}; {gaps} G, {changes} changes", seen[0], seen[1], seen[2]);
    assert!(seen.iter().all(|&n| n >= 50) && gaps >= 20 && changes >= 20);
}

/// Both results of the paper's reading of o_s(n) and o_r(n) (Culler et al. 1996, figure 10).
#[test]
fn a_processor_that_carries_the_data_is_told_from_one_that_does_not() {
    let overlap = |rest: &str| {
        let truth = format!("o_s=1us,o_r=2us,g=5us,L=7us,G=0.5ns/B{rest}");
        // Without noise all launches are equal. An interval needs six.
        let alike = vec![launches(truth.parse().unwrap(), 1, 1).remove(0); 6];
        extract(&alike, 0.95, 0.02).unwrap().found.overlap
    };
    let free = overlap("");
    assert_eq!((free.sending.overlaps, free.receiving.overlaps), (Overlaps::Fully, Overlaps::Fully));
    assert!(!free.finding.contains("cannot"), "{}", free.finding);
    let half = overlap(",O_s=0.25ns/B");
    assert_eq!((half.sending.overlaps, half.receiving.overlaps), (Overlaps::Partly, Overlaps::Fully));
    assert!((half.sending.share.unwrap() - 0.5).abs() < 0.01, "{:?}", half.sending);
    let busy = overlap(",O_s=0.5ns/B,O_r=2ns/B");
    assert_eq!((busy.sending.overlaps, busy.receiving.overlaps), (Overlaps::Partly, Overlaps::Nothing));
    let sender = overlap(",O_s=2ns/B");
    assert_eq!((sender.sending.overlaps, sender.receiving.overlaps), (Overlaps::Nothing, Overlaps::Fully));
    assert!(sender.finding.contains("Sending cannot be overlapped"), "{}", sender.finding);
    let by = sender.sending.per_byte.value_ns_per_byte.unwrap();
    assert!((by - 2.0).abs() < 0.01, "{by}");
}

#[test]
fn the_classic_fit_is_exact_for_one_line_and_misleads_for_two() {
    let one = measured("o_s=1us,o_r=2us,g=5us,L=7us,G=0.5ns/B".parse().unwrap());
    let classic = &one.found.classic;
    assert!((classic.T0_ns / 10_000.0 - 1.0).abs() < 0.01, "{classic:?}");
    assert!((classic.R_inf.unwrap().value_bytes_per_s / 2e9 - 1.0).abs() < 0.01, "{classic:?}");
    assert!((classic.n_half_bytes.unwrap() / 20_000.0 - 1.0).abs() < 0.01, "{classic:?}");
    // The size that reaches half the bandwidth of 4 MiB, interpolated between measured sizes.
    assert!((classic.n_half_measured_bytes.unwrap() / 20_000.0 - 1.0).abs() < 0.1, "{classic:?}");
    // A transfer also has the reply of one byte, which takes as long as T(1).
    let transfer = one.found.classic_of_transfer.as_ref().unwrap();
    assert!((transfer.T0_ns / 20_000.0 - 1.0).abs() < 0.01, "{transfer:?}");
    assert!((transfer.R_inf.unwrap().value_bytes_per_s / 2e9 - 1.0).abs() < 0.01, "{transfer:?}");
    assert!((transfer.n_half_bytes.unwrap() / 40_000.0 - 1.0).abs() < 0.01, "{transfer:?}");
    assert!(!one.doubts.iter().any(|doubt| doubt.name == "T0_misleads"));

    let two = measured("o_s=1us,o_r=2us,g=5us,L=7us,G=0.1ns/B,change=1MiB,change_G=0.5ns/B".parse().unwrap());
    assert!(two.found.classic.T0_ns < 0.0, "{:?}", two.found.classic);
    for about in ["T0", "T0.transfer"] {
        let is_it = |doubt: &Doubt| doubt.name == "T0_misleads" && doubt.about.as_deref() == Some(about);
        assert!(two.doubts.iter().any(is_it), "{about}");
    }
}

#[test]
fn what_is_found_can_always_be_written_and_read_back() {
    for rest in ["", ",G=0.5ns/B", ",window=1", ",O_s=1ns/B,window=3", ",noise=0.2"] {
        let truth = format!("o_s=1us,o_r=2us,g=5us,L=7us{rest}");
        let Reading { parameters, found: bulk, .. } = measured(truth.parse().unwrap());
        let text = serde_json::to_string(&(&parameters, &bulk)).unwrap();
        let read: (Parameters, Bulk) =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{rest}: {error}: {text}"));
        assert_eq!(read.1.sizes.len(), bulk.sizes.len());
    }
}

#[test]
fn with_noise_the_intervals_cover_the_truth() {
    let truth: Truth =
        "o_s=100ns,o_r=200ns,g=500ns,L=700ns,G=0.05ns/B,noise=0.05,change=64KiB,change_G=0.025ns/B,change_L=2us"
            .parse()
            .unwrap();
    let runs = std::env::var("NETDYNO_RUNS").map_or(6, |n| n.parse::<u64>().unwrap());
    let (mut covered, mut intervals, mut gaps_covered, mut gaps) = (0, 0, 0, 0);
    for seed in 0..runs {
        let reading = extract(&launches(truth, seed, 9), 0.95, 0.02).unwrap();
        assert!(reading.is_precise(0.05), "seed {seed}");
        let bulk = reading.found;
        for size in &bulk.sizes {
            let known = Known::of(&truth, size.size_bytes);
            for (p, truth) in [
                (&size.T, known.one_way),
                (&size.transfer, known.transfer),
                (&size.o_s, known.o_s),
                (&size.o_r, known.o_r),
                (&size.g, known.g),
                (&size.L, known.latency),
            ] {
                intervals += 1;
                covered += usize::from(p.ci_ns.unwrap().contains(truth));
            }
        }
        assert_eq!(bulk.changes.len(), 1, "seed {seed}: {:?}", bulk.changes);
        for (segment, per_byte) in bulk.segments.iter().zip([0.05, 0.025]) {
            gaps += 1;
            gaps_covered += usize::from(segment.G.ci_ns_per_byte.unwrap().contains(per_byte));
        }
    }
    println!("covered {covered} of {intervals}, G {gaps_covered} of {gaps}");
    assert!(covered * 100 >= intervals * 93, "{covered} of {intervals}");
    assert!(gaps_covered * 100 >= gaps * 87, "G: {gaps_covered} of {gaps}");
}

/// A layer whose first requests of a large size take longer, as if the data had left the caches.
struct Cold {
    layer: SimRequester,
    requests_to_come: u32,
}

impl Cold {
    const REQUESTS: u32 = 6;
    const FROM_BYTES: usize = 1 << 20;
    const NS: f64 = 100e3;
}

impl Time for Cold {
    fn now(&mut self) -> u64 {
        self.layer.now()
    }

    fn tick_ns(&self) -> f64 {
        self.layer.tick_ns()
    }

    fn work(&self, d_ns: f64) -> Work {
        self.layer.work(d_ns)
    }

    fn compute(&mut self, work: Work) {
        self.layer.compute(work);
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

impl Requester for Cold {
    fn issue(&mut self) -> Result<bool, LayerError> {
        if self.requests_to_come > 0 {
            self.requests_to_come -= 1;
            self.layer.compute(self.layer.work(Self::NS));
        }
        self.layer.issue()
    }

    fn poll(&mut self) -> Result<bool, LayerError> {
        self.layer.poll()
    }

    fn wait(&mut self) -> Result<(), LayerError> {
        self.layer.wait()
    }

    fn in_flight(&self) -> usize {
        self.layer.in_flight()
    }

    fn max_window(&self) -> usize {
        self.layer.max_window()
    }

    fn set_window(&mut self, window: usize) {
        self.layer.set_window(window);
    }
}

impl SizedRequester for Cold {
    fn largest(&self) -> usize {
        self.layer.largest()
    }

    fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<(), LayerError> {
        // Only in a round trip of data are both the request and the reply large.
        let is_large = request_bytes.min(reply_bytes) >= Self::FROM_BYTES;
        self.requests_to_come = if is_large { Self::REQUESTS } else { 0 };
        self.layer.set_sizes(request_bytes, reply_bytes)
    }
}

#[test]
fn data_that_come_back_into_the_caches_are_not_in_the_round_trip() {
    let truth: Truth = "o_s=1us,o_r=2us,g=5us,L=7us,G=0.02ns/B".parse().unwrap();
    let mut layer = Cold { layer: SimRequester::new(truth, 1), requests_to_come: 0 };
    let plan = BulkPlan {
        launch: 0,
        shape: None,
        largest_bytes: LARGEST,
        direction: Direction::Store,
        signatures: Vec::new(),
        budget_ns: 1e9,
        precision: 0.02,
        confidence: 0.95,
        seed: 1,
    };
    let data = pattern::run(&mut layer, &plan, &mut |_| {}).unwrap();
    for size in &extract(&[data], 0.95, 0.02).unwrap().found.sizes {
        assert_near(
            &size.T,
            Known::of(&truth, size.size_bytes).one_way,
            &format!("T at {}", size.size_bytes),
        );
    }
}
