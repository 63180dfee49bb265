//! Servers that the measurement did not start: in C over libtirpc, in Python by grpcio, and `netdyno serve --over`.

use crate::common::schemas::read_record;
#[cfg(feature = "grpc")]
use crate::common::schemas::record;
use crate::common::served::{LONG, Served};
use crate::common::{beside, error_of, netdyno, run};
use netdyno_measure::record::{LayerResult, Record};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A process that is killed at the end of a test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the result of a short measurement of the server.
fn measured(verb: &str, layer: &str, server: &str, more: &[&str]) -> LayerResult {
    let args = [verb, "--over", layer, "--connect", server, "--launches", "1", "--max-time", "300ms"];
    let output = run(&[&args[..], more, &["--wait", "block", "--format", "json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let Record { mut results, .. } = read_record(&String::from_utf8(output.stdout).unwrap());
    results.remove(0)
}

/// Asserts that the record says which server it was, and invents nothing about that server.
fn assert_is_of(result: &LayerResult, server: &str) {
    assert_eq!(result.server.as_deref(), Some(server));
    assert_eq!((result.cpus.len(), &result.distance, result.probes.len()), (1, &None, 0));
    let doubt = result.doubts.iter().find(|doubt| doubt.name == "server_of_others").unwrap();
    assert!(doubt.text.contains(server), "{doubt:?}");
    assert!(result.parameters.rtt.value_ns.unwrap() > 0.0);
}

#[test]
fn a_server_over_libtirpc_is_measured() {
    let _beside = beside();
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path()) else { return println!("SKIPPED: no compiler, or no libtirpc") };
    for (layer, over) in [("oncrpc+udp", "udp"), ("oncrpc+tcp", "tcp")] {
        let (_killed, port) = serving(Command::new(&program).arg(over));
        let server = format!("127.0.0.1:{port}");
        assert_is_of(&measured("logp", layer, &format!("localhost:{port}"), &[]), &server);
        let bulk = measured("bulk", layer, &server, &["--largest", "8KiB"]);
        assert_is_of(&bulk, &server);
        assert_eq!(bulk.found.bulk().unwrap().sizes.last().unwrap().size_bytes, 8 << 10);
    }
}

#[test]
fn a_server_of_netdyno_answers_anyone() {
    let _beside = beside();
    let layers = ["oncrpc+udp", "oncrpc+tcp", "grpc"];
    for layer in layers.into_iter().filter(|layer| *layer != "grpc" || cfg!(feature = "grpc")) {
        let served = Served::start(netdyno(&["serve", "--over", layer, "--bind", "127.0.0.1:0"]));
        let server = served.announcement().split("--connect ").nth(1).unwrap().lines().next().unwrap();
        for _ in 0..2 {
            assert_is_of(&measured("logp", layer, server, &[]), server);
        }
        let bulk = measured("bulk", layer, server, &["--largest", "32KiB"]);
        assert_eq!(bulk.found.bulk().unwrap().sizes.last().unwrap().size_bytes, 32 << 10, "{layer}");
    }
}

#[test]
fn servers_that_fail_end_the_run_in_one_line() {
    let _beside = beside();
    // Nothing listens at the port of a socket that is closed.
    let free = |address| TcpListener::bind(address).ok().map(|it| it.local_addr().unwrap().to_string());
    for closed in ["127.0.0.1:0", "[::1]:0"].into_iter().filter_map(free) {
        for (layer, why) in [("oncrpc+tcp", "refused"), ("oncrpc+udp", "closed its socket")] {
            let line = error_of(&["logp", "--over", layer, "--connect", &closed], 1);
            let names = format!("logp --connect {closed}: the requester");
            assert!(line.contains(why) && line.contains(&names), "{line}");
        }
    }
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let began = Instant::now();
    let line = error_of(&["logp", "--over", "oncrpc+udp", "--connect", &address], 1);
    assert!(line.contains("nothing for 10s") && began.elapsed() < LONG, "{line}");
}

#[test]
fn a_server_without_the_program_is_told_apart() {
    let _beside = beside();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The mark of the record, and the transaction id.
        let mut begin = [0; 8];
        stream.read_exact(&mut begin).unwrap();
        // A record of one fragment: the id, a reply that is accepted, no verifier, and PROG_UNAVAIL.
        let words = [0x8000_0018, u32::from_be_bytes(*begin.last_chunk().unwrap()), 1, 0, 0, 0, 1];
        stream.write_all(&words.map(u32::to_be_bytes).concat()).unwrap();
        // Until the client has gone.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let line = error_of(&["logp", "--over", "oncrpc+tcp", "--connect", &address], 1);
    assert!(line.contains("does not have the program"), "{line}");
    serving.join().unwrap();
}

/// A server that executes every call but one, which it does not hear at first.
#[test]
fn calls_that_were_repeated_are_a_doubt() {
    let _beside = beside();
    for loses in [true, false] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let over = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                let (mut room, mut calls) = ([0; 1000], 0);
                while !over.load(Ordering::Relaxed) {
                    let Ok((len, from)) = socket.recv_from(&mut room) else { continue };
                    calls += 1;
                    if loses && calls == 20 {
                        continue;
                    }
                    // The transaction id, a reply that is accepted, no verifier, success, and the argument.
                    let words = [1, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
                    socket.send_to(&[&room[..4], &words, &room[40..len]].concat(), from).unwrap();
                }
            });
            let result = std::panic::catch_unwind(|| measured("logp", "oncrpc+udp", &address, &[]));
            over.store(true, Ordering::Relaxed);
            result.unwrap()
        });
        let doubt = result.doubts.iter().find(|doubt| doubt.name == "repeated_calls");
        assert_eq!(doubt.is_some(), loses, "{:?}", result.doubts);
    }
}

