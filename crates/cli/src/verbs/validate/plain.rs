//! Plain MPI programs over dials: the part of `netdyno validate` whose program does not know the hook.
//!
//! The MPI's own compiler compiles the program (`programs/patterns.c`). The launcher starts it alternately
//! with the dial and on the unmodified link. The check compares the growth of one operation's time with the
//! LogGP model: an operation with one message at a time in a direction pays each dial once.

use crate::program::apparatus::Apparatus;
use crate::program::child::{said, spawn, wait};
use crate::program::guard::GuardedFolder;
use crate::program::route::RouteArgs;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::voice::note;
use netdyno_apparatus_fi::page::{DialSetting, Plan};
use netdyno_job::launcher::Launcher;
use netdyno_measure::validation::extract::program;
use netdyno_measure::validation::record::Program;
use netdyno_protocol::dial::parameters::Dials;
use netdyno_protocol::dial::setting::{Setting, Spelled};
use netdyno_protocol::dial::table::{Dial, Effect};
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Source of the program.
const SOURCE: &str = include_str!("../../../programs/patterns.c");
/// Number of operations of each kind in a launch.
const OPERATIONS: usize = 200;
/// The longest time of a launch, which takes seconds.
const LONGEST: Duration = Duration::from_secs(300);

/// Operations of the program at one dial setting.
struct Case {
    dial: Dial,
    setting: Setting,
    patterns: &'static [&'static str],
    sizes: &'static [usize],
    /// Operations in a launch; fewer if each takes long.
    operations: usize,
}

/// Returns the operations that show a dial.
fn cases(dial: Dial) -> Vec<Case> {
    const PINGPONG: &[&str] = &["pingpong"];
    const SIZES: &[usize] = &[8, 1 << 10, 1 << 16, 1 << 20];
    let case = |setting, patterns, sizes, operations| Case { dial, setting, patterns, sizes, operations };
    let add_us = |us: f64| Setting::Add(us * 1e3);
    match dial.effect() {
        Effect::Latency => vec![
            case(add_us(10.0), PINGPONG, SIZES, OPERATIONS),
            case(add_us(200.0), &["pingpong", "exchange"], SIZES, OPERATIONS / 2),
            case(add_us(50.0), &["allreduce", "barrier"], &[8], OPERATIONS),
            case(add_us(50.0), &["allreduce"], &[1 << 16], OPERATIONS),
        ],
        Effect::Overhead(_) => vec![case(add_us(10.0), PINGPONG, SIZES, OPERATIONS)],
        Effect::Gap(_) => vec![case(Setting::Set(100e3), &["stream"], &[8, 1 << 10], OPERATIONS / 10)],
        Effect::GapPerByte => vec![case(Setting::Set(4.0), &["stream"], &[1 << 16, 1 << 20], 10)],
    }
}

impl Case {
    fn adds(&self) -> bool {
        matches!(self.setting, Setting::Add(_))
    }

    /// Returns the additional time that an operation should take. For a dial that sets a gap, returns the
    /// whole time.
    fn wanted_ns(&self, pattern: &str, size: usize) -> f64 {
        let steps = match (pattern, size) {
            // A long vector is scattered and gathered.
            ("allreduce", size) if size > 4096 => 2.0,
            _ => 1.0,
        };
        let amount = self.setting.amount();
        if self.dial.is_per_byte() { amount * (size - 1) as f64 } else { steps * amount }
    }

    fn plan(&self, route: &RouteArgs, is_dialled: bool) -> Plan {
        let dials = Dials::NONE.with(self.dial, self.setting);
        let settings =
            if is_dialled { vec![DialSetting { dials, ..DialSetting::default() }] } else { Vec::new() };
        route.plan(settings)
    }
}

/// The compiled program.
pub struct Plain<'a> {
    launcher: &'a Launcher,
    route: &'a RouteArgs,
    binary: PathBuf,
    /// Holds the program.
    _folder: GuardedFolder,
}

impl<'a> Plain<'a> {
    /// Compiles the program.
    pub fn new(launcher: &'a Launcher, route: &'a RouteArgs) -> Result<Self, Fault> {
        let folder =
            GuardedFolder::new().map_err(|error| Fault::Failed(format!("cannot compile: {error}")))?;
        let binary = compile(folder.path(), launcher)?;
        Ok(Self { launcher, route, binary, _folder: folder })
    }

