//! What is special about shared memory.

use crate::end::{drive, pair, wait_for};
use netdyno_stack::vi::*;

/// A sender that is gone at once has written more than is read at a look: the end of its socket is no
/// end of its messages.
#[test]
fn what_was_sent_is_read_to_its_end_by_whoever_looks_later() {
    for (messages, len) in [(100, 100), (20, 60_000)] {
        let (mut ends, [ours, theirs]) = pair(Level::Delivery);
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

/// What a side reads does not keep the other one from sending.
#[test]
fn reads_and_sends_take_turns() {
    const LONG: usize = 1 << 20;
    let (mut ends, [ours, theirs]) = pair(Level::Delivery);
    let segment = ends[0].segment(0, LONG);
    let read = crate::end::work(Operation::Read(ends[1].remote(LONG)), &[segment]);
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
