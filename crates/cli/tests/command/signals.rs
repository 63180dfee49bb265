//! Signals: to a command whose program runs, to one that was started to ignore them, and to one that waits for the
//! reader of its output.

use crate::common::{netdyno, workers_of};
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const SHORTLY: Duration = Duration::from_millis(10);

fn send(signal: &str, to: u32) {
    Command::new("kill").args([&format!("-{signal}"), &to.to_string()]).status().unwrap();
}

/// Waits until the command has started `sleep`, which is after it has begun to note signals. Returns its process.
fn program_of(command: &Child) -> u32 {
    let is_program = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.trim_end() == "sleep")
    };
    loop {
        if let Some(program) = workers_of(command.id()).into_iter().find(is_program) {
            return program;
        }
        sleep(SHORTLY);
    }
}

#[test]
fn a_signal_to_a_runner_is_its_exit_code() {
    let runners = [&["run", "--latency", "+1us"][..], &["launch", "-n", "2"]];
    for (runner, (signal, code)) in
        runners.into_iter().flat_map(|args| [("INT", 130), ("TERM", 143)].map(|end| (args, end)))
    {
        let mut child = netdyno(&[runner, &["--", "sleep", "60"]].concat()).spawn().unwrap();
        // The command catches signals before it starts the program.
        while workers_of(child.id()).is_empty() {
            sleep(SHORTLY);
        }
        send(signal, child.id());
        let status = child.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(code), None), "{signal}");
    }
}

#[test]
fn a_second_signal_kills_a_program_that_ignores_the_first() {
    let words = "trap '' TERM; echo; while :; do sleep 0.1; done";
    let mut command = netdyno(&["run", "--latency", "+1us", "--", "sh", "-c", words]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let began = Instant::now();
    let mut sent = 0;
    let status = loop {
        assert!(began.elapsed() < Duration::from_secs(60), "no signal ends it");
        send("TERM", child.id());
        sent += 1;
        sleep(Duration::from_millis(1500));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(143));
    assert!(sent > 1, "the first signal is one that the program ignores");
}

#[test]
fn a_stopped_program_takes_a_signal() {
    let mut child = netdyno(&["run", "--latency", "+1us", "--", "sleep", "60"]).spawn().unwrap();
    let program = program_of(&child);
    let state = || fs::read_to_string(format!("/proc/{program}/stat")).unwrap();
    send("STOP", program);
    while !state().contains("(sleep) T") {
        sleep(SHORTLY);
    }
    send("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_command_that_was_started_to_ignore_a_signal_goes_on() {
    let netdyno = netdyno(&[]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' HUP INT; exec \"$0\" run --latency +1us -- sleep 60"])
        .arg(netdyno.get_program());
    let mut child = shell.spawn().unwrap();
    let program = program_of(&child);
    for signal in ["HUP", "INT"] {
        send(signal, child.id());
        send(signal, program);
    }
    sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    send("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_signal_ends_an_output_that_nobody_reads() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let truth = "o_s=1us,o_r=2us,g=5us,L=7us";
    let args =
        ["logp", "--over", "sim", "--truth", truth, "--launches", "1", "--out", pipe.to_str().unwrap()];
    let mut child = netdyno(&args).stderr(Stdio::null()).spawn().unwrap();
    // It computes until it waits for the reader.
    let state = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let mut asleep = 0;
    while asleep < 50 {
        asleep = if state().contains(") S ") { asleep + 1 } else { 0 };
        sleep(2 * SHORTLY);
    }
    send("TERM", child.id());
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "no signal ends it");
        sleep(SHORTLY);
    }
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

/// A launch over simulated interfaces once ended no signal, and this one takes minutes.
#[test]
fn a_signal_ends_a_simulation() {
    let truth = "o_s=17ns,o_r=1ns,g=289ns,L=356520ns,G=0.01279ns/B,capacity=1000";
    let args = ["contention", "--over", "sim", "--procs", "64", "--size", "4095", "--truth", truth];
    let mut child = netdyno(&args).stderr(Stdio::null()).spawn().unwrap();
    let simulates = |child: &Child| {
        let threads = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
        let mut names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
        names.any(|name| name.trim_end() == "simulation")
    };
    while !simulates(&child) {
        assert_eq!(child.try_wait().unwrap(), None, "the command has ended");
        sleep(SHORTLY);
    }
    send("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}
