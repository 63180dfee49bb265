//! A campaign: interleaved launches of several layers, until every figure is as precise as the user asked
//! for, or the time is up.

mod benches;
pub mod doubts;
pub mod ending;
pub mod method;
mod probe;
pub mod reference;
mod schedule;
mod stratify;

use crate::campaign::method::{HostState, Method, Terms};
use crate::campaign::probe::Prober;
use crate::campaign::schedule::Schedule;
use crate::hosts::host::Machines;
use crate::hosts::machine;
use crate::hosts::site::Site;
use crate::job::ranks::Ranks;
use crate::launch::bench::{Bench, Launched};
use crate::options::bench::{BenchArgs, Label, Measuring};
use crate::options::once::each_once;
use crate::program::profiles;
use crate::records::output::Sink;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::progress::Progress;
use crate::terminal::voice::{detail, note};
use benches::{bench, check_all, named_waits, openable, waits};
use doubts::{
    by_kernel_doubt, dials_doubt, faults_doubt, machines_vary_doubt, other_machines, over_time_doubt,
    placement_doubt, reference_failed_doubt, repeated_calls_doubt, same_processes_doubt, server_doubt,
    too_few_doubt,
};
use ending::{Early, conclude};
use netdyno_clock::place;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::{Layer, able};
use netdyno_layers::options::DialOptions;
use netdyno_measure::completion::record::SpinTimes;
use netdyno_measure::record::{Doubt, LayerResult, Record, SCHEMA};
use netdyno_measure::strata::{Distance as Apart, LAUNCHES_AT_LEAST, Probe, Strata};
use netdyno_measure::task::{Data, Task};
use netdyno_protocol::dial::parameters::{Dials, Own};
use netdyno_protocol::dial::profile::Profile;
use netdyno_protocol::dial::time_profile::TimeProfile;
use netdyno_protocol::faults::Faults;
use netdyno_protocol::random::Random;
use netdyno_protocol::sim::Truth;
use std::ffi::OsString;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

/// Number of additional launches between two checks of the precision. A check after every launch would favour
/// a stop at an interval that is narrow by chance.
const LAUNCHES_PER_LOOK: usize = 3;
/// Maximum time of one launch, because more launches say more than longer ones.
const LONGEST_LAUNCH: Duration = Duration::from_millis(1200);
/// Maximum number of repeats of a launch whose processors were moved.
const REPEATS: usize = 2;
/// Minimum number of launches of each layer for a result of a run that ended early.
const LAUNCHES_WORTH_WRITING: usize = 3;

/// The artificial conditions of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Model parameters of the simulated layer.
    pub truth: Option<Truth>,
    /// Injected faults of datagrams.
    pub faults: Option<Faults>,
    /// Dial setting of the emulated link.
    pub dials: Option<Dials>,
    /// Time profile of the dials.
    pub profile: Option<Profile>,
}

/// A layer that is measured in a way of its own.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The layer.
    pub layer: Layer,
    /// Its name in the report.
    pub label: String,
    /// The wait policy; `None` for the default.
    pub wait: Option<Wait>,
    /// Environment variables of its processes.
    pub variables: Vec<(&'static str, OsString)>,
}

/// Measures with `method` and writes the record. Checks that the output is writable before it measures
/// anything. `ranks` is the job in which this command runs, if any.
pub fn run(method: Box<dyn Method>, args: &BenchArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    let sink = Sink::open(&args.output)?;
    let profile = args.profile.as_deref().map(profiles::read).transpose()?;
    let conditions = Conditions { truth: args.truth, faults: args.faults, dials: args.dials, profile };
    let mut campaign = Campaign::new(method, &args.over, &conditions, &args.measuring, ranks)?;
    args.label.iter().try_for_each(|label| campaign.label(label))?;
    let record = campaign.run()?;
    conclude(&record, sink.write(&record))
}

/// A measurement whose options have been checked.
pub struct Campaign {
    method: Box<dyn Method>,
    benches: Vec<Bench>,
    /// The layers that the user did not name. If one fails at the beginning, the others are measured all the same.
    references: Vec<Layer>,
    site: Site,
    measuring: Measuring,
}

