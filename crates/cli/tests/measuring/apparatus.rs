//! The apparatus end to end: MPI programs over dials, their exit codes, and unsupported cases.

use crate::common::bench::Bench;
use crate::common::mpi::{launcher, prepare};
use crate::common::schemas::validate;
use crate::common::{alone, netdyno};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

/// The test program.
const PROGRAM: &str = "tests/programs/slopes.c";

impl Bench {
    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Returns the command that runs the program with two ranks.
    fn program(&self, args: &str) -> Vec<String> {
        self.program_of(2, args)
    }

    fn program_of(&self, ranks: usize, args: &str) -> Vec<String> {
        let words = [
            launcher(&self.compiler).display().to_string(),
            "-n".into(),
            ranks.to_string(),
            self.file("slopes"),
        ];
        words.into_iter().chain(args.split(' ').map(str::to_owned)).collect()
    }

    fn netdyno(&self, args: &[&str]) -> Command {
        let mut command = netdyno(args);
        prepare(&mut command, &self.compiler);
        command.current_dir(self.folder.path());
        command
    }

    /// Runs the program with two ranks over dials, without known parameters of the link.
    pub fn run(&self, dials: &[&str], args: &str) -> Output {
        self.run_program(dials, &self.program(args))
    }

    fn run_program(&self, dials: &[&str], program: &[String]) -> Output {
        let report = self.file("report.json");
        let words: Vec<&str> = program.iter().map(String::as_str).collect();
        self.netdyno(&[&["run", "--link", "none", "--report", &report], dials, &["--"], &words].concat())
            .output()
            .unwrap()
    }
}

fn elapsed_s(output: &Output) -> f64 {
    assert!(output.status.success(), "{}", stderr(output));
    let said = String::from_utf8_lossy(&output.stdout);
    said.split("elapsed_s=").nth(1).unwrap().trim().parse().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn sum(report: &Value, name: &str) -> f64 {
    report["ranks"].as_array().unwrap().iter().map(|rank| rank[name].as_f64().unwrap()).sum()
}

#[test]
fn what_waits_for_each_message_pays_for_every_latency() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        for carrier in ["auto", "arrival"] {
            let took = elapsed_s(&bench.run(&["--latency", "=2ms", "--carrier", carrier], "chain 50 8"));
            assert!(took >= 2.0 * 50.0 * 2e-3, "{carrier}: {took}");
            let report = bench.report();
            assert_eq!(report["not_in_force"], Value::Null);
            assert_eq!(report["ranks"].as_array().unwrap().len(), 2);
            // All ranks are on one host, so stamps are the default carrier.
            let expected = if carrier == "auto" { "stamp" } else { "arrival" };
            assert_eq!(report["ranks"][0]["carrier"], expected);
            // A descheduled rank polls late and then holds no message, so only some messages must be held.
            assert!(sum(&report, "held") > 0.0 && sum(&report, "held_ns") > 0.0, "{report}");
            assert_eq!(sum(&report, "sent"), sum(&report, "received"));
            assert!(report["ranks"][1]["released_late_ns"]["p50"].as_f64().unwrap() >= 0.0);
        }
    }
}

#[test]
fn overheads_take_the_processor_and_gaps_the_wire() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        for (dial, value, least) in
            [("--send-overhead", "+1ms", 2.0 * 50.0 * 1e-3), ("--recv-overhead", "+1ms", 2.0 * 50.0 * 1e-3)]
        {
            let took = elapsed_s(&bench.run(&[dial, value], "chain 50 8"));
            assert!(took >= least, "{dial}: {took}");
        }
        assert!(sum(&bench.report(), "recv_overhead_ns") >= 2.0 * 50.0 * 1e6);
        for (dial, value, program, least) in [
            ("--send-gap", "=1ms", "stream 100 8", 98e-3),
            ("--recv-gap", "=1ms", "stream 100 8", 98e-3),
            // This is 64 KiB at 64 MiB/s.
            ("--bandwidth", "=64MiB/s", "stream 100 65536", 97e-3),
        ] {
            let took = elapsed_s(&bench.run(&[dial, value], program));
            assert!(took >= least, "{dial}: {took}");
        }
    }
}

