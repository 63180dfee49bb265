//! `serve` and `--peer` on one host: accepted and rejected clients, and the end of both sides.

use crate::common::served::{LONG, Served};
use crate::common::{beside, error_of, netdyno, workers_of};
use netdyno_job::connection::Connection;
use netdyno_job::frame;
use netdyno_job::greeting::{Greeting, Part, Version};
use netdyno_job::handshake::{HandshakeError, shake};
use netdyno_job::remote;
use netdyno_measure::record::{Found, LayerResult, Record};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const RIGHT: &str = "the right key of these tests";
const WRONG: &str = "a wrong key for these tests";

/// Starts a served host on loopback, without a key.
fn served() -> Served {
    Served::start(netdyno(&["serve", "--bind", "127.0.0.1:0"]))
}

fn address(served: &Served) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], served.port()))
}

/// Returns the arguments of a short measurement with a peer.
fn measuring<'a>(peer: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let short = ["logp", "--wait", "block", "--launches", "1", "--max-time", "300ms", "--peer", peer];
    [&short[..], more].concat()
}

/// Returns the error of a client that asks for an impossible processor. An accepted client fails at once with
/// that error. `key` is its key, if any.
fn ask(served: &Served, key: Option<&str>) -> String {
    let peer = address(served).to_string();
    let mut command = netdyno(&measuring(&peer, &["--over", "udp", "--cpus", "0,1023"]));
    command.env_remove("NETDYNO_KEY").envs(key.map(|key| ("NETDYNO_KEY", key)));
    one_line(command.output().unwrap(), 2)
}

const LET_IN: &str = "processor 1023 of --cpus cannot be used there";

