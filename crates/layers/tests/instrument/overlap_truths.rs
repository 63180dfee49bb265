//! The instrument's own test of `overlap` with random model parameters: no verdict is wrong, and a missing
//! verdict has a reason.
//!
//! Messages that make progress by themselves are never reported to do so inside calls only. Work hides all of
//! their waiting but the receives (`simulated::cycle`). If messages make progress inside calls only, work hides
//! nothing.
//!
//! `NETDYNO_SEED` sets the first seed, `NETDYNO_RUNS` the number of random parameters.

use crate::simulated;
use crate::simulated::cycle::KnownCycle;
use crate::truths::seed;
use netdyno_measure::overlap::data::OverlapLaunch;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_measure::overlap::extract::extract;
use netdyno_measure::overlap::plan::{METHODS, Method, OverlapPlan};
use netdyno_measure::overlap::record::{Finding, Overlap, Payer, Progress, SizeOverlap};
use netdyno_measure::reading::Reading;
use netdyno_protocol::sim::Truth;

/// The number of random parameters, unless `NETDYNO_RUNS` is set.
const RUNS: u64 = 300;
/// Launches with noise. Without noise all launches are equal, and one is repeated: an interval needs six.
const LAUNCHES: usize = 9;
/// A hidden share that is nearer to a bound than this is not decided. Noise adds a quarter of its own share.
const NEAR: f64 = 0.04;
/// The share of a cycle from which on a payer is reported, and the distance within which it is not decided.
const PAYS: (f64, f64) = (0.05, 0.02);

/// Model parameters, their spelling on the command line, and the sizes and methods to measure.
struct Drawn {
    truth: Truth,
    text: String,
    sizes: Vec<usize>,
    batch: usize,
    methods: Vec<Method>,
}

fn draw(seed: u64) -> Drawn {
    let mut random = fastrand::Rng::with_seed(seed);
    // Log-uniform.
    let mut between = |least: f64, most: f64| least * (most / least).powf(random.f64());
    let (o_s, o_r, latency) = (between(50.0, 2e4), between(50.0, 2e4), between(10.0, 5e4));
    let per_byte = between(0.01, 1.0);
    let (wide, near) = (between(10.0, 5e4), (latency + o_r) * between(0.9, 4.0));
    let (small, large) = (between(16.0, 1e3) as usize, between(1e3, 1e6) as usize);
    // Half of the gaps are near the round trip.
    let g = if random.bool() { wide } else { near };
    let mut text = format!("o_s={o_s:.1}ns,o_r={o_r:.1}ns,g={g:.1}ns,L={latency:.1}ns,G={per_byte:.4}ns/B");
    if random.bool() {
        text.push_str(random.choice([",offload=off", ",offload=off,eager=8KiB"]).unwrap());
    }
    for (name, most) in [("steal", 0.3), ("helper", 0.3), ("O_s", 0.1), ("O_r", 2.0 * per_byte)] {
        if random.u8(0..4) == 0 {
            text.push_str(&format!(",{name}={:.4}ns/B", most * random.f64()));
        }
    }
    if random.u8(0..4) == 0 {
        text.push_str(&format!(",o_poll={:.1}ns", 500.0 * random.f64()));
    }
    if random.bool() {
        let shape = random.choice(["normal", "uniform", "laplace"]).unwrap();
        text.push_str(&format!(",noise={:.3},noise_shape={shape}", 0.25 * random.f64()));
    }
    let methods: &[Method] = match random.u8(0..8) {
        0 => &METHODS,
        1 => &[Method::Max],
        2 | 3 => &[Method::Pww, Method::Max],
        _ => &[Method::Pww],
    };
    let batch = if random.bool() { 1 } else { random.usize(2..=8) };
    Drawn { truth: text.parse().unwrap(), text, sizes: vec![small, large], batch, methods: methods.into() }
}

fn launches(drawn: &Drawn, seed: u64, count: usize) -> Vec<OverlapLaunch> {
    let plan = OverlapPlan {
        launch: 0,
        shape: None,
        sizes: drawn.sizes.clone(),
        queue: 4,
        batch: drawn.batch,
        methods: drawn.methods.clone(),
        budget_ns: 1e7,
        progress_by: ProgressBy::Calls,
        precision: 0.02,
        seed,
    };
    simulated::messages(drawn.truth, &plan, count)
}

/// A campaign that is late has launches without any time.
#[test]
fn a_launch_without_time_makes_one_pass() {
    for (budget_ns, passes) in [(0.0, 1..=1), (1e9, 2..=usize::MAX)] {
        let plan = OverlapPlan {
            launch: 0,
            shape: None,
            sizes: vec![64, 100_000],
            queue: 4,
            batch: 1,
            methods: METHODS.into(),
            budget_ns,
            progress_by: ProgressBy::Calls,
            precision: 0.02,
            seed: 1,
        };
        let truth = "o_s=100ns,o_r=100ns,g=200ns,L=1us,G=0.1ns/B".parse().unwrap();
        let launch = simulated::messages(truth, &plan, 1).remove(0);
        for size in &launch.sizes {
            assert!(size.polling.iter().all(|cell| passes.contains(&cell.len())), "{budget_ns}");
            assert!(size.pww.iter().all(|cell| passes.contains(&cell.len())), "{budget_ns}");
        }
    }
}

fn measured(drawn: &Drawn, seed: u64) -> Reading<Overlap> {
    let data = match drawn.truth.noise.share {
        0.0 => vec![launches(drawn, seed, 1).remove(0); 6],
        _ => launches(drawn, seed, LAUNCHES),
    };
    extract(&data, 0.95, 0.02).unwrap()
}

