//! A process without free descriptors.

use super::end::{End, drive};
use crate::common::process::in_own_process;
use crate::common::{TIMEOUT, Transport};
use netdyno_stack::vi::*;
use std::fs::File;
use std::time::{Duration, Instant};

/// A request comes that cannot be accepted yet.
pub fn it_sleeps_and_answers_later(transport: &Transport) {
    if !in_own_process(transport, it_sleeps_and_answers_later) {
        return;
    }
    let mut ends = [(); 2].map(|()| End::open(transport));
    let vi = ends[0].vi(Level::Delivery);
    let wait = ends[1].wait("server", TIMEOUT);
    let to = ends[1].address("server");
    ends[0].ask(vi, "client", to, false, TIMEOUT);
    let taken: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let (began, mut sleeps) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(500) {
        ends[1].sleep(TIMEOUT);
        sleeps += 1;
    }
    assert!(sleeps < 50, "{sleeps} sleeps");
    assert!(ends[1].provider.waited(wait).unwrap().is_none());
    drop(taken);
    drive(&mut ends, "a request", |ends| ends[1].provider.waited(wait).unwrap().is_some());
}
