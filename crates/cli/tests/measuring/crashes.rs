//! Killed processes and Ctrl-C: one clear line, a bounded time, nothing left behind.

use crate::common::{alone, beside, has_worked, netdyno, remove_result_before, wait, workers_of};
use netdyno_measure::record::Record;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Sends a signal. Returns false if the process is gone.
fn signal(signal: Signal, pid: u32) -> bool {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).is_ok()
}

/// Starts a measurement that lasts longer than the test waits before it sends a signal.
fn measuring(layer: &str, out: &str) -> Child {
    let args =
        ["logp", "--over", layer, "--max-time", "8s", "--launches", "500", "--wait", wait(), "--out", out];
    netdyno(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the workers of a measurement.
fn workers(child: &mut Child, procs: usize) -> Vec<u32> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let workers = workers_of(child.id());
        if workers.len() == procs {
            return workers;
        }
        let is_running = child.try_wait().unwrap().is_none();
        assert!(Instant::now() < until && is_running, "no {procs} workers were started");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill_at_random(layers: &[&str], times: u64) {
    let seed = std::env::var("NETDYNO_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("NETDYNO_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("result.json");
    let (mut hits, mut too_late) = (0, 0);
    while hits < times {
        let layer = layers[hits as usize % layers.len()];
        let mut child = measuring(layer, out.to_str().unwrap());
        std::thread::sleep(Duration::from_millis(random.u64(30..400)));
        let workers = workers(&mut child, 2);
        let victim = workers[random.usize(0..2)];
        let is_killed = signal(Signal::KILL, victim);
        let killed = Instant::now();
        let output = child.wait_with_output().unwrap();
        let took = killed.elapsed();
        let stderr = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            // The launch had its data already and was being cleaned up, so nothing was lost. The time between
            // two launches is short, so most kills must count.
            too_late += u64::from(is_killed);
            assert!(too_late <= 5 + times / 5, "{layer}: {too_late} kills were not noticed");
            fs::remove_file(&out).unwrap();
            continue;
        }
        hits += 1;
        assert_eq!(output.status.code(), Some(1), "{layer}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{layer}: {stderr}");
        assert!(stderr.contains(&format!("(process {victim}) was killed by signal 9")), "{layer}: {stderr}");
        assert!(took < Duration::from_secs(5), "{layer}: {took:?}");
        assert!(
            workers.iter().all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap()),
            "{layer}: a worker is left"
        );
        remove_result_before(&out, &stderr);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{layer}: a file is left");
    }
}

#[test]
fn a_killed_peer_is_reported() {
    let _alone = alone();
    // `./check --full` has more.
    let kills = std::env::var("NETDYNO_KILLS").map_or(14, |kills| kills.parse().unwrap());
    kill_at_random(&["am+shm"], kills);
    kill_at_random(&["am+udp", "vi+shm", "vi+udp", "udp", "tcp", "oncrpc+udp", "oncrpc+tcp"], kills / 2);
}

/// Launches of up to a second. A launch whose data has come is not disturbed by a kill, so a measurement of five launches
/// then ends soon.
const LONG_LAUNCHES: [&str; 6] = ["--max-time", "5s", "--launches", "5", "--precision", "0.0001"];

/// A process that has had a processor for so long is connected and measures.
const WORK: Duration = Duration::from_millis(60);

/// Waits for a launch that measures. Returns the last of its workers.
fn victim(child: &mut Child, procs: usize) -> u32 {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let workers = workers(child, procs);
        if workers.iter().all(|worker| has_worked(*worker, WORK)) {
            return workers[procs - 1];
        }
        assert!(Instant::now() < until, "no launch measures");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the last worker in the midst of a launch, up to ten times. Reports whether `is_told` was once true of
/// the process killed and of the command's message.
fn told_after_a_kill(verb: &[&str], procs: usize, is_told: impl Fn(u32, &str) -> bool) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("result.json");
    let args = [verb, &LONG_LAUNCHES, &["--wait", "yield", "--out", out.to_str().unwrap()]].concat();
    (0..10).any(|_| {
        let mut child = netdyno(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let victim = victim(&mut child, procs);
        signal(Signal::KILL, victim);
        let stderr = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        println!("{stderr}");
        is_told(victim, &stderr)
    })
}

/// The surviving worker itself detects the end of its peer, not only the launching side.
#[test]
fn the_survivor_reports_what_it_saw() {
    let _alone = alone();
    assert!(told_after_a_kill(&["logp", "--over", "am+shm"], 2, |_, stderr| {
        stderr.contains("its process has ended")
    }));
}

/// Of many processes the survivors name the lost one by its rank, as the launching side does.
#[test]
fn survivors_name_the_rank_that_is_lost() {
    let _alone = alone();
    let three = ["contention", "--over", "am+shm", "--procs", "3"];
    assert!(told_after_a_kill(&three, 3, |victim, stderr| {
        assert!(!stderr.contains("peer"), "{stderr}");
        let killed = stderr.split(&format!(" (process {victim}) was killed")).next().unwrap();
        let rank = killed.rsplit("rank ").next().unwrap();
        stderr.contains(&format!("rank {rank} is lost: its process has ended"))
    }));
}

/// There is no result before three launches have ended.
#[test]
fn ctrl_c_leaves_nothing() {
    let _alone = alone();
    for (name, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("result.json");
        // A launch takes a second.
        let long =
            ["logp", "--over", "am+shm", "--max-time", "20s", "--precision", "0.001", "--wait", wait()];
        let mut command = netdyno(&long);
        command.arg("--out").arg(&out).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let workers = workers(&mut child, 2);
        std::thread::sleep(Duration::from_millis(200));
        assert!(signal(name, child.id()));
        let asked = Instant::now();
        let output = child.wait_with_output().unwrap();
        assert!(asked.elapsed() < Duration::from_secs(5));
        assert_eq!(output.status.code(), Some(code));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, "interrupted: nothing was written\n");
        assert!(workers.iter().all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap()), "a worker is left");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a file is left");
    }
}