    /// Runs the program `pairs` times for each case of the dials, each time with the dial and without it. Adds the
    /// results to `all` as they come, so that an error loses none. Returns whether the time until `end` sufficed for that.
    /// Each case has its share of what is left, and at least one pair.
    pub fn measure(
        &self,
        dials: &[Dial],
        pairs: usize,
        confidence: f64,
        end: Instant,
        interrupt: &Interrupt,
        all: &mut Vec<Program>,
    ) -> Result<bool, Fault> {
        let measured = Dial::ALL.into_iter().filter(|dial| dials.is_empty() || dials.contains(dial));
        let cases: Vec<Case> = measured.flat_map(cases).collect();
        let mut has_sufficed = true;
        for (nth, case) in cases.iter().enumerate() {
            let left = end.saturating_duration_since(Instant::now());
            let until = Instant::now() + left / (cases.len() - nth) as u32;
            note(&format!("plain MPI programs under {} …", Dials::NONE.with(case.dial, case.setting)));
            let mut seen: BTreeMap<(String, usize), Vec<[f64; 2]>> = BTreeMap::new();
            for nth in 0..pairs {
                if nth > 0 && Instant::now() > until {
                    has_sufficed = false;
                    break;
                }
                let run = |is_dialled| self.once(case, is_dialled, interrupt);
                // The order alternates, so that a drift of the machine does not always affect the same half of a
                // pair.
                let (link, dialled) = if nth % 2 == 0 {
                    let link = run(false)?;
                    (link, run(true)?)
                } else {
                    let dialled = run(true)?;
                    (run(false)?, dialled)
                };
                for (key, link_ns) in link {
                    if let Some(&dialled_ns) = dialled.get(&key) {
                        seen.entry(key).or_default().push([link_ns, dialled_ns]);
                    }
                }
            }
            for pattern in case.patterns {
                for &size_bytes in case.sizes {
                    let pairs = seen.remove(&((*pattern).to_owned(), size_bytes)).unwrap_or_default();
                    let known = Program {
                        pattern: (*pattern).into(),
                        size_bytes,
                        dial: case.dial.name().into(),
                        setting: Spelled(case.dial, case.setting).to_string(),
                        wanted_ns: case.wanted_ns(pattern, size_bytes),
                        ..Program::default()
                    };
                    all.push(program(known, &pairs, case.adds(), confidence));
                }
            }
        }
        Ok(has_sufficed)
    }

    /// Runs one launch and returns the time of each operation, in nanoseconds.
    fn once(
        &self,
        case: &Case,
        is_dialled: bool,
        interrupt: &Interrupt,
    ) -> Result<BTreeMap<(String, usize), f64>, Fault> {
        let apparatus = Apparatus::prepare(&case.plan(self.route, is_dialled), self.route.provider())?;
        let sizes: Vec<String> = case.sizes.iter().map(usize::to_string).collect();
        let mut program = Command::new(&self.binary);
        program.args([case.patterns.join(","), case.operations.to_string(), sizes.join(",")]);
        let mut command = self.launcher.command(2, &program);
        let variables: Vec<(&str, OsString)> = apparatus.variables();
        let failed = |why: &dyn std::fmt::Display| Fault::Failed(format!("a plain MPI program: {why}"));
        let mut output = tempfile::tempfile().map_err(|error| failed(&error))?;
        let into = output.try_clone().map_err(|error| failed(&error))?;
        command.envs(variables).stdin(Stdio::null()).stdout(into).stderr(Stdio::null());
        let status = wait(spawn(&mut command)?, apparatus.folder(), interrupt, Some(LONGEST))?.status;
        interrupt.check()?;
        if !status.success() {
            return Err(failed(&status));
        }
        Ok(read(&said(&mut output).map_err(|error| failed(&error))?))
    }
}

/// Compiles the program with the MPI's compiler: the one that the user named, or the one beside the launcher.
fn compile(folder: &Path, launcher: &Launcher) -> Result<PathBuf, Fault> {
    let named = env::var_os("NETDYNO_MPICC").map(PathBuf::from);
    let beside = || Some(Path::new(launcher.program()).parent()?.join("mpicc")).filter(|file| file.is_file());
    let compiler = named.or_else(beside).unwrap_or_else(|| "mpicc".into());
    let failed = |why: &dyn std::fmt::Display| {
        Fault::Failed(format!("cannot compile the plain MPI programs by {}: {why}", compiler.display()))
    };
    let (source, binary) = (folder.join("patterns.c"), folder.join("patterns"));
    fs::write(&source, SOURCE).map_err(|error| failed(&error))?;
    let output = Command::new(&compiler).arg("-O2").arg("-o").arg(&binary).arg(&source).output();
    let output = output.map_err(|error| failed(&error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(&said.lines().next().unwrap_or("it said nothing")));
    }
    Ok(binary)
}

/// Parses lines such as `pattern=exchange bytes=8 median_us=1.2 …`.
fn read(said: &str) -> BTreeMap<(String, usize), f64> {
    let line = |line: &str| {
        let value =
            |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let us: f64 = value("median_us")?.parse().ok()?;
        Some(((value("pattern")?.to_owned(), value("bytes")?.parse().ok()?), us * 1e3))
    };
    said.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_says_is_read() {
        let said = "noise\npattern=pingpong bytes=8 median_us=1.250 low_us=1 high_us=2\npattern=x bytes=y";
        let found = read(said);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [(("pingpong".to_owned(), 8), 1250.0)]);
    }

    #[test]
    fn each_dial_has_a_case_and_the_program_each_pattern() {
        assert!(Dial::ALL.into_iter().all(|dial| !cases(dial).is_empty()));
        for pattern in Dial::ALL.into_iter().flat_map(cases).flat_map(|case| case.patterns) {
            assert!(SOURCE.contains(&format!("\"{pattern}\"")), "{pattern}");
        }
    }
}
