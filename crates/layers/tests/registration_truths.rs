//! The instrument's own test of `registration` by truths that are drawn at random: every cost comes back,
//! costs of nothing among them, measuring stops, and each doubt is raised where it is due and nowhere else.
//!
//! `NETDYNO_SEED` replays a truth, `NETDYNO_RUNS` says how many are drawn.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_layers::sim::SimRegistrar;
use netdyno_measure::record::Parameter;
use netdyno_measure::registration::data::RegistrationLaunch;
use netdyno_measure::registration::doubts::is_precise;
use netdyno_measure::registration::extract::{Extracted, extract};
use netdyno_measure::registration::pattern::{self, RegistrationPlan};
use netdyno_protocol::sim::Truth;
use netdyno_protocol::sim::memory::{Cost, PAGE};

/// Truths in a run of the tests.
const RUNS: u64 = 300;
/// Without noise a figure is known to this share of it, and to two picoseconds.
const NEAR: f64 = 0.01;
const PRECISION: f64 = 0.02;
/// Launches of a truth with noise. Without any all launches are alike: an interval needs six.
const LAUNCHES: usize = 9;
/// Whether registering again is much cheaper is not decided between these shares of the first time.
const KEPT: [f64; 2] = [0.4, 0.6];

struct Drawn {
    truth: Truth,
    text: String,
    largest_bytes: usize,
}

fn draw(seed: u64) -> Drawn {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut text = String::from("o_s=1us,o_r=1us,g=1us,L=1us");
    // A call, pages, or both; each of them may cost nothing. Uniform in its logarithm.
    for (name, page) in [("register", 2e3), ("deregister", 1e3), ("lock", 1e3), ("unlock", 100.0)] {
        let mut between = |least: f64, most: f64| least * (most / least).powf(random.f64());
        let (call, page) = (between(1.0, 2e4), between(0.01, page));
        match random.u8(0..4) {
            0 => text.push_str(&format!(",{name}={call:.2}ns")),
            1 => text.push_str(&format!(",{name}={page:.3}ns/page")),
            2 => text.push_str(&format!(",{name}={call:.2}ns+{page:.3}ns/page")),
            _ => {}
        }
    }
    if random.bool() {
        text.push_str(&format!(",fault={:.1}ns", 1e3 * random.f64()));
    }
    if random.bool() {
        text.push_str(&format!(",cached={:.2}ns", 1e3f64.powf(random.f64())));
        text.push_str(random.choice(["", ",kept=on", ",kept=off"]).unwrap());
    }
    if random.u8(0..4) == 0 {
        let shape = random.choice(["normal", "uniform", "laplace"]).unwrap();
        text.push_str(&format!(",noise={:.3},noise_shape={shape}", 0.25 * random.f64()));
    }
    Drawn {
        truth: text.parse().unwrap(),
        text,
        largest_bytes: random.choice([1 << 20, 16 << 20, 64 << 20, 5_000_000]).unwrap(),
    }
}

fn launches(drawn: &Drawn, seed: u64) -> Vec<RegistrationLaunch> {
    let mut shape = None;
    let mut launch = |launch: usize| {
        let plan = RegistrationPlan {
            launch,
            shape: shape.clone(),
            largest_bytes: drawn.largest_bytes,
            budget_ns: 1e7,
            seed: seed ^ launch as u64,
        };
        let mut registrar =
            SimRegistrar::new(drawn.truth, seed.wrapping_mul(1000).wrapping_add(launch as u64));
        let data = pattern::run(&mut registrar, &plan, &mut |_| {}).unwrap();
        shape = Some(data.shape.clone());
        data
    };
    match drawn.truth.noise.share {
        0.0 => vec![launch(0); 6],
        _ => (0..LAUNCHES).map(launch).collect(),
    }
}

