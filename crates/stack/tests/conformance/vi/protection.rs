//! Memory protection. A descriptor that names memory which its VI may not use fails, or is flushed with
//! the VI. Other connections go on.

use super::end::{End, LONGEST, connect, drive, failed, pair, wait_for, work};
use crate::common::Transport;
use netdyno_stack::vi::*;

const LEN: usize = 5000;

/// Connects one more VI of each end.
fn connected(ends: &mut [End; 2]) -> [ViHandle; 2] {
    let vis = ends.each_mut().map(|end| end.vi(Level::Reception));
    connect(ends, vis);
    vis
}

fn exchange(ends: &mut [End; 2], vis: [ViHandle; 2]) {
    for (from, to) in [(0, 1), (1, 0)] {
        ends[to].receive_into(vis[to], 0, 10);
        ends[from].send_from(vis[from], 0, 10);
        assert!(!wait_for(ends, to, vis[to], Side::Receive).completion.status.is_error());
        assert!(!wait_for(ends, from, vis[from], Side::Send).completion.status.is_error());
    }
}

/// Returns handles that a VI may not use: of deregistered memory, of memory with another tag, and of no
/// memory.
fn useless(end: &mut End) -> [u32; 3] {
    let open = |tag| MemAttributes { tag, can_be_written: true, can_be_read: true };
    let tag = end.tag;
    let gone = end.register(0, LEN, open(tag));
    end.deregister(0, gone);
    // The place of the deregistered memory is taken by other memory.
    let other = end.provider.create_tag().unwrap();
    let foreign = end.register(0, LEN, open(other));
    assert_ne!(gone, foreign);
    [gone.0, foreign.0, 0]
}

pub fn memory_of_its_own_that_a_vi_may_not_use_fails_the_descriptor(transport: &Transport) {
    // This connection survives the errors of others.
    let (mut ends, bystanders) = pair(transport, Level::Reception);
    for nth in 0..6 {
        let [ours, theirs] = connected(&mut ends);
        let handle = useless(&mut ends[0])[nth / 2];
        let segment = Segment { handle, ..ends[0].segment(0, LEN) };
        let received = ends[1].receive_into(theirs, 0, LEN);
        let remote = ends[1].remote(0);
        let operation = if nth % 2 == 0 { Operation::Send } else { Operation::Write(remote) };
        ends[0].post(ours, Side::Send, &work(operation, &[segment]));
        let behind = ends[0].send_from(ours, 0, 10);
        let completion = wait_for(&mut ends, 0, ours, Side::Send).completion;
        assert!(completion.status.has(Status::PROTECTION_ERROR), "{completion:?}");
        assert_eq!(failed(&mut ends, 0), AsyncError::PostDesc);
        assert!(ends[0].completion(behind).status.has(Status::FLUSHED));
        assert_eq!(failed(&mut ends, 1), AsyncError::ConnLost);
        assert!(ends[1].completion(received).status.has(Status::FLUSHED));
        exchange(&mut ends, bystanders);
    }
}

/// A receive into memory that its VI may not use fails, and the sender is told of it.
pub fn a_receive_into_memory_that_may_not_be_used_fails(transport: &Transport) {
    let (mut ends, bystanders) = pair(transport, Level::Reception);
    for nth in 0..3 {
        let [ours, theirs] = connected(&mut ends);
        let handle = useless(&mut ends[1])[nth];
        let receive = work(Operation::Receive, &[Segment { handle, ..ends[1].segment(0, LEN) }]);
        ends[1].post(theirs, Side::Receive, &receive);
        ends[1].write(0, &[3; LEN]);
        ends[0].send_from(ours, 0, LEN);
        let sent = wait_for(&mut ends, 0, ours, Side::Send).completion;
        assert!(sent.status.has(Status::REMOTE_DESC_ERROR), "{sent:?}");
        let received = wait_for(&mut ends, 1, theirs, Side::Receive).completion;
        assert!(received.status.has(Status::PROTECTION_ERROR), "{received:?}");
        assert!(ends[1].read(0, LEN) == [3; LEN]);
        assert_eq!([0, 1].map(|at| failed(&mut ends, at)), [AsyncError::ConnLost; 2]);
        exchange(&mut ends, bystanders);
    }
}

