//! Tests for shared memory alone.

use super::end::{End, drive, pair, progress, wait_for};
use crate::common::TIMEOUT;
use crate::common::process::{Child, held, role};
use crate::common::transport::SHM;
use netdyno_stack::vi::*;

/// Runs in a process of its own, because it counts what that process holds.
#[test]
fn child_process() {
    let Some((_, parent)) = role() else { return };
    let mut ends = [(); 2].map(|()| End::open(&SHM));
    let levels = [Level::Delivery, Level::Reception];
    let vis = [0, 1].map(|at| ends[at].vi(levels[at]));
    let addresses = ends.each_ref().map(|end| end.address("peer"));
    for round in 0..6 {
        // One end is asked before it asks, or both ask at once.
        for at in [round % 2, 1 - round % 2] {
            ends[at].ask(vis[at], "peer", addresses[1 - at].clone(), true, TIMEOUT);
            (0..5 * (round % 3)).for_each(|_| _ = progress(&mut ends));
        }
        let mut answers = [None; 2];
        drive(&mut ends, "a conflict", |ends| {
            for at in 0..2 {
                answers[at] = answers[at].or_else(|| ends[at].provider.answer(vis[at]).transpose());
            }
            answers.iter().all(Option::is_some)
        });
        assert!(answers.iter().all(|answer| matches!(answer, Some(Err(ConnectError::Conflict(_))))));
        // Lets both ends receive all signals.
        (0..10).for_each(|_| _ = progress(&mut ends));
        let (descriptors, mappings) = held();
        parent.say(&format!("{descriptors} {mappings}"));
    }
}

#[test]
fn peers_that_do_not_fit_leave_nothing_behind() {
    let child = Child::start(module_path!(), "conflicts");
    let first = child.hear();
    for _ in 1..6 {
        assert_eq!(child.hear(), first, "descriptors and mappings");
    }
    child.join();
}

/// A sender may disconnect at once with more messages in its ring than one poll reads. The receiver still
/// gets all of them, although the socket is closed.
#[test]
fn what_was_sent_is_read_to_its_end_by_whoever_looks_later() {
    for (messages, len) in [(100, 100), (20, 60_000)] {
        let (mut ends, [ours, theirs]) = pair(&SHM, Level::Delivery);
        for nth in 0..messages {
            ends[1].receive_into(theirs, nth * len, len);
        }
        for nth in 0..messages {
            ends[0].write(nth * len, &vec![nth as u8; len]);
            ends[0].send_from(ours, nth * len, len);
            let sent = ends[0].done(ours, Side::Send).unwrap();
            assert!(!sent.completion.status.is_error(), "{sent:?}");
        }
        ends[0].provider.disconnect(ours).unwrap();
        for nth in 0..messages {
            let completion = wait_for(&mut ends, 1, theirs, Side::Receive).completion;
            assert_eq!((completion.len, completion.status.is_error()), (len as u32, false));
            assert!(ends[1].read(nth * len, len) == vec![nth as u8; len]);
        }
        drive(&mut ends, "the end", |ends| ends[1].state(theirs) == State::Error);
    }
}

/// Reads by one side do not keep the other side from sending.
#[test]
fn reads_and_sends_take_turns() {
    const LONG: usize = 1 << 20;
    let (mut ends, [ours, theirs]) = pair(&SHM, Level::Delivery);
    let segment = ends[0].segment(0, LONG);
    let read = super::end::work(Operation::Read(ends[1].remote(LONG)), &[segment]);
    for _ in 0..8 {
        ends[0].post(ours, Side::Send, &read);
    }
    ends[0].receive_into(ours, 3 * LONG, 10);
    drive(&mut ends, "a piece of what is read", |ends| ends[1].progress());
    ends[1].send_from(theirs, 0, 10);
    wait_for(&mut ends, 0, ours, Side::Receive);
    let mut read = 0;
    while ends[0].done(ours, Side::Send).is_some() {
        read += 1;
    }
    assert!(read < 8, "all was read before");
}
