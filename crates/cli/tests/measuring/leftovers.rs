//! A run leaves nothing behind, however it ends: no process, socket, file in shared memory or temporary file.

use crate::common::bench::Bench;
use crate::common::mpi::{launcher, prepare};
use crate::common::served::Served;
use crate::common::traces::Traces;
use crate::common::{alone, netdyno};
use netdyno_plugin::site::find;
use netdyno_plugin::source::Source;
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The run ends by itself.
    Itself,
    /// Ctrl-C on a terminal sends a signal to the whole process group.
    CtrlC,
    /// SIGTERM goes to the command alone.
    Term,
    /// SIGKILL goes to the command alone, which cannot react.
    Kill,
}

const ALL: [Ending; 4] = [Ending::Itself, Ending::CtrlC, Ending::Term, Ending::Kill];
const EARLY: [Ending; 3] = [Ending::CtrlC, Ending::Term, Ending::Kill];

/// Timeout for the start of a run, even on a busy machine.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);
/// Number of concurrent runs, which are idle most of the time.
const BESIDE: usize = 3;

/// A command line, and the expected state of its run.
#[derive(Clone)]
struct Run {
    words: Vec<String>,
    /// Number of processes besides the command.
    processes: usize,
    shares: bool,
    endings: &'static [Ending],
}

impl Run {
    fn of(words: &[&str], processes: usize, shares: bool, endings: &'static [Ending]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self { words, processes, shares, endings }
    }

    /// Returns a command that is short if it ends by itself, and otherwise longer than the test waits.
    fn command(&self, ending: Ending) -> Command {
        let time = if ending == Ending::Itself { "1s" } else { "60s" };
        let words: Vec<&str> = self.words.iter().map(|word| word.as_str()).collect();
        let words: Vec<&str> = words.iter().map(|word| if *word == TIME { time } else { word }).collect();
        netdyno(&words)
    }
}

/// Placeholder of the run's time.
const TIME: &str = "TIME";

fn end(command: u32, ending: Ending) {
    let pid = Pid::from_raw(command as i32).unwrap();
    match ending {
        Ending::Itself => {}
        Ending::CtrlC => kill_process_group(pid, Signal::INT).unwrap(),
        Ending::Term => kill_process(pid, Signal::TERM).unwrap(),
        Ending::Kill => kill_process(pid, Signal::KILL).unwrap(),
    }
}

/// Runs the command until the given end, and checks that it leaves nothing behind.
fn leaves_nothing(run: &Run, ending: Ending, cache: &Path, prepare: &(dyn Fn(&mut Command) + Sync)) {
    let name = format!("{} ({ending:?})", run.words.join(" "));
    let (mut traces, place) = (Traces::new(), tempfile::tempdir().unwrap());
    let mut command = run.command(ending);
    prepare(&mut command);
    traces.of(&mut command);
    command.env("XDG_CACHE_HOME", cache).current_dir(place.path()).process_group(0);
    command.stdout(Stdio::null()).stderr(fs::File::create(place.path().join("stderr")).unwrap());
    let mut child = command.spawn().unwrap();
    let said = || fs::read_to_string(place.path().join("stderr")).unwrap();
    let until = Instant::now() + BEGINS_WITHIN;
    let status = loop {
        let processes = traces.look();
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        let is_under_way = processes.len() > run.processes && (traces.has_shared_files() || !run.shares);
        if ending != Ending::Itself && is_under_way {
            break None;
        }
        assert!(Instant::now() < until, "{name} does not begin or end: {}", said());
        thread::sleep(Duration::from_millis(20));
    };
    match status {
        Some(status) => assert!(ending == Ending::Itself && status.success(), "{name}: {status}: {}", said()),
        None => {
            end(child.id(), ending);
            child.wait().unwrap();
        }
    }
    traces.assert_gone_but(0, &name);
}

/// Runs every command with each of its ends, some concurrently.
fn all_leave_nothing(runs: &[Run], cache: &Path, prepare: &(dyn Fn(&mut Command) + Sync)) {
    let all: Vec<(&Run, Ending)> =
        runs.iter().flat_map(|run| run.endings.iter().map(move |&ending| (run, ending))).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                while let Some((run, ending)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    leaves_nothing(run, *ending, cache, prepare);
                }
            });
        }
    });
}