impl Campaign {
    /// Checks the options against the layers and the machine.
    pub fn new(
        mut method: Box<dyn Method>,
        layers: &[Layer],
        conditions: &Conditions,
        measuring: &Measuring,
        ranks: Option<Rc<Ranks>>,
    ) -> Result<Self, Fault> {
        each_once("--over", layers, Layer::to_string)?;
        if conditions.truth.is_some() && !layers.contains(&Layer::Sim) {
            return Err(Fault::BadInput("--truth is for the sim layer: add --over sim".into()));
        }
        if conditions.faults.is_some() && !layers.iter().any(|layer| layer.takes_faults()) {
            let names: Vec<String> = layers.iter().map(Layer::to_string).collect();
            return Err(Fault::BadInput(format!(
                "--faults is for the datagrams of {}, not for {}: use --over am+udp",
                able(Layer::takes_faults),
                names.join(" and ")
            )));
        }
        let are_dialled = layers.iter().any(|layer| layer.takes_dials());
        let profile = conditions.profile.as_ref();
        let options =
            [("--dials", conditions.dials.is_some(), None), ("--profile", profile.is_some(), profile)];
        for (option, _, profile) in options.into_iter().filter(|(_, is_given, _)| *is_given) {
            if !are_dialled {
                return Err(Fault::BadInput(format!(
                    "{option} is for the layers {}: add --over am+shm",
                    able(Layer::takes_dials)
                )));
            }
            let dials = conditions.dials.unwrap_or_default();
            TimeProfile::new(&dials, profile, &Own::UNKNOWN, 1.0)
                .map_err(|error| Fault::BadInput(format!("{option}: {error}")))?;
        }
        let named = named_waits(measuring)?;
        if measuring.launcher.is_some() {
            check_all(layers, conditions, measuring, &named)?;
        }
        let site = Site::find(layers, measuring, method.processes(), ranks)?;
        let also = method.also_measures(site.machines);
        let mut benches = Vec::new();
        for &layer in layers.iter().chain(&also) {
            let waits = waits(layer, &named, &method.also_waits(), &site);
            let of_layer = waits.into_iter().map(|wait| bench(layer, conditions, measuring, wait, &site));
            let of_layer = openable(of_layer.collect::<Result<_, _>>()?, !named.is_empty())?;
            let are_several = of_layer.len() > 1;
            benches.extend(of_layer.into_iter().map(|bench| {
                let label = are_several.then(|| bench.wait.to_string());
                Bench { label, ..bench }
            }));
        }
        method.prepare(&benches);
        Ok(Self { method, benches, references: also, site, measuring: measuring.clone() })
    }

    /// Checks layers that are each measured in a way of their own: several may be of one layer.
    pub fn of_variants(
        mut method: Box<dyn Method>,
        variants: Vec<Variant>,
        measuring: &Measuring,
        ranks: Option<Rc<Ranks>>,
    ) -> Result<Self, Fault> {
        let layers: Vec<Layer> = variants.iter().map(|variant| variant.layer).collect();
        let site = Site::find(&layers, measuring, method.processes(), ranks)?;
        let conditions = Conditions::default();
        let benches = variants.into_iter().map(|Variant { layer, label, wait, variables }| {
            let bench = bench(layer, &conditions, measuring, wait, &site)?;
            Ok(Bench { label: Some(label), variables, ..bench })
        });
        let benches = benches.collect::<Result<Vec<_>, Fault>>()?;
        method.prepare(&benches);
        Ok(Self { method, benches, references: Vec::new(), site, measuring: measuring.clone() })
    }