/// Memory of the peer that a VI may not use is neither written nor read.
pub fn memory_of_the_peers_that_may_not_be_used_is_not_touched(transport: &Transport) {
    let (mut ends, bystanders) = pair(transport, Level::Reception);
    for (nth, is_read) in (0..6).flat_map(|nth| [(nth, false), (nth, true)]) {
        let [ours, _] = connected(&mut ends);
        let useless = useless(&mut ends[1]);
        let (here, all) = (ends[1].remote(0), ends[1].remote(0).handle);
        let remote = match nth {
            0..3 => Remote { handle: useless[nth], ..here },
            3 => Remote { address: here.address - 1, handle: all },
            4 => Remote { address: here.address + (64 << 20), handle: all },
            _ => Remote { address: u64::MAX - 10, handle: all },
        };
        ends[0].write(0, &[5; LEN]);
        ends[1].write(0, &[3; LEN]);
        let operation = if is_read { Operation::Read(remote) } else { Operation::Write(remote) };
        let segment = ends[0].segment(0, LEN);
        ends[0].post(ours, Side::Send, &work(operation, &[segment]));
        let completion = wait_for(&mut ends, 0, ours, Side::Send).completion;
        assert!(completion.status.has(Status::RDMA_PROT_ERROR), "{remote:?}: {completion:?}");
        let told = [AsyncError::RdmawProt, AsyncError::RdmarProt][usize::from(is_read)];
        assert_eq!([0, 1].map(|at| failed(&mut ends, at)), [AsyncError::ConnLost, told]);
        assert!(ends[1].read(0, LEN) == [3; LEN] && ends[0].read(0, LEN) == [5; LEN]);
        exchange(&mut ends, bystanders);
    }
}

/// Reads whose bytes are still on their way when a denied one arrives are served first.
pub fn a_denied_read_leaves_the_reads_before_it_alone(transport: &Transport) {
    let (mut ends, bystanders) = pair(transport, Level::Reception);
    let len = LONGEST as usize;
    for nth in 0..3 {
        let [ours, theirs] = connected(&mut ends);
        let received = ends[1].receive_into(theirs, len, 10);
        let here = ends[1].remote(0);
        let denied = Remote { handle: useless(&mut ends[1])[nth], ..here };
        ends[0].write(0, &vec![5; 2 * len + LEN]);
        ends[1].write(0, &vec![3; len]);
        let reads = [(0, len, here), (len, len, here), (2 * len, LEN, denied)];
        for (at, len, remote) in reads {
            let segment = ends[0].segment(at, len);
            ends[0].post(ours, Side::Send, &work(Operation::Read(remote), &[segment]));
        }
        let behind = ends[0].send_from(ours, 0, 10);
        for _ in 0..2 {
            let read = wait_for(&mut ends, 0, ours, Side::Send).completion;
            assert_eq!(
                (read.len, read.status),
                (LONGEST, Status::OP_READ.with(Status::DONE)),
                "denied: {nth}"
            );
        }
        let completion = wait_for(&mut ends, 0, ours, Side::Send).completion;
        assert!(completion.status.has(Status::RDMA_PROT_ERROR), "{completion:?}");
        // A message may overtake a read in front of it. It says so if it did.
        assert_eq!([0, 1].map(|at| failed(&mut ends, at)), [AsyncError::ConnLost, AsyncError::RdmarProt]);
        let has_arrived = !ends[1].completion(received).status.is_error();
        assert!(has_arrived || ends[0].completion(behind).status.is_error());
        assert!(ends[0].read(0, 2 * len) == vec![3; 2 * len] && ends[0].read(2 * len, LEN) == [5; LEN]);
        exchange(&mut ends, bystanders);
    }
}

/// The answers to what each side may read fill all buffers, and a denied read lies behind them.
pub fn both_sides_read_much_and_are_denied(transport: &Transport) {
    let (mut ends, _) = pair(transport, Level::Delivery);
    let vis = ends.each_mut().map(|end| end.vi(Level::Delivery));
    connect(&mut ends, vis);
    let mut posted = Vec::new();
    for at in 0..2 {
        let here = ends[1 - at].remote(0);
        let denied = Remote { handle: 0, ..here };
        let segment = ends[at].segment(1 << 20, LONGEST as usize);
        for remote in [here, here, here, here, denied] {
            posted.push((at, ends[at].post(vis[at], Side::Send, &work(Operation::Read(remote), &[segment]))));
        }
    }
    drive(&mut ends, "the end of all reads", |ends| {
        (0..2).for_each(|at| while ends[at].done(vis[at], Side::Send).is_some() {});
        posted.iter().all(|(at, descriptor)| ends[*at].completion(*descriptor).status.has(Status::DONE))
    });
    // A side that refuses has broken its VI itself, and its own reads are flushed then.
    for (at, descriptor) in [posted[4], posted[9]] {
        assert!(ends[at].completion(descriptor).status.is_error());
    }
}

/// A descriptor keeps the values that it had when it was posted, even if the program changes its memory.
pub fn a_descriptor_that_is_changed_after_posting_is_the_one_that_was_posted(transport: &Transport) {
    let (mut ends, vis) = pair(transport, Level::Reception);
    let [ours, theirs] = vis;
    ends[0].write(0, &[5; LEN]);
    let received = ends[1].receive_into(theirs, 0, LEN);
    // The segments of the descriptor now have invalid addresses and handles.
    let at = (received.address - ends[1].remote(0).address) as usize;
    ends[1].write(at + 32, &[0xff; 32]);
    ends[0].send_from(ours, 0, LEN);
    let completion = wait_for(&mut ends, 1, theirs, Side::Receive).completion;
    assert_eq!((completion.len as usize, completion.status.is_error()), (LEN, false));
    assert!(ends[1].read(0, LEN) == [5; LEN]);
    wait_for(&mut ends, 0, ours, Side::Send);
    exchange(&mut ends, vis);
}