/// Returns a layer whose library leaves files behind, if it is installed. NETDYNO_TEST_LIBRARIES makes it
/// mandatory.
fn layer() -> (&'static str, bool) {
    match find(&Source::ofi(), None) {
        Ok(_) => ("ofi:shm", true),
        Err(error) => {
            assert!(std::env::var_os("NETDYNO_TEST_LIBRARIES").is_none(), "{error}");
            println!("SKIPPED: {error}");
            ("am+shm", false)
        }
    }
}

#[test]
fn verbs_leave_nothing() {
    let _alone = alone();
    let (layer, shares) = layer();
    let cache = tempfile::tempdir().unwrap();
    let how = ["--over", layer, "--launches", "1", "--precision", "0.0001", "--wait", "yield"];
    let how = [&how[..], &["--format", "json", "--max-time", TIME]].concat();
    let run = |verb: &[&str], processes| Run::of(&[verb, &how].concat(), processes, shares, &ALL);
    all_leave_nothing(
        &[
            run(&["logp", "--no-reference"], 2),
            run(&["bulk", "--largest", "64KiB"], 2),
            run(&["contention", "--procs", "3"], 3),
            run(&["overlap", "--sizes", "1kB"], 2),
            run(&["registration", "--largest", "64KiB"], 1),
            Run::of(
                &[
                    "validate",
                    "--over",
                    "am+shm",
                    "--dial",
                    "latency",
                    "--max-time",
                    "60s",
                    "--wait",
                    "yield",
                ],
                3,
                false,
                &EARLY,
            ),
            Run::of(&["layers"], 0, false, &[Ending::Itself]),
        ],
        cache.path(),
        &|_| {},
    );
}

#[test]
fn programs_and_launchers_leave_nothing() {
    let _alone = alone();
    // Only the first MPI is tested, because each one takes seconds.
    let Some(bench) = Bench::all("tests/programs/slopes.c").into_iter().next() else { return };
    let prepare = |command: &mut Command| {
        prepare(command, &bench.compiler);
    };
    let cache = tempfile::tempdir().unwrap();
    let mpiexec = launcher(&bench.compiler).display().to_string();
    let slopes = bench.folder.path().join("slopes").display().to_string();
    let start = format!("{mpiexec} -n {{n}}");
    let program = |trips| ["--", &mpiexec, "-n", "2", &slopes, "chain", trips, "8"];
    let (short, long) = (program("10"), program("100000000"));
    let within = ["--", "sh", "-c", &format!("'{}'; true", long[1..].join("' '"))];
    // Open MPI's launcher has no process of its own for each host. Its files are among its temporary files.
    let is_open_mpi = bench.is_open_mpi();
    let (ranks, shares) = (if is_open_mpi { 3 } else { 4 }, !is_open_mpi);
    let (run, sweep) =
        (["run", "--latency", "+1us"], ["sweep", "--latency", "+0:1:1ms", "--repetitions", "1"]);
    let own = ["--over", "mpi", "--launcher", &start, "--wait", "yield", "--max-time", TIME];
    let logp = ["logp", "--no-reference", "--launches", "1", "--precision", "0.0001", "--format", "json"];
    // Each program has a guard process.
    all_leave_nothing(
        &[
            Run::of(&[&run[..], &short].concat(), 0, false, &[Ending::Itself]),
            Run::of(&[&run[..], &long].concat(), ranks + 1, shares, &EARLY),
            // The shell makes the ranks more distant descendants of the command, and ends by a signal without them.
            Run::of(&[&run[..], &within].concat(), ranks + 2, shares, &[Ending::Term, Ending::Kill]),
            // Another netdyno measures the link first.
            Run::of(
                &[&["run", "--latency", "=900us"][..], &long].concat(),
                ranks + 2,
                shares,
                &[Ending::Term, Ending::Kill],
            ),
            Run::of(&[&sweep[..], &short].concat(), 0, false, &[Ending::Itself]),
            Run::of(&[&sweep[..], &long].concat(), ranks + 1, shares, &EARLY),
            Run::of(&[&logp[..], &own].concat(), ranks, shares, &ALL),
            Run::of(&[&["validate", "--dial", "latency"][..], &own].concat(), ranks + 1, shares, &EARLY),
        ],
        cache.path(),
        &prepare,
    );
}

