//! The command as a job: the processes find each other through their launcher or MPI, and rank 0 measures and writes
//! the result.

use crate::common::mpi::{compilers, launcher, prepare};
use crate::common::network::{A, B, Network};
use crate::common::{alone, assert_launched, beside, has_worked, is_worker};
use netdyno_job::shared_files::SharedFiles;
use netdyno_measure::record::Record;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

const LONG: Duration = Duration::from_secs(60);
/// The processor time of a process that has begun to measure.
const WORK: Duration = Duration::from_millis(200);
/// Arguments of a short measurement.
const LITTLE: [&str; 10] =
    ["--wait", "yield", "--launches", "2", "--max-time", "1s", "--precision", "0.5", "--format", "json"];

/// Returns a job with `procs` processes of the command.
fn job(compiler: &Path, procs: &str, args: &[&str]) -> Command {
    let mut command = Command::new(launcher(compiler));
    // Open MPI needs an option to start more processes than processors.
    if compiler.with_file_name("ompi_info").is_file() {
        command.arg("--oversubscribe");
    }
    command.args(["-n", procs]).arg(env!("CARGO_BIN_EXE_netdyno")).args(args);
    prepare(&mut command, compiler);
    command
}

fn record(output: Output) -> Record {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

/// Runs a job whose processes end at once. About one in 500 kills MPICH's mpiexec by SIGPIPE, which writes to a
/// process that has ended. Such a run says nothing about netdyno and is repeated.
fn output_at_once(job: &mut Command) -> Output {
    loop {
        let output = job.output().unwrap();
        if output.status.signal() != Some(Signal::PIPE.as_raw()) {
            return output;
        }
    }
}

/// Returns the command's own error, which appears once for any number of processes.
fn error_of(output: Output, code: i32) -> String {
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    let errors: Vec<&str> = stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{stderr}");
    errors[0].into()
}

#[test]
fn a_pair_measures_mpi_and_other_layers() {
    let _alone = alone();
    for compiler in compilers() {
        let args =
            [&["logp", "--over", "mpi,am+shm,am+udp,udp,tcp", "--label", "mpi=own"], &LITTLE[..]].concat();
        let record = record(job(&compiler, "2", &args).output().unwrap());
        assert_eq!(record.results.len(), 5);
        assert_launched(&record, 2);
        for result in &record.results {
            assert!(result.parameters.rtt.value_ns.is_some_and(|ns| ns > 0.0), "{}", result.layer);
            assert_eq!(result.launcher.as_deref(), Some("in a job of 2 processes"));
        }
        let mpi = &record.results[0];
        assert!(mpi.library.as_ref().unwrap().contains("MPI"), "{:?}", mpi.library);
        assert_eq!(mpi.name(), "mpi (own)");
        assert!(mpi.doubts.iter().any(|doubt| doubt.name == "same_processes"));
        assert!(record.results[1].doubts.iter().all(|doubt| doubt.name != "same_processes"));
    }
}

#[test]
fn every_verb_measures() {
    let _alone = alone();
    for compiler in compilers() {
        for (procs, verb) in [
            ("2", &["bulk", "--largest", "16KiB", "--over", "mpi,tcp"][..]),
            ("3", &["contention", "--over", "mpi,am+udp"]),
            ("2", &["overlap", "--method", "pww", "--sizes", "64", "--over", "mpi,udp"]),
        ] {
            let record = record(job(&compiler, procs, &[verb, &LITTLE[..]].concat()).output().unwrap());
            for result in &record.results {
                assert_eq!(result.verb(), verb[0]);
            }
            assert_launched(&record, 2);
            assert!(record.results[0].cpus.len().to_string() == procs);
        }
    }
}

#[test]
fn the_main_job_writes_its_files_once() {
    let _alone = alone();
    let Some(compiler) = compilers().into_iter().next() else { return };
    let folder = tempfile::tempdir().unwrap();
    let args = ["--dir", folder.path().to_str().unwrap()];
    let output = job(&compiler, "2", &[&args, &LITTLE[..6]].concat()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr.matches("wrote ").count(), 1, "{stderr}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("am+shm"));
    for file in ["netdyno.json", "netdyno-report.html"] {
        assert!(folder.path().join(file).is_file());
    }
}

#[test]
fn what_is_wrong_is_said_once() {
    let _beside = beside();
    for compiler in compilers() {
        for (procs, args, code, says) in [
            ("3", &["logp", "--over", "udp"][..], 2, "the job has 3 processes, and 2 are wanted"),
            ("2", &["contention", "--over", "udp", "--procs", "4"], 2, "has 2 processes, and 4 are wanted"),
            ("2", &["logp", "--over", "upd"], 2, "did you mean 'udp'"),
            ("2", &["logp", "--over", "udp", "--peer", "127.0.0.1"], 2, "leave --peer away"),
            ("2", &["logp", "--over", "udp", "--truth", "o_s=1us,o_r=1us,g=1us,L=1us"], 2, "--over sim"),
            ("2", &["logp", "--over", "udp,tcp", "--label", "mine"], 2, "--label 'LAYER=mine'"),
            ("2", &["logp", "--over", "mpi", "--wait", "block"], 2, "cannot block"),
            ("2", &["logp", "--over", "tcp", "--out", "/nowhere/x.json"], 2, "/nowhere"),
            // A single process forms no job.
            ("1", &["logp", "--over", "mpi"], 2, "start netdyno by it"),
        ] {
            let began = Instant::now();
            let line = error_of(output_at_once(&mut job(&compiler, procs, args)), code);
            assert!(line.contains(says), "{args:?}: {line}");
            assert!(began.elapsed() < LONG);
        }
    }
}

#[test]
fn a_launcher_of_another_library_is_told() {
    let _beside = beside();
    let Some(compiler) = compilers().into_iter().next() else { return };
    let mut alone = Command::new(env!("CARGO_BIN_EXE_netdyno"));
    alone.args(["logp", "--over", "udp"]).envs([("PMI_RANK", "0"), ("PMI_SIZE", "2")]);
    let line = error_of(prepare(&mut alone, &compiler).output().unwrap(), 1);
    assert!(
        line.contains("process 0 of 2 finds the others through MPI: mpi sees one process alone"),
        "{line}"
    );
    alone.env("NETDYNO_MPICC", "/nowhere/mpicc");
    let line = error_of(alone.output().unwrap(), 2);
    assert!(line.contains("through MPI") && line.contains("/nowhere/mpicc"), "{line}");
    let mut together = job(&compiler, "2", &["logp", "--over", "mpi"]);
    let line = error_of(output_at_once(together.env("NETDYNO_MPICC", "/nowhere/mpicc")), 2);
    assert!(line.contains("process 0 of 2") && line.contains("/nowhere/mpicc"), "{line}");
}

/// A launcher with PMI lets the processes find each other. That of Open MPI has none.
#[test]
fn a_job_of_other_layers_needs_no_mpi() {
    let _beside = beside();
    let mpich = compilers().into_iter().find(|compiler| !compiler.with_file_name("ompi_info").is_file());
    let Some(compiler) = mpich else { return };
    for (procs, verb, layer) in [("2", "logp", "am+udp"), ("3", "contention", "tcp")] {
        let mut job = job(&compiler, procs, &[&[verb, "--over", layer], &LITTLE[..]].concat());
        let record = record(job.env("NETDYNO_MPICC", "/nowhere/mpicc").output().unwrap());
        let launcher = record.results[0].launcher.as_deref();
        assert_eq!(launcher, Some(&format!("in a job of {procs} processes")[..]));
        assert!(record.results[0].parameters.rtt.value_ns > Some(0.0));
    }
}

/// Starts the processes of a job as `srun --mpi=none` does, which tells them their place only. They share `folder`.
fn plain_slurm(folder: &Path, args: &[&str]) -> Vec<Output> {
    let start = |rank: usize| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netdyno"));
        command.args(args).env("NETDYNO_SHARED_FOLDER", folder).env("NETDYNO_MPICC", "/nowhere/mpicc");
        for (name, value) in
            [("JOB_ID", 7), ("STEP_ID", 1), ("STEP_LAUNCHER_PORT", 40000), ("STEP_NUM_TASKS", 2)]
        {
            command.env(format!("SLURM_{name}"), value.to_string());
        }
        let place = rank.to_string();
        command.env("SLURM_PROCID", &place).env("SLURM_LOCALID", &place);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let processes = [0, 1].map(start);
    processes.into_iter().map(|process| process.wait_with_output().unwrap()).collect()
}

#[test]
fn a_job_without_an_exchange_meets_in_a_shared_folder() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut outputs = plain_slurm(folder.path(), &[&["logp", "--over", "am+shm,udp"], &LITTLE[..]].concat());
    let second = outputs.pop().unwrap();
    assert!(second.status.success() && second.stdout.is_empty(), "{second:?}");
    let record = record(outputs.pop().unwrap());
    assert_eq!(record.results.len(), 2);
    for result in &record.results {
        assert!(result.parameters.rtt.value_ns.is_some_and(|ns| ns > 0.0), "{}", result.layer);
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "something is left");
}

#[test]
fn a_shared_folder_that_cannot_be_used_is_told() {
    let _beside = beside();
    for (over, says) in
        [("udp", "name a folder that all hosts share in NETDYNO_SHARED_FOLDER"), ("mpi", "MPI")]
    {
        let mut outputs = plain_slurm(Path::new("/nowhere/else"), &["logp", "--over", over]);
        let second = outputs.pop().unwrap();
        assert_eq!((second.status.code(), &second.stderr[..]), (Some(2), &b""[..]));
        let line = error_of(outputs.pop().unwrap(), 2);
        assert!(line.contains(says), "{line}");
    }
}

/// Returns the processes of this name whose environment has `mark`.
fn marked(mark: &str, name: &str) -> Vec<Pid> {
    let has_mark = |process: &Path| {
        let environ = std::fs::read(process.join("environ")).unwrap_or_default();
        let is_named = std::fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim() == name);
        is_named && environ.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
    processes
        .filter(|process| has_mark(process))
        .filter_map(|process| Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?))
        .collect()
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// Returns a process of the job if it measures. Over MPI it is a rank, which lives as long as the job. Over a layer of
/// netdyno's own it is a worker of a launch, of which one, which requests, works all the time.
fn measuring_process(mark: &str, over: &str) -> Option<Pid> {
    let is_mpi = over == "mpi";
    let processes = marked(mark, "netdyno").into_iter().filter(|pid| is_worker(number(*pid)) != is_mpi);
    let processes: Vec<Pid> = processes.collect();
    let works = |pid: &Pid| has_worked(number(*pid), WORK);
    let last = *processes.iter().max_by_key(|pid| number(**pid))?;
    let measures = if is_mpi { works(&last) } else { processes.iter().any(works) };
    // Of a launch that was hit already one process is left at most.
    (measures && processes.len() == 2).then_some(last)
}

/// Waits until the job measures, and kills one of its processes until it ends: on a busy machine a worker may be killed
/// after its launch. Returns the files in shared memory that the killed ones had.
fn kill_until_it_ends(job: &mut Child, mark: &str, over: &str) -> Vec<SharedFiles> {
    let until = Instant::now() + 2 * LONG;
    let mut files = Vec::new();
    while job.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "the job goes on; {} were killed", files.len());
        if let Some(victim) = measuring_process(mark, over) {
            files.push(SharedFiles::of_process(number(victim), SystemTime::UNIX_EPOCH));
            let _ = kill_process(victim, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    files
}

#[test]
fn a_killed_process_ends_the_job() {
    let _beside = beside();
    for (nth, compiler) in compilers().iter().enumerate() {
        for over in ["mpi", "tcp"] {
            let mark = format!("NETDYNO_TEST=job-{}-{nth}-{over}", std::process::id());
            let (name, value) = mark.split_once('=').unwrap();
            let long = ["logp", "--over", over, "--wait", "yield", "--max-time", "120s", "--launches", "40"];
            let long = [&long[..], &["--precision", "0.0001"]].concat();
            let mut job = job(compiler, "2", &long)
                .env(name, value)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let files = kill_until_it_ends(&mut job, &mark, over);
            assert!(!job.wait().unwrap().success());
            let until = Instant::now() + LONG;
            while !marked(&mark, "netdyno").is_empty() {
                assert!(Instant::now() < until, "processes are left");
                std::thread::sleep(Duration::from_millis(20));
            }
            // No process is left that could remove the files that MPI made for a killed rank.
            files.into_iter().for_each(|files| files.remove_unused());
        }
    }
}

/// A script in the place of ssh, which starts a command on the named host.
const REMOTE_SHELL: &str = r#"#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
case $1 in A) host=NAME_A;; B) host=NAME_B;; *) exit 9;; esac
shift
exec ip netns exec $host sh -c "$*"
"#;