#[cfg(not(feature = "grpc"))]
#[test]
fn a_layer_that_was_not_built_says_how_to_build_it() {
    let line = error_of(&["logp", "--over", "grpc"], 2);
    assert!(line.contains("built without grpc") && line.contains("--features grpc"), "{line}");
    assert_eq!(error_of(&["logp", "--over", "grpc", "--connect", "127.0.0.1:9"], 2), line);
    assert!(error_of(&["serve", "--over", "grpc"], 2).contains("--features grpc"));
}

#[cfg(feature = "grpc")]
#[test]
fn grpc_is_measured_by_every_verb_of_requests() {
    let _beside = beside();
    for (verb, more) in
        [("logp", &[][..]), ("bulk", &["--largest", "64KiB"]), ("contention", &["--procs", "3"])]
    {
        for wait in ["yield", "block"] {
            let args = [verb, "--over", "grpc", "--launches", "1", "--max-time", "300ms", "--wait", wait];
            let result = record(&[&args[..], more].concat()).results.remove(0);
            assert_eq!((&*result.layer, &*result.wait), ("grpc", wait));
            assert!(result.parameters.rtt.value_ns.unwrap() > 0.0, "{verb}");
        }
    }
}

/// A server in Python by the library grpcio. `NETDYNO_TEST_PYTHON` names a Python that has it.
#[cfg(feature = "grpc")]
#[test]
fn a_server_by_grpcio_is_measured() {
    let _beside = beside();
    let Some(python) = std::env::var_os("NETDYNO_TEST_PYTHON") else {
        return println!("SKIPPED: no Python with grpcio is named");
    };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../layers/tests/rpc/grpc.py");
    for (args, is_served) in [(["server"], true), (["other"], false)] {
        let mut command = Command::new(&python);
        let (_killed, port) = serving(command.arg(&program).args(args));
        let server = format!("127.0.0.1:{port}");
        if is_served {
            assert_is_of(&measured("logp", "grpc", &format!("localhost:{port}"), &[]), &server);
            let bulk = measured("bulk", "grpc", &server, &["--largest", "8KiB"]);
            assert_eq!(bulk.found.bulk().unwrap().sizes.last().unwrap().size_bytes, 8 << 10);
        } else {
            let line = error_of(&["logp", "--over", "grpc", "--connect", &server], 1);
            assert!(line.contains("does not have the service netdyno.Echo"), "{line}");
        }
    }
}

/// Starts a server. Returns the port that it prints.
fn serving(command: &mut Command) -> (Killed, String) {
    let mut serving = Killed(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut port = String::new();
    BufReader::new(serving.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    (serving, port.trim().into())
}

/// Builds the server with the C compiler and the flags that pkg-config names.
fn build(folder: &Path) -> Option<PathBuf> {
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "libtirpc"]).output().ok()?;
    let flags = String::from_utf8(flags.stdout).ok().filter(|_| flags.status.success())?;
    let program = folder.join("echo");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/echo.c");
    let mut compiler = Command::new("cc");
    compiler.arg("-o").arg(&program).arg(source).args(flags.split_whitespace());
    compiler.status().ok()?.success().then_some(program)
}