fn one_line(output: Output, code: i32) -> String {
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

/// Writes a key into a file that only its owner can read.
fn key_file(folder: &tempfile::TempDir, name: &str, key: &str) -> String {
    let file = folder.path().join(name);
    fs::write(&file, format!("{key}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_served_host_is_measured_and_stands_in_the_record() {
    let _beside = beside();
    let mut served = Served::start(netdyno(&["serve", "--bind", "127.0.0.1:0", "--one-off"]));
    assert!(served.announcement().contains("Without a key, for this host alone"));
    let peer = address(&served).to_string();
    let output = netdyno(&measuring(&peer, &["--over", "am+udp,vi+udp,udp,tcp", "--format", "json"]))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let there = record.peer_environment.unwrap();
    assert_eq!(there.host, record.environment.host);
    assert!(there.clock.tick_ns > 0.0);
    assert_eq!(record.results.len(), 4);
    for result in &record.results {
        // Both processes are on one host, whether it is served or not.
        let distance = netdyno_clock::place::distance(result.cpus[0], result.cpus[1]).to_string();
        assert_eq!((result.cpus.len(), result.distance.as_deref()), (2, Some(&*distance)));
    }
    // The server was started for one measurement.
    assert_eq!(served.code(), Some(0));
    let launches: usize = record.results.iter().map(LayerResult::launches).sum();
    served.says(&format!("127.0.0.1: done, {launches} launches"), 1);
}

#[test]
fn every_size_is_measured_between_hosts() {
    let _beside = beside();
    let served = served();
    let peer = address(&served).to_string();
    let every_size =
        ["bulk", "--wait", "block", "--launches", "1", "--max-time", "300ms", "--largest", "1KiB"];
    let between = ["--over", "tcp,am+udp,vi+udp", "--format", "json", "--peer", &peer];
    let output = netdyno(&[&every_size[..], &between].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
    for result in &record.results {
        let Found::Bulk(bulk) = &result.found else { panic!("{}", result.verb()) };
        assert_eq!(bulk.sizes.last().map(|size| size.size_bytes), Some(1024));
    }
    let crowd = netdyno(&["contention", "--over", "udp", "--peer", &peer]).output().unwrap();
    assert!(one_line(crowd, 2).contains("leave --peer away"));
}

#[test]
fn a_key_has_to_be_the_right_one() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let [right, wrong] = [("right", RIGHT), ("wrong", WRONG)].map(|(name, key)| key_file(&folder, name, key));
    let served = Served::start(netdyno(&["serve", "--bind", "127.0.0.1:0", "--key-file", &right]));
    assert!(served.announcement().contains("--key-file FILE") && !served.announcement().contains(RIGHT));
    assert!(ask(&served, Some(RIGHT)).contains(LET_IN));
    assert!(ask(&served, Some(WRONG)).contains("wrong key: give the one"));
    served.says("127.0.0.1: refused: wrong key", 1);
    assert!(ask(&served, None).contains("asks for a key: give it by --key-file or NETDYNO_KEY"));
    served.says("127.0.0.1: refused: the other side has no key", 1);

    let peer = address(&served).to_string();
    let by_file = |file: &str| {
        error_of(&measuring(&peer, &["--over", "udp", "--cpus", "0,1023", "--key-file", file]), 2)
    };
    assert!(by_file(&right).contains(LET_IN));
    assert!(by_file(&wrong).contains("wrong key"));
    assert!(!served.log().contains(RIGHT) && !served.log().contains(WRONG));
}

#[test]
fn beyond_loopback_there_is_always_a_key() {
    let _beside = beside();
    let served = Served::start(netdyno(&["serve", "--bind", "0.0.0.0:0"]));
    assert!(ask(&served, None).contains("asks for a key"));
    assert!(ask(&served, Some(served.key())).contains(LET_IN));
    let other = Served::start(netdyno(&["serve", "--bind", "0.0.0.0:0"]));
    assert_ne!(served.key(), other.key());
}

#[test]
fn a_key_is_never_given_to_a_host_without_one() {
    let _beside = beside();
    let served = served();
    assert!(ask(&served, Some(RIGHT)).contains("the other side has no key"));
}

/// `CARGO_PKG_VERSION` alone is the version of a build that does not encrypt its connections.
#[test]
fn another_version_is_named_on_both_sides() {
    let _beside = beside();
    ["99.0.0", env!("CARGO_PKG_VERSION")].into_iter().for_each(name_on_both_sides);
}

fn name_on_both_sides(version: &'static str) {
    let another = move |part| Greeting {
        version: Version::new(version.as_bytes()).unwrap(),
        nonce: [7; 32],
        part,
        has_key: false,
    };
    let ours = Version::OURS;
    let named = format!("this is netdyno {ours}, the other side {version}: install the same version");
    let served = served();
    let mut stream = TcpStream::connect(address(&served)).unwrap();
    let end = shake(&mut stream, &another(Part::Client), None);
    assert!(matches!(end, Err(HandshakeError::Version { theirs, .. }) if theirs == ours), "{end:?}");
    drop(stream);
    served.says(&format!("refused: {named}"), 1);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = listener.local_addr().unwrap().to_string();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let end = shake(&mut stream, &another(Part::Server), None);
        Connection::plain(stream).hear_out(Duration::from_secs(1));
        end
    });
    let line = error_of(&measuring(&peer, &["--over", "udp"]), 2);
    assert!(line.contains(&named), "{line}");
    assert!(matches!(serving.join().unwrap(), Err(HandshakeError::Version { .. })));
}

/// Passes on one connection to the served host, and changes a byte of the client. Returns the bytes of both
/// sides.
fn pass_on(listener: &TcpListener, served: SocketAddr, change_at: Option<usize>) -> [Vec<u8>; 2] {
    let (client, _) = listener.accept().unwrap();
    let server = TcpStream::connect(served).unwrap();
    let pass = |mut from: &TcpStream, mut to: &TcpStream, change_at: Option<usize>| {
        let mut passed = Vec::new();
        let mut bytes = [0; 4096];
        // One side may end the connection while the other still sends.
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            let begin = passed.len();
            passed.extend_from_slice(&bytes[..len]);
            if let Some(byte) = change_at.and_then(|at| bytes[..len].get_mut(at.checked_sub(begin)?)) {
                *byte ^= 1;
            }
            let _ = to.write_all(&bytes[..len]);
        }
        let _ = to.shutdown(Shutdown::Write);
        passed
    };
    thread::scope(|scope| {
        let says = scope.spawn(|| pass(&client, &server, change_at));
        let answers = pass(&server, &client, None);
        [says.join().unwrap(), answers]
    })
}