/// Ranks of one host are selected by number, and a host by name.
#[test]
fn dials_are_turned_between_groups_alone() {
    let _alone = alone();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for bench in Bench::all(PROGRAM) {
        for carrier in ["auto", "arrival"] {
            for (between, is_dialled) in [("0,1", true), (&*format!("{host},1"), true), ("0,2-9", false)] {
                let dials = ["--latency", "=2ms", "--carrier", carrier, "--between", between];
                let output = bench.run(&dials, "chain 50 8");
                let took = elapsed_s(&output);
                let report = bench.report();
                assert_eq!(report["not_in_force"], Value::Null);
                assert_eq!(sum(&report, "held") > 0.0, is_dialled, "{between}: {report}");
                assert_eq!(
                    sum(&report, "spared") == sum(&report, "sent"),
                    !is_dialled,
                    "{between}: {report}"
                );
                assert!(took >= 2.0 * 50.0 * 2e-3 || !is_dialled, "{between}: {took}");
                assert_eq!(stderr(&output).contains("no message was dialled"), !is_dialled);
                let names = "--between 0,2-9 names rank 2, and the ranks are 0 to 1";
                assert_eq!(stderr(&output).contains(names), !is_dialled, "{}", stderr(&output));
            }
        }
    }
}

/// Addresses of the shm provider are text, in several spellings.
#[test]
fn groups_are_told_apart_over_shared_memory() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM).into_iter().filter(|bench| !bench.is_open_mpi()) {
        let dials = ["--provider", "shm", "--latency", "=2ms", "--between", "0,1"];
        assert!(elapsed_s(&bench.run(&dials, "chain 20 8")) >= 2.0 * 20.0 * 2e-3);
        assert!(sum(&bench.report(), "held") > 0.0);
    }
}

/// One rank has peers in the other group and in its own.
#[test]
fn some_peers_are_dialled_and_others_are_not() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM).into_iter().filter(|bench| !bench.is_open_mpi()) {
        let dials = ["--latency", "+100us", "--recv-overhead", "+10us", "--between", "0,1"];
        elapsed_s(&bench.run_program(&dials, &bench.program_of(3, "allreduce 50")));
        let report = bench.report();
        let spared = sum(&report, "spared");
        assert!(spared > 0.0 && spared < sum(&report, "sent"), "{report}");
        assert!(sum(&report, "held") > 0.0, "{report}");
    }
}

/// The write completes on time, whether a queue or a counter reports it.
#[test]
fn a_write_into_memory_ends_when_it_would_be_there() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        let took = elapsed_s(&bench.run(&["--latency", "=5ms"], "puts 20 8"));
        if sum(&bench.report(), "one_sided") == 0.0 {
            assert!(bench.is_open_mpi(), "{}", bench.report());
            println!("SKIPPED: Open MPI writes into memory of one host past libfabric");
            continue;
        }
        assert!(took >= 20.0 * 5e-3, "{took}");
    }
}

/// With interrupt coalescing a round trip takes a period, because each side waits for its next interrupt.
/// Random latencies have the mean of their dial.
#[test]
fn dials_vary_by_chance_and_with_time() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        let profile = bench.file("coalescing.profile");
        fs::write(&profile, "repeat 4ms\nat 0ms latency+4ms\nat 4ms latency+0ms\n").unwrap();
        let took = elapsed_s(&bench.run(&["--profile", &profile], "chain 50 8"));
        assert!(took >= 49.0 * 4e-3, "{took}");
        assert!(bench.report()["profile"].as_str().unwrap().starts_with("repeat 4ms"), "{}", bench.report());
        // There are 100 latencies, each of at least 1.6 ms.
        let dial = ["--latency", "=2ms±400us:exponential", "--seed", "7"];
        let took = elapsed_s(&bench.run(&dial, "chain 50 8"));
        assert!(took >= 100.0 * 1.6e-3, "{took}");
        assert_eq!(bench.report()["seed"], 7);
        // A repeated probe must not draw a new latency until it finds a short one.
        let took = elapsed_s(&bench.run(&dial, "probe 50 8"));
        assert!(took >= 100.0 * 1.6e-3, "{took}");
    }
}

