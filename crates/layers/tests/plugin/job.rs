//! MPI, where there is one: this test again, as two processes of a job. The compilers in
//! NETDYNO_TEST_MPICC (a list like PATH), or `mpicc`; each MPI's own `mpiexec` lies beside.

use crate::{bulk, check, logp, options};
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::half::{self, Role};
use netdyno_measure::task::{Data, Task};
use netdyno_plugin::site::{build_in, find_compiler};
use netdyno_plugin::source::Source;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Names the file for the result, and what is to be measured, in a process of a job.
const RESULT: &str = "NETDYNO_TEST_RESULT";
const TASK: &str = "NETDYNO_TEST_TASK";
const LARGEST: usize = 256 << 10;

/// The compilers of all MPIs to be tested.
fn compilers() -> Vec<PathBuf> {
    match std::env::var_os("NETDYNO_TEST_MPICC") {
        Some(list) => std::env::split_paths(&list).collect(),
        None => find_compiler(&Source::mpi(), None).into_iter().collect(),
    }
}

/// The launcher that belongs to a compiler: mpiexec, mpiexec.openmpi.
fn launcher(compiler: &Path) -> PathBuf {
    let name = compiler.file_name().unwrap().to_str().unwrap();
    compiler.with_file_name(name.replace("mpicc", "mpiexec").replace("_abi", ""))
}

fn skip(why: &str) {
    // Past what the test harness captures.
    let _ = writeln!(std::io::stderr(), "SKIPPED: nothing was measured over MPI: {why}");
}

/// Runs a job of this test's processes, until its result is there or it ends.
fn run(launcher: &Path, processes: &str, plugin: &Path, task: &str, result: &Path) -> Output {
    let mut job = Command::new(launcher)
        .args(["-n", processes])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "job::one_process_of_a_job", "--nocapture"])
        .env("NETDYNO_PLUGIN_MPI", plugin)
        .env(RESULT, result)
        .env(TASK, task)
        .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while job.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            job.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    job.wait_with_output().unwrap()
}

/// One process of a job, where this is one.
#[test]
fn one_process_of_a_job() {
    let Some(result) = std::env::var_os(RESULT) else { return };
    let task: Task = match std::env::var(TASK).unwrap().as_str() {
        "logp" => logp(),
        _ => bulk(LARGEST),
    };
    let (is_sized, size) = match task {
        Task::Bulk(_) => (true, LARGEST),
        _ => (false, 32),
    };
    // Which side it is, MPI says.
    let half = match half::open(Layer::Mpi, Role::Requester, options(size, is_sized, Wait::Yield)) {
        Ok(half) => half,
        Err(error) => return fs::write(&result, error.to_string()).unwrap(),
    };
    let other = |rank: u32| rank.to_le_bytes();
    if half.address() == other(0) {
        let mut subject = half.requester(&other(1)).unwrap();
        let data = subject.measure(&task, &mut |_| {}).unwrap();
        fs::write(&result, serde_json::to_string(&data).unwrap()).unwrap();
    } else {
        // Until the job ends.
        panic!("{:?}", half.replier(&other(0)).unwrap().serve());
    }
}

#[test]
fn mpi_is_built_and_measured() {
    let compilers = compilers();
    if compilers.is_empty() {
        return skip("there is no mpicc");
    }
    for compiler in compilers {
        let folder = tempfile::tempdir().unwrap();
        let plugin = build_in(folder.path(), &Source::mpi(), &compiler).unwrap();
        let launcher = launcher(&compiler);
        if !launcher.is_file() {
            skip(&format!("there is no {}", launcher.display()));
            continue;
        }
        for task in ["logp", "bulk"] {
            let result = folder.path().join(task);
            let output = run(&launcher, "2", &plugin, task, &result);
            let text = fs::read_to_string(&result).unwrap_or_else(|_| panic!("{output:?}"));
            let data: Data = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
            check(&data, LARGEST);
        }
        let result = folder.path().join("alone");
        run(&launcher, "1", &plugin, "logp", &result);
        let text = fs::read_to_string(&result).unwrap();
        assert!(text.starts_with("mpi sees one process alone"), "{text}");
    }
}
