//! A rank that ends without a word. Ranks are processes: the test binary is started again with a rank.

use crate::job::Transport;
use netdyno_global::{Error, World};
use rustix::process::{Signal, getpid, kill_process};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const RANK: &str = "NETDYNO_TEST_RANK";
const FOLDER: &str = "NETDYNO_TEST_FOLDER";
const RANKS: u32 = 3;
/// The rank that ends.
const VICTIM: u32 = 1;
/// The number of SIGKILL.
const KILLED: i32 = 9;
/// Exit code of a rank that got the right error.
const TOLD: i32 = 40;
/// Only a call that never ends takes this long.
const TOO_LONG: Duration = Duration::from_secs(120);

/// Reports whether this process is a rank that a test has started.
pub fn is_rank() -> bool {
    std::env::var_os(RANK).is_some()
}

pub fn a_killed_rank_ends_the_others(transport: Transport) {
    if let Ok(rank) = std::env::var(RANK) {
        let rank = rank.parse().unwrap();
        let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
        std::process::exit(survive(transport, rank, &folder));
    }
    let folder = std::env::temp_dir().join(format!("netdyno-global-{}-{transport:?}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let test = std::thread::current().name().unwrap().to_owned();
    let start = |rank: u32| {
        Command::new(std::env::current_exe().unwrap())
            .args([&test, "--exact", "--nocapture"])
            .envs([(RANK, rank.to_string()), (FOLDER, folder.display().to_string())])
            .env("TMPDIR", &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..RANKS).map(start).collect();
    let outputs: Vec<Output> = children.into_iter().map(end).collect();
    let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name());
    let left: Vec<OsString> = files.filter(|name| !is_of_gather(name)).collect();
    std::fs::remove_dir_all(&folder).unwrap();
    for (rank, output) in (0..).zip(&outputs) {
        let said = String::from_utf8_lossy(&output.stderr);
        if rank == VICTIM {
            assert_eq!((output.status.signal(), &*said), (Some(KILLED), ""), "{outputs:?}");
            continue;
        }
        assert_eq!(output.status.code(), Some(TOLD), "rank {rank}: {outputs:?}");
        assert_eq!(said.lines().count(), 1, "rank {rank}: {said}");
        assert!(said.starts_with(&format!("error: rank {VICTIM} is lost: ")), "rank {rank}: {said}");
    }
    assert_eq!(left, Vec::<OsString>::new(), "a rank has left files");
    assert_eq!(processes_of(&folder), Vec::<PathBuf>::new(), "a rank has left processes");
}

/// Waits for a child, and returns its output, which is short.
fn end(mut child: Child) -> Output {
    let until = Instant::now() + TOO_LONG;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("a rank waits for ever for one that was killed: {:?}", child.wait_with_output().unwrap());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// Returns the processes of the job with this folder. They have it in their environment.
fn processes_of(folder: &Path) -> Vec<PathBuf> {
    let variable = format!("{FOLDER}={}\0", folder.display()).into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
    let is_of_job = |path: &PathBuf| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.windows(variable.len()).any(|bytes| bytes == variable)
    };
    processes.filter(is_of_job).collect()
}

/// Returns the files that this process maps and shares with others (proc(5), `maps`). Memory without a name is none.
fn shared_files() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let shared = maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|mode| mode.ends_with('s')));
    let paths = shared.filter_map(|line| line.find('/').map(|at| line[at..].to_owned()));
    paths.filter(|path| Path::new(path).exists()).collect()
}

/// Joins, loses the victim, and returns the exit code.
fn survive(transport: Transport, rank: u32, folder: &Path) -> i32 {
    let mut config = transport.config(rank);
    config.am.peer_timeout = Duration::from_secs(2);
    let mut nth = 0;
    let mut world = World::join(config, rank, RANKS, |mine| {
        nth += 1;
        Ok(gather(folder, nth, rank, mine))
    })
    .unwrap();
    world.barrier().unwrap();
    // A file that a killed rank shares would stay.
    assert_eq!(shared_files(), Vec::<String>::new());
    if rank == VICTIM {
        kill_process(getpid(), Signal::KILL).unwrap();
    }
    // Every rank waits, although no request to the victim is outstanding.
    let error = world.barrier().unwrap_err();
    assert!(matches!(error, Error::PeerLost { rank: VICTIM, .. }), "{error:?}");
    assert_eq!(world.barrier(), Err(error.clone()));
    // As a program does. The test harness captures nothing here.
    eprintln!("error: {error}");
    TOLD
}

/// Reports whether a file is one of [`gather`].
fn is_of_gather(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let (nth, rank) = name.split_once('-').unwrap_or_default();
    [nth, rank].iter().all(|number| number.parse::<u32>().is_ok())
}

/// Exchanges bytes by files.
fn gather(folder: &Path, nth: u32, rank: u32, mine: &[u8]) -> Vec<Vec<u8>> {
    let path = |rank: u32| folder.join(format!("{nth}-{rank}"));
    let unfinished = folder.join(format!("{nth}-{rank}-unfinished"));
    std::fs::write(&unfinished, mine).unwrap();
    std::fs::rename(unfinished, path(rank)).unwrap();
    let read = |rank| loop {
        match std::fs::read(path(rank)) {
            Ok(bytes) => return bytes,
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    (0..RANKS).map(read).collect()
}