/// A repeated probe finds a message when it is due, with both carriers.
#[test]
fn a_probe_waits_for_the_latency_and_no_longer() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        for dials in
            [["--latency", "+2ms", "--carrier", "stamp"], ["--latency", "=2ms", "--carrier", "arrival"]]
        {
            let took = elapsed_s(&bench.run(&dials, "probe 50 8"));
            assert!(took >= 2.0 * 50.0 * 2e-3, "{dials:?}: {took}");
        }
    }
}

/// A probe that finds nothing returns at once, also while messages are held.
#[test]
fn a_probe_in_vain_does_not_wait_for_messages_that_are_held() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        let output = bench.run(&["--latency", "+5ms"], "looks 40 8");
        let said = String::from_utf8_lossy(&output.stdout);
        let probes = said.lines().find_map(|line| line.strip_prefix("probes=")?.parse::<u64>().ok());
        assert!(elapsed_s(&output) >= 40.0 * 5e-3 && probes > Some(40 * 20), "{said}");
    }
}

/// A message that arrived before its receive was posted does not pay the latency again.
#[test]
fn a_receive_that_is_posted_late_does_not_pay_again() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        elapsed_s(&bench.run(&["--latency", "+1ms"], "late 40 5000"));
        let report = bench.report();
        // MPI waits for some of its own messages.
        assert!(sum(&report, "held") < 0.5 * sum(&report, "received"), "{report}");
    }
}

/// The link's own parameters are measured if a dial needs them.
#[test]
fn a_gap_is_added_to_what_the_link_has_and_nothing_is_set_below_it() {
    let _alone = alone();
    let Some(bench) = Bench::all(PROGRAM).into_iter().next() else { return };
    let program = bench.program("stream 100 8");
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let run = |dial: &[&str]| bench.netdyno(&[&["run"], dial, &["--"], &words].concat()).output().unwrap();
    let added = run(&["--send-gap", "+1ms", "--link", "send-gap=1ms"]);
    assert!(elapsed_s(&added) >= 2.0 * 98e-3);
    let added = run(&["--send-gap", "+1ms"]);
    assert!(elapsed_s(&added) >= 98e-3);
    let said = stderr(&added);
    let link = said.split("for --link of other runs: ").nth(1).unwrap().lines().next().unwrap();
    assert!(["latency=", "send-overhead=", "send-gap="].iter().all(|name| link.contains(name)), "{link}");
    let below = run(&["--send-overhead", "=1ns", "--link", link]);
    assert_eq!(below.status.code(), Some(125));
    assert!(stderr(&below).contains("send-overhead =1ns is below the link's own"), "{}", stderr(&below));
}

#[test]
fn a_capacity_keeps_the_sender_waiting() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        let took = elapsed_s(&bench.run(&["--latency", "=5ms", "--capacity", "4"], "stream 64 8"));
        // Four messages travel at once, every five milliseconds.
        assert!(took >= 60.0 / 4.0 * 5e-3, "{took}");
        assert!(sum(&bench.report(), "refused") > 0.0);
    }
}

#[test]
fn a_latency_that_is_hidden_is_not_paid_for() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        let paid = || {
            let base = elapsed_s(&bench.run(&["--latency", "+0us"], "hidden 20 20000"));
            let took = elapsed_s(&bench.run(&["--latency", "+10ms"], "hidden 20 20000"));
            assert!(took >= 20.0 * 20e-3);
            took - base
        };
        // Without overlap the latency would cost 0.2 s. Five attempts allow for other programs on the
        // processors.
        assert!((0..5).any(|_| paid() < 0.1));
    }
}

#[test]
fn a_program_without_mpi_is_told_so_on_one_line() {
    let output = netdyno(&["run", "--latency", "+1us", "--", "true"]).output().unwrap();
    let stderr = stderr(&output);
    assert!(output.status.code() == Some(125) && output.stdout.is_empty(), "{stderr}");
    assert!(stderr.contains("no process of the program loaded the hook: run an MPI program"), "{stderr}");
    // The line fits two lines of a terminal of 80 columns.
    assert!(stderr.lines().count() == 1 && stderr.len() <= 160, "{stderr}");
}