/// Returns the words `mpiexec -hosts a,b`. Returns `None` for an MPI that cannot be told how to reach hosts.
fn launcher_across(network: &Network, compiler: &Path, folder: &Path) -> Option<Vec<String>> {
    let launcher = launcher(compiler);
    let version = Command::new(&launcher).arg("--version").output().unwrap();
    if !String::from_utf8_lossy(&version.stdout).contains("HYDRA") {
        return None;
    }
    let (a, b) = network.names();
    let script = [(" A)", format!(" {A})")), (" B)", format!(" {B})"))]
        .iter()
        .fold(REMOTE_SHELL.to_owned(), |text, (from, to)| text.replace(from, to));
    let shell = folder.join("remote-shell");
    std::fs::write(&shell, script.replace("NAME_A", a).replace("NAME_B", b)).unwrap();
    std::fs::set_permissions(&shell, PermissionsExt::from_mode(0o755)).unwrap();
    let (launcher, shell, hosts) =
        (launcher.display().to_string(), shell.display().to_string(), format!("{A},{B}"));
    Some(vec![
        launcher,
        "-launcher".into(),
        "ssh".into(),
        "-launcher-exec".into(),
        shell,
        "-hosts".into(),
        hosts,
    ])
}

/// Returns `mpiexec -n PROCS -hosts a,b netdyno …`, started on `a`.
fn job_across(
    network: &Network,
    compiler: &Path,
    folder: &Path,
    procs: &str,
    args: &[&str],
) -> Option<Command> {
    let launcher = launcher_across(network, compiler, folder)?;
    let mut command = Command::new("ip");
    command.args(["netns", "exec", network.names().0]).args(launcher).args(["-n", procs]);
    command.arg(env!("CARGO_BIN_EXE_netdyno")).args(args);
    prepare(&mut command, compiler);
    Some(command)
}

