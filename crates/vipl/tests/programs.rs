//! C programs against `vipl.h` and `libvipl.so`, over each wire: `tests/programs`. They are compiled as a
//! user would compile them.

#![allow(clippy::unwrap_used, reason = "a test")]

mod library;

use library::{run, run_on};

#[test]
fn ping_pong() {
    run("pingpong", &[]);
}

/// Prints the ratio of polling and blocking, if there is a processor for each process.
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

/// Over UDP a silent peer is only noticed by a thread that waits for it, and after 30 s. So the test runs
/// over shared memory alone.
#[test]
fn a_peer_is_killed() {
    run_on(&["shm"], "killed", &[]);
}

/// Programs that were written for hardware leave out both.
#[test]
fn neither_tags_nor_attributes() {
    run("no_tag", &[]);
}

/// Over UDP one NIC owns the socket of the address, and peers find the other NICs through it.
#[test]
fn one_device_opened_several_times() {
    run("one_device", &[]);
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
fn threads_that_sleep() {
    run("wakes", &[]);
}

#[test]
fn a_program_that_calls_nothing_behind_a_wait() {
    run("silent", &[]);
}

#[test]
fn signals_are_the_programs() {
    run("signals", &[]);
}

#[test]
fn a_process_forks() {
    run("forks", &[]);
}

#[test]
fn a_process_ends_behind_its_last_send() {
    for how in ["return", "atexit", "handler", "thread", "signal"] {
        run("ends", &[how]);
    }
}

/// Over UDP any user who knows the address may connect, so the test runs over shared memory alone.
#[test]
fn a_program_of_another_user() {
    run_on(&["shm"], "other_user", &[]);
}

#[test]
fn arguments_that_can_not_be() {
    run("arguments", &[]);
}
