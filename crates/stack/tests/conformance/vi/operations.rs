//! Messages of all lengths, by every operation, at every level.

use super::end::{End, LONGEST, drive, pair, progress, wait_for, work};
use crate::common::{Transport, seed};
use fastrand::Rng;
use netdyno_stack::vi::*;
use std::collections::VecDeque;

const LENS: [usize; 9] = [0, 1, 100, 1380, 1381, 4096, 65_537, 300_000, LONGEST as usize];
/// The offsets in an end's memory: for sends, for receives, for writes of the peer, and for the results
/// of reads.
const SENT: usize = 0;
const RECEIVED: usize = LONGEST as usize;
const WRITTEN: usize = 2 * LONGEST as usize;
const READ: usize = 3 * LONGEST as usize;

fn random_bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.u8(..)).collect()
}

/// Returns the bytes from `offset` on as several segments.
fn segments(end: &End, offset: usize, len: usize) -> Vec<Segment> {
    let cut = [len / 3, len / 2, len];
    let mut begin = 0;
    cut.map(|to| {
        let segment = end.segment(offset + begin, to - begin);
        begin = to;
        segment
    })
    .to_vec()
}

fn done(status: Status, len: usize, immediate: Option<u32>) -> Completion {
    let status = Status::DONE.with(status);
    let status = if immediate.is_some() { status.with(Status::IMMEDIATE) } else { status };
    Completion { status, len: len as u32, immediate }
}

pub fn every_operation_at_every_reliable_level(transport: &Transport) {
    let mut rng = Rng::with_seed(seed());
    for level in [Level::Delivery, Level::Reception] {
        let (mut ends, [ours, theirs]) = pair(transport, level);
        for len in LENS {
            let sent = random_bytes(&mut rng, len);
            ends[0].write(SENT, &sent);
            let readable = random_bytes(&mut rng, len);
            ends[1].write(SENT, &readable);
            for immediate in [None, Some(rng.u32(..))] {
                let receive = work(Operation::Receive, &segments(&ends[1], RECEIVED, len + 10));
                ends[1].post(theirs, Side::Receive, &receive);
                let send = work(Operation::Send, &segments(&ends[0], SENT, len));
                ends[0].post(ours, Side::Send, &Work { immediate, ..send });
                let received = wait_for(&mut ends, 1, theirs, Side::Receive).completion;
                assert_eq!(received, done(Status::OP_RECEIVE, len, immediate), "{len} bytes");
                assert!(ends[1].read(RECEIVED, len) == sent, "{len} bytes");
                let completion = wait_for(&mut ends, 0, ours, Side::Send).completion;
                assert_eq!(completion, done(Status::OP_SEND, len, None));

                let write = Operation::Write(ends[1].remote(WRITTEN));
                let write = work(write, &segments(&ends[0], SENT, len));
                ends[1].write(WRITTEN, &vec![0; len]);
                if immediate.is_some() {
                    ends[1].receive_into(theirs, RECEIVED, 0);
                }
                ends[0].post(ours, Side::Send, &Work { immediate, ..write });
                let completion = wait_for(&mut ends, 0, ours, Side::Send).completion;
                assert_eq!(completion, done(Status::OP_WRITE, len, None));
                if immediate.is_some() {
                    let told = wait_for(&mut ends, 1, theirs, Side::Receive).completion;
                    assert_eq!(told, done(Status::OP_REMOTE_WRITE, len, immediate));
                } else if level == Level::Delivery {
                    drive(&mut ends, "what is written", |ends| ends[1].read(WRITTEN, len) == sent);
                }
                assert!(ends[1].read(WRITTEN, len) == sent, "{len} bytes");
            }
            let read = Operation::Read(ends[1].remote(SENT));
            let read = work(read, &segments(&ends[0], READ, len));
            ends[0].post(ours, Side::Send, &read);
            let completion = wait_for(&mut ends, 0, ours, Side::Send).completion;
            assert_eq!(completion, done(Status::OP_READ, len, None));
            assert!(ends[0].read(READ, len) == readable, "{len} bytes");
        }
        assert!(ends.iter().all(|end| end.failures.is_empty()));
    }
}

/// Messages may be lost. Each one that arrives is complete, arrives once and in order.
pub fn every_operation_of_a_vi_that_promises_nothing(transport: &Transport) {
    let mut rng = Rng::with_seed(seed());
    let (mut ends, [ours, theirs]) = pair(transport, Level::Unreliable);
    let lens = if transport.is_sound() { &LENS[..] } else { &LENS[..5] };
    for (len, is_write) in lens.iter().flat_map(|len| [(*len, false), (*len, true)]) {
        let sent = random_bytes(&mut rng, len);
        ends[0].write(SENT, &sent);
        let place = if is_write { WRITTEN } else { RECEIVED };
        ends[1].receive_into(theirs, RECEIVED, len);
        let operation = if is_write { Operation::Write(ends[1].remote(WRITTEN)) } else { Operation::Send };
        let send = Work { immediate: Some(7), ..work(operation, &segments(&ends[0], SENT, len)) };
        let mut received = None;
        // Sends until one arrives. Each send completes as soon as the wire has taken it.
        while received.is_none() {
            ends[0].post(ours, Side::Send, &send);
            let completion = wait_for(&mut ends, 0, ours, Side::Send).completion;
            assert_eq!((completion.len, completion.status.is_error()), (len as u32, false));
            for _ in 0..1000 {
                progress(&mut ends);
                received = received.or_else(|| ends[1].done(theirs, Side::Receive));
            }
        }
        let status = if is_write { Status::OP_REMOTE_WRITE } else { Status::OP_RECEIVE };
        assert_eq!(received.unwrap().completion, done(status, len, Some(7)));
        assert!(ends[1].read(place, len) == sent, "{len} bytes");
    }
    let numbers = 300_u32;
    let mut next = 0;
    for number in 0..numbers {
        ends[1].receive_into(theirs, RECEIVED, 4);
        let send = work(Operation::Send, &segments(&ends[0], SENT, 4));
        ends[0].post(ours, Side::Send, &Work { immediate: Some(number), ..send });
        drive(&mut ends, "a send", |ends| ends[0].done(ours, Side::Send).is_some());
        while let Some(Completed { completion, .. }) = ends[1].done(theirs, Side::Receive) {
            let number = completion.immediate.unwrap();
            assert!(number >= next, "{number} after {next}");
            next = number + 1;
        }
    }
    assert!(next > numbers / 2, "hardly anything came: {next}");
    assert!(ends.iter().all(|end| end.failures.is_empty()));
}

