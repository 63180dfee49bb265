//! How connections end: by a disconnection, and by a message that the receiver does not take.

use super::end::{End, connect, drive, failed, pair, progress, wait_for, work};
use crate::common::{Deadline, TIMEOUT, Transport};
use netdyno_stack::am::Wire;
use netdyno_stack::vi::*;
use std::time::Duration;

const LONG: usize = 200_000;

/// All messages that were sent before a disconnection arrive, and then its notification.
pub fn what_was_sent_comes_before_the_end(transport: &Transport) {
    for (level, len) in [(Level::Delivery, 100), (Level::Delivery, 20_000), (Level::Reception, 100)] {
        let (mut ends, [ours, theirs]) = pair(transport, level);
        for nth in 0..20 {
            ends[0].write(nth * len, &vec![nth as u8; len]);
            ends[1].receive_into(theirs, nth * len, len);
            ends[0].send_from(ours, nth * len, len);
        }
        let unused = ends[1].receive_into(theirs, 0, 10);
        for _ in 0..20 {
            let completion = wait_for(&mut ends, 0, ours, Side::Send).completion;
            assert!(!completion.status.is_error(), "{completion:?}");
        }
        ends[0].provider.disconnect(ours).unwrap();
        assert_eq!(ends[0].state(ours), State::Idle);
        for nth in 0..20 {
            let completion = wait_for(&mut ends, 1, theirs, Side::Receive).completion;
            assert_eq!((completion.len, completion.status.is_error()), (len as u32, false));
            assert!(ends[1].read(nth * len, len) == vec![nth as u8; len]);
        }
        let flushed = wait_for(&mut ends, 1, theirs, Side::Receive);
        assert_eq!(flushed.at, unused);
        assert!(flushed.completion.status.has(Status::FLUSHED));
        assert_eq!(failed(&mut ends, 1), AsyncError::ConnLost);
        assert_eq!(ends[1].state(theirs), State::Error);
        assert!(ends[0].failures.is_empty());
    }
}

/// A provider that is closed still delivers what it has sent.
pub fn a_closed_provider_has_sent_everything(transport: &Transport) {
    let (ends, [ours, theirs]) = pair(transport, Level::Delivery);
    let [mut first, mut second] = ends;
    let receives: Vec<DescriptorAt> =
        (0..30).map(|nth| second.receive_into(theirs, nth * 1000, 1000)).collect();
    for nth in 0..30 {
        first.send_from(ours, nth * 1000, 1000);
    }
    let closing = std::thread::spawn(move || drop(first));
    let deadline = Deadline::after(TIMEOUT);
    while second.failures.is_empty() {
        deadline.check("the end of a closed provider");
        second.sleep(Duration::from_millis(5));
    }
    closing.join().unwrap();
    for at in receives {
        let completion = second.completion(at);
        assert_eq!((completion.len, completion.status.is_error()), (1000, false));
    }
}

/// The memory of descriptors that are still posted may be gone.
pub fn a_closed_provider_writes_no_descriptors(transport: &Transport) {
    let ([mut first, _second], [ours, _]) = pair(transport, Level::Delivery);
    let posted = first.receive_into(ours, 0, 100);
    let before = first.completion(posted);
    assert_eq!(first.close(posted).status, before.status);
}

/// A disconnection during long messages: all of them complete, and the VI can be connected again.
pub fn a_disconnection_in_the_midst_of_messages(transport: &Transport) {
    for looks in [0, 1, 5, 50] {
        let (mut ends, vis) = pair(transport, Level::Delivery);
        let [ours, theirs] = vis;
        for nth in 0..4 {
            ends[1].receive_into(theirs, nth * LONG, LONG);
            ends[0].send_from(ours, nth * LONG, LONG);
            let read = Operation::Read(ends[1].remote(0));
            let read = work(read, &[ends[0].segment(nth * LONG, LONG)]);
            ends[0].post(ours, Side::Send, &read);
        }
        for _ in 0..looks {
            progress(&mut ends);
        }
        ends[0].provider.disconnect(ours).unwrap();
        for _ in 0..8 {
            let status = wait_for(&mut ends, 0, ours, Side::Send).completion.status;
            assert!(!status.is_error() || status.has(Status::FLUSHED), "{status:?}");
        }
        assert_eq!(failed(&mut ends, 1), AsyncError::ConnLost);
        for _ in 0..4 {
            wait_for(&mut ends, 1, theirs, Side::Receive);
        }
        ends[1].provider.disconnect(theirs).unwrap();
        connect(&mut ends, vis);
    }
}

