//! Programs in C against `vipl.h` and `libvipl.so`, over each wire: `tests/programs`. They are compiled
//! as a user would compile them.

#![allow(clippy::unwrap_used, reason = "a test")]

mod library;

use library::Library;

/// Devices, by the wire that they are on.
const DEVICES: &[&str] = &["shm"];

/// Runs a program on each device; it ends with 0 if all went as it should, and by itself if it hangs.
fn run(name: &str, arguments: &[&str]) {
    let library = Library::built();
    let program = library.compile(name);
    for device in DEVICES {
        let output = library.run(&program).arg(device).args(arguments).output().unwrap();
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name} on {device}: {}\n{said}{complained}", output.status);
        print!("{said}");
    }
}

#[test]
#[ignore = "there is no wire yet"]
fn ping_pong() {
    run("pingpong", &[]);
}

/// Prints the ratio of polling and blocking, where there is a processor for each of the two.
#[test]
#[ignore = "there is no wire yet"]
fn ping_pong_polling() {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if processors < 2 {
        println!("SKIPPED: two that poll need two processors");
    } else {
        run("pingpong", &["poll", "200"]);
    }
}

#[test]
#[ignore = "there is no wire yet"]
fn stream() {
    run("stream", &[]);
}

#[test]
#[ignore = "there is no wire yet"]
fn rdma() {
    run("rdma", &[]);
}

#[test]
#[ignore = "there is no wire yet"]
fn many_vis_on_one_completion_queue() {
    run("many", &[]);
}

#[test]
#[ignore = "there is no wire yet"]
fn both_ways_to_connect() {
    run("connect", &[]);
}

#[test]
#[ignore = "there is no wire yet"]
fn what_goes_wrong_with_messages() {
    run("errors", &[]);
}

#[test]
#[ignore = "there is no wire yet"]
fn a_peer_is_killed() {
    run("killed", &[]);
}

#[test]
#[ignore = "there is no wire yet"]
fn handlers() {
    run("notify", &[]);
}

#[test]
#[ignore = "there is no wire yet"]
fn threads_that_wait_at_once() {
    run("threads", &[]);
}

#[test]
#[ignore = "there is no wire yet"]
fn arguments_that_can_not_be() {
    run("arguments", &[]);
}
