//! Programs of which a rank is killed while it works, under a launcher that ends no other rank.

use crate::at_host;
use crate::built::example;
use crate::cable::Hosts;
use crate::common::installed::Installed;
use crate::common::shared_memory::{self, Shared};
use crate::common::work;
use crate::launcher::{self, Job};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// The rank that is killed. It is neither the first nor the last one.
pub const VICTIM: usize = 1;
/// The number of SIGKILL.
const KILLED: i32 = 9;
/// Only a rank that never begins to work takes this long.
const TOO_LONG: Duration = Duration::from_secs(120);

/// Programs with a size that takes much longer than the test.
pub const LONG: [[&str; 4]; 2] =
    [["radix_sort", "10000000", "--by", "key"], ["histogram", "1000000000", "--by", "fetch_add"]];

/// Waits until every rank has worked for a while.
fn wait_for_work(job: &Job) {
    let until = Instant::now() + TOO_LONG;
    while !job.processes().into_iter().all(work::is_done) {
        assert!(Instant::now() < until, "a rank does not work");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Asserts that a survivor has reported the loss in this one line.
pub fn assert_names_the_victim(line: &str) {
    assert!(line.starts_with(&format!("error: rank {VICTIM} is lost: ")), "{line}");
    assert!(line.ends_with("; end the job and start it again"), "{line}");
}

/// Kills a rank of a program that would work for long. Each other rank must end by itself with status 1 and one line, which
/// names the rank that was killed. Nothing is left behind. Returns the shared memory of each rank.
fn kill_one(installed: &Installed, mut commands: Vec<Command>) -> Vec<Shared> {
    commands.iter_mut().for_each(|command| installed.prepare(command));
    let mut job = launcher::start(commands);
    wait_for_work(&job);
    let shared: Vec<Shared> = job.processes().into_iter().map(shared_memory::of).collect();
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
        assert_names_the_victim(said.trim_end());
    }
    installed.assert_nothing_is_left(&shared);
    shared
}

pub fn a_killed_rank_ends_the_others([name, options @ ..]: [&str; 4], ranks: usize, wire: &[&str]) {
    let installed = Installed::new(&example(name));
    let command = |_| {
        let mut command = Command::new(installed.program());
        command.args(options).args(wire);
        command
    };
    kill_one(&installed, (0..ranks).map(command).collect());
}

/// Kills one of four ranks, two at each of two hosts. The ranks of a host share memory, and those of different hosts
/// do not.
pub fn a_killed_rank_ends_the_others_of_two_hosts([name, options @ ..]: [&str; 4]) {
    const HOSTS: [usize; 4] = [0, 0, 1, 1];
    let Some(hosts) = Hosts::new() else { return };
    let installed = Installed::new(&example(name));
    let command = |host| at_host(&hosts, host, installed.program(), &options);
    let shared = kill_one(&installed, HOSTS.map(command).into());
    for (rank, host) in HOSTS.into_iter().enumerate() {
        for (other, other_host) in HOSTS.into_iter().enumerate() {
            let share = !shared[rank].is_disjoint(&shared[other]);
            assert_eq!(share, host == other_host, "ranks {rank} and {other}: {shared:?}");
        }
    }
}
