//! MPI as a layer, with workers started by the launcher.

use crate::common::mpi::{compilers, launcher, prepare};
use crate::common::{alone, beside, is_worker, netdyno, workers_of};
use netdyno_measure::onesided::data::{Operation, Synchronisation};
use netdyno_measure::record::{Found, LayerResult, Paper, Record, Status};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Returns a command with a short measurement over one MPI, with two processes. It has one launch and one second,
/// unless `verb` says otherwise.
pub fn measuring(compiler: &Path, verb: &[&str]) -> Command {
    let launcher = format!("'{}' -n {{n}}", launcher(compiler).display());
    let over = ["--over", "mpi", "--launcher", &launcher, "--format", "json"];
    let unless_given =
        |option: [&'static str; 2]| option.into_iter().filter(move |_| !verb.contains(&option[0]));
    let short = unless_given(["--launches", "1"]).chain(unless_given(["--max-time", "300ms"]));
    let mut command = netdyno(&verb.iter().copied().chain(over).chain(short).collect::<Vec<_>>());
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
fn every_synchronisation_is_measured_and_named() {
    let _alone = alone();
    for compiler in compilers() {
        for (sync, synchronisation) in [
            ("lock", Synchronisation::Lock),
            ("fence", Synchronisation::Fence),
            ("post", Synchronisation::Post),
        ] {
            let verb = ["onesided", "--largest", "4KiB", "--sync", sync];
            let output = measuring(&compiler, &verb).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{} {sync}: {stderr}", compiler.display());
            let record = Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
            let result = &record.results[0];
            let found = result.found.onesided().unwrap();
            assert_eq!(found.synchronisation, Some(synchronisation));
            let names: Vec<Operation> = found.operations.iter().map(|one| one.operation).collect();
            assert_eq!(names, [Operation::Put, Operation::Get, Operation::FetchAdd]);
            for operation in &found.operations {
                let is_hidden = sync == "fence" && operation.operation == Operation::Put;
                for size in &operation.sizes {
                    assert_eq!(size.local.status == Status::Unobservable, is_hidden, "{sync}: {size:?}");
                    assert!(size.complete().value_ns.is_some_and(|ns| ns > 0.0), "{sync}: {size:?}");
                }
            }
            let has_doubt = result.doubts.iter().any(|doubt| doubt.name == "local_hidden");
            assert_eq!(has_doubt, sync == "fence", "{:?}", result.doubts);
        }
    }
}

/// A layer of the user's own has the epochs that it says it has, as `layer.h` promises.
#[test]
fn a_layer_of_ones_own_is_measured_in_its_epochs() {
    let _alone = alone();
    for compiler in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let built = |source: &str| {
            let mut command = netdyno(&["plugin", "build", source]);
            let output =
                prepare(&mut command, &compiler).env("XDG_CACHE_HOME", folder.path()).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
        };
        let launcher = format!("'{}' -n {{n}}", launcher(&compiler).display());
        let verb = ["onesided", "--over", "plugin", "--largest", "1KiB", "--sync", "fence"];
        let args = [&verb[..], &["--launches", "1", "--max-time", "300ms", "--format", "json"]].concat();
        let mut command = netdyno(&args);
        command.args(["--launcher", &launcher]).env("NETDYNO_PLUGIN", built("mpi"));
        let output = prepare(&mut command, &compiler).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let record = Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
        let found = record.results[0].found.onesided().unwrap();
        assert_eq!(found.synchronisation, Some(Synchronisation::Fence));
        let output = netdyno(&args).env("NETDYNO_PLUGIN", built("skeleton")).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("has no epochs of this kind: use --sync lock"), "{stderr}");
        assert!(!output.status.success() && output.stdout.is_empty());
    }
}

/// Returns the workers that a launcher below `parent` has started, in the order of their start.
fn workers_below(parent: u32) -> Vec<u32> {
    let mut below: Vec<u32> = workers_of(parent)
        .into_iter()
        .flat_map(|child| if is_worker(child) { vec![child] } else { workers_below(child) })
        .collect();
    below.sort_unstable();
    below
}

