//! The instrument's own test of `overlap`: within 2 %, it recovers a known way to move the data, and its
//! costs.
//!
//! For messages of n bytes, T = o_s + (n - 1) G + L + n steal + o_r:
//! * Half a round trip takes T. Messages one way are max(g + (n - 1) G, o_s, o_r, n steal) apart.
//! * With offload and one message each way, a cycle of post, work w and wait takes max(T, o_s + w + n steal +
//!   o_r). The reason is that the answers to two messages are in flight. If w is long, the time is stolen from
//!   the work. The free work is a cycle without work less o_s + n steal + o_r. Without long work an interrupt
//!   may fall into a call, and then the cycle is longer.
//! * Without offload, a cycle takes w + T. Nothing is stolen from the work, and no work is free.
//! * `simulated::cycle` has the cycles with several messages each way.
//! * If the whole queue of q messages drains in a poll interval p, q messages arrive in each interval. The
//!   worker has p / (p + q (o_s + n steal + o_r)) of the time.

use crate::simulated;
use crate::simulated::cycle::KnownCycle;
use netdyno_measure::overlap::data::{FreeWork, OverlapLaunch, PollingBatch, ProgressBy, PwwBatch};
use netdyno_measure::overlap::extract::extract;
use netdyno_measure::overlap::plan::{METHODS, Method, OverlapPlan};
use netdyno_measure::overlap::record::{Overlap, Payer, Progress, SizeOverlap};
use netdyno_measure::reading::Reading;
use netdyno_measure::record::Parameters;
use netdyno_measure::stats::Interval;
use netdyno_protocol::sim::Truth;

const SIZES: [usize; 4] = [64, 5_000, 100_000, 1_000_000];
const QUEUE: usize = 4;
const NEAR: f64 = 0.02;

/// Returns the time by which interrupts inside calls may lengthen a cycle, in ns.
fn interrupted(known: &KnownCycle, work: f64) -> f64 {
    if work <= 2.0 * known.cycle(0.0) { known.stolen() } else { 0.0 }
}

fn launches(truth: Truth, methods: &[Method], seed: u64, count: usize) -> Vec<OverlapLaunch> {
    launches_of_batches(truth, 1, methods, seed, count)
}

/// Runs launches whose cycles have `batch` messages each way.
fn launches_of_batches(
    truth: Truth,
    batch: usize,
    methods: &[Method],
    seed: u64,
    count: usize,
) -> Vec<OverlapLaunch> {
    let plan = OverlapPlan {
        launch: 0,
        shape: None,
        sizes: SIZES.into(),
        queue: QUEUE,
        batch,
        methods: methods.into(),
        budget_ns: 1e8,
        progress_by: ProgressBy::Calls,
        precision: NEAR,
        seed,
    };
    simulated::messages(truth, &plan, count)
}

/// Extracts the figures without noise. All launches are then equal, so one is repeated: an interval needs
/// six.
fn measured(truth: Truth, batch: usize, methods: &[Method]) -> Reading<Overlap> {
    let launch = launches_of_batches(truth, batch, methods, 1, 1).remove(0);
    extract(&vec![launch; 6], 0.95, NEAR).unwrap()
}

fn truths() -> Vec<Truth> {
    let mut truths = Vec::new();
    for o in ["o_s=1us,o_r=2us", "o_s=200ns,o_r=100ns"] {
        for way in ["g=50ns,L=2us,G=0.5ns/B", "g=2us,L=20us,G=0.1ns/B"] {
            for moved in ["", ",offload=off", ",offload=off,eager=8KiB"] {
                for paid in [
                    "",
                    ",steal=0.2ns/B",
                    ",steal=0.02ns/B,helper=0.3ns/B",
                    ",O_s=0.05ns/B,O_r=0.1ns/B,o_poll=50ns",
                ] {
                    truths.push(format!("{o},{way}{moved}{paid}").parse().unwrap());
                }
            }
        }
    }
    truths
}

fn assert_near(found: Option<f64>, truth: f64, whole: f64, what: &str) {
    let found = found.unwrap_or_else(|| panic!("{what}: nothing for {truth}"));
    assert!((found - truth).abs() <= NEAR * whole.abs() + 0.01, "{what}: {found} for {truth}");
}

