//! `netdyno sweep`: finds the link parameters on which a program depends, and how far each may grow.

mod grid;
mod identity;
mod journal;

use crate::hosts::machine;
use crate::options::headings::{HOW_PRECISELY, OUTPUT};
use crate::options::output::{Format, OutputArgs};
use crate::options::program::ProgramArgs;
use crate::options::values::confidence;
use crate::program::apparatus::{Apparatus, provider_of};
use crate::program::child::{Ended, said, spawn, wait};
use crate::program::dials::{self, EachDial};
use crate::program::ledger::{Ledger, Rank};
use crate::program::link::{LinkArgs, Wanted};
use crate::program::route::RouteArgs;
use crate::records::output::{check_writable, form_of, render_sweep, write_to_reader, write_whole};
use crate::terminal::fault::{Fault, RUNNER, clean};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::progress::Progress;
use crate::terminal::voice::{note, say};
use crate::verbs::Examples;
use crate::verbs::sweep::grid::Grid;
use crate::verbs::sweep::identity::Identity;
use crate::verbs::sweep::journal::Journal;
use clap::Args;
use netdyno_apparatus_fi::page::DialSetting;
use netdyno_job::launching::exit_code as code;
use netdyno_measure::record::Environment;
use netdyno_measure::show::Percent;
use netdyno_measure::sweep::{Counts, MessageCounts, Run, SCHEMA, SLOWDOWNS, Sweep, SweptDial, read};
use netdyno_protocol::dial::parameters::{Dials, Own};
use netdyno_protocol::dial::table::{Effect, LinkEnd};
use netdyno_protocol::random::Random;
use regex::Regex;
use std::io;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

/// Number of output lines in the error of a failed program.
const LAST_LINES: usize = 3;

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "sweep",
    [
        ("netdyno sweep --latency +0:100:20us -- mpiexec -n 2 ./app", "sweep L"),
        ("netdyno sweep --send-gap =5,9us --out g.html -- mpiexec ./app", "draw it"),
        ("netdyno sweep --latency +1us --metric 't=(.*)' -- mpiexec ./app", "read t"),
    ],
)];

/// Find out which parameters of its link an MPI program depends on
///
/// Each value of each dial is run several times, in random order. An interrupted sweep goes on where it
/// ended. Options stand before the program.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The dials and their values.
    #[command(flatten)]
    grids: EachDial<Grid>,

    /// How messages go.
    #[command(flatten)]
    route: RouteArgs,

    /// What is known of the link.
    #[command(flatten)]
    link: LinkArgs,

    /// Read a number from the program's output
    ///
    /// The last one that the group of this pattern finds. Without it the time of the whole command is taken.
    #[arg(long, value_name = "PATTERN", value_parser = pattern, help_heading = OUTPUT)]
    metric: Option<Regex>,

    /// Give that number this unit
    #[arg(
        long,
        value_name = "UNIT",
        default_value = "s",
        requires = "metric",
        help_heading = OUTPUT,
        hide_short_help = true
    )]
    unit: String,

    /// Take more of that number for better: it is a rate
    #[arg(long, requires = "metric", help_heading = OUTPUT, hide_short_help = true)]
    higher_is_better: bool,

    /// Run every value this often
    #[arg(
        long,
        value_name = "N",
        default_value = "3",
        value_parser = clap::value_parser!(u16).range(1..=1000),
        help_heading = HOW_PRECISELY,
        hide_short_help = true
    )]
    repetitions: u16,

    /// Set the confidence of every interval
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.95",
        value_parser = confidence,
        help_heading = HOW_PRECISELY,
        hide_short_help = true
    )]
    confidence: f64,

    /// Seed the order in which values are run
    #[arg(long, value_name = "N", default_value = "1", help_heading = HOW_PRECISELY, hide_short_help = true)]
    seed: u64,

    /// Note each run in this file as it ends
    ///
    /// The same command goes on from there.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "netdyno-sweep.journal",
        help_heading = OUTPUT,
        hide_short_help = true
    )]
    journal: PathBuf,

    /// Where and in which form the result goes.
    #[command(flatten)]
    output: OutputArgs,

    /// What to run.
    #[command(flatten)]
    program: ProgramArgs,
}

/// Parses a pattern that finds a number. The error is the last line of the parser's message.
fn pattern(text: &str) -> Result<Regex, String> {
    let example = "as in 'Loop time of ([0-9.]+)'";
    let pattern = Regex::new(text).map_err(|error| {
        let said = error.to_string();
        let why = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("not a regular expression ({why}), {example}")
    })?;
    if pattern.captures_len() < 2 { Err(format!("the pattern has no group, {example}")) } else { Ok(pattern) }
}