/// The known values for messages of one size.
struct Known {
    moves_by_itself: bool,
    /// The least and the largest share of the waiting that work hides. Without work, arrivals may interrupt
    /// the posting, and the waiting is then shorter.
    hidden: (f64, f64),
    /// The least and the largest processor time of each payer, as a share of a cycle without work.
    paid: [(Payer, [f64; 2]); 3],
}

impl Known {
    fn of(truth: &Truth, bytes: usize, batch: usize) -> Self {
        let known = KnownCycle::of(truth, bytes, batch);
        let (cycle, longest) = (known.cycle(0.0), known.longest_cycle());
        let waiting = |cycle: f64| cycle - known.batch * known.o_s;
        let shares = |paid: f64| [paid / longest, paid / cycle];
        Self {
            moves_by_itself: known.moves_by_itself,
            hidden: (known.hidden(waiting(cycle) - known.stolen()), known.hidden(waiting(longest))),
            paid: [
                (Payer::Calls, shares(known.calls())),
                (Payer::Stolen, shares(known.stolen())),
                (Payer::Others, shares(known.helped())),
            ],
        }
    }

    /// Returns the contradiction between a finding and the parameters, if there is one.
    fn contradicts(&self, size: &SizeOverlap, noise: f64) -> Option<String> {
        let finding = &size.finding;
        let near = NEAR + noise / 4.0;
        let is_wrong = match finding.progress {
            Progress::ByItself => self.hidden.1 < 0.9 - near,
            Progress::Partly => self.hidden.1 < 0.1 - near || self.hidden.0 > 0.9 + near,
            Progress::OnlyInCalls => self.moves_by_itself,
            Progress::CannotTell => finding.reason.is_none(),
        };
        if is_wrong {
            return Some(format!("{:.1} % go behind work", 100.0 * self.hidden.1));
        }
        if size.pww.is_empty() {
            return None;
        }
        let is_wrong_of = |(payer, [least, most]): &&(Payer, [f64; 2])| {
            let (bound, near) = (PAYS.0, PAYS.1 + noise / 4.0);
            (*most < bound - near && finding.payers.contains(payer))
                || (*least > bound + near && !pays_or_may(finding, *payer))
        };
        self.paid
            .iter()
            .find(is_wrong_of)
            .map(|(payer, shares)| format!("{payer:?} pays {shares:.3?} of a cycle"))
    }
}

fn pays_or_may(finding: &Finding, payer: Payer) -> bool {
    finding.payers.contains(&payer) || finding.undecided.contains(&payer)
}

#[test]
fn no_verdict_on_a_random_truth_is_wrong() {
    let first = seed();
    let runs = std::env::var("NETDYNO_RUNS").map_or(RUNS, |n| n.parse().unwrap());
    // Findings about cycles of one message, and of several.
    let (mut wrong, mut seen) = (Vec::new(), [[0; 4]; 2]);
    for seed in (0..runs).map(|nth| first.wrapping_add(nth)) {
        let drawn = draw(seed);
        let found = measured(&drawn, seed);
        for size in &found.found.sizes {
            seen[usize::from(drawn.batch > 1)][size.finding.progress as usize] += 1;
            let known = Known::of(&drawn.truth, size.size_bytes, drawn.batch);
            if let Some(why) = known.contradicts(size, drawn.truth.noise.share) {
                wrong.push(format!(
                    "NETDYNO_SEED={seed} NETDYNO_RUNS=1 ({:?} of {} x {} B, {}): {why}, found {:?} {:?}: {}",
                    drawn.methods,
                    drawn.batch,
                    size.size_bytes,
                    drawn.text,
                    size.finding.hidden_share.value,
                    size.finding.hidden_share.ci,
                    size.finding.text
                ));
            } else if size.finding.progress == Progress::CannotTell
                && std::env::var_os("NETDYNO_SHOW").is_some()
            {
                println!(
                    "{seed} {} x {} {:.3}: {} {}",
                    drawn.batch, size.size_bytes, known.hidden.1, drawn.text, size.finding.text
                );
            }
        }
    }
    println!("by itself, partly, only in calls, cannot tell: {:?}, in batches {:?}", seen[0], seen[1]);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    // In large batches the receives are often all of the waiting: about 0.69 of the findings there are verdicts.
    for (seen, least) in seen.into_iter().zip([0.8, 2.0 / 3.0]) {
        let told: usize = seen[..3].iter().sum();
        let all = (told + seen[3]) as f64;
        // By chance a sample has fewer: five standard deviations once in millions.
        let fewest = all * least - 5.0 * (all * least * (1.0 - least)).sqrt();
        assert!(runs < RUNS || told as f64 > fewest, "few verdicts: {seen:?}");
    }
}

/// Parameters of which a finding contradicted the known values once. Interruptions brought two batches together, so
/// that a cycle took half as long again as the test knew. The longest work of the search was so short that a message
/// interrupted the wait.
#[test]
fn what_was_wrong_once_is_right() {
    for seed in [272_429_839_344_636, 84_039_366_374_324] {
        let drawn = draw(seed);
        for size in &measured(&drawn, seed).found.sizes {
            let known = Known::of(&drawn.truth, size.size_bytes, drawn.batch);
            assert_eq!(known.contradicts(size, drawn.truth.noise.share), None, "{seed}: {}", drawn.text);
        }
    }
}