fn assert_between(found: Option<f64>, least: f64, most: f64, what: &str) {
    let found = found.unwrap_or_else(|| panic!("{what}: nothing for {least}"));
    let is_between = found >= (1.0 - NEAR) * least - 0.01 && found <= (1.0 + NEAR) * most + 0.01;
    assert!(is_between, "{what}: {found} for {least} to {most}");
}

fn check_trips(overlap: &Overlap, truth: &Truth) {
    for trip in &overlap.trips {
        let known = KnownCycle::of(truth, trip.size_bytes, 1);
        let what = |name: &str| format!("{name} of {} over {truth:?}", trip.size_bytes);
        assert_near(trip.half_rtt.value_ns, known.one_way, known.one_way, &what("half a round trip"));
        if known.moves_by_itself {
            let rate = 1e9 * trip.size_bytes as f64 / known.gap();
            assert_near(trip.bandwidth_bytes_per_s.value, rate, rate, &what("bandwidth"));
        }
    }
}

fn check_pww(size: &SizeOverlap, known: &KnownCycle, truth: &Truth) {
    for point in &size.pww {
        let work = point.alone_ns.value.unwrap();
        let (cycle, longest) = (known.cycle(work), known.cycle(work) + interrupted(known, work));
        let what = |name: &str| format!("{name} of {} with {work} over {truth:?}", size.size_bytes);
        assert_between(point.cycle_ns.value, cycle, longest, &what("cycle"));
        assert_between(point.availability.value, work / longest, work / cycle, &what("availability"));
        let rate = |cycle: f64| 1e9 * known.batch * size.size_bytes as f64 / cycle;
        assert_between(point.bandwidth_bytes_per_s.value, rate(longest), rate(cycle), &what("bandwidth"));
        // If the work does not span the arrival, posting or waiting may.
        if !known.moves_by_itself || work > 2.0 * known.cycle(0.0) {
            let (stolen, helped, post) = (known.stolen(), known.helped(), known.batch * known.o_s);
            assert_near(point.stolen_ns.value, stolen, stolen, &what("stolen"));
            assert_near(point.post_ns.value, post, post, &what("post"));
            assert_near(point.others_ns.value, helped, helped, &what("helper"));
        }
    }
}

fn check_polling(size: &SizeOverlap, known: &KnownCycle, truth: &Truth) {
    let calls = known.o_s + known.steal + known.o_r;
    let mut drained = 0;
    for point in &size.polling {
        let interval = point.interval_ns.value.unwrap();
        let availability = point.availability.value.unwrap();
        let rate = point.bandwidth_bytes_per_s.value.unwrap();
        let what = |name: &str| format!("{name} of {} every {interval} over {truth:?}", size.size_bytes);
        assert!(availability > 0.0 && availability < 1.0, "{}", what("availability"));
        let most = 1e9 * size.size_bytes as f64 / known.gap();
        assert!(rate <= (1.0 + NEAR) * most, "{}: {rate} of {most}", what("bandwidth"));
        // Without offload, the answers begin to move in the call after the next.
        let is_drained =
            interval > 2.0 * known.one_way + QUEUE as f64 * known.gap().max(known.o_s + known.o_r);
        if is_drained && known.moves_by_itself {
            let period = interval + QUEUE as f64 * calls;
            assert_near(Some(availability), interval / period, 1.0, &what("availability"));
            let expected = 1e9 * (QUEUE * size.size_bytes) as f64 / period;
            assert_near(Some(rate), expected, expected, &what("bandwidth"));
            drained += 1;
        }
    }
    assert!(
        drained >= 2 || !known.moves_by_itself,
        "the grid is too short for {} over {truth:?}",
        size.size_bytes
    );
    let rates: Vec<f64> = size.polling.iter().map(|p| p.bandwidth_bytes_per_s.value.unwrap()).collect();
    let fastest = rates.iter().copied().fold(0.0, f64::max);
    assert!(rates[0] > 0.9 * fastest && rates[rates.len() - 1] < 0.5 * fastest, "{rates:?} over {truth:?}");
}