#[test]
fn what_runs_under_no_hook_is_told() {
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--", "sh", "-c", "exit 3"], 125, "the program ended with status 3"),
        (&["--", "no-such-program"], 127, "cannot run 'no-such-program'"),
        (&["--", "/"], 126, "cannot run '/'"),
        (&["--latency", "10us", "--", "true"], 125, "neither adds (+) nor sets (=)"),
        (&["--latency", "+10", "--", "true"], 125, "no unit"),
        (&["--between", "0-3", "--", "true"], 125, "has 1 groups of ranks and not two, as in 0-3,4-7"),
        (&["--latency", "+-1us", "--", "true"], 125, "out of range"),
        (&["--latency", "=2s", "--", "true"], 125, "out of range"),
        (&["--latency", "=1us", "--link", "latency=3us", "--", "true"], 125, "below the link's own 3000"),
        (&["--latency", "+9us±10us", "--", "true"], 125, "9us at most"),
        (&["--latency", "+9us+-1us:odd", "--", "true"], 125, "use uniform, normal, lognormal, exponential"),
        (&["--bandwidth", "=1GB/s±1ns", "--", "true"], 125, "cannot vary"),
        (&["--seed", "x", "--", "true"], 125, "invalid"),
        (
            &["--profile", "slow-stop", "--", "true"],
            125,
            "or interrupt-coalescing, slow-start, congested-hour",
        ),
        (&["--profile", "/", "--", "true"], 125, "--profile /:"),
        (&["--profile", "/dev/zero", "--", "true"], 125, "longer than a profile"),
        (&["--profile", "/proc/self/cmdline", "--", "true"], 125, "line 1:"),
        (
            &["--profile", "interrupt-coalescing", "--latency", "+1us", "--", "true"],
            125,
            "latency is turned by the profile and by itself",
        ),
        (
            &["--profile", "slow-start", "--link", "gap-per-byte=1ns/B", "--", "true"],
            125,
            "below the link's own 1.000 ns/B",
        ),
        (&["--send-gap", "+1us", "--", "true"], 125, "what the link has of its own is not known (it is no"),
        (
            &["--send-gap", "+1us", "--link", "none", "--", "true"],
            125,
            "what send-gap the link has of its own",
        ),
        (&["--link", "no-such-file", "--", "true"], 125, "cannot read no-such-file"),
        (&["--latency", "+1us"], 125, "required arguments"),
        (&["--report", "/no/such/folder/file", "--", "true"], 125, "cannot write"),
    ];
    for (args, code, says) in cases {
        let output = netdyno(&[&["run"], *args].concat()).output().unwrap();
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {stderr}");
        assert!(stderr.contains(says), "{args:?}: {stderr}");
        assert!(stderr.lines().count() <= 2 && output.stdout.is_empty(), "{stderr}");
    }
    let mut without = netdyno(&["run", "--", "true"]);
    let output = without.env("NETDYNO_HOOK", "/no/such/hook.so").output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("NETDYNO_HOOK"), "{}", stderr(&output));
}

