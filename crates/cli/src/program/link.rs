//! The link's own parameters: given by the user, taken from a record, or measured before the program runs.

use crate::options::headings::HOSTS;
use crate::program::apparatus::Apparatus;
use crate::program::child::{spawn, wait};
use crate::program::gauge::{self, Gauge};
use crate::records::saved::Saved;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::voice::note;
use clap::Args;
use netdyno_apparatus_fi::page::{Plan, read_own, spell_own};
use netdyno_job::launcher::NUMBER;
use netdyno_measure::record::LayerResult;
use netdyno_protocol::dial::parameters::{Dials, EffectiveParameters, Own};
use netdyno_protocol::dial::setting::Setting;
use netdyno_protocol::dial::table::{Dial, Effect, LinkEnd};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Launchers of MPI programs that take `-n` and the number of ranks.
const LAUNCHERS: &[&str] = &[
    "mpiexec",
    "mpirun",
    "mpiexec.hydra",
    "mpiexec.mpich",
    "mpiexec.openmpi",
    "mpirun.mpich",
    "mpirun.openmpi",
    "orterun",
    "prterun",
    SRUN,
];
/// Slurm's launcher, which belongs to no MPI library: the `mpicc` beside it may be of any.
const SRUN: &str = "srun";
/// Launcher options for the number of ranks.
const COUNTS: &[&str] = &["-n", "-np", "--n", "--np", "--ntasks"];
/// The same option of Open MPI. Slurm has another one of that name.
const COUNT_OF_OPEN_MPI: &str = "-c";
/// Launcher options with two values.
const OF_TWO: &[&str] =
    &["--mca", "-mca", "--gmca", "-gmca", "--prtemca", "-prtemca", "--pmixmca", "-pmixmca", "-env", "-genv"];
/// Other launcher options with a value, of Hydra, Open MPI and Slurm.
const OF_ONE: &[&str] = &[
    "-A",
    "-H",
    "-N",
    "-bind-to",
    "-bootstrap",
    "-bootstrap-exec",
    "-c",
    "-configfile",
    "-envlist",
    "-f",
    "-genvlist",
    "-host",
    "-hostfile",
    "-hosts",
    "-iface",
    "-launcher",
    "-launcher-exec",
    "-machinefile",
    "-map-by",
    "-membind",
    "-p",
    "-path",
    "-ppn",
    "-perhost",
    "-prefix",
    "-rank-by",
    "-rmk",
    "-t",
    "-w",
    "-wdir",
    "-x",
    "--account",
    "--am",
    "--bind-to",
    "--cpu-bind",
    "--cpus-per-task",
    "--distribution",
    "--host",
    "--hostfile",
    "--hosts",
    "--machinefile",
    "--map-by",
    "--mem",
    "--mpi",
    "--nodelist",
    "--nodes",
    "--npernode",
    "--ntasks-per-node",
    "--output",
    "--partition",
    "--path",
    "--prefix",
    "--rank-by",
    "--time",
    "--wdir",
];
/// Launcher options without a value.
const OF_NONE: &[&str] = &[
    "-allow-run-as-root",
    "-display-map",
    "-envall",
    "-envnone",
    "-genvall",
    "-genvnone",
    "-l",
    "-oversubscribe",
    "-prepend-rank",
    "-q",
    "-tag-output",
    "-v",
    "--allow-run-as-root",
    "--display-map",
    "--exclusive",
    "--label",
    "--overlap",
    "--oversubscribe",
    "--quiet",
    "--report-bindings",
    "--tag-output",
    "--use-hwthread-cpus",
    "--verbose",
];

/// Maximum number of measurements of a link with severe warnings.
const ATTEMPTS: u32 = 3;
/// Time of the first measurement for each verb, in seconds. It doubles with every further one.
const FIRST_S: u32 = 3;