/// Many messages of all kinds in both directions, several at a time.
pub fn many_messages_come_once_whole_and_in_their_order(transport: &Transport) {
    const MESSAGES: usize = 400;
    const AT_ONCE: usize = 40;
    let seed = seed();
    for level in [Level::Delivery, Level::Reception] {
        let mut rng = Rng::with_seed(seed);
        let (mut ends, vis) = pair(transport, level);
        // Both ends hold the same bytes, so that one end knows what the other sends. They are only read.
        let bytes = random_bytes(&mut rng, RECEIVED);
        ends.iter_mut().for_each(|end| end.write(SENT, &bytes));
        let (mut sent, mut receives) = ([0; 2], [0; 2]);
        let mut under_way = [0; 2];
        let mut expected: [VecDeque<(usize, usize, Option<u32>)>; 2] = Default::default();
        let mut reads: [VecDeque<Option<(usize, usize)>>; 2] = Default::default();
        drive(&mut ends, "all messages", |ends| {
            for at in 0..2 {
                while sent[at] < MESSAGES && under_way[at] < AT_ONCE && expected[1 - at].len() < AT_ONCE {
                    let (offset, len) = message(&mut rng);
                    let immediate = rng.bool().then(|| rng.u32(..));
                    let segments = segments(&ends[at], offset, len);
                    let place = ends[1 - at].remote(offset);
                    let kind = rng.u32(..4);
                    let work = match kind {
                        // All reads go to one place, so only the last one is checked.
                        0 => work(Operation::Read(place), &[ends[at].segment(READ, len)]),
                        1 => work(Operation::Write(ends[1 - at].remote(WRITTEN)), &segments),
                        _ => work(Operation::Send, &segments),
                    };
                    let immediate = immediate.filter(|_| kind > 0);
                    if kind > 1 || immediate.is_some() {
                        // Each message in flight has a place of its own.
                        let slot = RECEIVED + receives[at] % AT_ONCE * LONGEST_OF_MANY;
                        receives[at] += 1;
                        ends[1 - at].receive_into(vis[1 - at], slot, LONGEST_OF_MANY);
                        expected[1 - at].push_back((offset, len, immediate));
                    }
                    reads[at].push_back((kind == 0).then_some((offset, len)));
                    ends[at].post(vis[at], Side::Send, &Work { immediate, ..work });
                    (sent[at], under_way[at]) = (sent[at] + 1, under_way[at] + 1);
                }
                while let Some(Completed { completion, .. }) = ends[at].done(vis[at], Side::Send) {
                    assert!(!completion.status.is_error(), "{completion:?}");
                    under_way[at] -= 1;
                    if let Some((offset, len)) = reads[at].pop_front().unwrap()
                        && reads[at].iter().all(Option::is_none)
                    {
                        assert!(ends[at].read(READ, len) == bytes[offset..offset + len]);
                    }
                }
                while let Some(Completed { at: descriptor, completion }) =
                    ends[at].done(vis[at], Side::Receive)
                {
                    let (offset, len, immediate) = expected[at].pop_front().unwrap();
                    assert_eq!((completion.len as usize, completion.immediate), (len, immediate));
                    if !completion.status.has(Status::OP_REMOTE_WRITE) {
                        let place = ends[at].place_of(descriptor);
                        assert!(ends[at].read(place, len) == bytes[offset..offset + len]);
                    }
                }
            }
            sent == [MESSAGES; 2] && under_way == [0; 2] && expected.iter().all(VecDeque::is_empty)
        });
        assert!(ends.iter().all(|end| end.failures.is_empty()));
    }
}

const LONGEST_OF_MANY: usize = 12_000;

/// Returns the offset and the length of one of many messages. Short messages are more frequent.
fn message(rng: &mut Rng) -> (usize, usize) {
    let longest = [64, 1500, LONGEST_OF_MANY][rng.usize(..3)];
    (rng.usize(..RECEIVED - LONGEST_OF_MANY), rng.usize(..=longest))
}

/// A send behind a read may start before the read is complete. A fenced one starts when all before it is
/// complete.
pub fn what_is_fenced_waits_for_reads_before_it(transport: &Transport) {
    let (mut ends, [ours, theirs]) = pair(transport, Level::Delivery);
    ends[1].write(SENT, &[5; 100_000]);
    ends[1].receive_into(theirs, RECEIVED, 100_000);
    let read = work(Operation::Read(ends[1].remote(SENT)), &[ends[0].segment(READ, 100_000)]);
    ends[0].post(ours, Side::Send, &read);
    let send = work(Operation::Send, &[ends[0].segment(READ, 100_000)]);
    ends[0].post(ours, Side::Send, &Work { is_fenced: true, ..send });
    wait_for(&mut ends, 1, theirs, Side::Receive);
    assert!(ends[1].read(RECEIVED, 100_000) == [5; 100_000]);
}