#[test]
fn an_mpi_that_goes_another_way_is_told() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        let program = bench.program("chain 10 8");
        let with = |args: &[&str], words: &[&str]| {
            let output = bench.netdyno(&[&["run"], args, &["--"], words].concat()).output().unwrap();
            (output.status.code(), stderr(&output))
        };
        let words: Vec<&str> = program.iter().map(String::as_str).collect();
        // The launcher drops the environment.
        let kept = ["PATH", "HOME"].map(|name| format!("{name}={}", std::env::var(name).unwrap_or_default()));
        let bare =
            ["env", "-i", &kept[0], &kept[1], "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"];
        let (code, text) = with(&[], &[&bare[..], &words].concat());
        assert_eq!(code, Some(125), "{text}");
        assert!(text.contains("a launcher that passes on the environment"), "{text}");
        // The control block is of another version.
        let script = r#"printf '\143' | dd of=$NETDYNO_APPARATUS/page bs=1 seek=8 conv=notrunc 2>/dev/null; exec "$@""#;
        let (code, text) = with(&[], &[&["sh", "-c", script, "sh"][..], &words].concat());
        assert_eq!(code, Some(125), "{text}");
        assert!(text.contains("different versions"), "{text}");
        // For a missing program, the launcher prints an error, and netdyno prints one line.
        let missing = [words[0], "-n", "2", "./nosuchprogram"];
        let (code, text) = with(&["--latency", "+1us"], &missing);
        let last = text.lines().last().unwrap();
        assert_eq!(code, Some(125), "{text}");
        assert!(last.starts_with("error: the program ended with status"), "{text}");
        assert!(last.contains("before any rank was heard of") && !text.contains("netmod"), "{text}");
        // For a missing provider, netdyno prints one line after MPI's own messages.
        let (code, text) = with(&["--latency", "+1us", "--provider", "usnic"], &words);
        let last = text.lines().last().unwrap();
        assert_eq!(code, Some(125), "{text}");
        assert!(last.contains("no rank opened the provider 'usnic' of libfabric"), "{text}");
        assert!(last.len() <= 160 && !text.contains("late p99"), "{text}");
        let sweep = ["sweep", "--latency", "+0:1:1us", "--provider", "usnic", "--"];
        let output = bench.netdyno(&[&sweep[..], &words].concat()).output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{text}");
        assert!(text.lines().last().unwrap().contains("no rank opened the provider 'usnic'"), "{text}");
        // The option takes precedence over libfabric's variable.
        let mut command = bench.netdyno(&[&["run", "--provider", "usnic", "--"][..], &words].concat());
        let output = command.env("FI_PROVIDER", "tcp").output().unwrap();
        assert!(stderr(&output).contains("the provider 'usnic'"), "{}", stderr(&output));
        // The program's own status is passed on.
        let (code, text) = with(&["--quiet"], &[&words[..], &["and", "one", "more"]].concat());
        assert_eq!(code, Some(0), "{text}");
        let failing = bench.program("nonsense 1 1");
        let failing: Vec<&str> = failing.iter().map(String::as_str).collect();
        let (code, text) = with(&[], &failing);
        assert!(matches!(code, Some(code) if code != 0 && code != 125), "{code:?}: {text}");
    }
}

#[test]
fn a_hook_that_fails_lets_the_program_end() {
    let _alone = alone();
    for bench in Bench::all(PROGRAM) {
        let output = bench.run(&["--fail-at", "150", "--latency", "=2ms"], "chain 500 8");
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{text}");
        assert!(text.contains("the hook failed in rank"), "{text}");
        let said = String::from_utf8_lossy(&output.stdout);
        let took: f64 = said.split("elapsed_s=").nth(1).unwrap().trim().parse().unwrap();
        // The whole program would have taken 2 s with the dial.
        assert!(took < 2.0, "{took}");
    }
}

/// The hook may panic in any kind of function, before or after the provider's call: the ranks end normally.
/// (The hook's own tests cover every function with a fake provider.)
#[test]
fn a_panic_in_any_kind_of_function_lets_the_program_end() {
    let _alone = alone();
    let places = [
        "open:0",
        "endpoint:0",
        "receive:20",
        "queue:20",
        "after-send:20",
        "after-queue:20",
        "after-one-sided:0",
        "close:20",
    ];
    for bench in Bench::all(PROGRAM) {
        for place in places {
            let program = if place.contains("one-sided") { "puts 20 8" } else { "chain 50 8" };
            let output = bench.run(&["--fail-at", place, "--latency", "=100us"], program);
            if program.starts_with("puts") && sum(&bench.report(), "one_sided") == 0.0 {
                assert!(bench.is_open_mpi(), "{}", bench.report());
                continue;
            }
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(125), "{place}: {text}");
            assert!(text.contains("the hook failed in rank"), "{place}: {text}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("elapsed_s="), "{place}: {text}");
        }
    }
}