/// What is known of the link.
#[derive(Clone, Debug, Args)]
pub struct LinkArgs {
    /// Say what the link has of its own: a record, values or none
    ///
    /// A record of `netdyno bulk` or `logp` over it (FILE or FILE:LAYER), or latency=1.2us,send-gap=300ns,…, or
    /// none. Without this the link is measured where a dial is set (=) or a gap added to, by two ranks of the
    /// program's own launcher.
    #[arg(long, value_name = "RECORD|VALUES|none", help_heading = HOSTS, hide_short_help = true)]
    link: Option<String>,

    /// Measure the link by this launcher, as in 'mpiexec -n {n}'
    ///
    /// By default by that of the program.
    #[arg(long, value_name = "COMMAND", conflicts_with = "link", help_heading = HOSTS, hide_short_help = true)]
    launcher: Option<String>,
}

/// The program and the dials that need the link's own parameters.
pub struct Wanted<'a> {
    /// All dial settings of the program.
    pub dials: &'a [Dials],
    /// The program, with its launcher.
    pub command: &'a [OsString],
    /// The libfabric provider, if the user named one.
    pub provider: Option<&'a str>,
}

impl LinkArgs {
    /// Returns the options, each with its name.
    pub fn spelled(&self) -> [(&'static str, String); 2] {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
        [
            ("--link", self.link.clone().unwrap_or_else(|| "measured".into())),
            ("--launcher", or_none(&self.launcher)),
        ]
    }

    /// Returns the link's own parameters, as far as the dials need them, with warnings.
    pub fn own(&self, wanted: &Wanted<'_>, interrupt: &Interrupt) -> Result<Gauge, Fault> {
        let sure = |own| Gauge { own, doubts: Vec::new() };
        match self.link.as_deref() {
            Some("none") => Ok(sure(Own::UNKNOWN)),
            Some(link) => said(link).map(sure),
            None if !wanted.dials.iter().any(depends_on_link) => Ok(sure(Own::UNKNOWN)),
            None => self.measured(wanted, interrupt),
        }
    }

    /// Measures the link. If that fails, returns an error if the dials have no meaning without its
    /// parameters; otherwise prints a warning.
    fn measured(&self, wanted: &Wanted<'_>, interrupt: &Interrupt) -> Result<Gauge, Fault> {
        let launcher = self.launcher.clone().map_or_else(|| launcher_of(wanted.command), Ok);
        let found = match launcher {
            Ok(launcher) => measure(&launcher, wanted, interrupt),
            Err(why) => Err(Fault::Failed(why)),
        };
        interrupt.check()?;
        let gauge = match found {
            Err(Fault::Failed(why) | Fault::BadInput(why) | Fault::Ended(_, why)) => Err(why),
            found => Ok(found?),
        };
        match &gauge {
            Ok(gauge) => {
                note(&format!("the link as it is, for --link of other runs: {}", spell_own(&gauge.own)));
            }
            Err(why) if wanted.dials.iter().any(needs_link) => {
                return Err(Fault::BadInput(format!(
                    "what the link has of its own is not known ({why}): say it with --link, or what starts \
two ranks with --launcher"
                )));
            }
            Err(why) => note(&format!(
                "warning: what the link has of its own is not known ({why}): values below it are not refused"
            )),
        }
        Ok(gauge.unwrap_or(Gauge { own: Own::UNKNOWN, doubts: Vec::new() }))
    }
}

/// Reports whether dials have no meaning without the link's own parameters.
fn needs_link(dials: &Dials) -> bool {
    EffectiveParameters::new(dials, &Own::UNKNOWN, 1.0).is_err()
}

/// Reports whether dials cannot be applied or checked without the link's own parameters.
fn depends_on_link(dials: &Dials) -> bool {
    let is_set = |dial| matches!(dials.get(dial), Some(Setting::Set(_)));
    Dial::ALL.into_iter().any(is_set) || needs_link(dials)
}

/// Returns the part of a command that starts ranks, up to their program, with a placeholder for their number.
///
/// # Errors
/// The command is not known to start two ranks of another program.
fn launcher_of(command: &[OsString]) -> Result<String, String> {
    let unknown = || "it is no launcher that is known that starts the program".to_owned();
    let words: Option<Vec<&str>> = command.iter().map(|word| word.to_str()).collect();
    let words = words.ok_or_else(unknown)?;
    let name = words.first().and_then(|word| Path::new(word).file_name()?.to_str()).ok_or_else(unknown)?;
    if !LAUNCHERS.contains(&name) {
        return Err(unknown());
    }
    let counts = |word: &str| COUNTS.contains(&word) || (word == COUNT_OF_OPEN_MPI && name != SRUN);
    let (mut spelled, mut has_number, mut at) = (vec![quoted(words[0])?], false, 1);
    while let Some(&option) = words.get(at).filter(|word| word.starts_with('-')) {
        if let Some(with_number) = attached_number(option) {
            (spelled, has_number) = ([spelled, vec![with_number]].concat(), true);
            at += 1;
            continue;
        }
        let values = values_of(option, counts(option))?;
        spelled.push(quoted(option)?);
        for value in words.iter().skip(at + 1).take(values) {
            spelled.push(if counts(option) { NUMBER.into() } else { quoted(value)? });
        }
        has_number |= counts(option) && words.len() > at + values;
        at += 1 + values;
    }
    let spelled = has_number.then(|| spelled.join(" "));
    spelled.ok_or_else(|| "the launcher does not say how many ranks it starts".into())
}

/// Returns the number of values of a launcher's option.
fn values_of(option: &str, is_count: bool) -> Result<usize, String> {
    match option {
        _ if OF_TWO.contains(&option) => Ok(2),
        _ if is_count || OF_ONE.contains(&option) => Ok(1),
        _ if option.contains('=') || OF_NONE.contains(&option) => Ok(0),
        _ => Err(format!("it is not known whether the option {option} of the launcher has a value")),
    }
}

/// Returns an option that contains the number of ranks, as `--ntasks=4` or `-n4`, with the placeholder for it.
fn attached_number(option: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    COUNTS.iter().find_map(|name| {
        let rest = option.strip_prefix(name)?;
        let (between, number) = rest.strip_prefix('=').map_or(("", rest), |number| ("=", number));
        is_number(number).then(|| format!("{name}{between}{NUMBER}"))
    })
}

/// Returns a word of a command for a launcher's text.
fn quoted(word: &str) -> Result<String, String> {
    match word.contains('\'') {
        true => Err(format!("the launcher has a quote in {word}")),
        false => Ok(format!("'{word}'")),
    }
}

/// Measures the link between two ranks, over the path of the program's messages, without dials. Repeats the
/// measurement for longer while there are severe warnings, until two measurements agree.
fn measure(launcher: &str, wanted: &Wanted<'_>, interrupt: &Interrupt) -> Result<Gauge, Fault> {
    let apparatus = Apparatus::prepare(&Plan::default(), wanted.provider)?;
    let needed = needed(wanted.dials);
    let mut gauges = Vec::new();
    for attempt in 0..ATTEMPTS {
        note(if attempt == 0 {
            "measuring the link …"
        } else {
            "measuring the link again: it is doubted …"
        });
        gauges.push(attempted(launcher, wanted, &needed, &apparatus, FIRST_S << attempt, interrupt)?);
        if !gauge::should_repeat(&gauges, &needed) {
            break;
        }
    }
    gauge::best(&gauges, &needed).ok_or_else(|| Fault::Failed("nothing was measured".into()))
}

/// Returns the parameters that must be known.
fn needed(dials: &[Dials]) -> Vec<Dial> {
    let needs = |dial: &Dial| {
        dials.iter().any(|dials| {
            let setting = dials.get(*dial);
            setting.is_some_and(|setting| needs_link(&Dials::NONE.with(*dial, setting)))
        })
    };
    Dial::ALL.into_iter().filter(needs).collect()
}

/// Measures the link once.
fn attempted(
    launcher: &str,
    wanted: &Wanted<'_>,
    needed: &[Dial],
    apparatus: &Apparatus,
    seconds: u32,
    interrupt: &Interrupt,
) -> Result<Gauge, Fault> {
    let time = format!("{seconds}s");
    let result = measured(&["logp", "--no-reference", "--max-time", &time], launcher, apparatus, interrupt)?;
    let mut own = own_of(&result);
    if wanted.dials.iter().any(|dials| dials.get(Dial::GapPerByte).is_some()) {
        let bulk = ["bulk", "--largest", "1MiB", "--max-time", &time];
        let bulk = own_of(&measured(&bulk, launcher, apparatus, interrupt)?);
        if let Some(gap_per_byte) = bulk.get(Dial::GapPerByte) {
            own.note(Dial::GapPerByte, gap_per_byte);
        }
    }
    Ok(Gauge::of(&result, own, needed))
}

/// Returns the result of one verb of this command.
fn measured(
    verb: &[&str],
    launcher: &str,
    apparatus: &Apparatus,
    interrupt: &Interrupt,
) -> Result<LayerResult, Fault> {
    let unread = |error: &dyn std::fmt::Display| Fault::Failed(format!("no {}: {error}", verb[0]));
    let folder = tempfile::tempdir_in(apparatus.folder().path()).map_err(|error| unread(&error))?;
    let (record, errors) = (folder.path().join("link.json"), folder.path().join("errors"));
    let mut command = Command::new(env::current_exe().map_err(|error| unread(&error))?);
    command.args(verb).args(["--over", "mpi", "--launches", "3", "--format", "json"]);
    command.args(["--launcher", launcher, "--out"]).arg(&record).envs(apparatus.variables());
    if let Some(compiler) = compiler_of(launcher) {
        command.env("NETDYNO_MPICC", compiler);
    }
    let output = File::create(&errors).map_err(|error| unread(&error))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
    let status = wait(spawn(&mut command)?, apparatus.folder(), interrupt, None)?.status;
    if !status.success() {
        let said = fs::read_to_string(&errors).unwrap_or_default();
        let last = said.lines().rfind(|line| line.starts_with("error: ")).unwrap_or("error: it was killed");
        return Err(Fault::Failed(last.trim_start_matches("error: ").to_owned()));
    }
    let saved = Saved::read(&record.to_string_lossy())?;
    saved.results()?.first().map(|&result| result.clone()).ok_or_else(|| unread(&"nothing was measured"))
}

/// Returns the compiler beside a launcher, unless the user named one.
fn compiler_of(launcher: &str) -> Option<PathBuf> {
    if env::var_os("NETDYNO_MPICC").is_some() {
        return None;
    }
    let program = Path::new(launcher.strip_prefix('\'')?.split('\'').next()?);
    if program.ends_with(SRUN) {
        return None;
    }
    let beside = |folder: &Path| Some(folder.join("mpicc")).filter(|compiler| compiler.is_file());
    if program.components().count() > 1 {
        return beside(program.parent()?);
    }
    let paths = env::var_os("PATH")?;
    let folder = env::split_paths(&paths).find(|folder| folder.join::<&OsStr>(program.as_ref()).is_file())?;
    beside(&folder)
}

fn said(link: &str) -> Result<Own, Fault> {
    let names_file = Path::new(link).exists() || !link.contains('=');
    if !names_file {
        return read_own(link).map_err(|error| Fault::BadInput(format!("--link: {error}")));
    }
    let saved = Saved::read(link)?;
    match saved.results()?.as_slice() {
        [one] => Ok(own_of(one)),
        several => Err(Fault::BadInput(format!(
            "--link {link} has {} results: name one of them, as in {}:LAYER",
            several.len(),
            saved.name
        ))),
    }
}

/// Returns the parameters of a result, as far as they were measured.
fn own_of(result: &LayerResult) -> Own {
    let found = &result.parameters;
    let mut own = Own::UNKNOWN;
    for dial in Dial::ALL {
        let value = match dial.effect() {
            Effect::Latency => found.L.value_ns,
            Effect::Overhead(LinkEnd::Sender) => found.o_s.value_ns,
            Effect::Overhead(LinkEnd::Receiver) => found.o_r.value_ns,
            Effect::Gap(_) => found.g.value_ns,
            Effect::GapPerByte => found.G.value_ns_per_byte,
        };
        if let Some(value) = value {
            own.note(dial, shown(value.max(0.0)));
        }
    }
    own
}

/// Rounds a value to the digits that are significant.
fn shown(value: f64) -> f64 {
    let digit = if value < 10.0 {
        1e4
    } else if value < 1e3 {
        10.0
    } else {
        1.0
    };
    (value * digit).round() / digit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_is_known_by_its_name() {
        let of = |text: &str| launcher_of(&text.split(' ').map(OsString::from).collect::<Vec<_>>());
        for (command, launcher) in [
            ("mpiexec -n 4 ./app -n 3", "'mpiexec' '-n' {n}"),
            (
                "/opt/mpi/bin/mpirun --mca btl self -np 2 --bind-to core -x A=1 ./app",
                "'/opt/mpi/bin/mpirun' '--mca' 'btl' 'self' '-np' {n} '--bind-to' 'core' '-x' 'A=1'",
            ),
            ("mpirun --map-by node -c 2 ./app", "'mpirun' '--map-by' 'node' '-c' {n}"),
            (
                "mpiexec -launcher ssh -hosts a,b -n 4 -l app",
                "'mpiexec' '-launcher' 'ssh' '-hosts' 'a,b' '-n' {n} '-l'",
            ),
            ("srun -c 2 -n 4 --mpi=pmi2 ./app", "'srun' '-c' '2' '-n' {n} '--mpi=pmi2'"),
            ("srun --ntasks=4 ./app", "'srun' --ntasks={n}"),
            ("srun -n4 ./app", "'srun' -n{n}"),
        ] {
            assert_eq!(of(command).as_deref(), Ok(launcher), "{command}");
        }
        for (command, why) in [
            ("./run.sh -n 4 ./app", "no launcher that is known"),
            ("mpiexec ./app", "how many ranks"),
            ("mpiexec ./app -n 100", "how many ranks"),
            ("mpiexec -v sh -n 100", "how many ranks"),
            ("mpiexec -n", "how many ranks"),
            ("srun -c 2 ./app", "how many ranks"),
            ("mpiexec --new-option ./app -n 100", "the option --new-option"),
            ("mpiexec -wdir o'clock -n 4 ./app", "a quote"),
        ] {
            assert!(of(command).unwrap_err().contains(why), "{command}");
        }
    }

    #[test]
    fn the_compiler_beside_a_launcher_is_of_its_library() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["mpiexec", "srun", "mpicc"] {
            File::create(folder.path().join(name)).unwrap();
        }
        let beside = |name| compiler_of(&format!("'{}' -n {{n}}", folder.path().join(name).display()));
        let expected = Some(folder.path().join("mpicc")).filter(|_| env::var_os("NETDYNO_MPICC").is_none());
        assert_eq!(beside("mpiexec"), expected);
        assert_eq!(beside("srun"), None);
    }

    #[test]
    fn what_is_set_or_added_to_a_gap_depends_on_the_link() {
        let depends = |text: &str| depends_on_link(&text.parse().unwrap());
        for text in [
            "latency=5us",
            "recv-overhead=5us",
            "send-gap+1us",
            "gap-per-byte+1ns/B",
            "latency+1us,recv-gap=2us",
        ] {
            assert!(depends(text), "{text}");
        }
        for text in ["", "latency+5us,send-overhead+1us", "send-gap+0us"] {
            assert!(!depends(text), "{text}");
        }
    }
}
