//! The example programs as jobs of processes: over every transport, with odd sizes, with faults and dials, between two
//! network namespaces, and under the `mpiexec` of MPICH. Each program checks its own result.

#![allow(clippy::unwrap_used, reason = "a test")]

mod built;
mod cable;
#[path = "../common/mod.rs"]
mod common;
mod killed;
mod killed_mpich;
mod launcher;
mod mpich;

use built::example;
use cable::Hosts;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The programs, with options and with a size that gives every rank some work.
const PROGRAMS: [(&str, &[&str], &str); 8] = [
    ("radix_sort", &["--by", "key"], "2000"),
    ("radix_sort", &["--by", "digit"], "20000"),
    ("sample_sort", &[], "3000"),
    ("histogram", &["--by", "add"], "1500"),
    ("histogram", &["--by", "fetch_add"], "1500"),
    ("em3d", &["--by", "get"], "300"),
    ("em3d", &["--by", "put"], "300"),
    ("matmul", &[], "100"),
];

/// Sizes of which some ranks get nothing.
const ODD: [&str; 3] = ["0", "1", "7"];

const SHM: &[&str] = &["--wire", "shm"];
const UDP: &[&str] = &["--wire", "udp"];
const LOSSY: &[&str] = &["--wire", "udp", "--loss", "0.01"];
/// A network that loses, duplicates, reorders and damages datagrams.
const BAD: &[&str] = &["--wire", "udp", "--faults", "loss=0.01,dup=0.02,reorder=0.05,corrupt=0.005"];

fn command(name: &str, arguments: &[&[&str]]) -> Command {
    let mut command = Command::new(example(name));
    command.args(arguments.concat());
    command
}

/// Runs a program at some ranks and returns what rank 0 printed. The result must be right.
fn run(ranks: usize, name: &str, arguments: &[&[&str]]) -> String {
    let outputs = launcher::run((0..ranks).map(|_| command(name, arguments)).collect());
    assert!(outputs.iter().all(|output| output.status.success()), "{name} {arguments:?}: {outputs:?}");
    let said = |output: &Output| String::from_utf8(output.stdout.clone()).unwrap();
    assert!(outputs[1..].iter().all(|output| output.stdout.is_empty()), "only rank 0 speaks: {outputs:?}");
    let said = said(&outputs[0]);
    let at = if ranks == 1 { "at 1 rank: right, in".into() } else { format!("at {ranks} ranks: right, in") };
    assert!(said.starts_with(&format!("{name}: ")) && said.contains(&at), "{said}");
    said
}

