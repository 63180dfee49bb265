//! A rank that ends without a word. Ranks are processes: the test binary is started again with a rank.

use crate::job::Transport;
use crate::shared_memory;
use netdyno_global::{Error, World};
use netdyno_job::place::Place;
use netdyno_job::shared_folder::SharedFolder;
use rustix::process::{Signal, getpid, kill_process};
use std::ffi::OsString;
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
/// Interval between two looks at processes.
const LOOK: Duration = Duration::from_millis(5);
/// The peer timeout of a rank.
const PEER_TIMEOUT: Duration = Duration::from_secs(4);
/// A call returns the loss of a rank within 1.25 peer timeouts. On a busy machine the ranks themselves may wait for a
/// processor, so that the test allows for three, and 20 s.
const TOLD_WITHIN: Duration = Duration::from_secs(3 * PEER_TIMEOUT.as_secs() + 20);

/// Reports whether this process is a rank that a test has started.
pub fn is_rank() -> bool {
    std::env::var_os(RANK).is_some()
}

/// The processes of a job. A drop kills those that still run.
struct Ranks(Vec<Child>);

impl Ranks {
    /// Starts this test again as the ranks of a job with this folder.
    fn start(test: &str, folder: &Path) -> Self {
        let start = |rank: u32| {
            Command::new(std::env::current_exe().unwrap())
                .args([test, "--exact", "--nocapture"])
                .envs([(RANK, rank.to_string()), (FOLDER, folder.display().to_string())])
                .env("TMPDIR", folder)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        Self((0..RANKS).map(start).collect())
    }

    /// Waits for the end of all ranks, and returns their outputs, which are short.
    fn end(mut self) -> Vec<Output> {
        let until = Instant::now() + TOO_LONG;
        let runs = |rank: &mut Child| rank.try_wait().unwrap().is_none();
        while self.0.iter_mut().any(runs) {
            assert!(Instant::now() < until, "a rank waits for ever for one that was killed");
            std::thread::sleep(LOOK);
        }
        std::mem::take(&mut self.0).into_iter().map(|rank| rank.wait_with_output().unwrap()).collect()
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for rank in &mut self.0 {
            // Both fail if the process was waited for already.
            let _ = rank.kill();
            let _ = rank.wait();
        }
    }
}

pub fn a_killed_rank_ends_the_others(transport: Transport) {
    if let Ok(rank) = std::env::var(RANK) {
        let rank = rank.parse().unwrap();
        let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
        std::process::exit(survive(transport, rank, &folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let outputs = Ranks::start(&transport.test("a_killed_rank_ends_the_others"), folder.path()).end();
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
    let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    let left: Vec<OsString> = files.collect();
    assert_eq!(left, Vec::<OsString>::new(), "a rank has left files");
    assert_eq!(processes_of(folder.path()), Vec::<PathBuf>::new(), "a rank has left processes");
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

/// Joins, loses the victim, and returns the exit code.
fn survive(transport: Transport, rank: u32, folder: &Path) -> i32 {
    let mut config = transport.config(rank);
    config.am.peer_timeout = PEER_TIMEOUT;
    let place = Place { rank: rank as usize, procs: RANKS as usize };
    let mut meeting = SharedFolder::at(folder.join("meeting"), place).unwrap();
    // Rank 0 drops the meeting when the others have dropped theirs, so that none of them may wait for a message of it.
    let gather = move |mine: &[u8]| Ok(meeting.gather(mine)?);
    let mut world = World::join(config, rank, RANKS, gather).unwrap();
    world.barrier().unwrap();
    // A file that a killed rank shares would stay.
    assert_eq!(shared_memory::files(&shared_memory::of(std::process::id())), Vec::<&str>::new());
    if rank == VICTIM {
        kill_process(getpid(), Signal::KILL).unwrap();
    }
    // Every rank waits, although no request to the victim is outstanding.
    let began = Instant::now();
    let error = world.barrier().unwrap_err();
    let took = began.elapsed();
    assert!(took < TOLD_WITHIN, "{took:?}: {error:?}");
    assert!(matches!(error, Error::PeerLost { rank: VICTIM, .. }), "{error:?}");
    assert_eq!(world.barrier(), Err(error.clone()));
    // As a program does. The test harness captures nothing here.
    eprintln!("error: {error}");
    TOLD
}
