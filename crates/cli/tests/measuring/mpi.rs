//! MPI as a layer, with workers started by the launcher.

use crate::common::mpi::{compilers, launcher, prepare};
use crate::common::{alone, beside, netdyno};
use netdyno_measure::record::{Found, Record};
use std::path::Path;
use std::process::Command;

/// Returns a command with a short measurement over one MPI, with two processes.
fn measuring(compiler: &Path, verb: &[&str]) -> Command {
    let launcher = format!("'{}' -n {{n}}", launcher(compiler).display());
    let short = ["--over", "mpi", "--launches", "1", "--max-time", "1s", "--launcher", &launcher];
    let mut command = netdyno(&[verb, &short, &["--format", "json"]].concat());
    prepare(&mut command, compiler);
    command
}

#[test]
fn every_verb_measures_mpi_and_the_record_says_which() {
    let _alone = alone();
    for compiler in compilers() {
        for verb in [
            &["logp"][..],
            &["bulk", "--largest", "16KiB"],
            &["contention", "--procs", "2"],
            &["overlap", "--method", "pww", "--sizes", "64"],
        ] {
            let output = measuring(&compiler, verb).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{} {verb:?}: {stderr}", compiler.display());
            let record = Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
            let result = &record.results[0];
            assert_eq!((result.layer.as_str(), result.verb()), ("mpi", verb[0]));
            assert!(result.parameters.rtt.value_ns.is_some_and(|ns| ns > 0.0), "{verb:?}");
            assert!(result.launcher.as_ref().unwrap().contains("mpiexec"));
            if !matches!(result.found, Found::Contention(_)) {
                assert!(result.library.as_ref().unwrap().contains("MPI"), "{:?}", result.library);
            }
        }
    }
}

#[test]
fn a_job_that_cannot_be_is_one_line() {
    let _beside = beside();
    for compiler in compilers() {
        let one_line = |mut command: Command, code: i32, says: &str| {
            let output = command.output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), stderr.lines().count()), (Some(code), 1), "{stderr}");
            assert!(stderr.contains(says), "{stderr}");
        };
        one_line(measuring(&compiler, &["contention", "--procs", "2", "--size", "0"]), 2, "--size");
        let mut level = measuring(&compiler, &["logp"]);
        level.env("NETDYNO_MPI_THREAD", "none");
        one_line(level, 1, "thread=single, funneled");
    }
    let without = netdyno(&["logp", "--over", "mpi"]).output().unwrap();
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8(without.stderr).unwrap().contains("--launcher 'mpiexec -n {n}'"));
}