/// Returns the swept dials with their values.
fn swept(args: &SweepArgs) -> Result<Vec<&Grid>, Fault> {
    if args.grids.0.is_empty() {
        return Err(Fault::BadInput("no dial is swept: name one, as in --latency +0:100:20us".into()));
    }
    Ok(args.grids.0.iter().map(|(_, grid)| grid).collect())
}

/// One planned run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step<'a> {
    grid: Option<&'a Grid>,
    value: f64,
    repetition: usize,
}

/// Runs the sweep and writes its result.
pub fn run(args: &SweepArgs) -> Result<(), Fault> {
    let grids = swept(args);
    dials::check_place(&args.program.command, grids.is_ok())?;
    let grids = grids?;
    if let Some(file) = &args.output.out {
        check_writable(file)?;
    }
    let format = form_of(&args.output)?;
    let interrupt = Interrupt::catch()?;
    // The journal is checked before the link is measured, because that takes long.
    let mut journal = Journal::open(&args.journal, &plan(args, &grids), &identity(args, &grids))?;
    if args.output.out.as_ref().is_some_and(|out| journal.is_at(out)) {
        return Err(Fault::BadInput("--out names the journal: name another file".into()));
    }
    // The machine is described before the runs, which are a load themselves.
    let environment = machine::environment(None);
    let own = own(args, &grids, &interrupt)?;
    let began = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let steps = steps(&grids, usize::from(args.repetitions), args.seed);
    if !journal.runs().is_empty() {
        note(&format!(
            "going on after {} of {} runs, as noted in {}",
            journal.runs().len(),
            steps.len(),
            args.journal.display()
        ));
    }
    let is_step = |(run, step): (&Run, &Step<'_>)| {
        let dial = step.grid.map(|grid| grid.dial.name());
        (run.dial.as_deref(), run.value, run.repetition) == (dial, step.value, step.repetition)
    };
    if journal.runs().len() > steps.len() || !journal.runs().iter().zip(&steps).all(is_step) {
        let path = args.journal.display();
        return Err(Fault::BadInput(format!(
            "the journal {path} has other runs: remove it, or name another with --journal"
        )));
    }
    let progress = Progress::new();
    for (nth, step) in steps.iter().enumerate().skip(journal.runs().len()) {
        interrupt.check().map_err(|fault| stopped(fault, args))?;
        progress.show(nth as f64 / steps.len() as f64, &doing(step));
        journal.note(once(args, step, &own, &interrupt).map_err(|fault| stopped(fault, args))?)?;
    }
    drop(progress);
    let sweep = result(args, &grids, journal.runs(), &environment, began);
    let text = render_sweep(&sweep, format.unwrap_or(Format::Table))?;
    match &args.output.out {
        Some(file) => write_whole(file, &text)?,
        None if !write_to_reader(&text)? => {
            say(&format!(
                "the reader of standard output has ended: the same command prints the result from {}",
                args.journal.display()
            ));
            return Ok(());
        }
        None => {}
    }
    journal.remove();
    Ok(())
}

/// Returns the link's own parameters, after checking every value of the sweep against them.
fn own(args: &SweepArgs, grids: &[&Grid], interrupt: &Interrupt) -> Result<Own, Fault> {
    let dials = |grid: &&Grid| -> Vec<Dials> {
        grid.values.iter().map(|&value| Dials::NONE.with(grid.dial, grid.setting(value))).collect()
    };
    let dials: Vec<Dials> = grids.iter().flat_map(dials).collect();
    let wanted = Wanted { dials: &dials, command: &args.program.command, provider: args.route.provider() };
    let link = args.link.own(&wanted, interrupt)?;
    link.doubts.iter().for_each(|doubt| note(&format!("doubt: the link as it is, {doubt}")));
    let own = link.own;
    dials.iter().try_for_each(|dials| dials::check(dials, None, &own))?;
    Ok(own)
}

/// Tells the user that the runs so far are kept.
fn stopped(fault: Fault, args: &SweepArgs) -> Fault {
    if let Fault::Interrupted(_) = &fault {
        say(&format!("the same command goes on from {}", args.journal.display()));
    }
    fault.stopped()
}

/// Returns the runs in random order: every value of every dial, and the unmodified link once for each dial.
fn steps<'a>(grids: &[&'a Grid], repetitions: usize, seed: u64) -> Vec<Step<'a>> {
    let mut random = Random::new(seed);
    let mut all = Vec::new();
    for repetition in 0..repetitions {
        let link = grids.iter().map(|_| Step { grid: None, value: 0.0, repetition });
        let turned = grids.iter().flat_map(|&grid| {
            grid.values.iter().map(move |&value| Step { grid: Some(grid), value, repetition })
        });
        let mut steps: Vec<Step<'a>> = link.chain(turned).collect();
        for at in (1..steps.len()).rev() {
            steps.swap(at, (random.bits() % (at as u64 + 1)) as usize);
        }
        all.append(&mut steps);
    }
    all
}