#[test]
fn a_sweep_goes_on_after_a_kill() {
    let _alone = alone();
    let Some(bench) = Bench::all(PROGRAM).into_iter().next() else { return };
    let program = bench.program("chain 50 8");
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let head = ["sweep", "--latency", "+0:4:1ms", "--metric", "elapsed_s=([0-9.]+)", "--repetitions", "2"];
    let args = [&head[..], &["--out", "sweep.json", "--"], &words].concat();
    let mut first = bench.netdyno(&args).spawn().unwrap();
    let journal = bench.folder.path().join("netdyno-sweep.journal");
    while fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < 3 {
        sleep(Duration::from_millis(10));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let output = bench.netdyno(&args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("going on after"), "{}", stderr(&output));
    assert!(!journal.exists());
    let sweep: Value = serde_json::from_str(&fs::read_to_string(bench.file("sweep.json")).unwrap()).unwrap();
    validate("netdyno-sweep-1", &sweep);
    assert_eq!(sweep["runs"].as_array().unwrap().len(), 2 * (1 + 4));
    let dial = &sweep["dials"][0];
    // Each run waits for 100 latencies, so the medians rise.
    assert!(dial["slope"].as_f64().unwrap() > 0.5 * 100e-6, "{dial}");
    assert_eq!(dial["points"].as_array().unwrap().len(), 5);
    // A result that nobody has read is not lost.
    let printing = [&head[..], &["--"], &words].concat();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = bench.netdyno(&printing).stdout(writer).output().unwrap();
    assert!(output.status.success() && stderr(&output).contains("prints the result"), "{}", stderr(&output));
    let output = bench.netdyno(&printing).output().unwrap();
    assert!(stderr(&output).contains("going on after") && !output.stdout.is_empty(), "{}", stderr(&output));
    assert!(!journal.exists());
    // A program's failure has its own status; a pattern without a match has netdyno's.
    let without = [&head[..4], &["nothing ([0-9]+)", "--"], &words].concat();
    let output = bench.netdyno(&without).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("finds nothing"), "{}", stderr(&output));
}

#[test]
fn a_journal_is_of_one_sweep_and_of_one_program() {
    let _alone = alone();
    let Some(bench) = Bench::all(PROGRAM).into_iter().next() else { return };
    let program = bench.program("chain 50 8");
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let args = [&["sweep", "--latency", "+0:2:1ms", "--out", "sweep.json", "--"], &words[..]].concat();
    let mut first = bench.netdyno(&args).spawn().unwrap();
    let journal = bench.folder.path().join("netdyno-sweep.journal");
    while fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < 3 {
        sleep(Duration::from_millis(10));
    }
    let refused = |why: &str| {
        let output = bench.netdyno(&args).output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{text}");
        assert!(text.lines().count() == 1 && text.contains(why), "{text}");
    };
    refused("another sweep has the journal netdyno-sweep.journal open");
    first.kill().unwrap();
    first.wait().unwrap();
    // A linker also replaces the file, because the old program may still run.
    let (built, before) = (bench.file("slopes"), bench.file("before"));
    fs::rename(&built, &before).unwrap();
    fs::copy(&before, &built).unwrap();
    fs::OpenOptions::new().append(true).open(&built).unwrap().write_all(b"rebuilt").unwrap();
    refused(&format!("the program {built} has changed"));
    fs::rename(&before, &built).unwrap();
    let output = bench.netdyno(&args).output().unwrap();
    assert!(output.status.success() && stderr(&output).contains("going on after"), "{}", stderr(&output));
}

#[test]
fn the_dials_are_proved_in_one_command() {
    let _alone = alone();
    let Some(bench) = Bench::all(PROGRAM).into_iter().next() else { return };
    let launcher = format!("'{}' -n {{n}}", launcher(&bench.compiler).display());
    let args = ["validate", "--dial", "send-overhead,send-gap", "--launches", "1", "--launcher", &launcher];
    let output = bench.netdyno(&[&args[..], &["--format", "json"]].concat()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let result = &record["results"][0];
    assert_eq!((&result["verb"], &result["layer"]), (&"validate".into(), &"mpi".into()));
    let tables = result["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 2);
    for table in tables {
        let rows = table["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 3);
        // Accuracy and completeness are not checked, because other programs may use the machine.
        for row in rows {
            assert!(row["samples"] == 1 && row["wanted_ns"].is_f64(), "{row}");
            assert_eq!(row["figures"].as_array().unwrap().len(), 5);
        }
        assert!(rows.iter().any(|row| row["observed_ns"].is_f64()), "{table}");
    }
    assert_eq!(result["cross_talk"].as_array().unwrap().len(), 2 * 5);
}

#[test]
fn the_hook_exports_its_entry_alone() {
    let hook =
        Path::new(env!("CARGO_BIN_EXE_netdyno")).with_file_name("deps").join("libnetdyno_apparatus_fi.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&hook).output().unwrap();
    let symbols = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = symbols.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(names, ["fi_prov_ini"], "{}", hook.display());
}