/// What the truth says of a region: each cost by its name, in nanoseconds.
fn known(truth: &Truth, bytes: usize) -> [(&'static str, f64); 8] {
    let memory = truth.memory;
    let of = |cost: Option<Cost>| cost.unwrap_or_default().of(bytes);
    let faults = bytes.div_ceil(PAGE) as u64 * memory.fault_ps.unwrap_or_default();
    let register = of(memory.register);
    let cached = memory.cached_ps.unwrap_or(register);
    let (again, deregister) = match (memory.kept, memory.cached_ps) {
        (Some(true), Some(cached)) => (cached, cached),
        _ => (register, of(memory.deregister)),
    };
    [
        ("first_touch", register + faults),
        ("touched", register),
        ("again", again),
        ("cached", cached),
        ("deregister", deregister),
        ("lock_first_touch", of(memory.lock) + faults),
        ("lock", of(memory.lock)),
        ("unlock", of(memory.unlock)),
    ]
    .map(|(name, ps)| (name, ps as f64 / 1e3))
}

/// Whether it is due to say that the library keeps what is deregistered; `None` where that is not decided.
fn is_kept(drawn: &Drawn) -> Option<bool> {
    let memory = drawn.truth.memory;
    let Some(cached) = memory.cached_ps.filter(|_| memory.kept == Some(true)) else { return Some(false) };
    let shares = [1, drawn.largest_bytes].map(|bytes| {
        let register = memory.register.unwrap_or_default().of(bytes);
        if register == 0 { f64::INFINITY } else { cached as f64 / register as f64 }
    });
    let is_due = shares.iter().any(|share| *share < KEPT[0]);
    (is_due || shares.iter().all(|share| *share > KEPT[1])).then_some(is_due)
}

fn is_known(cost: &Parameter, truth: f64, noise: f64) -> bool {
    // Of large regions a launch has a sample or two: the median of nine launches is off by 0.42 of the noise.
    let near = NEAR + 2.5 * noise;
    cost.value_ns.is_some_and(|value| (value - truth).abs() <= near * truth + 0.002)
}

fn contradictions(drawn: &Drawn, data: &[RegistrationLaunch], found: &Extracted) -> Vec<String> {
    let mut wrong = Vec::new();
    let noise = drawn.truth.noise.share;
    for size in &found.registration.sizes {
        for ((name, cost), (_, truth)) in size.times().into_iter().zip(known(&drawn.truth, size.size_bytes)) {
            if !is_known(cost, truth, noise) {
                wrong.push(format!("{name} of {}: {:?} for {truth}", size.size_bytes, cost.value_ns));
            }
        }
    }
    let has = |name: &str| found.doubts.iter().any(|doubt| doubt.name == name);
    if is_kept(drawn).is_some_and(|is_kept| is_kept != has("kept_after_deregistering")) {
        wrong.push(format!("kept after deregistering: {:?}", is_kept(drawn)));
    }
    if noise == 0.0 && (has("imprecise") || !is_precise(data, &found.registration, PRECISION)) {
        wrong.push("figures without noise are not precise: measuring would not stop".into());
    }
    wrong
}

#[test]
fn what_memory_costs_comes_back_from_random_truths() {
    let first =
        std::env::var("NETDYNO_SEED").map_or_else(|_| fastrand::u64(..1 << 48), |n| n.parse().unwrap());
    let runs = std::env::var("NETDYNO_RUNS").map_or(RUNS, |n| n.parse().unwrap());
    println!("NETDYNO_SEED={first}");
    let (mut wrong, mut held, mut intervals) = (Vec::new(), 0, 0);
    for seed in (0..runs).map(|nth| first.wrapping_add(nth)) {
        let drawn = draw(seed);
        let data = launches(&drawn, seed);
        let found = extract(&data, 0.95, PRECISION).unwrap();
        if drawn.truth.noise.share > 0.01 {
            for size in &found.registration.sizes {
                for ((_, cost), (_, truth)) in
                    size.times().into_iter().zip(known(&drawn.truth, size.size_bytes))
                {
                    intervals += usize::from(truth > 1.0);
                    held += usize::from(truth > 1.0 && cost.ci_ns.unwrap().contains(truth));
                }
            }
        }
        for why in contradictions(&drawn, &data, &found) {
            wrong.push(format!(
                "NETDYNO_SEED={seed} NETDYNO_RUNS=1 (up to {} B, {}): {why}",
                drawn.largest_bytes, drawn.text
            ));
        }
    }
    println!("{held} of {intervals} intervals hold the truth");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    // At these ranks 96.1 % do; the costs of a truth are of the same launches.
    assert!(runs < RUNS || held * 100 >= intervals * 94, "{held} of {intervals} intervals hold the truth");
}

/// A cost of nothing has no share of itself to be known to.
#[test]
fn a_cost_of_nothing_is_known_at_once() {
    let truth = "o_s=1us,o_r=1us,g=1us,L=1us,register=1us".parse().unwrap();
    let drawn = Drawn { truth, text: String::new(), largest_bytes: 1 << 20 };
    let data = launches(&drawn, 1);
    let found = extract(&data, 0.95, PRECISION).unwrap();
    assert_eq!(found.registration.sizes[0].deregister.value_ns, Some(0.0));
    assert!(is_precise(&data, &found.registration, PRECISION));
    assert!(!found.doubts.iter().any(|doubt| doubt.name == "imprecise"), "{:?}", found.doubts);
}

/// A library whose pages cost next to nothing, and which keeps them.
#[test]
fn what_is_kept_is_found_below_a_tenth_of_a_nanosecond_a_page() {
    for (memory, is_due) in [
        ("register=0.05ns/page,cached=10ns,kept=on", true),
        ("register=500ns+0.01ns/page,cached=100ns,kept=on", true),
        ("register=150ns+0.04ns/page,cached=100ns,kept=on", true),
        ("register=0.05ns/page,cached=10ns", false),
        ("register=500ns+0.01ns/page", false),
    ] {
        let truth = format!("o_s=1us,o_r=1us,g=1us,L=1us,{memory}").parse().unwrap();
        let drawn = Drawn { truth, text: String::new(), largest_bytes: 64 << 20 };
        let found = extract(&launches(&drawn, 1), 0.95, PRECISION).unwrap();
        let has = found.doubts.iter().any(|doubt| doubt.name == "kept_after_deregistering");
        assert_eq!(has, is_due, "{memory}: {:?}", found.doubts);
    }
}