/// The errors at both ends for a message that is not taken.
struct Refused {
    at_receiver: AsyncError,
    at_sender: Status,
}

/// Prepares the receiver, and returns the work that is sent to it.
type Prepare = fn(&mut [End; 2], [ViHandle; 2], usize) -> Work;

fn is_refused(transport: &Transport, prepare: Prepare, refused: &Refused) {
    for (level, len) in [Level::Delivery, Level::Reception].into_iter().flat_map(|l| [(l, 100), (l, LONG)]) {
        let (mut ends, vis) = pair(transport, level);
        let [ours, theirs] = vis;
        let work = prepare(&mut ends, vis, len);
        let is_read = matches!(work.operation, Operation::Read(_));
        ends[0].post(ours, Side::Send, &work);
        // A send behind a read could arrive before the read is answered, so the work behind a read is
        // another read.
        let behind = if is_read { Operation::Read(Remote::default()) } else { Operation::Send };
        let behind = super::end::work(behind, &[ends[0].segment(0, 10)]);
        ends[0].post(ours, Side::Send, &behind);
        assert_eq!(failed(&mut ends, 1), refused.at_receiver, "{level:?}, {len} bytes");
        assert_eq!(ends[1].state(theirs), State::Error);
        assert_eq!(failed(&mut ends, 0), AsyncError::ConnLost);
        assert_eq!(ends[0].state(ours), State::Error);
        let first = wait_for(&mut ends, 0, ours, Side::Send).completion.status;
        if level == Level::Reception || is_read {
            assert!(first.has(refused.at_sender), "{level:?}, {len} bytes: {first:?}");
        }
        let second = wait_for(&mut ends, 0, ours, Side::Send).completion.status;
        if level == Level::Reception {
            assert!(second.has(Status::FLUSHED), "{second:?}");
        }
    }
}

pub fn no_receive_is_posted(transport: &Transport) {
    let prepare: Prepare = |ends, _, len| work(Operation::Send, &[ends[0].segment(0, len)]);
    let refused = Refused { at_receiver: AsyncError::RecvqEmpty, at_sender: Status::REMOTE_DESC_ERROR };
    is_refused(transport, prepare, &refused);
}

pub fn a_receive_is_too_short(transport: &Transport) {
    let prepare: Prepare = |ends, [_, theirs], len| {
        ends[1].receive_into(theirs, 0, len - 1);
        work(Operation::Send, &[ends[0].segment(0, len)])
    };
    let refused = Refused { at_receiver: AsyncError::ConnLost, at_sender: Status::REMOTE_DESC_ERROR };
    is_refused(transport, prepare, &refused);
}

pub fn memory_may_not_be_written(transport: &Transport) {
    let prepare: Prepare = |ends, _, len| {
        let tag = ends[1].tag;
        let closed = MemAttributes { tag, can_be_written: false, can_be_read: true };
        let handle = ends[1].register(0, LONG, closed).0;
        let remote = Remote { handle, ..ends[1].remote(0) };
        work(Operation::Write(remote), &[ends[0].segment(0, len)])
    };
    let refused = Refused { at_receiver: AsyncError::RdmawProt, at_sender: Status::RDMA_PROT_ERROR };
    is_refused(transport, prepare, &refused);
}

pub fn memory_is_not_there_any_more(transport: &Transport) {
    let prepare: Prepare = |ends, _, len| {
        let tag = ends[1].tag;
        let open = MemAttributes { tag, can_be_written: true, can_be_read: true };
        let handle = ends[1].register(0, LONG, open);
        ends[1].deregister(0, handle);
        let remote = Remote { handle: handle.0, ..ends[1].remote(0) };
        work(Operation::Read(remote), &[ends[0].segment(0, len)])
    };
    let refused = Refused { at_receiver: AsyncError::RdmarProt, at_sender: Status::RDMA_PROT_ERROR };
    is_refused(transport, prepare, &refused);
}