    /// Adds environment variables to all worker processes.
    pub fn put(&mut self, variables: &[(&'static str, OsString)]) {
        for bench in &mut self.benches {
            bench.variables.extend_from_slice(variables);
        }
    }

    /// Sets the dial settings of the layers that take dials.
    pub fn set_dials(&mut self, dials: &DialOptions) {
        for bench in self.benches.iter_mut().filter(|bench| bench.layer.takes_dials()) {
            bench.dials = dials.clone();
        }
    }

    /// Sets the name of a result in the report.
    pub fn label(&mut self, label: &Label) -> Result<(), Fault> {
        let is_meant = |bench: &&mut Bench| label.layer.is_none_or(|layer| bench.layer == layer);
        let mut meant: Vec<&mut Bench> = self.benches.iter_mut().filter(is_meant).collect();
        let waits_several_ways = self.measuring.waits().len() > 1
            || meant.len() > 1 && meant.iter().all(|bench| bench.layer == meant[0].layer);
        let [bench] = &mut meant[..] else {
            return Err(Fault::BadInput(match label.layer {
                _ if waits_several_ways => {
                    "the ways to wait are labels themselves: leave --label away, or name one with --wait"
                        .into()
                }
                None => format!("--label '{0}' must name its layer, as in --label 'LAYER={0}'", label.text),
                Some(layer) => format!("--label is of {layer}, which is not measured: name one of --over"),
            }));
        };
        if let Some(other) = bench.label.replace(label.text.clone()) {
            return Err(Fault::BadInput(format!(
                "--label names {} twice, as '{other}' and as '{}': leave one away",
                bench.layer, label.text
            )));
        }
        Ok(())
    }

    /// Measures all layers and returns the record.
    pub fn run(&self) -> Result<Record, Fault> {
        let interrupt = Interrupt::catch()?;
        let began = SystemTime::now();
        let environment = self.site.requester_environment().unwrap_or_else(|| {
            machine::environment(self.benches.iter().find_map(|bench| bench.cpus.first().copied()))
        });
        let peer_environment = self.site.peer_environment(&interrupt)?;
        let mut runs: Vec<Run<'_>> = self.benches.iter().map(Run::new).collect();
        let asked_for = usize::from(self.measuring.launches);
        let schedule = Schedule::new(Instant::now(), self.measuring.max_time, runs.len(), asked_for);
        let mut failed = Vec::new();
        let early = self.measure(&mut runs, &mut failed, &schedule, &interrupt)?;
        // The notes are printed only now, so that an error of the measurement is the only line.
        let error = early.as_ref().and_then(Early::error);
        if error.is_none() && failed.is_empty() {
            self.method.notes().iter().for_each(|text| note(text));
        }
        let mut doubts = machine::doubts(&environment);
        doubts.extend(failed);
        doubts.extend(peer_environment.iter().flat_map(machine::doubts_about_peer));
        doubts.extend(other_machines(self.site.machines));
        let fewest = runs.iter().map(|run| run.launches.len()).min().unwrap_or(0);
        match &early {
            Some(early) => doubts.push(early.doubt(fewest)),
            None => doubts.extend(too_few_doubt(fewest, asked_for)),
        }
        doubts.extend(over_time_doubt(schedule.passed(Instant::now())));
        let strata = strata(&runs, self.measuring.confidence);
        doubts.extend(strata.doubt());
        let results = runs.into_iter().map(|run| self.result(run, &strata)).collect::<Result<Vec<_>, _>>();
        let results = match (results, error) {
            (Err(_), Some(error)) => return Err(Fault::Failed(error.into())),
            (results, _) => results?,
        };
        let ratios = self.method.ratios(&results, self.measuring.confidence);
        let spin_times = SpinTimes::of(&results, spin_ns, self.measuring.confidence);
        Ok(Record {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            began: humantime::format_rfc3339_seconds(began).to_string(),
            command_line: machine::command_line(),
            options: self.measuring.options(),
            environment,
            peer_environment,
            results,
            ratios,
            spin_times,
            paper: None,
            interrupted: early.as_ref().and_then(Early::signal),
            failed: error.map(str::to_owned),
            doubts,
        })
    }

    /// Launches the layers, round after round, until the figures are precise or the time is up. Returns the
    /// signal or the error that ended the rounds early, if every layer has enough launches for a result by then.
    /// A reference that fails before it has enough goes out of `runs`, with a doubt in `failed`.
    fn measure(
        &self,
        runs: &mut Vec<Run<'_>>,
        failed: &mut Vec<Doubt>,
        schedule: &Schedule,
        interrupt: &Interrupt,
    ) -> Result<Option<Early>, Fault> {
        let asked_for = usize::from(self.measuring.launches);
        let progress = Progress::limited();
        let mut rounds = 0;
        loop {
            let began = Instant::now();
            match self.round(rounds, runs, schedule, interrupt, &progress) {
                Err(fault) if is_worth_writing(runs) => return Early::of(fault).map(Some),
                other => other?,
            }
            let ended = runs.extract_if(.., |run| run.failure.is_some());
            failed
                .extend(ended.filter_map(|run| Some(reference_failed_doubt(run.bench.layer, &run.failure?))));
            rounds += 1;
            let now = Instant::now();
            let goes_on = if rounds < asked_for {
                schedule.has_time(now)
            } else {
                let is_look = (rounds - asked_for).is_multiple_of(LAUNCHES_PER_LOOK);
                schedule.fits(now, now - began) && !(is_look && self.is_precise(runs))
            };
            if !goes_on {
                return Ok(None);
            }
        }
    }

    /// Launches each layer once. Odd rounds use the reverse order, so that no layer is always the first. The
    /// first round launches every layer; a later round ends when the time is up.
    fn round(
        &self,
        round: usize,
        runs: &mut [Run<'_>],
        schedule: &Schedule,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<(), Fault> {
        let mut order: Vec<usize> = (0..runs.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for (nth, &at) in order.iter().enumerate() {
            let now = Instant::now();
            if round > 0 && !schedule.has_time(now) {
                break;
            }
            // A simulated layer measures in virtual time, so the wall-clock time left does not limit it.
            let is_virtual = runs[at].bench.is_simulated();
            let share = if is_virtual { schedule.planned() } else { schedule.share_of_next(now, round, nth) };
            let terms = self.terms(runs[at].bench, round, share, HostState::Steady);
            let task = self.method.task(&terms, &runs[at].launches);
            let doing = format!("{} launch {}", runs[at].bench.layer, round + 1);
            detail(|| {
                format!("{doing}, at most {:.1} s left for all layers", schedule.left(now).as_secs_f64())
            });
            let mut show = |_| {
                let now = Instant::now();
                progress.show_left(schedule.passed(now), schedule.left(now), &doing);
            };
            show(0.0);
            let is_new_reference = self.references.contains(&runs[at].bench.layer)
                && runs[at].launches.len() < LAUNCHES_WORTH_WRITING;
            match runs[at].launch(&task, schedule, interrupt, &mut show) {
                Err(Fault::Failed(error)) if is_new_reference => runs[at].failure = Some(error),
                other => other?,
            }
        }
        Ok(())
    }

    /// Returns the parameters of launch number `launch`. `host` is the kind of a real host; a simulated layer
    /// has none.
    fn terms(&self, bench: &Bench, launch: usize, share: Duration, host: HostState) -> Terms {
        Terms {
            launch,
            budget_ns: share.min(LONGEST_LAUNCH).as_nanos() as f64,
            share_ns: share.as_nanos() as f64,
            precision: self.measuring.precision,
            confidence: self.measuring.confidence,
            seed: Random::new(self.measuring.seed ^ (launch as u64) << 32).bits(),
            host: if bench.is_simulated() { HostState::Simulated } else { host },
            layer: bench.layer,
        }
    }

    fn is_precise(&self, runs: &[Run<'_>]) -> bool {
        let strata = strata(runs, self.measuring.confidence);
        runs.iter().all(|run| {
            let launches = stratify::headline(&*self.method, &run.launches, &run.probes, &strata);
            let terms = self.terms(run.bench, launches.len(), Duration::ZERO, host(&strata));
            self.method.read(&launches, &terms).is_some_and(|reading| reading.is_precise(terms.precision))
        })
    }

    fn result(&self, run: Run<'_>, strata: &Strata) -> Result<LayerResult, Fault> {
        let bench = run.bench;
        let terms = self.terms(bench, 0, Duration::ZERO, host(strata));
        let repeated = repeated_calls_doubt(bench.layer, &run.launches);
        let by_kernel = by_kernel_doubt(&run.launches);
        let launches = run.launches.len();
        let read = stratify::read(&*self.method, run.launches, &run.probes, strata, &terms);
        let Some(stratify::Stratified { reading, strata }) = read else {
            return Err(Fault::Failed(format!("{}: no launch has measured anything", bench.layer)));
        };
        let distance = match bench.cpus[..] {
            [a, b] if self.site.machines == Machines::This && run.elsewhere == 0 => {
                Some(place::distance(a, b))
            }
            _ => None,
        };
        let is_between_two =
            bench.cpus.len() == 2 && self.site.machines == Machines::Several(2) && run.elsewhere == 0;
        let mut doubts = reading.doubts;
        doubts.extend(placement_doubt(bench, distance));
        doubts.extend(machines_vary_doubt(run.elsewhere, launches));
        doubts.extend(same_processes_doubt(bench));
        doubts.extend(bench.origin.server().map(server_doubt));
        doubts.extend(repeated);
        doubts.extend(by_kernel);
        doubts.extend(bench.faults.map(faults_doubt));
        let (dials, profile) = dialled(&bench.dials);
        doubts.extend(dials_doubt(dials.as_deref(), bench.dials.profile.as_ref()));
        Ok(LayerResult {
            layer: bench.layer.to_string(),
            label: bench.label.clone(),
            size_bytes: bench.size_bytes,
            wait: if bench.is_simulated() { "virtual".into() } else { bench.wait.to_string() },
            cpus: bench.cpus.clone(),
            distance: match distance {
                None => is_between_two.then(|| "two hosts".into()),
                Some(distance) => Some(distance.to_string()),
            },
            library: run.library,
            launcher: bench.origin.launcher(),
            server: bench.origin.server().map(|address| address.to_string()),
            faults: bench.faults.map(|faults| faults.to_string()),
            dials,
            profile,
            parameters: reading.parameters,
            strata,
            probes: run.probes,
            found: reading.found,
            doubts,
        })
    }
}

/// Returns the time that a way to wait spins before it blocks, by its name.
fn spin_ns(name: &str) -> Option<f64> {
    match name.parse() {
        Ok(Wait::SpinFor(time)) => Some(time.as_nanos() as f64),
        Ok(Wait::Block) => Some(0.0),
        _ => None,
    }
}

fn is_worth_writing(runs: &[Run<'_>]) -> bool {
    runs.iter().all(|run| run.launches.len() >= LAUNCHES_WORTH_WRITING)
}

/// Returns the strata of all launches of all layers so far.
fn strata(runs: &[Run<'_>], confidence: f64) -> Strata {
    if runs.iter().all(|run| run.launches.len() < LAUNCHES_AT_LEAST) {
        return Strata::undivided();
    }
    Strata::of(&runs.iter().map(|run| &run.probes[..]).collect::<Vec<_>>(), confidence)
}

fn host(strata: &Strata) -> HostState {
    if strata.is_of_changing_host() { HostState::Changing } else { HostState::Steady }
}

/// The state of one layer in a campaign.
struct Run<'a> {
    bench: &'a Bench,
    launches: Vec<Data>,
    prober: Option<Prober>,
    /// One probe for each launch; empty if the processors cannot be probed.
    probes: Vec<Probe>,
    library: Option<String>,
    /// The number of launches on other machines than the first one of the launcher.
    elsewhere: usize,
    /// The error of a reference that failed.
    failure: Option<String>,
}

impl<'a> Run<'a> {
    fn new(bench: &'a Bench) -> Self {
        let prober = Prober::of(bench);
        Self {
            bench,
            launches: Vec::new(),
            prober,
            probes: Vec::new(),
            library: None,
            elsewhere: 0,
            failure: None,
        }
    }

    /// Launches once, and repeats the launch if its processors were moved and time is left. The data of a
    /// moved launch are kept until its repeat has ended, because a signal may arrive before that.
    fn launch(
        &mut self,
        task: &Task,
        schedule: &Schedule,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), Fault> {
        let at = self.launches.len();
        for repeats in 0.. {
            let began = Instant::now();
            let begun = self.prober.as_ref().map(Prober::begin);
            let launched = self.bench.launch(task, interrupt, progress)?;
            let probe = self.prober.as_ref().zip(begun);
            let probe = probe
                .filter(|_| !launched.is_elsewhere)
                .map(|(prober, begun)| prober.end(begun, task.launch(), repeats));
            let has_moved = probe.as_ref().is_some_and(|probe| probe.distance() == Apart::Moved);
            self.keep(at, launched, probe);
            let now = Instant::now();
            if !has_moved || repeats == REPEATS || !schedule.fits(now, now - began) {
                break;
            }
        }
        Ok(())
    }

    /// Keeps launch number `at`, in the place of the launch that it repeats.
    fn keep(&mut self, at: usize, launched: Launched, probe: Option<Probe>) {
        self.library = launched.library;
        self.launches.truncate(at);
        self.launches.push(launched.data);
        self.probes.truncate(at);
        self.probes.extend(probe);
        if launched.is_elsewhere {
            self.elsewhere += 1;
            // Probes of this machine's processors say nothing about others. Without probes, all launches are evaluated
            // together.
            self.prober = None;
            self.probes.clear();
        }
    }
}

/// Returns the record's entries for the dials and the time profile of a link. Dials that `validate` turns
/// during the measurement are left out, because they are its subject.
fn dialled(dials: &DialOptions) -> (Option<String>, Option<String>) {
    let steady = dials.settings.iter().filter(|setting| dials.word.is_none() && !setting.are_none());
    (steady.map(Dials::to_string).next(), dials.profile.as_ref().map(Profile::to_string))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::method::Signature;
    use crate::launch::origin::Origin;
    use netdyno_host::wait::Wait;

    fn simulated() -> Bench {
        Bench {
            layer: Layer::Sim,
            label: None,
            size_bytes: 0,
            wait: Wait::Spin,
            cpus: Vec::new(),
            processors: 0,
            truth: Some("o_s=1us,o_r=2us,g=5us,L=7us".parse().unwrap()),
            bind: "127.0.0.1:0".parse().unwrap(),
            origin: Origin::Children,
            faults: None,
            dials: DialOptions::default(),
            variables: Vec::new(),
        }
    }

    fn terms() -> Terms {
        Terms {
            launch: 0,
            budget_ns: 1e6,
            share_ns: 1e6,
            precision: 0.02,
            confidence: 0.95,
            seed: 1,
            host: HostState::Simulated,
            layer: Layer::Sim,
        }
    }

    /// Three launches count even if a signal arrives while the third is repeated.
    #[test]
    fn a_launch_that_moved_counts_until_its_repeat_has_ended() {
        let bench = simulated();
        let mut run = Run::new(&bench);
        let interrupt = Interrupt::catch().unwrap();
        let mut launch = |at: usize, repeats| {
            let task = Signature.task(&Terms { launch: at, ..terms() }, &run.launches);
            let launched = bench.launch(&task, &interrupt, &mut |_| {}).unwrap();
            run.keep(at, launched, Some(probe(at, repeats)));
            (is_worth_writing(std::slice::from_ref(&run)), run.launches.len(), run.probes.len())
        };
        assert_eq!(launch(0, 0), (false, 1, 1));
        assert_eq!(launch(1, 0), (false, 2, 2));
        assert_eq!(launch(2, 0), (true, 3, 3));
        assert_eq!(launch(2, 1), (true, 3, 3));
        assert_eq!(run.probes[2].repeats, 1);
    }

    fn probe(launch: usize, repeats: usize) -> Probe {
        Probe { launch, before: None, after: None, stolen_share: None, paces: Vec::new(), repeats }
    }

    /// A launcher may distribute the processes in another way each time.
    #[test]
    fn launches_on_other_machines_are_evaluated_with_the_others() {
        let bench = simulated();
        let mut run = Run::new(&bench);
        let interrupt = Interrupt::catch().unwrap();
        for at in 0..3 {
            let task = Signature.task(&Terms { launch: at, ..terms() }, &run.launches);
            let launched = bench.launch(&task, &interrupt, &mut |_| {}).unwrap();
            assert_eq!(machines_vary_doubt(run.elsewhere, 3), None);
            let is_elsewhere = at == 2;
            run.keep(at, Launched { is_elsewhere, ..launched }, (!is_elsewhere).then(|| probe(at, 0)));
        }
        let Run { launches, probes, elsewhere, .. } = run;
        let doubt = machines_vary_doubt(elsewhere, launches.len()).unwrap();
        assert!(doubt.text.contains("of 1 of 3 launches"), "{}", doubt.text);
        let read = stratify::read(&Signature, launches, &probes, &Strata::undivided(), &terms()).unwrap();
        assert_eq!(read.reading.found.launches(), 3);
    }
}