/// The survivor may wait inside MPI for the process that was killed. The launch ends nevertheless.
#[test]
fn a_process_that_dies_within_an_epoch_ends_the_launch() {
    let _beside = beside();
    for (compiler, sync, victim) in compilers().into_iter().flat_map(|compiler| {
        ["fence", "post"].into_iter().flat_map(move |sync| {
            let compiler = compiler.clone();
            [0, 1].map(move |victim| (compiler.clone(), sync, victim))
        })
    }) {
        let mut command =
            measuring(&compiler, &["onesided", "--largest", "64MiB", "--max-time", "60s", "--sync", sync]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let mut first = None;
        let workers = loop {
            let workers = workers_below(child.id());
            // The first ones may be of the launch that measures nothing.
            if workers.len() == 2 && *first.get_or_insert_with(|| workers.clone()) != workers {
                // The epochs begin within this time, and operations of so many bytes take longer.
                std::thread::sleep(Duration::from_secs(1));
                break workers;
            }
            std::thread::sleep(Duration::from_millis(50));
            assert!(Instant::now() < until, "no two workers were started");
        };
        kill_process(Pid::from_raw(workers[victim] as i32).unwrap(), Signal::KILL).unwrap();
        let killed = Instant::now();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let what = format!("{} {sync} {victim}: {stderr}", compiler.display());
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{what}");
        assert!(killed.elapsed() < Duration::from_secs(30), "{what}");
        // The launcher ends the survivor.
        let are_gone = || workers.iter().all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap());
        while !are_gone() {
            assert!(killed.elapsed() < Duration::from_secs(30), "a worker is left: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The variables of each stack reach its processes alone, and the MPI uses the provider.
#[test]
fn the_experiments_of_papers_run_over_the_provider() {
    let _alone = alone();
    for compiler in compilers() {
        let of = |experiment: &str, sizes: &str| {
            let launcher = format!("'{}' -n {{n}}", launcher(&compiler).display());
            let short = ["--launches", "1", "--max-time", "300ms", "--sizes", sizes, "--format", "json"];
            let mut command =
                netdyno(&[&["paper", experiment, "--launcher", &launcher], &short[..]].concat());
            let output = prepare(&mut command, &compiler).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{} {experiment}: {stderr}", compiler.display());
            Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap()
        };
        let comb = of("comb", "20kB");
        assert_eq!(comb.paper, Some(Paper::Comb));
        let others = |at: usize| {
            let size = &comb.results[at].found.overlap().unwrap().sizes[0];
            let mut others: Vec<f64> = size.pww.iter().filter_map(|point| point.others_ns.value).collect();
            others.sort_by(f64::total_cmp);
            others
        };
        let most = |at: usize| others(at).last().copied().unwrap_or(0.0);
        let labels: Vec<_> = comb.results.iter().map(|result| result.label.clone().unwrap()).collect();
        assert_eq!(labels, ["caller", "kernel", "interrupt", "engine"]);
        // A thread that makes progress takes processor time. Without one there is nothing but the clocks' own error, and
        // interruptions at some points.
        let by_calls = others(0);
        let usual = by_calls[by_calls.len() / 2];
        assert!((1..4).all(|at| most(at) > 4.0 * usual.max(100.0)), "{:?}", [0, 1, 2, 3].map(others));
        let section = of("speight-5", "8,1024");
        assert_eq!((section.paper, section.results.len()), (Some(Paper::Speight5), 9));
        let sizes = |result: &LayerResult| result.found.overlap().unwrap().trips.len();
        assert!(section.results.iter().all(|result| sizes(result) == 5));
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
    for (words, says) in [
        (&["logp", "--over", "mpi", "--wait", "block", "--launcher", "mpiexec -n {n}"][..], "spin or yield"),
        (&["paper", "comb", "--size", "8"], "--sizes"),
        (&["paper", "comb", "--wait", "spin"], "--wait"),
        (&["paper", "comb", "--peer", "192.0.2.1"], "--peer"),
        (&["paper", "speight-5", "--launcher", "/nonexistent/mpiexec -n {n}"], "/nonexistent/mpiexec"),
    ] {
        let mut command = netdyno(words);
        command.env("NETDYNO_KEY", "a key that is long enough for a peer");
        let Some(compiler) = compilers().into_iter().next() else { return };
        let output = prepare(&mut command, &compiler).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.lines().count() == 1 && stderr.contains(says), "{stderr}");
    }
    let without = netdyno(&["logp", "--over", "mpi"]).output().unwrap();
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8(without.stderr).unwrap().contains("--launcher 'mpiexec -n {n}'"));
}

/// Sums the ranks. With an argument rank 1 aborts the job instead.
const SUM: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, procs, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 1 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%d of %d\n", sum, procs);
    return MPI_Finalize();
}
"#;

#[test]
fn a_program_of_mpich_runs_under_netdynos_own_launcher() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("sum.c"), folder.path().join("sum"));
    fs::write(&source, SUM).unwrap();
    // Open MPI speaks PMIx alone.
    for compiler in compilers().iter().filter(|compiler| compiler.with_file_name("mpichversion").is_file()) {
        assert!(Command::new(compiler).arg(&source).arg("-o").arg(&program).status().unwrap().success());
        let program = program.to_str().unwrap();
        for (procs, sum) in [("1", "0 of 1\n"), ("2", "1 of 2\n"), ("5", "10 of 5\n")] {
            let output = netdyno(&["launch", "-n", procs, program]).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{stderr}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), sum);
        }
        let output = netdyno(&["launch", "-n", "3", program, "abort"]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{stderr}");
        assert!(stderr.contains("rank 1 has aborted the job with exit code 5"), "{stderr}");
    }
}