fn check_finding(size: &SizeOverlap, known: &KnownCycle, truth: &Truth) {
    let free = size.free.unwrap();
    let what = |name: &str| format!("{name} of {} over {truth:?}", size.size_bytes);
    let cycle = free.cycle_ns.value.unwrap();
    let least = known.cycle(0.0);
    assert_between(Some(cycle), least, least + interrupted(known, 0.0), &what("cycle"));
    assert_near(free.work_ns.value, known.free(cycle), cycle, &what("free work"));
    assert_near(free.share.value, known.free(cycle) / cycle, 1.0, &what("free share"));
    assert_eq!(free.confirmed, 6, "{}", what("free work"));

    let finding = &size.finding;
    let waiting = size.pww[0].wait_ns.value.unwrap();
    assert_between(
        Some(waiting),
        least - known.batch * known.o_s - known.stolen(),
        cycle - known.batch * known.o_s,
        &what("waiting"),
    );
    let hidden = known.hidden(waiting);
    assert_near(finding.hidden_share.value, hidden, 1.0, &what("hidden"));
    // The receives of a batch may be nearly all of the waiting after long work.
    let (receives, left) = (known.batch * known.o_r, (1.0 - hidden) * waiting);
    if (hidden - 0.9).abs() > NEAR && (hidden - 0.1).abs() > NEAR {
        let progress = match hidden {
            hidden if hidden < 0.1 && receives >= 0.8 * left => Progress::CannotTell,
            hidden if hidden > 0.9 => Progress::ByItself,
            hidden if hidden < 0.1 => Progress::OnlyInCalls,
            _ => Progress::Partly,
        };
        assert_eq!(finding.progress, progress, "{}", what("progress"));
    }
    let paid =
        [(Payer::Calls, known.calls()), (Payer::Stolen, known.stolen()), (Payer::Others, known.helped())];
    for (payer, paid) in paid {
        let share = paid / cycle;
        if (share - 0.05).abs() > 0.005 {
            assert_eq!(
                finding.payers.contains(&payer),
                share > 0.05,
                "{payer:?}: {share}, {}",
                what("payer")
            );
            assert!(!finding.undecided.contains(&payer), "{payer:?}: {}", what("payer"));
        }
    }
}

#[test]
fn who_moves_the_data_comes_back_within_two_percent() {
    let mut seen = [0; 4];
    for truth in truths() {
        let reading = measured(truth, 1, &METHODS);
        assert!(reading.is_precise(NEAR));
        let Reading { found: overlap, doubts, parameters } = reading;
        assert_near(parameters.rtt.value_ns, 2.0 * KnownCycle::of(&truth, 16, 1).one_way, 1e3, "rtt");
        assert_eq!(overlap.methods, METHODS);
        check_trips(&overlap, &truth);
        for size in &overlap.sizes {
            let known = KnownCycle::of(&truth, size.size_bytes, 1);
            check_pww(size, &known, &truth);
            check_polling(size, &known, &truth);
            check_finding(size, &known, &truth);
            seen[size.finding.progress as usize] += 1;
        }
        assert_eq!(doubts, [], "{truth:?}");
    }
    println!("by itself {}, partly {}, only in calls {}, cannot tell {}", seen[0], seen[1], seen[2], seen[3]);
    assert!(seen[..3].iter().all(|&n| n >= 20), "{seen:?}");
}

#[test]
fn batches_of_messages_come_back_within_two_percent() {
    for (nth, truth) in truths().into_iter().enumerate() {
        let batch = 2 + nth % 7;
        let overlap = measured(truth, batch, &[Method::Pww, Method::Max]).found;
        assert_eq!(overlap.batch, batch);
        for size in &overlap.sizes {
            let known = KnownCycle::of(&truth, size.size_bytes, batch);
            check_pww(size, &known, &truth);
            check_finding(size, &known, &truth);
        }
    }
}

