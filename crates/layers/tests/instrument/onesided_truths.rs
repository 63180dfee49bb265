//! The instrument's own test of `onesided` with random model parameters: it recovers every time and G, and what
//! it calls measured is the truth. The target is an interface alone, or has a process that is notified of puts or takes
//! part in epochs.
//!
//! `NETDYNO_SEED` sets the first seed, `NETDYNO_RUNS` the number of random parameters.

use crate::simulated::attended::AttendedInitiator;
use crate::truths::seed;
use netdyno_layers::sim::SimInitiator;
use netdyno_measure::onesided::data::{Access, OnesidedLaunch, Operation, Synchronisation};
use netdyno_measure::onesided::extract::extract;
use netdyno_measure::onesided::pattern::{self, OnesidedPlan};
use netdyno_measure::onesided::record::{Onesided, OperationFigures, TransferTimes};
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::stats::Interval;
use netdyno_protocol::sim::Truth;

/// The number of random parameters, unless `NETDYNO_RUNS` is set.
const RUNS: u64 = 200;
/// The relative tolerance of a figure without noise. Its absolute tolerance is 2 ps.
const NEAR: f64 = 0.01;
const PRECISION: f64 = 0.02;
/// A gap is a bound only if a window takes at most this many times a single operation. The instrument says twice; the times
/// of both are measured.
const BOUND_BELOW: f64 = 2.02;
/// The smallest of the three sizes that tell G is at least this many times smaller than the largest.
const FAR_BELOW: usize = 64;
/// Bytes make a gap that is this many times longer than an operation without bytes.
const DOMINATES: f64 = 10.0;
/// Launches with noise. Without noise all launches are equal, and one is repeated: an interval needs six. A launch may
/// have one batch of the largest size, and `G` varies by 2.4 of its noise, so that nine launches were contradicted by
/// chance once in 4000 parameters.
const LAUNCHES: usize = 25;
/// Launches of the parameters that were read wrongly once, as they were then.
const LAUNCHES_ONCE: usize = 9;

/// The simulated target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// An interface alone, which serves all operations.
    Interface,
    /// An interface with a process, which is notified of puts, or takes part in epochs.
    Process(Option<Synchronisation>),
}

pub struct Drawn {
    pub truth: Truth,
    pub text: String,
    pub target: Target,
    largest_bytes: usize,
}

impl Drawn {
    /// Reports that the target's process is notified of puts.
    pub fn notifies(&self) -> bool {
        matches!(self.target, Target::Process(None | Some(Synchronisation::Lock)))
    }
}

/// Returns random model parameters, and a random target.
pub fn draw(seed: u64) -> Drawn {
    let targets = [
        Target::Interface,
        Target::Process(None),
        Target::Process(Some(Synchronisation::Lock)),
        Target::Process(Some(Synchronisation::Fence)),
        Target::Process(Some(Synchronisation::Post)),
    ];
    Drawn { target: targets[(seed % targets.len() as u64) as usize], ..draw_over_interface(seed) }
}

/// Returns random model parameters of an interface alone.
fn draw_over_interface(seed: u64) -> Drawn {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut between = |least: f64, most: f64| least * (most / least).powf(random.f64());
    let mut text = format!(
        "o_s={:.1}ns,o_r={:.1}ns,g={:.1}ns,L={:.1}ns",
        between(5.0, 2e4),
        between(5.0, 2e4),
        between(1.0, 1e5),
        between(1.0, 1e6)
    );
    if random.u8(0..4) > 0 {
        text.push_str(&format!(",G={:.4}ns/B", 1e-3 * 1e4f64.powf(random.f64())));
    }
    if random.bool() {
        text.push_str(&format!(",window={}", random.u32(1..=200)));
    }
    if random.u8(0..4) == 0 {
        let shape = random.choice(["normal", "uniform", "laplace"]).unwrap();
        text.push_str(&format!(",noise={:.3},noise_shape={shape}", 0.25 * random.f64()));
    }
    Drawn {
        truth: text.parse().unwrap(),
        text,
        target: Target::Interface,
        largest_bytes: random.choice([1 << 10, 64 << 10, 1 << 20, 16 << 20, 5_000_000]).unwrap(),
    }
}

