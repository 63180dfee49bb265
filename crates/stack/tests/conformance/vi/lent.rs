//! Zero-copy: the peer copies a message directly from memory that the sender's provider has allocated.

use super::end::{End, drive, pair, wait_for, work};
use crate::common::process::in_own_process;
use crate::common::{Deadline, TIMEOUT, Transport};
use netdyno_stack::vi::*;

const LONG: usize = 100_000;

fn status(completed: Completed) -> Status {
    completed.completion.status
}

/// At a reliable level a send completes only when the peer has copied the message. A short send behind it
/// does not complete earlier either.
pub fn a_long_message_is_complete_when_the_peer_has_copied_it(transport: &Transport) {
    for level in [Level::Delivery, Level::Reception] {
        let (mut ends, [ours, theirs]) = pair(transport, level);
        ends[1].receive_into(theirs, 0, LONG);
        ends[1].receive_into(theirs, LONG, 10);
        ends[0].write(0, &vec![7; LONG]);
        ends[0].send_from(ours, 0, LONG);
        ends[0].send_from(ours, 0, 10);
        for _ in 0..100 {
            assert!(ends[0].done(ours, Side::Send).is_none());
        }
        for len in [LONG, 10] {
            let received = wait_for(&mut ends, 1, theirs, Side::Receive);
            assert_eq!((received.completion.len as usize, status(received).is_error()), (len, false));
            assert!(!status(wait_for(&mut ends, 0, ours, Side::Send)).is_error());
        }
        assert!(ends[1].read(0, LONG) == vec![7; LONG]);
    }
}

/// The peer takes both messages and then calls nothing for a while.
pub fn a_short_send_behind_a_long_one_does_not_wait_for_the_peers_next_call(transport: &Transport) {
    let (mut ends, [ours, theirs]) = pair(transport, Level::Delivery);
    for _ in 0..3 {
        let lens = [10, LONG, 10, 10];
        for len in lens {
            ends[1].receive_into(theirs, 0, len);
            ends[0].send_from(ours, 0, len);
            drive_one(&mut ends[1], theirs, Side::Receive);
        }
        for _ in lens {
            drive_one(&mut ends[0], ours, Side::Send);
        }
    }
    let lens = [LONG].into_iter().chain([10; 100]);
    for len in lens.clone() {
        ends[1].receive_into(theirs, 0, len);
        ends[0].send_from(ours, 0, len);
    }
    for _ in lens.clone() {
        drive_one(&mut ends[1], theirs, Side::Receive);
    }
    for _ in lens {
        drive_one(&mut ends[0], ours, Side::Send);
    }
}

/// Waits for a completion at one end, while the other calls nothing.
fn drive_one(end: &mut End, vi: ViHandle, side: Side) {
    let deadline = Deadline::after(TIMEOUT);
    let completed = loop {
        if let Some(completed) = end.done(vi, side) {
            break completed;
        }
        end.progress();
        deadline.check("a completion at one end");
    };
    assert!(!status(completed).is_error());
}

/// Messages that the peer has not copied when the connection ends do not arrive. The sender has its
/// memory back, and may have written other bytes to it.
pub fn nothing_comes_from_memory_that_was_given_back(transport: &Transport) {
    for is_begun in [false, true] {
        let (mut ends, [ours, theirs]) = pair(transport, Level::Delivery);
        ends[1].receive_into(theirs, 0, 1 << 20);
        ends[1].receive_into(theirs, 1 << 20, 10);
        ends[0].send_from(ours, 0, 1 << 20);
        ends[0].send_from(ours, 0, 10);
        if is_begun {
            drive(&mut ends, "a piece of it", |ends| ends[1].progress());
        }
        ends[0].provider.disconnect(ours).unwrap();
        ends[0].write(0, &vec![9; 1 << 20]);
        for _ in 0..2 {
            assert!(status(ends[0].done(ours, Side::Send).unwrap()).has(Status::FLUSHED));
            let received = wait_for(&mut ends, 1, theirs, Side::Receive);
            assert!(status(received).has(Status::FLUSHED), "{received:?}");
        }
        assert_eq!(ends[1].state(theirs), State::Error);
    }
}

/// Memory is allocated and freed, more than a peer maps at once. Some messages have several segments.
pub fn memory_comes_and_goes(transport: &Transport) {
    if !in_own_process(transport, memory_comes_and_goes) {
        return;
    }
    let (mut ends, [ours, theirs]) = pair(transport, Level::Delivery);
    let descriptors = descriptors();
    let mut kept = Vec::new();
    for nth in 0..200_u8 {
        let memory = ends[0].provider.allocate(LONG).unwrap();
        let (base, tag) = (memory.base().as_ptr(), ends[0].tag);
        let attributes = MemAttributes { tag, can_be_written: false, can_be_read: false };
        // SAFETY: the memory exists until it is deregistered, and there are no references to it.
        let handle = unsafe {
            base.write_bytes(nth, LONG);
            ends[0].provider.register(base, LONG, attributes).unwrap()
        };
        let whole = Segment { address: base.expose_provenance() as u64, handle: handle.0, len: LONG as u32 };
        let segments = match nth % 4 {
            0 => vec![
                Segment { len: 20_000, ..whole },
                Segment { address: whole.address + 50_000, len: 50_000, ..whole },
            ],
            _ => vec![whole],
        };
        let send = work(Operation::Send, &segments);
        ends[1].receive_into(theirs, 0, LONG);
        ends[0].post(ours, Side::Send, &send);
        let received = wait_for(&mut ends, 1, theirs, Side::Receive).completion;
        assert_eq!((received.len, received.status.is_error()), (send.len, false));
        assert!(ends[1].read(0, send.len as usize).iter().all(|byte| *byte == nth));
        assert!(!status(wait_for(&mut ends, 0, ours, Side::Send)).is_error());
        // Half of the memory is kept, which is more than a peer maps at once.
        if nth % 2 == 0 {
            kept.push(memory);
        } else {
            ends[0].provider.deregister(base, handle).unwrap();
        }
    }
    assert!(kept.len() > 64 && self::descriptors() <= descriptors + 2 * kept.len());
    drop(ends);
    drop(kept);
    assert!(self::descriptors() <= descriptors);
}

/// Returns the number of open descriptors of memory that peers can map.
fn descriptors() -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
    targets.filter(|target| target.to_string_lossy().contains("netdyno-lent")).count()
}

/// A write into the peer's memory with immediate data, and one that the peer refuses.
pub fn writes_are_checked_by_whoever_has_the_memory(transport: &Transport) {
    for level in Level::ALL {
        let (mut ends, [ours, theirs]) = pair(transport, level);
        ends[1].receive_into(theirs, 0, 0);
        ends[0].write(0, &[3; LONG]);
        let to = |end: &End, offset| Operation::Write(end.remote(offset));
        let mut write = work(to(&ends[1], 5000), &[ends[0].segment(0, LONG)]);
        write.immediate = Some(11);
        ends[0].post(ours, Side::Send, &write);
        assert_eq!(wait_for(&mut ends, 1, theirs, Side::Receive).completion.immediate, Some(11));
        assert!(ends[1].read(5000, LONG) == vec![3; LONG]);
        assert!(!status(wait_for(&mut ends, 0, ours, Side::Send)).is_error());
        let beyond = work(to(&ends[1], 100 << 20), &[ends[0].segment(0, LONG)]);
        ends[0].post(ours, Side::Send, &beyond);
        let refused = status(wait_for(&mut ends, 0, ours, Side::Send));
        assert_eq!(refused.is_error(), level.is_reliable(), "{refused:?}");
    }
}