/// The processes on the other host try the addresses of this one.
#[test]
fn a_launcher_reaches_across_hosts() {
    let _alone = alone();
    let Some(network) = Network::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    for compiler in compilers() {
        let Some(words) = launcher_across(&network, &compiler, folder.path()) else { continue };
        let launcher = format!("{} -n {{n}}", words.join(" "));
        for verb in
            [&["logp", "--over", "mpi,am+udp,tcp"][..], &["contention", "--procs", "3", "--over", "udp"]]
        {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", network.names().0, env!("CARGO_BIN_EXE_netdyno")]).args(verb);
            command.args(["--launcher", &launcher]).args(LITTLE);
            prepare(&mut command, &compiler);
            let record = record(command.output().unwrap());
            assert_launched(&record, 2);
            for result in &record.results {
                assert!(result.parameters.rtt.value_ns.is_some_and(|ns| ns > 0.0), "{}", result.layer);
            }
        }
    }
}

#[test]
fn a_job_reaches_across_hosts() {
    let _alone = alone();
    let Some(network) = Network::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    for compiler in compilers() {
        for (procs, verb) in [
            ("2", &["logp", "--over", "mpi,am+udp,udp,tcp"][..]),
            ("4", &["contention", "--over", "am+udp,mpi"]),
        ] {
            let args = [verb, &LITTLE[..]].concat();
            let Some(mut job) = job_across(&network, &compiler, folder.path(), procs, &args) else {
                continue;
            };
            // One layer is enough, because every layer uses the link between the hosts.
            let record = record(job.output().unwrap());
            assert_launched(&record, 2);
            for result in &record.results {
                assert!(result.parameters.rtt.value_ns.is_some_and(|ns| ns > 0.0), "{}", result.layer);
            }
        }
        // An unreachable address is an error.
        let args = ["logp", "--over", "udp", "--bind", "127.0.0.1"];
        let Some(mut job) = job_across(&network, &compiler, folder.path(), "2", &args) else { continue };
        let line = error_of(output_at_once(&mut job), 1);
        assert!(line.contains("127.0.0.1") && line.contains("--bind"), "{line}");
    }
}