fn launches(drawn: &Drawn, seed: u64, noisy: usize) -> Vec<OnesidedLaunch> {
    let mut shape = None;
    let mut launch = |launch: usize| {
        let plan = OnesidedPlan {
            launch,
            shape: shape.clone(),
            access: Access::default(),
            largest_bytes: drawn.largest_bytes,
            budget_ns: 1e8,
            seed: seed ^ launch as u64,
        };
        let seed = seed.wrapping_mul(1000).wrapping_add(launch as u64);
        let data = measure(drawn, &plan, seed);
        shape = Some(data.shape.clone());
        data
    };
    match drawn.truth.noise.share {
        0.0 => vec![launch(0); 6],
        _ => (0..noisy).map(launch).collect(),
    }
}

/// Runs a launch over the drawn target.
fn measure(drawn: &Drawn, plan: &OnesidedPlan, seed: u64) -> OnesidedLaunch {
    match drawn.target {
        Target::Interface => pattern::run(&mut SimInitiator::new(drawn.truth, seed), plan, &mut |_| {}),
        Target::Process(synchronisation) => {
            let mut initiator = AttendedInitiator::new(drawn.truth, synchronisation, seed);
            pattern::run(&mut initiator, plan, &mut |_| {})
        }
    }
    .unwrap()
}

/// The known times of an operation, in ns.
pub struct Known {
    start: f64,
    /// Has no value if the initiator does not learn it.
    pub local: Option<f64>,
    pub remote: Option<f64>,
    complete: f64,
    /// The gap of an unlimited window, and of the window.
    pub gaps: [f64; 2],
}

/// Returns the known times of an operation of a size.
pub fn known(drawn: &Drawn, operation: Operation, bytes: usize) -> Known {
    let truth = &drawn.truth;
    let ns = |ps: u64| ps as f64 / 1e3;
    let (o_s, o_r, g, l) = (ns(truth.o_s_ps), ns(truth.o_r_ps), ns(truth.g_ps), ns(truth.l_ps));
    let data = ns(truth.data_of(bytes));
    // The bytes of a put have left, they are there and acknowledged, and the initiator knows it.
    let (left, acknowledged) = (o_s + data, o_s + data + 2.0 * l);
    let known = acknowledged + o_r;
    let of_put = |local, remote| (local, Some(remote));
    let synchronisation = match drawn.target {
        Target::Interface => None,
        Target::Process(synchronisation) => synchronisation,
    };
    let (local, remote) = match (operation, synchronisation) {
        // The replies of the target's process follow one another through both processors.
        (Operation::PutNotify, _) => of_put(Some(left), known + o_r + o_s),
        (Operation::Put, Some(Synchronisation::Fence)) => of_put(None, known + 2.0 * (o_s + l + o_r)),
        (Operation::Put, Some(Synchronisation::Post)) => {
            of_put(Some(left + o_s), (left + o_s).max(acknowledged) + o_r + l + o_r)
        }
        (Operation::Put, _) => of_put(Some(left), known),
        (_, Some(Synchronisation::Fence)) => (Some(known + 2.0 * (o_s + l + o_r)), None),
        (_, Some(Synchronisation::Post)) => (Some(known + o_s), None),
        (_, _) => (Some(known), None),
    };
    let complete = remote.or(local).unwrap();
    let (gap, in_flight) = match operation {
        Operation::PutNotify => ((o_s + o_r).max(g + data), complete),
        _ => (o_s.max(g + data), acknowledged),
    };
    Known { start: o_s, local, remote, complete, gaps: [gap, gap.max(in_flight / truth.window as f64)] }
}

/// Returns the figures of a size with their known values, for those that have one.
fn pairs<'a>(size: &'a TransferTimes, known: &Known) -> Vec<(&'static str, &'a Parameter, f64)> {
    let mut pairs = vec![("start", &size.start, known.start)];
    pairs.extend(known.local.map(|local| ("local", &size.local, local)));
    pairs.extend(known.remote.map(|remote| ("remote", &size.remote, remote)));
    pairs
}

/// Reports whether an interval, or its neighbourhood of half its width, holds the truth. Of so many intervals some
/// miss it by chance.
fn is_within(ci: Interval, truth: f64) -> bool {
    (ci.lo - ci.half_width()..=ci.hi + ci.half_width()).contains(&truth)
}