/// Each receive of 9 us is interrupted for 136 us, so that the worker posts two batches of six one right after the
/// other. Without interruptions batches stay apart.
#[test]
fn batches_that_interruptions_bring_together_take_the_longest_cycle() {
    let truth = "o_s=164ns,o_r=774ns,g=8878ns,L=24ns,G=0.0215ns/B,steal=0.1357ns/B,O_r=0.0086ns/B";
    let truth: Truth = truth.parse().unwrap();
    let overlap = measured(truth, 6, &[Method::Pww]).found;
    let size = overlap.sizes.last().unwrap();
    let known = KnownCycle::of(&truth, size.size_bytes, 6);
    let longest = known.longest_cycle();
    assert!(longest > 1.4 * known.cycle(0.0), "{known:?}");
    assert_near(size.finding.cycle_ns.value, longest, longest, "a cycle");
}

/// After a batch the other process's interface is busy for as many gaps.
#[test]
fn a_round_trip_is_one_of_a_quiet_layer_after_batches_with_long_gaps() {
    for (gap, batch) in [("1000us", 2), ("1000us", 8), ("1000us", 64), ("411us", 3), ("100us", 32)] {
        let truth: Truth = format!("o_s=1us,o_r=1us,g={gap},L=1us").parse().unwrap();
        let overlap = measured(truth, batch, &METHODS).found;
        for trip in &overlap.trips {
            let half_rtt_ns = trip.half_rtt.value_ns.unwrap();
            assert!((half_rtt_ns - 3000.0).abs() <= 30.0, "{gap}, batch {batch}: {half_rtt_ns}");
        }
    }
}

#[test]
fn with_noise_the_intervals_cover_the_truth() {
    let truth: Truth = "o_s=1us,o_r=2us,g=50ns,L=2us,G=0.5ns/B,steal=0.1ns/B,noise=0.05".parse().unwrap();
    let runs = std::env::var("NETDYNO_RUNS").map_or(10, |n| n.parse::<u64>().unwrap());
    let (mut covered, mut intervals) = (0, 0);
    for seed in 0..runs {
        let Reading { found: overlap, .. } =
            extract(&launches(truth, &[Method::Pww], seed, 9), 0.95, NEAR).unwrap();
        let mut look = |ci: Option<Interval>, truth: f64| {
            intervals += 1;
            covered += usize::from(ci.unwrap().contains(truth));
        };
        for trip in &overlap.trips {
            look(trip.half_rtt.ci_ns, KnownCycle::of(&truth, trip.size_bytes, 1).one_way);
        }
        for size in &overlap.sizes {
            let known = KnownCycle::of(&truth, size.size_bytes, 1);
            look(size.finding.stolen_ns.ci, known.steal);
            look(size.pww.last().unwrap().post_ns.ci, known.o_s);
        }
    }
    println!("covered {covered} of {intervals}");
    assert!(covered * 100 >= intervals * 90, "{covered} of {intervals}");
}

#[test]
fn what_is_found_can_always_be_written_and_read_back() {
    for rest in ["", ",window=1", ",offload=off,noise=0.2", ",G=0.5ns/B,O_s=1ns/B"] {
        let truth: Truth = format!("o_s=1us,o_r=2us,g=5us,L=7us{rest}").parse().unwrap();
        for methods in [&METHODS[..], &[Method::Polling], &[Method::Pww], &[Method::Max]] {
            let data = launches(truth, methods, 1, 1);
            let Reading { parameters, found: overlap, .. } = extract(&data, 0.95, NEAR).unwrap();
            assert_eq!(overlap.methods, methods);
            let text = serde_json::to_string(&(&parameters, &overlap, &data)).unwrap();
            let read: (Parameters, Overlap, Vec<OverlapLaunch>) =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{rest}: {error}: {text}"));
            assert_eq!((read.1.sizes.len(), read.2.len()), (overlap.sizes.len(), 1));
        }
    }
}

#[test]
fn launches_that_do_not_belong_together_say_nothing() {
    let truth: Truth = "o_s=1us,o_r=2us,g=5us,L=7us".parse().unwrap();
    let data = launches(truth, &METHODS, 1, 1);
    let with = |change: fn(&mut OverlapLaunch)| {
        let mut other = data[0].clone();
        change(&mut other);
        extract(&[data[0].clone(), other], 0.95, NEAR).is_some()
    };
    assert!(with(|_| {}));
    assert!(with(|launch| launch.sizes[0].pww[0].clear()));
    assert!(!with(|launch| launch.shape.queue = 1));
    assert!(!with(|launch| launch.shape.batch = 2));
    assert!(!with(|launch| launch.trips.clear()));
    assert!(!with(|launch| launch.sizes[1].polling.truncate(3)));
    assert!(extract(&[], 0.95, NEAR).is_none());
    let mut empty = data[0].clone();
    empty.shape.batch = 0;
    assert!(extract(&[empty], 0.95, NEAR).is_none());
}

