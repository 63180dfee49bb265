//! Records of simulated layers, for tests and for samples of reports.

#![allow(dead_code, reason = "each test file uses only a part")]

use netdyno_layers::sim::{SimMessenger, SimParts, SimRegistrar};
use netdyno_measure::breakdown;
use netdyno_measure::breakdown::data::BreakdownLaunch;
use netdyno_measure::breakdown::pattern::BreakdownPlan;
use netdyno_measure::bulk::data::{BulkLaunch, Direction};
use netdyno_measure::bulk::pattern::BulkPlan;
use netdyno_measure::bulk::signature::SignaturePlan;
use netdyno_measure::completion;
use netdyno_measure::completion::data::CompletionLaunch;
use netdyno_measure::completion::pattern::CompletionPlan;
use netdyno_measure::completion::peak::{Peak, PeakSource};
use netdyno_measure::contention;
use netdyno_measure::contention::data::{CrowdData, CrowdShape, PairTimes, PairsAtOnce, Round, Timed};
use netdyno_measure::contention::places::Bisected;
use netdyno_measure::layer::{LayerError, Requester, SizedRequester, Time, Work};
use netdyno_measure::logp::data::{LaunchData, Shape};
use netdyno_measure::logp::extract::extract;
use netdyno_measure::logp::pattern::{self, BATCH_MESSAGES, LONGEST_BURST, Plan};
use netdyno_measure::overlap;
use netdyno_measure::overlap::data::{OverlapLaunch, ProgressBy};
use netdyno_measure::overlap::plan::{METHODS, OverlapPlan};
use netdyno_measure::record::{
    ClockReading, Detours, Doubt, Environment, Found, LayerResult, Logp, Options, Parameters, Ratio, Record,
    SCHEMA,
};
use netdyno_measure::registration;
use netdyno_measure::registration::data::RegistrationLaunch;
use netdyno_measure::registration::pattern::RegistrationPlan;
use netdyno_measure::sweep::{Counts, MessageCounts, Run, Sweep, SweptDial, read};
use netdyno_measure::validation::data::NAMES;
use netdyno_measure::validation::record::{CrossTalk, Figure, Program, Row, Table, Validation};
use netdyno_protocol::sim::{Interface, Truth};

/// A simulated interface as a layer. A tick of its clock is a picosecond.
struct Simulated {
    interface: Interface,
    max_window: usize,
}

impl Time for Simulated {
    fn now(&mut self) -> u64 {
        self.interface.now_ps()
    }

    fn tick_ns(&self) -> f64 {
        1e-3
    }

    fn work(&self, d_ns: f64) -> Work {
        Work((d_ns * 1e3) as u64)
    }

