//! Measurements between two hosts of the tests' own, and failures of a host or of its link.

use crate::common::network::{A, B, B6, NOBODY, Network};
use crate::common::served::{LONG, Served};
use crate::common::{beside, has_worked, workers_of};
use netdyno_measure::record::{LayerResult, Record};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Serves host `b`, at all its addresses.
fn serve(network: &Network) -> Served {
    Served::start(network.on_b(&["serve"]))
}

/// Returns a client on host `a`, with the key.
fn client(network: &Network, served: &Served, args: &[&str]) -> Command {
    let mut command = network.on_a(&[&["logp", "--wait", "block"], args].concat());
    command.env("NETDYNO_KEY", served.key()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Arguments of a short measurement.
const LITTLE: [&str; 4] = ["--launches", "1", "--max-time", "300ms"];

/// Arguments of a short measurement, and of a long one, whose launches take more than a second.
const SHORT: [&str; 6] = ["--launches", "2", "--max-time", "4s", "--precision", "0.0001"];
const LONG_LASTING: [&str; 6] = ["--launches", "100", "--max-time", "120s", "--precision", "0.0001"];

/// The processor time of a worker that has begun to measure.
const WORK: Duration = Duration::from_millis(50);

fn record(output: Output) -> Record {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

fn one_line(output: Output, code: i32) -> String {
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

/// Checks that a short measurement with `b` works.
fn measure_a_little(network: &Network, served: &Served) {
    let args = [&["--over", "udp", "--peer", B, "--format", "json"], &LITTLE[..]].concat();
    assert_eq!(record(client(network, served, &args).output().unwrap()).results.len(), 1);
}

fn measuring(network: &Network, served: &Served, over: &str, duration: [&str; 6]) -> Child {
    let args = ["--over", over, "--peer", B, "--format", "json"];
    client(network, served, &[&args[..], &duration].concat()).spawn().unwrap()
}

/// Returns the worker on the other host if a launch measures: its requester begins after both are connected. The
/// replier works for each message alone, so that its processor time says little on a busy machine.
fn measuring_worker(client: &Child, served: &Served) -> Option<u32> {
    match (&workers_of(served.pid())[..], &workers_of(client.id())[..]) {
        ([worker], [requester]) if has_worked(*requester, WORK) => Some(*worker),
        _ => None,
    }
}

/// Waits until a launch measures. Returns the worker on the other host.
fn worker_in_a_launch(client: &mut Child, served: &Served) -> u32 {
    let until = Instant::now() + LONG;
    loop {
        if let Some(worker) = measuring_worker(client, served) {
            return worker;
        }
        assert!(client.try_wait().unwrap().is_none(), "the client has ended: {}", served.log());
        assert!(Instant::now() < until, "no launch measures: {}", served.log());
        thread::sleep(Duration::from_millis(10));
    }
}

/// Kills the workers of a launch that measures, on the other host or on both, until the client ends: on a busy machine a
/// worker may have ended before it is killed, or be killed after it has measured.
fn kill_until_it_ends(client: &mut Child, served: &Served, on_both: bool) {
    let until = Instant::now() + LONG;
    while client.try_wait().unwrap().is_none() {
        if let Some(worker) = measuring_worker(client, served) {
            let own = if on_both { workers_of(client.id()) } else { Vec::new() };
            for pid in own.into_iter().chain([worker]) {
                let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
            }
        }
        assert!(Instant::now() < until, "the client goes on: {}", served.log());
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of a worker.
fn ends(worker: u32) {
    let until = Instant::now() + LONG;
    while std::fs::read_to_string(format!("/proc/{worker}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < until, "the worker is left");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn layers_are_measured_across() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    let served = serve(&network);
    for (client_at, peer, over) in
        [(A, B, "am+udp,am+xdp,vi+udp,vi+xdp,udp,tcp"), ("fd77::1", B6, "am+udp,vi+udp,tcp")]
    {
        let args = [&["--over", over, "--peer", peer, "--format", "json"], &LITTLE[..]].concat();
        let record = record(client(&network, &served, &args).output().unwrap());
        assert!(record.peer_environment.is_some());
        let layers: Vec<&str> = record.results.iter().map(|result| &result.layer[..]).collect();
        assert_eq!(layers.join(","), over);
        for result in &record.results {
            assert!(result.parameters.rtt.value_ns.unwrap() > 0.0, "{}", result.layer);
            assert_eq!(result.distance.as_deref(), Some("two hosts"));
        }
        let launches: usize = record.results.iter().map(LayerResult::launches).sum();
        served.says(&format!("{client_at}: done, {launches} launches"), 1);
    }
}

#[test]
fn an_address_that_does_not_answer() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    for (peer, says) in [(NOBODY, "there is no answer"), (B, "run `netdyno serve` on that host")] {
        let began = Instant::now();
        let line = one_line(network.on_a(&["logp", "--over", "udp", "--peer", peer]).output().unwrap(), 2);
        assert!(line.contains(says) && line.contains(peer), "{line}");
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn a_killed_host_is_reported() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    for over in ["am+udp", "udp", "tcp"] {
        let mut served = serve(&network);
        let mut client = measuring(&network, &served, over, LONG_LASTING);
        let worker = worker_in_a_launch(&mut client, &served);
        kill_process(Pid::from_raw(served.pid() as i32).unwrap(), Signal::KILL).unwrap();
        served.code();
        let killed = Instant::now();
        let line = one_line(client.wait_with_output().unwrap(), 1);
        assert!(killed.elapsed() < Duration::from_secs(30), "{over}");
        assert!(line.starts_with(&format!("error: {over}, launch ")), "{line}");
        assert!(line.contains(B), "{line}");
        ends(worker);
    }
}

#[test]
fn a_killed_worker_is_reported_on_both_sides() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    let served = serve(&network);
    let mut client = measuring(&network, &served, "am+udp", LONG_LASTING);
    kill_until_it_ends(&mut client, &served, false);
    let line = one_line(client.wait_with_output().unwrap(), 1);
    assert!(line.contains(&format!("the replier (host {B}) is gone")), "{line}");
    served.says(&format!("{A}: its worker was killed by signal 9"), 1);
    measure_a_little(&network, &served);
}

#[test]
fn a_killed_client_frees_the_host() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    let served = serve(&network);
    let mut client = measuring(&network, &served, "tcp", LONG_LASTING);
    let worker = worker_in_a_launch(&mut client, &served);
    client.kill().unwrap();
    client.wait().unwrap();
    served.says(&format!("{A}: done"), 1);
    ends(worker);
    measure_a_little(&network, &served);
}

/// Takes the link of a host down for 3 s in the middle of a launch.
fn link_down_for_a_while(over: &str, link: impl Fn(&Network, &str)) -> Option<Output> {
    let network = Network::new()?;
    let served = serve(&network);
    let mut client = measuring(&network, &served, over, SHORT);
    worker_in_a_launch(&mut client, &served);
    link(&network, "down");
    thread::sleep(Duration::from_secs(3));
    link(&network, "up");
    let back = Instant::now();
    let output = client.wait_with_output().unwrap();
    assert!(back.elapsed() < Duration::from_secs(300), "{over}");
    measure_a_little(&network, &served);
    Some(output)
}

#[test]
fn am_udp_goes_on_when_the_link_is_back() {
    let _beside = beside();
    for link in [Network::link_of_a, Network::link_of_b] {
        let Some(output) = link_down_for_a_while("am+udp", link) else { return };
        record(output);
    }
}

#[test]
fn am_xdp_goes_on_when_the_link_is_back() {
    let _beside = beside();
    let Some(output) = link_down_for_a_while("am+xdp", Network::link_of_a) else { return };
    record(output);
}

#[test]
fn the_interface_of_a_layer_over_xdp_disappears() {
    let _beside = beside();
    for over in ["am+xdp", "vi+xdp"] {
        let Some(network) = Network::new() else { return };
        let served = serve(&network);
        let mut client = measuring(&network, &served, over, LONG_LASTING);
        worker_in_a_launch(&mut client, &served);
        network.cut();
        let cut = Instant::now();
        let line = one_line(client.wait_with_output().unwrap(), 1);
        assert!(line.starts_with("error: ") && cut.elapsed() < Duration::from_secs(90), "{line}");
    }
}

/// The kernel detaches the program of a process that is killed.
#[test]
fn no_program_stays_attached() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    let served = serve(&network);
    let mut client = measuring(&network, &served, "am+xdp", LONG_LASTING);
    let until = Instant::now() + LONG;
    while !network.has_programs() {
        assert!(Instant::now() < until, "no program is attached");
        thread::sleep(Duration::from_millis(5));
    }
    kill_until_it_ends(&mut client, &served, true);
    one_line(client.wait_with_output().unwrap(), 1);
    let until = Instant::now() + LONG;
    while network.has_programs() {
        assert!(Instant::now() < until, "a program is still attached");
        thread::sleep(Duration::from_millis(5));
    }
    measure_a_little(&network, &served);
}

#[test]
fn tcp_goes_on_when_the_link_is_back() {
    let _beside = beside();
    for link in [Network::link_of_a, Network::link_of_b] {
        let Some(output) = link_down_for_a_while("tcp", link) else { return };
        record(output);
    }
}

/// The udp layer does not retransmit lost messages.
#[test]
fn udp_goes_on_or_says_what_it_lacks() {
    let _beside = beside();
    let Some(output) = link_down_for_a_while("udp", Network::link_of_b) else { return };
    if !output.status.success() {
        let line = one_line(output, 1);
        assert!(line.starts_with("error: udp, launch "), "{line}");
    }
}

#[test]
fn a_link_that_stays_down_is_an_error_on_both_sides() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    let served = serve(&network);
    let mut client = measuring(&network, &served, "am+udp", LONG_LASTING);
    let worker = worker_in_a_launch(&mut client, &served);
    network.link_of_b("down");
    let down = Instant::now();
    let line = one_line(client.wait_with_output().unwrap(), 1);
    assert!(line.starts_with("error: am+udp, launch "), "{line}");
    served.says(&format!("{A}: done"), 1);
    assert!(down.elapsed() < Duration::from_secs(60));
    ends(worker);
    network.link_of_b("up");
    measure_a_little(&network, &served);
}

#[test]
fn the_steps_over_xdp_are_measured_at_four_pairs_of_interfaces() {
    let _beside = beside();
    let Some(network) = Network::new() else { return };
    network.cut();
    let mut command = network.on_a(&["breakdown", "--over", "am+xdp", "--launches", "1"]);
    let line = one_line(command.output().unwrap(), 1);
    assert!(line.contains("four pairs of interfaces (docs/breakdown.md)"), "{line}");

    network.add_pairs(4);
    for over in ["am+xdp", "vi+xdp"] {
        let few = ["--launches", "2", "--max-time", "300ms", "--format", "json"];
        let record =
            record(network.on_a(&[&["breakdown", "--over", over], &few[..]].concat()).output().unwrap());
        let operations = &record.results[0].found.breakdown().unwrap().operations;
        let has = |operation: &str, step: &str| {
            let operation = operations.iter().find(|one| one.name == operation).unwrap();
            assert!(operation.whole.value_ns > Some(0.0), "{over}: {operation:?}");
            operation.steps.iter().any(|one| one.name == step)
        };
        assert!(has("send", "put frame") && has("receive", "take frame"), "{over}: {operations:?}");
        assert!(has("round trip", "plain exchange"), "{over}: {operations:?}");
    }
}
