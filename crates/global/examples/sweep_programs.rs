//! Sweeps the example programs over the dials of their link, as Martin et al. (ISCA 1997) did, and compares the slope of
//! their time with the one that a model predicts from counted messages.
//!
//!     cargo build --release -p netdyno-global --examples
//!     target/release/examples/sweep_programs --launcher 'mpiexec --bind-to core -n {n}' --out sweeps
//!
//! Every value of every dial is run in fresh processes, several times. A run in which another program had the processor
//! of a rank is made again. The runs of a repetition are in random order, so
//! that what changes on the machine concerns all of them alike. `netdyno report` draws
//! the records that `--out` keeps.

#[path = "sweep_programs/model.rs"]
mod model;
#[path = "sweep_programs/options.rs"]
mod options;
#[path = "sweep_programs/plan.rs"]
mod plan;

use model::{LatencySlope, Traffic, row, slope, swept_dial};
use netdyno_global::am::Dial;
use netdyno_measure::show::{Percent, counted};
use netdyno_measure::sweep::{Run, SCHEMA, Sweep, read};
use netdyno_protocol::random::Random;
use options::Options;
use plan::{SWEPT, Subject, subjects};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// The confidence of every interval.
const CONFIDENCE: f64 = 0.95;
/// A run is disturbed if a rank waited for its processor for more than this share of the time.
const DISTURBED: f64 = 0.02;
/// A run that was disturbed is made again, at most this often. The least disturbed one stays.
const ATTEMPTS: usize = 12;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{}", options::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match sweep(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A run to be made: of a subject, with a value of a swept dial or with none.
#[derive(Clone, Copy)]
struct Step {
    subject: usize,
    value: Option<(usize, f64)>,
}

/// The runs of a subject, and the latencies that its runs with that dial waited for.
#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
    latencies: Option<LatencySlope>,
}

/// Runs everything and prints the table, for which disturbed runs do not count.
fn sweep(options: &Options) -> Result<(), String> {
    let subjects = subjects(options.only.as_deref());
    let began = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let mut results: Vec<Runs> = subjects.iter().map(|_| Runs::default()).collect();
    let mut random = Random::new(options.seed);
    for repetition in 0..options.repetitions {
        for step in shuffled(steps(subjects.len()), &mut random) {
            let (run, traffic) = undisturbed(options, &subjects[step.subject], step, repetition)?;
            let result = &mut results[step.subject];
            let has_latency = step.value.is_some_and(|(dial, _)| SWEPT[dial].dial == Dial::Latency);
            if has_latency && run.doubts.is_empty() {
                let waited_for = LatencySlope::of(&traffic, options.ranks);
                result.latencies = Some(result.latencies.map_or(waited_for, |others| others.and(waited_for)));
            }
            result.runs.push(run);
        }
        eprintln!("{} of {} repetitions", repetition + 1, options.repetitions);
        // A sweep that is interrupted leaves what it has.
        for (subject, result) in subjects.iter().zip(&results) {
            if let Some(folder) = &options.out {
                keep(folder, subject, &record(options, subject, &began, &result.runs))?;
            }
        }
    }
    let runs = || results.iter().flat_map(|result| &result.runs);
    let disturbed = runs().filter(|run| !run.doubts.is_empty()).count();
    println!("{}, {disturbed} of them disturbed\n", counted(runs().count(), "run", "runs"));
    println!(
        "| program | dial | slope, ms for each µs or ns/B | by the model | measured of it | slowdown | runs |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (subject, Runs { runs, latencies }) in subjects.iter().zip(&results) {
        let Some(latencies) = *latencies else { continue };
        let calm: Vec<Run> = runs.iter().filter(|run| run.doubts.is_empty()).cloned().collect();
        let sweep = record(options, subject, &began, &calm);
        for (swept, result) in SWEPT.iter().zip(&sweep.dials) {
            let Some(slope) = slope(swept, &calm, CONFIDENCE) else { continue };
            println!("{}", row(subject.title, swept, &slope, result, latencies));
        }
    }
    Ok(())
}