    fn compute(&mut self, work: Work) {
        self.interface.compute(work.0);
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

impl Requester for Simulated {
    fn issue(&mut self) -> Result<bool, LayerError> {
        Ok(self.interface.issue())
    }

    fn poll(&mut self) -> Result<bool, LayerError> {
        Ok(self.interface.poll())
    }

    fn wait(&mut self) -> Result<(), LayerError> {
        self.interface.wait().map_err(|_| LayerError("stuck".into()))
    }

    fn in_flight(&self) -> usize {
        self.interface.in_flight()
    }

    fn max_window(&self) -> usize {
        self.max_window
    }

    fn set_window(&mut self, window: usize) {
        self.interface.set_window(window);
    }
}

impl SizedRequester for Simulated {
    fn largest(&self) -> usize {
        usize::MAX
    }

    fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<(), LayerError> {
        self.interface.set_sizes(request_bytes, reply_bytes);
        Ok(())
    }
}

/// Measures a simulated interface at every size up to 256 KiB, in `launches` launches.
pub fn bulk_layer(name: &str, truth: &str, launches: usize) -> LayerResult {
    bulk_layer_with(name, truth, launches, &[])
}

/// Measures a layer at every size, with the signatures of some sizes.
pub fn bulk_layer_with(name: &str, truth: &str, launches: usize, signatures: &[usize]) -> LayerResult {
    let truth: Truth = truth.parse().expect("a truth");
    let (mut shape, mut before): (_, Option<BulkLaunch>) = (None, None);
    let launches: Vec<BulkLaunch> = (0..launches)
        .map(|launch| {
            let interface = Interface::new(truth, launch as u64);
            let mut requester = Simulated { interface, max_window: truth.window };
            let plan = BulkPlan {
                launch,
                shape: shape.clone(),
                largest_bytes: 256 << 10,
                direction: Direction::Store,
                signatures: SignaturePlan::of_sizes(signatures, before.as_ref()),
                budget_ns: 1e9,
                precision: 0.05,
                confidence: 0.95,
                seed: launch as u64,
            };
            let data = netdyno_measure::bulk::pattern::run(&mut requester, &plan, &mut |_| {});
            let data = data.expect("a launch");
            shape = Some(data.shape.clone());
            before.get_or_insert_with(|| data.clone());
            data
        })
        .collect();
    let extracted =
        netdyno_measure::bulk::extract::extract(&launches, 0.95, 0.02).expect("launches of the same sizes");
    let found = Found::Bulk(extracted.found);
    measured(name, 1, extracted.parameters, found, extracted.doubts)
}

/// Measures the overlap of computation with messages of 5 kB and 100 kB, in `launches` launches.
pub fn overlap_layer(name: &str, truth: &str, launches: usize) -> LayerResult {
    let truth: Truth = truth.parse().expect("a truth");
    let mut shape = None;
    let launches: Vec<OverlapLaunch> = (0..launches)
        .map(|launch| {
            let plan = OverlapPlan {
                launch,
                shape: shape.clone(),
                sizes: vec![5_000, 100_000],
                queue: 4,
                batch: 1,
                methods: METHODS.into(),
                budget_ns: 1e6,
                progress_by: ProgressBy::Calls,
                precision: 0.02,
                seed: launch as u64,
            };
            let mut messenger = SimMessenger::new(truth, launch as u64);
            let data = overlap::pattern::run(&mut messenger, &plan, &mut |_| {}).expect("a launch");
            shape = Some(data.shape.clone());
            data
        })
        .collect();
    let extracted = overlap::extract::extract(&launches, 0.95, 0.02).expect("launches of the same shape");
    let found = Found::Overlap(extracted.found);
    measured(name, 16, extracted.parameters, found, extracted.doubts)
}

/// Measures latency and bandwidth by one way to wait, in `launches` launches.
pub fn completion_layer(name: &str, way: &str, truth: &str, launches: usize) -> LayerResult {
    let truth: Truth = truth.parse().expect("a truth");
    let mut shape = None;
    let launches: Vec<CompletionLaunch> = (0..launches)
        .map(|launch| {
            let plan = CompletionPlan {
                launch,
                shape: shape.clone(),
                largest_bytes: 64 << 10,
                peak: Peak::of(PeakSource::Given, 2e9, "given by --peak"),
                budget_ns: 1e7,
                seed: launch as u64,
            };
            let interface = Interface::new(truth, launch as u64);
            let mut requester = Simulated { interface, max_window: truth.window };
            let data = completion::pattern::run(&mut requester, &plan, &mut |_| {}).expect("a launch");
            shape = Some(data.shape.clone());
            data
        })
        .collect();
    let extracted = completion::extract::extract(&launches, 0.95, 0.02).expect("launches of the same sizes");
    let found = Found::Completion(extracted.found);
    let result = measured(name, 1, extracted.parameters, found, extracted.doubts);
    LayerResult { label: Some(way.into()), wait: way.into(), ..result }
}

/// Returns the result of `breakdown` for a simulated layer.
pub fn breakdown_layer(name: &str, truth: &str, launches: usize) -> LayerResult {
    let truth: Truth = truth.parse().expect("a truth");
    let mut shape = None;
    let launches: Vec<BreakdownLaunch> = (0..launches)
        .map(|launch| {
            let plan = BreakdownPlan { launch, shape: shape.clone(), budget_ns: 1e7, seed: launch as u64 };
            let mut layer = SimParts::of(&truth, 32, launch as u64);
            let data = breakdown::pattern::run(&mut layer, &plan, &mut |_| {}).expect("a launch");
            shape = Some(data.shape.clone());
            data
        })
        .collect();
    let extracted = breakdown::extract::extract(&launches, 0.95, 0.02).expect("launches of the same shape");
    measured(name, 32, extracted.parameters, Found::Breakdown(extracted.found), extracted.doubts)
}

/// Measures the costs of registering up to 1 MiB of memory, in `launches` launches.
pub fn registration_layer(name: &str, memory: &str, launches: usize) -> LayerResult {
    let truth: Truth = format!("o_s=1us,o_r=1us,g=1us,L=1us,{memory}").parse().expect("a truth");
    let mut shape = None;
    let launches: Vec<RegistrationLaunch> = (0..launches)
        .map(|launch| {
            let plan = RegistrationPlan {
                launch,
                shape: shape.clone(),
                largest_bytes: 1 << 20,
                budget_ns: 1e8,
                seed: launch as u64,
            };
            let mut registrar = SimRegistrar::new(truth, launch as u64);
            let data = registration::pattern::run(&mut registrar, &plan, &mut |_| {}).expect("a launch");
            shape = Some(data.shape.clone());
            data
        })
        .collect();
    let extracted =
        registration::extract::extract(&launches, 0.95, 0.02).expect("launches of the same sizes");
    let found = Found::Registration(extracted.found);
    let result = measured(name, 1, extracted.parameters, found, extracted.doubts);
    LayerResult { cpus: vec![0], distance: None, ..result }
}

/// Returns an invented launch. K requesters to one replier wait K gaps. With half of the processes as
/// requesters, each pair is 10 % slower than alone.
pub fn crowd(launch: usize, procs: usize) -> CrowdData {
    let off = 1.0 + 0.001 * (launch * 7 % 5) as f64;
    let timed = |ns: f64| Timed { ns: ns * off, samples: 100 };
    let pair = |factor: f64| PairTimes {
        rtt: timed(20e3 * factor),
        o_s: timed(1e3),
        busy: timed(3e3 * factor),
        stream: timed(5e3 * factor),
        polls_ns: 0.0,
    };
    let round = Round {
        alone: pair(1.0),
        half_window: timed(5e3),
        halves: vec![pair(1.1); procs / 2],
        one_to_many: timed(4e3),
        many_to_one: (1..procs).map(|k| vec![timed(5e3 * k as f64); k]).collect(),
        pairs: vec![PairsAtOnce { pairs: 2, streams: vec![timed(5e3); 2] }],
        across: vec![timed(10e3); procs / 2],
        neighbours: vec![timed(5e3); procs / 2],
    };
    let rtt = |from: usize, to: usize| (from != to).then(|| timed(20e3 + 1e3 * from.abs_diff(to) as f64));
    CrowdData {
        launch,
        procs,
        shape: CrowdShape { window: 64, delay_ns: 10e3, rest_ns: 0.0 },
        rtt: (0..procs).map(|from| (0..procs).map(|to| rtt(from, to)).collect()).collect(),
        order: (0..procs).collect(),
        bisected_by: Bisected::Processors,
        rounds: vec![round; 3],
        preemptions: Some(3),
        requesting_ns: 1e9,
    }
}

/// Returns invented results of contention between `procs` processes.
pub fn contention_layer(name: &str, procs: usize) -> LayerResult {
    let launches: Vec<CrowdData> = (0..9).map(|nth| crowd(nth, procs)).collect();
    let extracted = contention::extract::extract(&launches, 0.95, 0.02).expect("launches");
    let found = Found::Contention(extracted.found);
    let result = measured(name, 32, extracted.parameters, found, extracted.doubts);
    LayerResult {
        wait: "yield".into(),
        cpus: (0..procs).map(|rank| rank % 2).collect(),
        distance: None,
        ..result
    }
}

/// Returns an invented validation of dials with small errors. Its times go from nanoseconds to a millisecond.
pub fn validation_layer(name: &str) -> LayerResult {
    let figure = |(name, ns): (&str, f64)| Figure {
        name: name.into(),
        value_ns: Some(ns),
        is_steady: Some(name != "o_r"),
        ..Figure::default()
    };
    let figures = |added: f64| {
        let times = [312.0, 405.0, 950.0 + added, 1.4e3 + added, 3.9e3 + 2.0 * added];
        NAMES.into_iter().zip(times).map(figure).collect::<Vec<_>>()
    };
    let row = |wanted_ns: f64| Row {
        wanted_ns,
        observed_ns: Some(1.004 * wanted_ns),
        ci_ns: Some([wanted_ns, 1.01 * wanted_ns].into()),
        error_ns: Some(0.004 * wanted_ns),
        is_met: Some(true),
        samples: 9,
        figures: figures(wanted_ns),
    };
    let table = |(dial, parameter): (&str, &str)| Table {
        dial: dial.into(),
        parameter: parameter.into(),
        size_bytes: 8,
        adds: true,
        link: figures(0.0),
        rows: [500.0, 2e3, 10e3, 120e3].map(row).into(),
    };
    let dials = [("latency", "L"), ("send-overhead", "o_s"), ("recv-overhead", "o_r"), ("send-gap", "g_s")];
    let talk = |dial: &str, parameter: &str| CrossTalk {
        dial: dial.into(),
        parameter: parameter.into(),
        slope: Some(-0.0123),
        is_demanded: parameter == "rtt",
    };
    let program = |pattern: &str| Program {
        pattern: pattern.into(),
        size_bytes: 1024,
        dial: "latency".into(),
        setting: "+20us".into(),
        link_ns: Some(900.0),
        wanted_ns: 20e3,
        observed_ns: Some(20.1e3),
        error_ns: Some(100.0),
        is_met: Some(true),
        ..Program::default()
    };
    let found = Validation {
        tables: dials.map(table).into(),
        cross_talk: dials.iter().flat_map(|(dial, _)| NAMES.map(|name| talk(dial, name))).collect(),
        programs: vec![program("pingpong"), program("allreduce")],
        launches: Vec::new(),
    };
    let doubts = vec![
        Doubt::new("few_launches", "1 launch is too few for an interval at this confidence".into()),
        Doubt::about("not_met", "L", "latency 2 µs: 2.10 µs was observed, 5 % off".into()),
    ];
    measured(name, 8, Parameters::unobservable(), Found::Validate(found), doubts)
}

/// A dial: its name, its values in its own unit, whether they are added, and the program's time with a value,
/// in s.
pub type Dial<'a> = (&'a str, &'a [f64], bool, &'a dyn Fn(f64) -> f64);

/// Returns a sweep of a program that takes 1 s over the undialled link. `noise` is the relative noise.
pub fn sweep(dials: &[Dial<'_>], noise: f64, seed: u64) -> Sweep {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut runs = Vec::new();
    for repetition in 0..4 {
        for (dial, values, _, takes) in dials {
            for &value in [0.0].iter().chain(values.iter()) {
                runs.push(Run {
                    dial: (value > 0.0).then(|| (*dial).to_owned()),
                    value,
                    repetition,
                    metric: takes(value) * (1.0 + noise * (random.f64() - 0.5)),
                    counted: MessageCounts {
                        most_sent: 10,
                        most_further_bytes: 1000,
                        ..MessageCounts::default()
                    },
                    ..Run::default()
                });
            }
        }
    }
    let mut sweep = Sweep { unit: "s".into(), confidence: 0.95, ..Sweep::default() };
    for (dial, _, adds, _) in dials {
        let is_rate = *dial == "gap-per-byte";
        let subject = SweptDial {
            dial: (*dial).into(),
            adds: *adds,
            unit_ns: if is_rate { 1.0 } else { 1e3 },
            counts: if is_rate { Counts::Bytes } else { Counts::Sent },
        };
        let swept = read(&subject, &runs, &sweep);
        sweep.dials.push(swept);
    }
    sweep.runs = runs;
    sweep
}

/// Measures a simulated interface in `launches` launches.
pub fn layer(name: &str, truth: &str, launches: usize) -> LayerResult {
    let truth: Truth = truth.parse().expect("a truth");
    let mut shape: Option<Shape> = None;
    let data: Vec<LaunchData> = (0..launches)
        .map(|launch| {
            // Launches of a real layer differ. Here they differ by up to 1 %.
            let off = 1.0 + 0.01 * ((launch * 7 % 11) as f64 / 5.0 - 1.0);
            let scaled = |ps: u64| (ps as f64 * off) as u64;
            let own = Truth { o_s_ps: scaled(truth.o_s_ps), l_ps: scaled(truth.l_ps), ..truth };
            let mut requester =
                Simulated { interface: Interface::new(own, launch as u64), max_window: truth.window };
            let plan = Plan {
                launch,
                shape: shape.clone(),
                budget_ns: 1e9,
                precision: 0.05,
                confidence: 0.95,
                seed: launch as u64,
                longest_burst: LONGEST_BURST,
                batch_messages: BATCH_MESSAGES,
            };
            let mut data = pattern::run(&mut requester, &plan, &mut |_| {}).expect("a launch");
            shape = Some(data.shape.clone());
            add_tail(&mut data);
            data
        })
        .collect();
    result(name, data)
}

/// Returns the result that is extracted from `launches`.
pub fn result(name: &str, launches: Vec<LaunchData>) -> LayerResult {
    let extracted = extract(&launches, 0.95, 0.02).expect("launches");
    measured(name, 16, extracted.parameters, extracted.found.into(), extracted.doubts)
}

/// Adds the spread and the interruptions of a real machine, which the simulation does not have.
fn add_tail(data: &mut LaunchData) {
    let Some(&middle) = data.rtt.batches_ns.first() else { return };
    let body = (-12..=24).map(|step: i32| {
        let spread = if step < 0 { 4.0 } else { 8.0 };
        let count = 400.0 * (-(f64::from(step) / spread).powi(2)).exp();
        (middle * (1.0 + 0.002 * f64::from(step)), count as u64 + 1)
    });
    let tail = [(1.4, 40), (1.45, 12), (1.8, 9), (2.1, 5), (3.0, 2), (5.2, 1), (140.0, 1)];
    let tail = tail.into_iter().map(|(factor, count)| (middle * factor, count));
    data.rtt.histogram_ns = body.chain(tail).collect();
    data.rtt.samples = data.rtt.histogram_ns.iter().map(|(_, count)| count).sum();
    let wake_up = 1.0 + (data.launch % 3) as f64;
    data.rtt_after_pause_ns.iter_mut().for_each(|ns| *ns += 400.0 * wake_up);
}

/// Returns a record of `results`.
pub fn record(results: Vec<LayerResult>) -> Record {
    let ratios = results.windows(2).map(|pair| Ratio {
        numerator: pair[0].layer.clone(),
        denominator: pair[1].layer.clone(),
        parameter: "rtt".into(),
        value: pair[0].parameters.rtt.value_ns.unwrap_or(1.0)
            / pair[1].parameters.rtt.value_ns.unwrap_or(1.0),
        ci: Some([0.99, 1.01]).map(|[lo, hi]| {
            let ratio = pair[0].parameters.rtt.value_ns.unwrap_or(1.0)
                / pair[1].parameters.rtt.value_ns.unwrap_or(1.0);
            [lo * ratio, hi * ratio].into()
        }),
        pairs: pair[0].launches(),
        to_reference: false,
    });
    Record {
        schema: SCHEMA.into(),
        version: "0.1.0".into(),
        began: "2025-01-02T03:04:05Z".into(),
        command_line: vec!["netdyno".into()],
        peer_environment: None,
        options: Options { precision: 0.02, confidence: 0.95, max_time_s: 60.0, launches: 9, seed: 1 },
        environment: environment(),
        ratios: ratios.collect(),
        spin_times: Vec::new(),
        paper: None,
        interrupted: None,
        failed: None,
        doubts: vec![Doubt::new(
            "virtualised",
            "a hypervisor is underneath: it may take a processor away without a trace".into(),
        )],
        results,
    }
}

fn environment() -> Environment {
    Environment {
        host: "bench-7".into(),
        kernel: "Linux 6.8.0-1021".into(),
        cpu_model: "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz".into(),
        cpus_allowed: (0..8).collect(),
        cpus_online: Some(8),
        virtualised: true,
        governor: None,
        clock: ClockReading {
            source: "tsc".into(),
            tick_ns: 0.357,
            cost_ns: 9.3,
            resolution_ns: 5.7,
            is_constant: None,
        },
        load_1min: Some(0.31),
        detours: Some(Detours { observed_ns: 2e8, count: 57, lost_share: 0.0012, longest_ns: 83_120.0 }),
    }
}

/// Returns a record of layers with different magnitudes and limits.
pub fn various() -> Record {
    record(vec![
        layer("am+shm", "o_s=28ns,o_r=34ns,o_poll=6ns,g=20ns,L=85ns,capacity=8,noise=0.03", 9),
        layer("sim", "o_s=1us,o_r=2us,o_poll=80ns,g=5us,L=7us,noise=0.02", 9),
        layer("udp", "o_s=2.1us,o_r=2.4us,o_poll=350ns,g=1us,L=4us,window=2,noise=0.05", 9),
        negative(layer("tcp", "o_s=4us,o_r=6us,o_poll=400ns,g=3us,L=9us,window=1,noise=0.05", 9)),
    ])
}

/// Returns the result with shorter round trips, as if the overheads overlapped with the latency.
fn negative(result: LayerResult) -> LayerResult {
    let Found::Logp(Logp { mut launches, .. }) = result.found else { panic!("another verb") };
    for launch in &mut launches {
        let batches = launch.rtt.batches_ns.iter_mut();
        batches.for_each(|ns| *ns *= 0.4);
        launch.rtt.histogram_ns.iter_mut().for_each(|(ns, _)| *ns *= 0.4);
    }
    self::result(&result.layer, launches)
}

/// Returns a result as of two spinning processes.
fn measured(
    name: &str,
    size_bytes: usize,
    parameters: Parameters,
    found: Found,
    doubts: Vec<Doubt>,
) -> LayerResult {
    LayerResult {
        layer: name.into(),
        label: None,
        size_bytes,
        wait: "spin".into(),
        cpus: vec![0, 1],
        distance: Some("same package".into()),
        library: None,
        launcher: None,
        server: None,
        faults: None,
        dials: None,
        profile: None,
        strata: Vec::new(),
        probes: Vec::new(),
        parameters,
        found,
        doubts,
    }
}