/// Reports whether the bytes of an operation make its gap, also at sizes far below the largest one, and the window allows
/// more than one in flight: then G must be found.
fn bytes_dominate(drawn: &Drawn, operation: &OperationFigures) -> bool {
    let small = operation.sizes.iter().rfind(|size| size.size_bytes <= drawn.largest_bytes / FAR_BELOW);
    small.is_some_and(|small| {
        let [of_none, of_small] = [0, small.size_bytes].map(|bytes| known(drawn, operation.operation, bytes));
        drawn.truth.window > 2 && of_small.gaps[1] > DOMINATES * (of_none.gaps[1] + of_none.complete)
    })
}

fn contradictions(drawn: &Drawn, found: &Reading<Onesided>) -> Vec<String> {
    let mut wrong = Vec::new();
    let noise = drawn.truth.noise.share;
    // The standard error of the median over nine launches is 0.42 of the noise of a sample, and over 25 launches 0.25.
    let is_near = |value: f64, truth: f64| (value - truth).abs() <= (NEAR + 2.5 * noise) * truth + 0.002;
    for operation in &found.found.operations {
        let name = operation.operation.name();
        for size in &operation.sizes {
            let known = known(drawn, operation.operation, size.size_bytes);
            let bytes = size.size_bytes;
            let is_hidden = size.local.status == Status::Unobservable && size.local.value_ns.is_none();
            if is_hidden != known.local.is_none() {
                wrong.push(format!("local of {name} of {bytes}: {:?} for {:?}", size.local, known.local));
            }
            for (time, p, truth) in pairs(size, &known) {
                if !p.value_ns.is_some_and(|value| is_near(value, truth)) {
                    wrong.push(format!("{time} of {name} of {bytes}: {:?} for {truth}", p.value_ns));
                }
            }
            let [unlimited, limited] = known.gaps;
            // Queues between stages whose times vary make a stream slower than its slowest stage.
            let holds = |truth: f64| {
                let slower = truth * (1.0 + 2.0 * noise);
                size.gap.ci_ns.is_some_and(|ci| is_within(ci, truth) || is_within(ci, slower))
            };
            let is_right = match (size.gap.status, size.gap.value_ns) {
                (Status::Measured, Some(value)) => is_near(value, limited) || (noise > 0.0 && holds(limited)),
                (Status::UpperBound, Some(value)) => {
                    let most = size.gap.ci_ns.filter(|_| noise > 0.0).map_or(value, |ci| ci.hi);
                    let is_bound = drawn.truth.window as f64 * limited <= BOUND_BELOW * known.complete;
                    most >= unlimited * (1.0 - NEAR - noise) && (noise > 0.0 || is_bound)
                }
                _ => noise > 0.0,
            };
            if !is_right {
                wrong.push(format!("gap of {name} of {bytes}: {:?} for {:?}", size.gap, known.gaps));
            }
        }
        let truth = drawn.truth.gap_per_byte_ps / 1e3;
        if noise == 0.0 && bytes_dominate(drawn, operation) && operation.G.status != Status::Measured {
            wrong.push(format!("G of {name} is not measured, and is {truth}"));
        }
        if let Some(value) = operation.G.value_ns_per_byte
            && !is_near(value, truth)
            && !operation.G.ci_ns_per_byte.is_some_and(|ci| noise > 0.0 && is_within(ci, truth))
        {
            wrong.push(format!("G of {name}: {value} for {truth}"));
        }
    }
    let has = |name: &str| found.doubts.iter().any(|doubt| doubt.name == name);
    if noise == 0.0 && (has("imprecise") || !found.is_precise(PRECISION)) {
        wrong.push("figures without noise are not precise: measuring would not stop".into());
    }
    let bounds = found.found.operations.iter().flat_map(|operation| &operation.sizes);
    if bounds.into_iter().any(|size| size.gap.status == Status::UpperBound) != has("window_bound") {
        wrong.push("a bound and its doubt do not go together".into());
    }
    let is_fenced = drawn.target == Target::Process(Some(Synchronisation::Fence));
    if has("local_hidden") != is_fenced || has("missing_operations") == drawn.notifies() {
        wrong.push(format!("the doubts are not those of the target: {:?}", found.doubts));
    }
    let operations: Vec<Operation> = found.found.operations.iter().map(|one| one.operation).collect();
    let are_known = |one: &Operation| drawn.notifies() || *one != Operation::PutNotify;
    if operations != Operation::ALL.into_iter().filter(are_known).collect::<Vec<_>>() {
        wrong.push(format!("the operations are not those of the target: {operations:?}"));
    }
    wrong
}