#[test]
fn nobody_on_the_way_reads_or_changes_a_message() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let key = key_file(&folder, "key", RIGHT);
    let served = Served::start(netdyno(&["serve", "--bind", "127.0.0.1:0", "--key-file", &key]));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = listener.local_addr().unwrap().to_string();
    let args = measuring(&peer, &["--over", "udp", "--cpus", "0,1023", "--key-file", &key]);
    let attacked = |change_at| {
        thread::scope(|scope| {
            let passed = scope.spawn(|| pass_on(&listener, address(&served), change_at));
            let line = error_of(&args, 2);
            (line, passed.join().unwrap())
        })
    };
    let (line, passed) = attacked(None);
    assert!(line.contains(LET_IN), "{line}");
    for (bytes, word) in passed.iter().zip(["Reserve", "Refused"]) {
        assert!(!bytes.windows(word.len()).any(|part| part == word.as_bytes()));
    }
    // The last byte of the client's first message.
    let (line, _) = attacked(Some(passed[0].len() - 1));
    assert!(line.contains("the other side has closed the connection"), "{line}");
    served.says("refused: what came is not a message: it was not encrypted with the keys", 1);
}

#[test]
fn one_client_at_a_time() {
    let _beside = beside();
    let served = served();
    let reserve = || {
        let mut stream = remote::dial(address(&served), None, LONG).unwrap();
        frame::send(&mut stream, &json!({ "Reserve": { "cpu": null } })).unwrap();
        let reply: serde_json::Value = frame::receive(&mut stream).unwrap();
        (stream, reply)
    };
    let (first, reply) = reserve();
    assert!(reply["Reserved"]["session"].is_u64(), "{reply}");
    let peer = address(&served).to_string();
    let line = error_of(&measuring(&peer, &["--over", "udp"]), 2);
    assert!(line.contains("busy: 127.0.0.1 is measuring; try again later"), "{line}");
    drop(first);
    served.says("127.0.0.1: done, 0 launches", 1);
    let (_second, reply) = reserve();
    assert!(reply["Reserved"].is_object(), "{reply}");
}

#[test]
fn a_worker_is_given_to_the_measurement_alone() {
    let _beside = beside();
    let served = served();
    let mut stream = remote::dial(address(&served), None, LONG).unwrap();
    frame::send(&mut stream, &json!({ "Launch": { "session": 1 } })).unwrap();
    let answer: serde_json::Value = frame::receive(&mut stream).unwrap();
    assert_eq!(answer, json!({ "Failed": "was refused: its measurement is over" }));
    assert_eq!(workers_of(served.pid()), [0; 0]);
}

#[test]
fn strangers_hold_up_nobody() {
    let _beside = beside();
    let served = served();
    let silent: Vec<TcpStream> = (0..30).map(|_| TcpStream::connect(address(&served)).unwrap()).collect();
    let mut talking = TcpStream::connect(address(&served)).unwrap();
    talking.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..10 {
        let mut stream = TcpStream::connect(address(&served)).unwrap();
        let mut bytes = vec![0; random.usize(..2000)];
        random.fill(&mut bytes);
        // The server may close the connection before all bytes are sent.
        let _ = stream.write_all(&bytes);
    }
    // A valid handshake, followed by bytes that are no message.
    let mut known = remote::dial(address(&served), None, LONG).unwrap();
    known.write_all(&[0xff; 100]).unwrap();
    assert!(ask(&served, None).contains(LET_IN));
    served.says("refused: what speaks there is not netdyno", 1);
    served.says("refused: what came is not a message", 1);
    // Too many connections are turned away, and the server recovers.
    let flood: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address(&served)).unwrap()).collect();
    served.says("turned away: too many are knocking", 1);
    drop((silent, flood));
    served.says("the other side has closed the connection", 30);
    assert!(ask(&served, None).contains(LET_IN));
}