/// Memory is deregistered during a transfer. Both VIs break, and the status tells whose memory it was.
pub fn memory_goes_in_the_midst_of_a_message(transport: &Transport) {
    // The owner of the memory, and whether the operation is a read.
    for (owner, is_read) in [(0, false), (0, true), (1, false), (1, true)] {
        let (mut ends, [ours, _]) = pair(transport, Level::Reception);
        let tags = ends.each_ref().map(|end| end.tag);
        let handles = [0, 1].map(|at| {
            let open = MemAttributes { tag: tags[at], can_be_written: true, can_be_read: true };
            ends[at].register(0, 1 << 20, open)
        });
        let remote = Remote { handle: handles[1].0, ..ends[1].remote(0) };
        let operation = if is_read { Operation::Read(remote) } else { Operation::Write(remote) };
        let local = Segment { handle: handles[0].0, ..ends[0].segment(0, 1 << 20) };
        ends[0].post(ours, Side::Send, &work(operation, &[local]));
        progress(&mut ends);
        ends[owner].deregister(0, handles[owner]);
        let completion = wait_for(&mut ends, 0, ours, Side::Send).completion;
        // Shared memory takes a message of any length at once.
        if transport.wire == Wire::Shm && (is_read || !transport.is_lent) && owner == usize::from(is_read) {
            // All bytes had already left that memory. With zero-copy, the bytes of a write stay in it.
            assert!(!completion.status.is_error(), "{completion:?}");
            continue;
        }
        let protection = [Status::PROTECTION_ERROR, Status::RDMA_PROT_ERROR][owner];
        assert!(completion.status.has(protection), "{owner}, {is_read}: {completion:?}");
        drive(&mut ends, "the news of both", |ends| ends.iter().all(|end| !end.failures.is_empty()));
    }
}

/// A program that finds a completion at every poll still notices that its peer has disconnected.
pub fn the_end_is_heard_by_who_always_finds_something_done(transport: &Transport) {
    const SENDS: usize = 100_000;
    let (mut ends, [ours, theirs]) = pair(transport, Level::Unreliable);
    ends[1].provider.disconnect(theirs).unwrap();
    let heard = (0..SENDS).find(|nth| {
        ends[0].send_from(ours, 0, 10);
        if nth % 1000 == 0 {
            ends[1].progress();
        }
        ends[0].done(ours, Side::Send).is_some_and(|done| done.completion.status.has(Status::FLUSHED))
    });
    assert!(heard.is_some());
}

/// At the unreliable level a message that is not taken is lost, and the connection goes on.
pub fn a_vi_that_promises_nothing_goes_on(transport: &Transport) {
    let (mut ends, [ours, theirs]) = pair(transport, Level::Unreliable);
    let write = work(Operation::Write(Remote { handle: 0, ..ends[1].remote(0) }), &[ends[0].segment(0, 10)]);
    // Any of these messages may be lost.
    for _ in 0..50 {
        ends[0].send_from(ours, 0, 10);
        ends[0].post(ours, Side::Send, &write);
    }
    for _ in 0..100 {
        assert!(!wait_for(&mut ends, 0, ours, Side::Send).completion.status.is_error());
    }
    drive(&mut ends, "the news of a write", |ends| !ends[1].failures.is_empty());
    assert!(ends[1].failures.drain(..).all(|failure| failure.error == AsyncError::RdmawProt));
    assert_eq!([ends[0].state(ours), ends[1].state(theirs)], [State::Connected; 2]);
    let received = ends[1].receive_into(theirs, 0, 10);
    drive(&mut ends, "a message", |ends| {
        ends[0].send_from(ours, 0, 10);
        ends[0].done(ours, Side::Send);
        ends[1].completion(received).status.has(Status::DONE)
    });
}