/// Returns the runs of a repetition. The link as it is has one for each dial, because every slowdown is a ratio to it.
fn steps(subjects: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for subject in 0..subjects {
        for (dial, swept) in SWEPT.iter().enumerate() {
            steps.push(Step { subject, value: None });
            steps.extend(swept.values.iter().map(|&value| Step { subject, value: Some((dial, value)) }));
        }
    }
    steps
}

fn shuffled(mut steps: Vec<Step>, random: &mut Random) -> Vec<Step> {
    for last in (1..steps.len()).rev() {
        steps.swap(last, random.below(last as u64 + 1) as usize);
    }
    steps
}

/// Runs a program until it is not disturbed.
fn undisturbed(
    options: &Options,
    subject: &Subject,
    step: Step,
    repetition: usize,
) -> Result<(Run, Traffic), String> {
    let mut best = once(options, subject, step, repetition)?;
    for _ in 1..ATTEMPTS {
        if best.1.waited() <= DISTURBED {
            return Ok(best);
        }
        let other = once(options, subject, step, repetition)?;
        if other.1.waited() < best.1.waited() {
            best = other;
        }
    }
    if best.1.waited() > DISTURBED {
        best.0.doubts.push(format!("a rank waited for its processor for {}", Percent(best.1.waited())));
    }
    Ok(best)
}

/// Runs a program once.
fn once(
    options: &Options,
    subject: &Subject,
    step: Step,
    repetition: usize,
) -> Result<(Run, Traffic), String> {
    let mut program = Command::new(options.folder.join(subject.program));
    program.args(subject.arguments).arg("--counts");
    let swept = step.value.map(|(dial, value)| (&SWEPT[dial], value));
    if let Some((swept, value)) = swept {
        program.args([format!("--{}", swept.dial), swept.setting(value)]);
    }
    let mut command = options.launcher.command(options.ranks as usize, &program);
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output();
    let wall_s = began.elapsed().as_secs_f64();
    let output = output.map_err(|error| format!("cannot start {}: {error}", options.launcher))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let counts = said.lines().find(|line| line.starts_with("counts: ")).filter(|_| output.status.success());
    let traffic = counts.and_then(|line| Traffic::parse(line, subject.gets_in_bulk)).ok_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().rfind(|line| !line.is_empty()).unwrap_or("it prints no counts").to_owned();
        format!("{} failed ({}): {last}", subject.title, output.status)
    })?;
    let run = Run {
        dial: swept.map(|(swept, _)| swept.dial.name().to_owned()),
        value: swept.map_or(0.0, |(_, value)| value),
        repetition,
        metric: traffic.time_s,
        wall_s,
        counted: traffic.messages(options.ranks),
        doubts: Vec::new(),
    };
    Ok((run, traffic))
}

/// Returns the record of a subject.
fn record(options: &Options, subject: &Subject, began: &str, runs: &[Run]) -> Sweep {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sweep = Sweep {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        began: began.into(),
        place: format!("{processors} processors"),
        command: std::iter::once(&subject.program)
            .chain(subject.arguments)
            .map(|word| (*word).into())
            .collect(),
        metric: format!("time of the timed part at {} ranks", options.ranks),
        unit: "s".into(),
        confidence: CONFIDENCE,
        runs: runs.to_vec(),
        ..Sweep::default()
    };
    sweep.dials = SWEPT.iter().map(|swept| read(&swept_dial(swept), &sweep.runs, &sweep)).collect();
    sweep
}

fn keep(folder: &Path, subject: &Subject, sweep: &Sweep) -> Result<(), String> {
    let file = folder.join(format!("{}.json", subject.title.replace(' ', "-")));
    let failed = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", file.display());
    let text = serde_json::to_string_pretty(sweep).map_err(|error| failed(&error))?;
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, text)).map_err(|error| failed(&error))
}
