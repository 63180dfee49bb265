//! Programs in C against `vipl.h` and `libvipl.so`, over each wire: `tests/programs`. They are compiled
//! as a user would compile them.

#![allow(clippy::unwrap_used, reason = "a test")]

mod library;

use library::Library;

/// Devices, by the wire that they are on.
const DEVICES: &[&str] = &["shm", "udp:127.0.0.1:0"];

/// Runs a program on each device; it ends with 0 if all went as it should, and by itself if it hangs.
fn run(name: &str, arguments: &[&str]) {
    run_on(DEVICES, name, arguments);
}

fn run_on(devices: &[&str], name: &str, arguments: &[&str]) {
    let library = Library::built();
    let program = library.compile(name);
    for device in devices {
        let output = library.run(&program).arg(device).args(arguments).output().unwrap();
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name} on {device}: {}\n{said}{complained}", output.status);
        print!("{said}");
    }
}

#[test]
fn ping_pong() {
    run("pingpong", &[]);
}

/// Prints the ratio of polling and blocking, where there is a processor for each of the two.
#[test]
fn ping_pong_polling() {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if processors < 2 {
        println!("SKIPPED: two that poll need two processors");
    } else {
        run("pingpong", &["poll", "200"]);
    }
}

#[test]
fn stream() {
    run("stream", &[]);
}

#[test]
fn rdma() {
    run("rdma", &[]);
}

#[test]
fn many_vis_on_one_completion_queue() {
    run("many", &[]);
}

#[test]
fn both_ways_to_connect() {
    run("connect", &[]);
}

#[test]
fn what_goes_wrong_with_messages() {
    run("errors", &[]);
}

/// Over UDP a peer that is silent is gone only for one who waits for it, and after 30 s.
#[test]
fn a_peer_is_killed() {
    run_on(&["shm"], "killed", &[]);
}

#[test]
fn handlers() {
    run("notify", &[]);
}

#[test]
fn threads_that_wait_at_once() {
    run("threads", &[]);
}

#[test]
fn arguments_that_can_not_be() {
    run("arguments", &[]);
}