fn doing(step: &Step<'_>) -> String {
    match step.grid {
        None => "the link as it is".into(),
        Some(grid) if grid.dial.is_per_byte() => format!("{} {} ns/B", grid.dial, step.value),
        Some(grid) => format!("{} {} us", grid.dial, step.value / 1e3),
    }
}

/// Returns the plan, which must be the same for a sweep to continue from its journal.
fn plan(args: &SweepArgs, grids: &[&Grid]) -> String {
    let grids: Vec<String> = grids.iter().map(|grid| grid.to_string()).collect();
    let metric = args.metric.as_ref().map_or("", Regex::as_str);
    format!(
        "netdyno {} | {:?} | {:?} | {:?} {:?} {:?} | {metric:?} | {} times, seed {}",
        env!("CARGO_PKG_VERSION"),
        args.program.command,
        grids.join(" "),
        std::env::var_os("FI_PROVIDER"),
        args.route,
        args.link,
        args.repetitions,
        args.seed
    )
}

/// Returns the identity of the sweep, with a name for each entry that the user knows.
fn identity(args: &SweepArgs, grids: &[&Grid]) -> Identity {
    let words: Vec<_> = args.program.command.iter().map(|word| word.to_string_lossy()).collect();
    let grids: Vec<String> = grids.iter().map(|grid| grid.to_string()).collect();
    let provider = std::env::var_os("FI_PROVIDER");
    let provider = provider.map_or("none".into(), |name| name.to_string_lossy().into_owned());
    let mut asked = vec![
        ("netdyno", env!("CARGO_PKG_VERSION").to_owned()),
        ("the command", format!("'{}'", words.join(" "))),
        ("the sweep of dials", grids.join(" ")),
        ("FI_PROVIDER", provider),
        ("--metric", args.metric.as_ref().map_or("none".into(), |pattern| format!("'{pattern}'"))),
        ("--repetitions", args.repetitions.to_string()),
        ("--seed", args.seed.to_string()),
    ];
    asked.extend(args.route.spelled());
    asked.extend(args.link.spelled());
    Identity::new(&asked, &args.program.command)
}

/// Performs one run.
fn once(args: &SweepArgs, step: &Step<'_>, own: &Own, interrupt: &Interrupt) -> Result<Run, Fault> {
    let dials = step.grid.map_or(Dials::NONE, |grid| Dials::NONE.with(grid.dial, grid.setting(step.value)));
    let setting = DialSetting { dials, own: *own, capacity: 0 };
    let apparatus = Apparatus::prepare(&args.route.plan(vec![setting]), args.route.provider())?;
    let unread = |error: io::Error| Fault::Failed(format!("cannot keep the program's output: {error}"));
    let mut output = tempfile::tempfile().map_err(unread)?;
    let mut command = apparatus.command(&args.program.command);
    command.stdin(std::process::Stdio::null());
    command.stdout(output.try_clone().map_err(unread)?).stderr(output.try_clone().map_err(unread)?);
    let began = Instant::now();
    let Ended { status, at } = wait(spawn(&mut command)?, apparatus.folder(), interrupt, None)?;
    let wall_s = at.duration_since(began).as_secs_f64();
    interrupt.check()?;
    let said = said(&mut output).map_err(unread)?;
    let ledger = Ledger::of(&apparatus.accounts()?);
    if !status.success() {
        if let Some(text) = args.route.provider().and_then(|provider| ledger.without_provider(provider)) {
            return Err(Fault::Ended(RUNNER, text));
        }
        let last: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = last[last.len().saturating_sub(LAST_LINES)..].join("; ");
        let text = format!("the program failed ({status}): {}", clean(&last));
        return Err(Fault::Ended(code(status), text));
    }
    if let Some(text) = ledger.failing().or_else(|| ledger.is_silent()) {
        return Err(Fault::Ended(RUNNER, text));
    }
    let metric = match &args.metric {
        None => wall_s,
        Some(pattern) => number(pattern, &said)?,
    };
    Ok(Run {
        dial: step.grid.map(|grid| grid.dial.name().to_owned()),
        value: step.value,
        repetition: step.repetition,
        metric,
        wall_s,
        counted: counted(&ledger),
        doubts: ledger.doubts(args.route.between()),
    })
}

/// Returns the last number that the pattern finds.
fn number(pattern: &Regex, said: &str) -> Result<f64, Fault> {
    let found = pattern.captures_iter(said).last().and_then(|captures| captures.get(1));
    let found = found.ok_or_else(|| {
        Fault::Ended(RUNNER, format!("--metric '{pattern}' finds nothing in the program's output"))
    })?;
    found.as_str().parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| {
        Fault::Ended(
            RUNNER,
            format!("--metric '{pattern}' finds '{}', which is no number", clean(found.as_str())),
        )
    })
}

