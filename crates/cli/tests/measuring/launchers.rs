//! `--launcher`: starts the processes of a launch, and reports its errors.

use crate::common::{beside, error_of, netdyno, stdout_of};
use netdyno_measure::record::Record;
use std::time::{Duration, Instant};

/// Starts the number of processes in its first argument, with their ranks, as mpiexec does.
const START: &str = r#"n=$1; shift; i=0
while [ $i -lt $n ]; do PMI_RANK=$i PMI_SIZE=$n "$@" & i=$((i + 1)); done; wait"#;

fn launcher(script: &str) -> String {
    format!("sh -c '{script}' sh {{n}}")
}

/// Returns the arguments of a short measurement with a launcher.
fn measuring<'a>(launcher: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let short = ["--wait", "yield", "--launches", "1", "--max-time", "300ms", "--launcher", launcher];
    [more, &short[..]].concat()
}

#[test]
fn a_launcher_starts_pairs_and_many() {
    let _beside = beside();
    let launcher = launcher(START);
    for verb in [
        &["logp", "--over", "am+shm,vi+shm,vi+udp,udp,tcp"][..],
        &["contention", "--procs", "3", "--over", "am+udp,vi+shm,vi+udp"],
    ] {
        let output =
            netdyno(&[&measuring(&launcher, verb)[..], &["--format", "json"]].concat()).output().unwrap();
        assert!(output.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
        let record = Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
        assert!(
            record
                .results
                .iter()
                .all(|result| result.launches() > 0 && result.parameters.rtt.value_ns.is_some())
        );
    }
}

#[test]
fn a_launcher_starts_one_process_that_is_both_ends() {
    let _beside = beside();
    let one = launcher(&format!("[ $1 = 1 ] || exit 9; {START}"));
    for cpus in [&[][..], &["--cpus", "0,0"]] {
        let few = ["--launches", "2", "--max-time", "300ms", "--format", "json", "--launcher", &one];
        let args = [&["breakdown", "--over", "am+shm,udp"], &few[..], cpus].concat();
        let record = Record::from_json(&stdout_of(&args)).unwrap();
        assert!(record.results.iter().all(|result| result.launches() > 0), "{record:?}");
    }
}

/// On a cluster, a launcher may wait in a queue.
#[test]
fn no_launcher_is_started_if_the_result_cannot_be_written() {
    let _beside = beside();
    let script = launcher("echo the launcher was started >&2; exit 7");
    for verb in [&["logp", "--over", "udp"][..], &["--over", "udp"], &["paper", "speight-5"]] {
        let line = error_of(&[verb, &["--launcher", &script, "--out", "/nowhere/x.json"]].concat(), 2);
        assert!(line.contains("/nowhere/x.json"), "{line}");
    }
}

#[test]
fn what_a_launcher_cannot_do_is_said_in_one_line() {
    let _beside = beside();
    let one_more = launcher(&START.replacen("n=$1", "n=$(($1 + 1))", 1));
    let without_key = launcher(&START.replace("\"$@\"", "env -u NETDYNO_KEY \"$@\""));
    let cases: &[(&str, i32, &str)] = &[
        ("mpiexec -n 2", 2, "'mpiexec -n {n}'"),
        ("no-such-launcher -n {n}", 2, "no program 'no-such-launcher'"),
        (&one_more, 2, "3 processes were started, and 2 are wanted"),
        (
            "sh -c 'echo out of hosts >&2; exit 7' {n}",
            1,
            "exit status: 7) before its 2 processes had come: out of hosts",
        ),
        (&without_key, 1, "NETDYNO_KEY is not set"),
    ];
    for (launcher, code, names) in cases {
        let line = error_of(&measuring(launcher, &["logp", "--over", "udp"]), *code);
        assert!(line.contains(names), "{launcher}: {line}");
    }
    let line = error_of(&measuring(&launcher(START), &["logp", "--over", "udp", "--peer", "127.0.0.1"]), 2);
    assert!(line.contains("--peer"), "{line}");
}

/// Counts the processes whose environment has `mark`.
fn marked(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_marked =
        |environ: &Vec<u8>| environ.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes());
    processes
        .filter_map(|process| std::fs::read(process.path().join("environ")).ok())
        .filter(is_marked)
        .count()
}

#[test]
fn nothing_outlives_a_launch_whose_process_is_killed() {
    let _beside = beside();
    // The last process dies while it measures or, on a busy machine, before it connects.
    let deadly = launcher(&START.replace("wait", "sleep 1; kill -9 $!; sleep 5; exit 9"));
    let mark = format!("NETDYNO_TEST=killed-{}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let long = ["logp", "--over", "udp", "--wait", "yield", "--max-time", "60s", "--launcher", &deadly];
    let long = [&long[..], &["--precision", "0.0001"]].concat();
    let output = netdyno(&long).env(name, value).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.contains("connection was closed") || stderr.contains("exit status: 9"), "{stderr}");
    let until = Instant::now() + Duration::from_secs(30);
    while marked(&mark) > 0 {
        assert!(Instant::now() < until, "{} processes are left", marked(&mark));
        std::thread::sleep(Duration::from_millis(20));
    }
}