/// MPI leaves files in shared memory when its program fails.
#[test]
fn a_program_that_fails_leaves_nothing() {
    let _alone = alone();
    for bench in Bench::all("tests/programs/slopes.c") {
        let files = || {
            let all = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
            all.map(|entry| entry.file_name()).collect::<BTreeSet<_>>()
        };
        let before = files();
        for _ in 0..3 {
            let output = bench.run(&["--latency", "+1us"], "nonsense 1 1");
            assert!(!output.status.success());
        }
        let left: Vec<_> = files().difference(&before).cloned().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn hosts_leave_nothing() {
    let _alone = alone();
    for ending in [Ending::Itself, Ending::CtrlC, Ending::Term, Ending::Kill] {
        let (mut there, mut here) = (Traces::new(), Traces::new());
        let mut serve = netdyno(&["serve", "--bind", "127.0.0.1:0"]);
        there.of(&mut serve);
        serve.process_group(0);
        let mut served = Served::start(serve);
        let peer = format!("127.0.0.1:{}", served.port());
        let how = ["logp", "--over", "udp", "--wait", "block", "--peer", &peer, "--launches", "1"];
        let time = if ending == Ending::Itself { "1s" } else { "60s" };
        let mut client = netdyno(&[&how[..], &["--precision", "0.0001", "--max-time", time]].concat());
        here.of(&mut client);
        client.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        let mut client = client.spawn().unwrap();
        let until = Instant::now() + BEGINS_WITHIN;
        while client.try_wait().unwrap().is_none() {
            let is_under_way = there.look().len() > 1 && here.look().len() > 1;
            if ending != Ending::Itself && is_under_way {
                break;
            }
            assert!(Instant::now() < until, "{ending:?}: it does not begin or end");
            thread::sleep(Duration::from_millis(20));
        }
        end(client.id(), ending);
        client.wait().unwrap();
        here.assert_gone_but(0, &format!("the client ({ending:?})"));
        there.assert_gone_but(1, &format!("the served host, after the client ({ending:?})"));
        end(served.pid(), if ending == Ending::Itself { Ending::Term } else { ending });
        served.code();
        there.assert_gone_but(0, &format!("the served host ({ending:?})"));
    }
}

/// `report` starts no process and shares no memory, but has a temporary file beside its page.
#[test]
fn a_report_leaves_its_page_alone_or_nothing() {
    let record = |folder: &Path| {
        let args = ["logp", "--over", "sim", "--truth", "o_s=1us,o_r=2us,g=5us,L=7us", "--out"];
        let made = netdyno(&args).arg(folder.join("record.json")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    for ending in ALL {
        let folder = tempfile::tempdir().unwrap();
        let saved = folder.path().join("record.json");
        match ending {
            Ending::Itself => record(folder.path()),
            // The report checks its output first, and then waits for a writer of the pipe.
            _ => mkfifoat(CWD, &saved, Mode::RWXU).unwrap(),
        }
        // A shell's background job inherits that SIGINT is ignored. The report must not.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_netdyno"), "report", "record.json"]);
        command.args(["--out", "page.html"]).stdin(Stdio::null());
        command.current_dir(folder.path()).process_group(0).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut expected = vec!["record.json"];
        if ending == Ending::Itself {
            assert!(child.wait().unwrap().success());
            expected.insert(0, "page.html");
        } else {
            let until = Instant::now() + BEGINS_WITHIN;
            let _writing = loop {
                // The open fails until the report reads.
                if let Ok(pipe) = open(&saved, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()) {
                    break pipe;
                }
                assert!(Instant::now() < until, "the report does not begin");
                thread::sleep(Duration::from_millis(5));
            };
            end(child.id(), ending);
            child.wait().unwrap();
        }
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, expected, "{ending:?}");
    }
}
