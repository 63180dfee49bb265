//! `netdyno launch` of a program over global memory of which a rank is killed: one line that names the rank, in a bounded
//! time, and nothing is left behind.

use crate::common::{beside, netdyno};
use cable::Hosts;
use programs::installed::Installed;
use programs::launched::kill_one;
use programs::shared_memory::Shared;
use std::process::Command;

#[path = "../../../global/tests/programs/built.rs"]
mod built;
#[path = "../../../global/tests/programs/cable.rs"]
mod cable;
#[path = "../../../global/tests/common/mod.rs"]
mod programs;

const RANKS: usize = 4;
/// The rank that is killed. It is neither the first nor the last one.
const VICTIM: usize = 1;
/// The exit code for SIGKILL, as a shell has it.
const KILLED: i32 = 137;
/// The programs work for much longer than the test.
const RADIX_SORT: [&str; 4] = ["radix_sort", "10000000", "--by", "key"];
const HISTOGRAM: [&str; 4] = ["histogram", "1000000000", "--by", "fetch_add"];

/// Returns a launch of this command as the ranks.
fn launch(program: &Command) -> Command {
    let mut command = netdyno(&["launch", "-n", &RANKS.to_string(), "--"]);
    command.arg(program.get_program()).args(program.get_args());
    command
}

/// Kills a rank of the launch of an installed program. Returns the shared memory that each rank had.
fn kill_rank_of(installed: &Installed, program: &Command) -> Vec<Shared> {
    let (ended, shared) = kill_one(installed, launch(program), RANKS, VICTIM);
    assert_eq!(ended.errors, format!("error: rank {VICTIM} was killed by signal 9\n"));
    assert_eq!((ended.status.code(), &*ended.output), (Some(KILLED), ""));
    installed.assert_nothing_is_left(&shared);
    shared
}

fn a_killed_rank_is_named_once_over(wire: &str) {
    let _beside = beside();
    for [name, options @ ..] in [RADIX_SORT, HISTOGRAM] {
        let installed = Installed::new(&built::example(name));
        let mut program = Command::new(installed.program());
        kill_rank_of(&installed, program.args(options).args(["--wire", wire]));
    }
}

#[test]
fn a_killed_rank_is_named_once_over_shared_memory() {
    a_killed_rank_is_named_once_over("shm");
}

#[test]
fn a_killed_rank_is_named_once_over_udp() {
    a_killed_rank_is_named_once_over("udp");
}

/// Returns a shell that runs the command of its rank.
fn by_rank(commands: &[Command]) -> Command {
    let quoted = |command: &Command| {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| format!(" '{}'", word.to_str().unwrap().replace('\'', r"'\''"))).collect::<String>()
    };
    let cases =
        commands.iter().enumerate().map(|(rank, command)| format!("{rank}) exec{};;", quoted(command)));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("case $PMI_RANK in {} esac", cases.collect::<String>())]);
    shell
}

/// Two ranks at each of two hosts, with shared memory at a host and UDP between them.
#[test]
fn a_killed_rank_is_named_once_at_two_hosts() {
    let _beside = beside();
    let Some(hosts) = Hosts::new() else { return };
    let [name, options @ ..] = RADIX_SORT;
    let installed = Installed::new(&built::example(name));
    let commands = [0, 0, 1, 1].map(|host| {
        let mut command = hosts.enter(host);
        command.arg(installed.program()).args(options).args(["--bind", cable::ADDRESSES[host]]);
        command
    });
    let shared = kill_rank_of(&installed, &by_rank(&commands));
    let share = |rank: usize, other: usize| !shared[rank].is_disjoint(&shared[other]);
    assert!(share(0, 1) && share(2, 3) && !share(1, 2), "{shared:?}");
}