fn every_program_is_right(wire: &[&str], ranks: &[usize]) {
    for (name, options, size) in PROGRAMS {
        for &ranks in ranks {
            let said = run(ranks, name, &[&[size], options, wire]);
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}

fn odd_sizes_are_right(wire: &[&str], ranks: &[usize]) {
    for (name, options, _) in PROGRAMS {
        for size in ODD {
            for &ranks in ranks {
                run(ranks, name, &[&[size, "3"], options, wire]);
            }
        }
    }
}

#[test]
fn over_shared_memory() {
    every_program_is_right(SHM, &[1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn over_udp() {
    every_program_is_right(UDP, &[3, 8]);
}

#[test]
fn over_udp_with_loss() {
    every_program_is_right(LOSSY, &[2, 5, 8]);
}

#[test]
fn over_bad_udp() {
    every_program_is_right(BAD, &[2, 4, 7]);
}

#[test]
fn odd_sizes_over_shared_memory() {
    odd_sizes_are_right(SHM, &[1, 8]);
}

#[test]
fn odd_sizes_over_bad_udp() {
    odd_sizes_are_right(BAD, &[5]);
}

/// A message is no shorter than its dial, so that a dialled run has a least time, which the counts give.
#[test]
fn dials_delay_what_is_counted() {
    for wire in [SHM, UDP] {
        let said =
            run(2, "histogram", &[&["200", "--by", "fetch_add", "--counts", "--latency", "=1ms"], wire]);
        let count = |name: &str| -> f64 {
            let found = said.split([' ', '\n']).find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            found.unwrap().parse().unwrap()
        };
        // Some hundred keys of a rank are of the other one.
        assert!((50.0..=200.0).contains(&count("round_trips")), "{said}");
        assert_eq!(count("collectives"), 0.0, "{said}");
        assert!(count("time_s") >= 2e-3 * count("round_trips"), "{said}");
    }
}

#[test]
fn a_bad_command_line_is_one_line_and_ends_with_2() {
    let bad: [(&[&str], &str); 15] = [
        (&[], "there is no number of keys: give one, as in sample_sort 1000"),
        (&["many"], "'many' is no number of keys: use 0 to 1000000000"),
        (&["1000000001"], "is no number of keys"),
        (&["-5"], "'-5' is no number of keys"),
        (&["5", "x"], "'x' is no seed: use a whole number"),
        (&["5", "6", "7"], "'7' is one number too many"),
        (&["5", "--wire", "tcp"], "--wire 'tcp' is not known: use shm or udp or xdp"),
        (&["5", "--wire"], "--wire has no value"),
        (&["5", "--loss", "0.01"], "add --wire udp"),
        (&["5", "--faults", "dup=0.01"], "add --wire udp"),
        (&["5", "--wire", "udp", "--faults", "lost=1"], "lost"),
        (&["5", "--wire", "udp", "--loss", "2"], "not a probability from 0 to 1"),
        (&["5", "--latency", "5us"], "neither adds (+) nor sets (=)"),
        (&["5", "--bind", "here"], "'here' is no IP address"),
        (&["5", "--speed", "1"], "there is no option --speed: see --help"),
    ];
    for (arguments, says) in bad {
        // Ranks of one host say it once.
        let outputs = launcher::run((0..2).map(|_| command("sample_sort", &[arguments])).collect());
        let said: String = outputs.iter().map(|output| String::from_utf8_lossy(&output.stderr)).collect();
        assert!(outputs.iter().all(|output| output.status.code() == Some(2)), "{arguments:?}: {outputs:?}");
        assert!(said.starts_with("error: ") && said.contains(says), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn help_names_every_option() {
    let output = command("em3d", &[&["--help"]]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for option in [
        "--by get|put",
        "--wire",
        "--bind",
        "--loss",
        "--faults",
        "--wait",
        "--counts",
        "--latency",
        "--gap-per-byte",
    ] {
        assert!(said.contains(option), "{said}");
    }
}

#[test]
fn between_two_network_namespaces() {
    let Some(cable) = cable::Cable::new() else { return };
    for wire in ["udp", "xdp"] {
        for (name, options, size) in PROGRAMS {
            let rank = |rank: usize| {
                let mut command = cable.enter(rank);
                command.arg(example(name)).arg(size).args(options);
                command.args(["--wire", wire, "--bind", cable::ADDRESSES[rank]]);
                command
            };
            let outputs = launcher::run(vec![rank(0), rank(1)]);
            assert!(outputs.iter().all(|output| output.status.success()), "{name} {wire}: {outputs:?}");
            let said = String::from_utf8_lossy(&outputs[0].stdout);
            assert!(said.contains("at 2 ranks: right, in"), "{said}");
        }
    }
}

/// Returns the command of a program at a host, with no transport set.
fn at_host(hosts: &Hosts, host: usize, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
    let mut command = hosts.enter(host);
    command.arg(program).args(arguments).args(["--bind", cable::ADDRESSES[host]]);
    command
}

/// Without an option, ranks use shared memory on a host, and UDP between hosts.
#[test]
fn between_two_hosts_with_two_ranks_each() {
    let Some(hosts) = Hosts::new() else { return };
    for (name, options, size) in PROGRAMS {
        // The second order puts the neighbours of each rank at the other host.
        for places in [[0, 0, 1, 1], [0, 1, 0, 1]] {
            let command = |host| at_host(&hosts, host, example(name), &[&[size], options].concat());
            let outputs = launcher::run(places.map(command).into());
            assert!(outputs.iter().all(|output| output.status.success()), "{name}: {outputs:?}");
            let said = String::from_utf8_lossy(&outputs[0].stdout);
            assert!(said.contains("at 4 ranks: right, in"), "{said}");
        }
    }
}

#[test]
fn a_killed_rank_ends_the_others_over_shared_memory() {
    for program in killed::LONG {
        killed::a_killed_rank_ends_the_others(program, 4, SHM);
    }
}

#[test]
fn a_killed_rank_ends_a_radix_sort_over_udp() {
    killed::a_killed_rank_ends_the_others(killed::LONG[0], 4, UDP);
}

#[test]
fn a_killed_rank_ends_a_histogram_at_two_hosts() {
    killed::a_killed_rank_ends_the_others_of_two_hosts(killed::LONG[1]);
}

/// Returns the launcher of MPICH.
fn hydra() -> Option<PathBuf> {
    mpich::compiler().map(|compiler| compiler.with_file_name("mpiexec.hydra"))
}

#[test]
fn under_mpiexec_of_mpich() {
    let Some(hydra) = hydra() else { return };
    for (name, options, size) in PROGRAMS {
        let mut command = Command::new(&hydra);
        command.args(["-n", "3"]).arg(example(name)).arg(size).args(options);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("at 3 ranks: right, in"), "{name}: {output:?}");
    }
}

#[test]
fn a_killed_rank_ends_a_job_of_mpich() {
    let Some(hydra) = hydra() else { return };
    for wire in [SHM, UDP] {
        killed_mpich::a_killed_rank_ends_the_job(&hydra, wire);
    }
}

#[test]
fn a_rank_that_is_killed_unseen_by_mpich_is_named() {
    let Some(hydra) = hydra() else { return };
    killed_mpich::a_rank_that_is_killed_unseen_is_named(&hydra, SHM);
}