/// A layer whose post of the next message moves the data that arrived during the work.
#[test]
fn what_is_paid_when_posting_is_not_hidden() {
    let truth: Truth = "o_s=1us,o_r=2us,g=50ns,L=2us,G=0.5ns/B".parse().unwrap();
    let mut data = launches(truth, &METHODS, 1, 1).remove(0);
    let finding = |data: &OverlapLaunch| {
        let extracted = extract(&vec![data.clone(); 6], 0.95, NEAR).unwrap();
        extracted.found.sizes[2].finding.clone()
    };
    assert_eq!(finding(&data).progress, Progress::ByItself);
    let pww = &mut data.sizes[2].pww;
    let waiting = pww[0][0].wait_ns;
    for batch in pww.iter_mut().flatten() {
        batch.post_ns += waiting - batch.wait_ns;
    }
    let finding = finding(&data);
    assert_eq!((finding.progress, &finding.payers[..]), (Progress::OnlyInCalls, &[Payer::Calls][..]));
}

#[test]
fn what_is_odd_is_doubted_and_not_clamped() {
    let truth: Truth = "o_s=1us,o_r=2us,g=50ns,L=2us,G=0.5ns/B".parse().unwrap();
    let data = launches(truth, &METHODS, 1, 1).remove(0);
    let doubts = |change: &dyn Fn(&mut OverlapLaunch)| {
        let mut data = data.clone();
        change(&mut data);
        let extracted = extract(&vec![data; 6], 0.95, NEAR).unwrap();
        let names: Vec<String> = extracted.doubts.iter().map(|doubt| doubt.name.clone()).collect();
        (names.join(" "), extracted.found)
    };
    assert_eq!(doubts(&|_| {}).0, "");
    let polling = |launch: &mut OverlapLaunch, change: fn(&mut PollingBatch)| {
        launch.sizes[1].polling[6].iter_mut().for_each(change);
    };
    let pww = |launch: &mut OverlapLaunch, change: fn(&mut PwwBatch)| {
        launch.sizes[1].pww[11].iter_mut().for_each(change);
    };
    let (names, overlap) = doubts(&|launch| polling(launch, |batch| batch.took_ns /= 10.0));
    assert_eq!(names, "availability_above_one");
    assert!(overlap.sizes[1].polling[6].availability.value.unwrap() > 1.0);
    assert_eq!(doubts(&|launch| polling(launch, |batch| batch.messages = 0)).0, "nothing_arrived");
    let (names, overlap) = doubts(&|launch| pww(launch, |batch| batch.work_ns *= 0.9));
    assert!(names.contains("negative_stolen"), "{names}");
    assert!(overlap.sizes[1].pww[11].stolen_ns.value.unwrap() < 0.0);
    assert!(doubts(&|launch| pww(launch, |batch| batch.wait_ns = 1e6)).0.contains("wait_grows"));
    let knee = |launch: &mut OverlapLaunch, change: fn(&mut FreeWork)| {
        launch.sizes[2].knee.iter_mut().for_each(change);
    };
    assert_eq!(doubts(&|launch| knee(launch, |knee| knee.is_confirmed = false)).0, "knee_not_confirmed");
    assert_eq!(doubts(&|launch| knee(launch, |knee| knee.free_ns /= 2.0)).0, "methods_disagree");
    assert!(doubts(&|launch| knee(launch, |knee| knee.free_ns = -1e3)).0.contains("negative_free"));
    assert_eq!(doubts(&|launch| launch.work[7].took_ns *= 1.05).0, "work_not_linear");
    assert_eq!(doubts(&|launch| launch.preemptions = Some(1 << 30)).0, "preempted");
    let few = extract(std::slice::from_ref(&data), 0.95, NEAR).unwrap();
    assert_eq!(few.doubts[0].name, "too_few_launches");
}