fn counted(ledger: &Ledger) -> MessageCounts {
    let most = |of: fn(&Rank) -> u64| ledger.ranks.iter().map(of).max().unwrap_or(0);
    MessageCounts {
        ranks: ledger.ranks.len() as u64,
        messages: ledger.messages(),
        most_sent: most(|rank| rank.sent + rank.one_sided),
        most_received: most(|rank| rank.received),
        most_bytes: most(|rank| rank.sent_bytes + rank.one_sided_bytes),
        most_further_bytes: most(Rank::further_bytes),
    }
}

fn result(
    args: &SweepArgs,
    grids: &[&Grid],
    runs: &[Run],
    environment: &Environment,
    began: String,
) -> Sweep {
    let mut sweep = Sweep {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        began,
        place: format!("{}, {}, {}", environment.host, environment.cpu_model, environment.kernel),
        command: args.program.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        command_line: machine::command_line(),
        provider: provider_of(args.route.provider()),
        metric: args.metric.as_ref().map_or("wall time".into(), |pattern| pattern.to_string()),
        unit: if args.higher_is_better && args.unit == "s" { String::new() } else { args.unit.clone() },
        higher_is_better: args.higher_is_better,
        confidence: args.confidence,
        dials: Vec::new(),
        runs: runs.to_vec(),
        doubts: machine::doubts(environment).into_iter().map(|doubt| doubt.text).collect(),
    };
    let link: Vec<f64> = runs.iter().filter(|run| run.dial.is_none()).map(|run| run.metric).collect();
    let (least, most) = link.iter().fold((f64::MAX, f64::MIN), |(lo, hi), &m| (lo.min(m), hi.max(m)));
    if least > 0.0 && most / least - 1.0 > SLOWDOWNS[0] {
        let spread = Percent(most / least - 1.0);
        let text =
            format!("runs of the link as it is differ by {spread}: a slowdown that is less may be noise");
        sweep.doubts.push(text);
    } else if least <= 0.0 {
        sweep.doubts.push("runs of the link as it is have a metric of 0: slowdowns mean nothing".into());
    }
    let is_of_all = args.route.between().is_none();
    sweep.dials = grids.iter().map(|grid| read(&subject(grid, is_of_all), runs, &sweep)).collect();
    let mut of_runs: Vec<&String> = runs.iter().flat_map(|run| &run.doubts).collect();
    of_runs.sort();
    of_runs.dedup_by_key(|text| text.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned());
    sweep.doubts.extend(of_runs.into_iter().map(|text| format!("in a run {text}")));
    sweep
}

/// Returns what is known of a dial beside its runs. `is_of_all` tells that the messages of all ranks are dialled.
fn subject(grid: &Grid, is_of_all: bool) -> SweptDial {
    let counts = match grid.dial.effect() {
        _ if !is_of_all => Counts::Unknown,
        Effect::Latency => Counts::Nothing,
        Effect::Overhead(LinkEnd::Sender) | Effect::Gap(LinkEnd::Sender) => Counts::Sent,
        Effect::Overhead(LinkEnd::Receiver) | Effect::Gap(LinkEnd::Receiver) => Counts::Received,
        Effect::GapPerByte => Counts::Bytes,
    };
    let unit_ns = if grid.dial.is_per_byte() { 1.0 } else { 1e3 };
    SweptDial { dial: grid.dial.name().into(), adds: grid.adds, unit_ns, counts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::dials::DialValue;
    use netdyno_protocol::dial::table::Dial;

    #[test]
    fn every_value_is_run_in_each_repetition_and_the_link_between_them() {
        let latency = Grid::read(Dial::Latency, "+0:100:20us").unwrap();
        let gap = Grid::read(Dial::SendGap, "=10,20us").unwrap();
        let steps = steps(&[&latency, &gap], 3, 1);
        assert_eq!(steps.len(), 3 * (2 + 5 + 2));
        for repetition in 0..3 {
            let of = |grid: Option<&Grid>| {
                steps.iter().filter(|step| step.repetition == repetition && step.grid == grid).count()
            };
            assert_eq!((of(None), of(Some(&latency)), of(Some(&gap))), (2, 5, 2));
        }
        assert_ne!(steps[..9], steps[9..18], "the order differs");
        assert_eq!(steps, super::steps(&[&latency, &gap], 3, 1), "and is the same again");
    }

    #[test]
    fn the_last_number_counts() {
        let pattern = Regex::new("Loop time of ([0-9.]+)").unwrap();
        assert_eq!(number(&pattern, "Loop time of 1.5 on\nLoop time of 2.5 on").unwrap(), 2.5);
        assert!(number(&pattern, "nothing").is_err());
        assert!(number(&Regex::new("(x)").unwrap(), "x").is_err());
    }
}