#[test]
fn one_sided_operations_come_back_from_random_truths() {
    let first = seed();
    let runs = std::env::var("NETDYNO_RUNS").map_or(RUNS, |n| n.parse().unwrap());
    let (mut wrong, mut held, mut intervals) = (Vec::new(), 0, 0);
    for seed in (0..runs).map(|nth| first.wrapping_add(nth)) {
        let drawn = draw(seed);
        let found = extract(&launches(&drawn, seed, LAUNCHES), 0.95, PRECISION).unwrap();
        if drawn.truth.noise.share > 0.01 {
            for operation in &found.found.operations {
                for size in &operation.sizes {
                    let known = known(&drawn, operation.operation, size.size_bytes);
                    for (_, p, truth) in pairs(size, &known) {
                        intervals += 1;
                        held += usize::from(p.ci_ns.unwrap().contains(truth));
                    }
                }
            }
        }
        wrong.extend(contradictions(&drawn, &found).into_iter().map(|why| {
            format!(
                "NETDYNO_SEED={seed} NETDYNO_RUNS=1 (up to {} B, {:?}, {}): {why}",
                drawn.largest_bytes, drawn.target, drawn.text
            )
        }));
    }
    println!("{held} of {intervals} intervals hold the truth");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    // At these ranks 96.1 % do. The times of one parameter set share their launches, so chance has more weight.
    assert!(runs < RUNS || held * 100 >= intervals * 93, "{held} of {intervals} intervals hold the truth");
}

/// Parameters that were read wrongly once: the processor set the pace, and chance made two slopes alike, twice; the gap
/// was long and varied, and few operations told how long to rest, twice; a latency varied by more than a row of
/// operations took.
#[test]
fn what_was_wrong_once_is_right() {
    let seeds = [
        203_506_763_884_248,
        53_788_719_741_194,
        28_881_706_882_238,
        144_868_116_991_288,
        34_174_810_027_709,
    ];
    for seed in seeds {
        let drawn = draw_over_interface(seed);
        let found = extract(&launches(&drawn, seed, LAUNCHES_ONCE), 0.95, PRECISION).unwrap();
        assert_eq!(contradictions(&drawn, &found), [""; 0], "{seed}: {}", drawn.text);
    }
}

/// Of a put whose bytes the initiator's processor moves, G is only bounded.
#[test]
fn a_gap_per_byte_of_the_processor_is_a_bound() {
    let text = "o_s=1us,o_r=1us,g=10ns,L=1us,G=0.001ns/B,O_s=0.5ns/B";
    let drawn = Drawn {
        truth: text.parse().unwrap(),
        text: text.into(),
        target: Target::Interface,
        largest_bytes: 16 << 20,
    };
    let reading = extract(&launches(&drawn, 1, LAUNCHES), 0.95, PRECISION).unwrap();
    let put = &reading.found.operations[0].G;
    assert_eq!(put.status, Status::UpperBound);
    assert!((put.value_ns_per_byte.unwrap() - 0.5).abs() < 1e-3);
    assert!(reading.doubts.iter().any(|doubt| doubt.name == "processor_bound"));
}

/// The time for each byte is known only if the gap grows by it between the largest sizes.
#[test]
fn no_gap_per_byte_is_given_where_the_processor_sets_the_pace() {
    let of = |text: &str, largest_bytes: usize| {
        let drawn = Drawn {
            truth: text.parse().unwrap(),
            text: text.into(),
            target: Target::Interface,
            largest_bytes,
        };
        extract(&launches(&drawn, 1, LAUNCHES), 0.95, PRECISION).unwrap()
    };
    let bent = of("o_s=20us,o_r=1us,g=1us,L=1us,G=1ns/B", 64 << 10);
    assert_eq!(bent.found.operations[0].G.status, Status::Unobservable);
    assert!(bent.doubts.iter().any(|doubt| doubt.name == "gap_bends"), "{:?}", bent.doubts);
    let straight = of("o_s=20us,o_r=1us,g=1us,L=1us,G=1ns/B", 16 << 20);
    assert!((straight.found.operations[0].G.value_ns_per_byte.unwrap() - 1.0).abs() < 1e-6);
}