/// Number of launches after which three are certainly kept. The command repeats a launch with moved
/// processors at most twice, and counts it once. The third launch counts before its repeats.
const THREE_KEPT: usize = 3 + 3 + 1;

/// Waits until `count` launches of two processes have ended. Returns the workers of the next one.
fn after_launches(child: &mut Child, count: usize) -> Vec<u32> {
    let until = Instant::now() + Duration::from_secs(90);
    let mut seen = Vec::new();
    loop {
        let workers = workers_of(child.id());
        seen.extend(workers.iter().copied());
        seen.sort_unstable();
        seen.dedup();
        if seen.len() > 2 * count {
            return workers;
        }
        assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "{} workers", seen.len());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn ctrl_c_after_three_launches_writes_what_there_is() {
    let _beside = beside();
    for (verb, name, number) in
        [("logp", Signal::INT, 2), ("logp", Signal::TERM, 15), ("bulk", Signal::INT, 2)]
    {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("result.json");
        // Yielding workers also make progress beside the other tests of this file.
        let args = [verb, "--over", "am+shm", "--max-time", "90s", "--launches", "1000", "--wait", "yield"];
        let mut command = netdyno(&args);
        if verb == "bulk" {
            // The time of a launch of `bulk` depends on its largest size.
            command.args(["--largest", "4KiB"]);
        }
        command.arg("--out").arg(&out).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let workers = after_launches(&mut child, THREE_KEPT);
        assert!(signal(name, child.id()));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with("interrupted: wrote the result of "), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(workers.iter().all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap()), "a worker is left");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a file is left");
        let record = Record::from_json(&fs::read_to_string(out).unwrap()).unwrap();
        assert_eq!(record.interrupted, Some(number));
        assert!(record.doubts.iter().any(|doubt| doubt.name == "interrupted"));
        assert!((3..1000).contains(&record.results[0].launches_in_all()));
        assert!(record.results[0].parameters.rtt.value_ns.is_some());
    }
}

/// A launch that fails does not take those before it along.
#[test]
fn a_process_that_is_killed_after_three_launches_leaves_their_result() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("result.json");
    let args = ["logp", "--over", "am+shm", "--max-time", "90s", "--launches", "1000", "--wait", "yield"];
    let mut command = netdyno(&args);
    command.arg("--out").arg(&out).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut workers = after_launches(&mut child, THREE_KEPT);
    let until = Instant::now() + Duration::from_secs(60);
    // A worker that is killed as it ends has its data written already. The next launch has others.
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "no kill was noticed");
        if let Some(worker) = workers.first() {
            signal(Signal::KILL, *worker);
        }
        std::thread::sleep(Duration::from_millis(20));
        workers = workers_of(child.id());
    }
    let output = child.wait_with_output().unwrap();
    let record = Record::from_json(&fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let error = record.failed.unwrap();
    assert!(error.contains("was killed by signal 9"), "{error}");
    assert!(stderr.contains(&format!("{error}; wrote the result of ")), "{stderr}");
    assert!(record.doubts.iter().any(|doubt| doubt.name == "failed"));
    assert!((3..1000).contains(&record.results[0].launches_in_all()));
    assert!(record.results[0].parameters.rtt.value_ns.is_some());
}

/// After the command is killed, only the kernel can end the workers.
#[test]
fn a_killed_command_takes_its_workers_along() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut child = measuring("am+shm", folder.path().join("result.json").to_str().unwrap());
    let workers = workers(&mut child, 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(5);
    while workers.iter().any(|pid| is_running(*pid)) {
        assert!(Instant::now() < until, "a worker outlives the command");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Reports whether a process runs. A zombie does not.
fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