#[test]
fn a_host_that_speaks_something_else_or_nothing() {
    let _beside = beside();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = listener.local_addr().unwrap().to_string();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let line = error_of(&measuring(&peer, &["--over", "udp"]), 2);
    assert!(line.contains("what speaks there is not netdyno"), "{line}");
    let began = Instant::now();
    let line = error_of(&measuring(&peer, &["--over", "udp"]), 2);
    assert!(line.contains("the other side says nothing") && began.elapsed() < LONG, "{line}");
    serving.join().unwrap();
}

/// Starts a long measurement, whose launches take more than a second.
fn long_measurement(served: &Served) -> Child {
    let peer = address(served).to_string();
    let args = ["logp", "--over", "am+udp", "--wait", "block", "--launches", "20", "--max-time", "30s"];
    let mut command = netdyno(&[&args[..], &["--precision", "0.0001", "--peer", &peer]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn await_worker(served: &Served) {
    let until = Instant::now() + LONG;
    while workers_of(served.pid()).is_empty() {
        assert!(Instant::now() < until, "no worker was started: {}", served.log());
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn ctrl_c_ends_serving_and_what_is_measured() {
    let _beside = beside();
    let mut served = served();
    let client = long_measurement(&served);
    await_worker(&served);
    kill_process(Pid::from_raw(served.pid() as i32).unwrap(), Signal::INT).unwrap();
    assert_eq!(served.code(), Some(130));
    served.says("stopped", 1);
    let line = one_line(client.wait_with_output().unwrap(), 1);
    assert!(line.starts_with("error: am+udp, launch "), "{line}");
}

#[test]
fn ctrl_c_of_the_client_frees_the_host() {
    let _beside = beside();
    let served = served();
    let client = long_measurement(&served);
    await_worker(&served);
    kill_process(Pid::from_raw(client.id() as i32).unwrap(), Signal::INT).unwrap();
    assert_eq!(one_line(client.wait_with_output().unwrap(), 130), "interrupted: nothing was written\n");
    served.says("127.0.0.1: done", 1);
    assert!(ask(&served, None).contains(LET_IN));
}

#[test]
fn what_cannot_be_done_is_said_in_one_line() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let short = key_file(&folder, "short", "too short");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let truth = "o_s=1us,o_r=2us,g=5us,L=7us";
    let cases: &[(&[&str], &str)] = &[
        (&["logp", "--over", "am+shm", "--peer", "127.0.0.1"], "am+shm does not reach another host"),
        (&["logp", "--over", "sim", "--truth", truth, "--peer", "127.0.0.1"], "sim does not reach"),
        (&["logp", "--over", "udp", "--peer", "no-such-host.invalid"], "no host 'no-such-host.invalid'"),
        (&["logp", "--over", "udp", "--peer", "127.0.0.1:1"], "run `netdyno serve` on that host"),
        (&["logp", "--over", "udp", "--peer", "fe80::1"], "an address of one link only"),
        (&["logp", "--over", "udp", "--key-file", &short], "--peer"),
        (&["logp", "--over", "udp", "--peer", "127.0.0.1", "--key-file", "/nonexistent"], "/nonexistent"),
        (&["logp", "--over", "udp", "--peer", "127.0.0.1", "--key-file", &short], "16 characters at least"),
        (&["serve", "--key-file", &short], "16 characters at least"),
        (&["serve", "--bind", &taken], "choose another one with --bind"),
        (&["serve", "--bind", "192.0.2.1"], "192.0.2.1:5647"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}

#[test]
fn a_key_that_others_can_read_is_warned_of() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let file = key_file(&folder, "key", RIGHT);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let served = Served::start(netdyno(&["serve", "--bind", "127.0.0.1:0", "--key-file", &file]));
    served.says(&format!("warning: others can read the key in {file}: chmod 600 {file}"), 1);
    assert!(ask(&served, Some(RIGHT)).contains(LET_IN));
}
