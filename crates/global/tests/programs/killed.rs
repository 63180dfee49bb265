//! Programs of which a rank is killed while it works.

use crate::at_host;
use crate::built::example;
use crate::cable::Hosts;
use crate::launcher::{self, Job};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// The rank that is killed. It is neither the first nor the last one.
const VICTIM: usize = 1;
/// The number of SIGKILL.
const KILLED: i32 = 9;
/// The processor time of a rank that has joined its job for certain, in hundredths of a second. Joining takes a tenth of it.
const WORK: u64 = 20;
/// Only a rank that never begins to work takes this long.
const TOO_LONG: Duration = Duration::from_secs(120);

/// Programs with a size that takes much longer than the test.
pub const LONG: [[&str; 4]; 2] =
    [["radix_sort", "10000000", "--by", "key"], ["histogram", "1000000000", "--by", "fetch_add"]];

/// A program under a path of its own, in an empty folder. So its processes and its files are found.
pub struct Installed {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Installed {
    pub fn new(name: &str) -> Self {
        let built = example(name);
        let folder = tempfile::tempdir_in(built.parent().unwrap()).unwrap();
        let program = folder.path().join(name);
        fs::hard_link(built, &program).unwrap();
        Self { folder, program }
    }

    /// Returns a command of the program, which leaves its files in the folder. `command` begins it.
    fn begun_by(&self, mut command: Command) -> Command {
        command.current_dir(self.folder.path()).env("TMPDIR", self.folder.path()).env("RUST_BACKTRACE", "0");
        command
    }

    /// Returns the processes that run the program.
    fn processes(&self) -> Vec<PathBuf> {
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
        let runs = |path: &PathBuf| fs::read_link(path.join("exe")).is_ok_and(|exe| exe == self.program);
        processes.filter(runs).collect()
    }

    /// Returns the files that the program has left in its folder.
    fn files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| *path != self.program).collect()
    }
}

/// A file that a process maps and shares: its inode and its path.
type Shared = BTreeSet<(String, String)>;

/// Returns the shared memory of a process (proc(5), `maps`).
fn shared_memory(process: u32) -> Shared {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let shared = maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let is_shared = words.nth(1)?.ends_with('s');
        let inode = words.nth(2)?;
        let path = words.collect::<Vec<_>>().join(" ");
        is_shared.then(|| (inode.to_owned(), path))
    });
    shared.collect()
}

/// Returns the processor time of a process, in ticks of a hundredth of a second (proc(5), `stat`).
fn processor_time(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name of the program is in parentheses, and may have spaces.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let mut times = fields.split_whitespace().skip(11).map(|time| time.parse::<u64>().unwrap());
    times.next().unwrap() + times.next().unwrap()
}

/// Waits until every rank has worked for a while.
fn wait_for_work(job: &Job) {
    let until = Instant::now() + TOO_LONG;
    while !job.processes().into_iter().all(|process| processor_time(process) >= WORK) {
        assert!(Instant::now() < until, "a rank does not work");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Kills a rank of a program that would work for long. Each other rank must end by itself with status 1 and one line, which
/// names the rank that was killed. Nothing is left behind. Returns the shared memory of each rank.
fn kill_one(installed: &Installed, commands: Vec<Command>) -> Vec<Shared> {
    let mut job = launcher::start(commands);
    wait_for_work(&job);
    let shared: Vec<Shared> = job.processes().into_iter().map(shared_memory).collect();
    assert!(shared.iter().all(|shared| !shared.is_empty()), "a rank has no segment: {shared:?}");
    job.kill(VICTIM);
    let outputs = job.wait();
    for (rank, output) in outputs.iter().enumerate() {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.stdout.is_empty(), "rank {rank}: {outputs:?}");
        if rank == VICTIM {
            assert_eq!((output.status.signal(), &*said), (Some(KILLED), ""), "{outputs:?}");
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "rank {rank}: {outputs:?}");
        assert_eq!(said.lines().count(), 1, "rank {rank}: {said}");
        assert!(said.starts_with(&format!("error: rank {VICTIM} is lost: ")), "rank {rank}: {said}");
        assert!(said.trim_end().ends_with("; end the job and start it again"), "rank {rank}: {said}");
    }
    assert_eq!(installed.processes(), Vec::<PathBuf>::new());
    assert_eq!(installed.files(), Vec::<PathBuf>::new());
    let left = shared.iter().flatten().find(|(_, path)| Path::new(path).exists());
    assert_eq!(left, None, "shared memory is left");
    shared
}

pub fn a_killed_rank_ends_the_others([name, options @ ..]: [&str; 4], ranks: usize, wire: &[&str]) {
    let installed = Installed::new(name);
    let command = |_| {
        let mut command = installed.begun_by(Command::new(&installed.program));
        command.args(options).args(wire);
        command
    };
    kill_one(&installed, (0..ranks).map(command).collect());
}

/// Kills one of four ranks, two at each of two hosts. The ranks of a host share memory, and those of different hosts do not.
pub fn a_killed_rank_ends_the_others_of_two_hosts([name, options @ ..]: [&str; 4]) {
    const HOSTS: [usize; 4] = [0, 0, 1, 1];
    let Some(hosts) = Hosts::new() else { return };
    let installed = Installed::new(name);
    let command = |host| installed.begun_by(at_host(&hosts, host, &installed.program, &options));
    let shared = kill_one(&installed, HOSTS.map(command).into());
    for (rank, host) in HOSTS.into_iter().enumerate() {
        for (other, other_host) in HOSTS.into_iter().enumerate() {
            let share = !shared[rank].is_disjoint(&shared[other]);
            assert_eq!(share, host == other_host, "ranks {rank} and {other}: {shared:?}");
        }
    }
}
