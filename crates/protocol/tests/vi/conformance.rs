//! What a provider promises, one statement a test (VIA 1.0).

use crate::world::{BASE, Host, Packet, World, address, fragments, work};
use netdyno_protocol::frame::vi_fragment;
use netdyno_protocol::frame::vi_message::{Head, Kind};
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_protocol::vi::*;

const DONE_SEND: Status = Status::DONE.with(Status::OP_SEND);
const DONE_RECEIVE: Status = Status::DONE.with(Status::OP_RECEIVE);
const RELIABLE: [Level; 2] = [Level::Delivery, Level::Reception];

/// A message of `text`, from where that is put.
fn send(world: &mut World, at: usize, vi: ViHandle, text: &[u8]) -> DescriptorAt {
    let host = &mut world.hosts[at];
    let segment = host.segment(0, text.len() as u32);
    host.memory(segment.address, segment.len).copy_from_slice(text);
    host.post(vi, Side::Send, &work(Operation::Send, &[segment]))
}

/// A receive of `len` bytes at `offset`.
fn receive(world: &mut World, at: usize, vi: ViHandle, offset: u64, len: u32) -> DescriptorAt {
    let host = &mut world.hosts[at];
    let segment = host.segment(offset, len);
    host.post(vi, Side::Receive, &work(Operation::Receive, &[segment]))
}

/// An RDMA of `len` bytes between the beginning of our memory and `offset` of the other host's.
fn rdma(world: &World, is_write: bool, offset: u64, len: u32) -> Work {
    let remote = Remote { address: BASE + offset, handle: world.hosts[1].all.0 };
    let operation = if is_write { Operation::Write(remote) } else { Operation::Read(remote) };
    work(operation, &[world.hosts[0].segment(0, len)])
}

fn status(world: &mut World, at: usize, descriptor: DescriptorAt) -> Status {
    world.hosts[at].status(descriptor).status
}

fn state(world: &World, at: usize, vi: ViHandle) -> State {
    world.hosts[at].nic.query_vi(vi).unwrap().state
}

fn flushed(operation: Status) -> Status {
    Status::DONE.with(operation).with(Status::FLUSHED)
}

fn failed(operation: Status, error: Status) -> Status {
    Status::DONE.with(operation).with(error)
}

#[test]
fn a_message_goes_into_the_first_receive_with_its_length_and_immediate_data() {
    for level in Level::ALL {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(level);
        let receives = [100, 200].map(|offset| receive(&mut world, 1, theirs, offset, 50));
        let host = &mut world.hosts[0];
        host.memory(BASE, 6).copy_from_slice(b"abcdef");
        // In two pieces, into one.
        let segments = [host.segment(3, 3), host.segment(0, 2)];
        let sent = Work { immediate: Some(77), ..work(Operation::Send, &segments) };
        let sent = world.hosts[0].post(ours, Side::Send, &sent);
        world.run();
        assert_eq!(world.hosts[1].memory(BASE + 100, 6), b"defab\0");
        let status = DONE_RECEIVE.with(Status::IMMEDIATE);
        let completion = Completion { status, len: 5, immediate: Some(77) };
        assert_eq!(world.hosts[1].status(receives[0]), completion);
        assert_eq!(world.hosts[1].status(receives[1]).status, Status::default());
        assert_eq!(world.hosts[0].status(sent), Completion { status: DONE_SEND, len: 5, immediate: None });
        let done = world.hosts[1].nic.done(theirs, Side::Receive).unwrap();
        assert_eq!(done, Some(Completed { at: receives[0], completion }));
        assert_eq!(world.hosts[1].nic.done(theirs, Side::Receive), Ok(None));
    }
}

#[test]
fn unreliable_at_most_once() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Unreliable);
    for offset in [1000, 2000, 3000] {
        receive(&mut world, 1, theirs, offset, 4000);
    }
    let text: Vec<u8> = (0..3000).map(|n| n as u8).collect();
    send(&mut world, 0, ours, &text);
    world.send(0, ours).unwrap();
    let local = world.hosts[0].links[&ours].local;
    let packets: Vec<Packet> = world.wire(0, local).drain(..).collect();
    assert_eq!(packets.len(), 3);
    // Without its middle it is none; whole it comes once, however often its pieces do.
    for nth in [0, 2, 2, 0] {
        world.take(0, local, packets[nth].clone(), &mut |_| {});
    }
    let done = |world: &mut World| world.hosts[1].nic.done(theirs, Side::Receive).unwrap();
    assert_eq!(done(&mut world), None);
    send(&mut world, 0, ours, &text);
    world.send(0, ours).unwrap();
    let packets: Vec<Packet> = world.wire(0, local).drain(..).collect();
    for nth in [0, 0, 1, 1, 2, 2, 0, 1, 2] {
        world.take(0, local, packets[nth].clone(), &mut |_| {});
    }
    assert_eq!(done(&mut world).unwrap().completion.len, 3000);
    assert_eq!(done(&mut world), None);
    assert_eq!(world.hosts[1].memory(BASE + 1000, 3000), &text[..]);
}

#[test]
fn pieces_are_for_vis_that_promise_nothing() {
    let mut world = World::new(2);
    let [_, theirs] = world.connect(Level::Delivery);
    receive(&mut world, 1, theirs, 0, 10);
    let head = Head { number: 0, len: 4, kind: Kind::Send { immediate: None } };
    let pieces = fragments(world.hosts[1].links[&theirs].local, &head, b"text");
    let piece = vi_fragment::parse(&pieces[0]).unwrap();
    assert_eq!(world.hosts[1].nic.arrive_in_pieces(theirs, &piece, &mut Vec::new()), None);
    assert_eq!(state(&world, 1, theirs), State::Connected);
}

#[test]
fn unreliable_errors_do_not_break_the_vi() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Unreliable);
    // A message that is too long for its receive, one from elsewhere, a write where none may be,
    // a read, and what is no descriptor.
    let short = receive(&mut world, 1, theirs, 0, 3);
    let long = send(&mut world, 0, ours, b"four");
    let stray = Segment { handle: 1, ..world.hosts[0].segment(0, 4) };
    let stray = world.hosts[0].post(ours, Side::Send, &work(Operation::Send, &[stray]));
    let mut denied = rdma(&world, true, 0, 4);
    denied.operation = Operation::Write(Remote { address: BASE, handle: 1 });
    let denied = world.hosts[0].post(ours, Side::Send, &denied);
    let read = rdma(&world, false, 0, 4);
    let read = world.hosts[0].post(ours, Side::Send, &read);
    let good = receive(&mut world, 1, theirs, 100, 4);
    let last = send(&mut world, 0, ours, b"last");
    world.run();
    assert_eq!(status(&mut world, 1, short), failed(Status::OP_RECEIVE, Status::LENGTH_ERROR));
    assert_eq!(status(&mut world, 0, long), DONE_SEND);
    assert_eq!(status(&mut world, 0, stray), failed(Status::OP_SEND, Status::PROTECTION_ERROR));
    assert_eq!(status(&mut world, 0, denied), Status::DONE.with(Status::OP_WRITE));
    assert_eq!(status(&mut world, 0, read), failed(Status::OP_READ, Status::FORMAT_ERROR));
    assert_eq!((status(&mut world, 1, good), status(&mut world, 0, last)), (DONE_RECEIVE, DONE_SEND));
    assert_eq!(world.hosts[1].memory(BASE + 100, 4), b"last");
    assert_eq!([state(&world, 0, ours), state(&world, 1, theirs)], [State::Connected; 2]);
    assert_eq!(world.hosts[1].failures(), [AsyncError::RdmawProt]);
    assert_eq!(world.hosts[0].failures(), []);
}

#[test]
fn reliable_exactly_once_in_order() {
    for level in RELIABLE {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(level);
        for nth in 0..20 {
            receive(&mut world, 1, theirs, 100 * nth, 100);
        }
        for nth in 0..20 {
            send(&mut world, 0, ours, &[nth; 7]);
            world.run();
        }
        for nth in 0..20 {
            let done = world.hosts[1].nic.done(theirs, Side::Receive).unwrap().unwrap();
            assert_eq!((done.completion.status, done.completion.len), (DONE_RECEIVE, 7));
            assert_eq!(world.hosts[1].memory(BASE + 100 * u64::from(nth), 7), [nth; 7]);
        }
        assert_eq!(world.hosts[1].nic.done(theirs, Side::Receive), Ok(None));
    }
}

#[test]
fn reliable_delivery_the_send_completes_once_the_data_is_accepted_by_the_wire() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Delivery);
    receive(&mut world, 1, theirs, 0, 10);
    let sent = send(&mut world, 0, ours, b"text");
    let Outgoing { number, .. } = world.send(0, ours).unwrap();
    assert_eq!(status(&mut world, 0, sent), Status::default());
    world.progress(0, ours, number, Progress::Accepted);
    assert_eq!(status(&mut world, 0, sent), DONE_SEND);
}

#[test]
fn reliable_reception_the_send_completes_only_when_the_data_is_in_the_targets_memory() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Reception);
    receive(&mut world, 1, theirs, 0, 10);
    let sent = send(&mut world, 0, ours, b"text");
    let Outgoing { number, .. } = world.send(0, ours).unwrap();
    world.progress(0, ours, number, Progress::Accepted);
    assert_eq!(status(&mut world, 0, sent), Status::default());
    world.run();
    assert_eq!(world.hosts[1].memory(BASE, 4), b"text");
    assert_eq!(status(&mut world, 0, sent), DONE_SEND);
}

#[test]
fn reliable_any_error_puts_the_vi_in_error_and_flushes_both_queues() {
    for level in RELIABLE {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(level);
        let posted = [(); 2].map(|()| receive(&mut world, 0, ours, 0, 10));
        let theirs_posted = receive(&mut world, 1, theirs, 0, 10);
        let stray = Segment { handle: 1, ..world.hosts[0].segment(0, 4) };
        let stray = world.hosts[0].post(ours, Side::Send, &work(Operation::Send, &[stray]));
        let behind = send(&mut world, 0, ours, b"never");
        world.run();
        assert_eq!(status(&mut world, 0, stray), failed(Status::OP_SEND, Status::PROTECTION_ERROR));
        assert_eq!(status(&mut world, 0, behind), flushed(Status::OP_SEND));
        for receive in posted {
            assert_eq!(status(&mut world, 0, receive), flushed(Status::OP_RECEIVE));
        }
        assert_eq!(world.hosts[0].failures(), [AsyncError::PostDesc]);
        // The peer learns that the connection is no more.
        assert_eq!(status(&mut world, 1, theirs_posted), flushed(Status::OP_RECEIVE));
        assert_eq!(world.hosts[1].failures(), [AsyncError::ConnLost]);
        assert_eq!([state(&world, 0, ours), state(&world, 1, theirs)], [State::Error; 2]);
        // What is posted now is flushed at once.
        let late = [receive(&mut world, 0, ours, 0, 10), send(&mut world, 0, ours, b"late")];
        world.attend();
        assert_eq!(status(&mut world, 0, late[0]), flushed(Status::OP_RECEIVE));
        assert_eq!(status(&mut world, 0, late[1]), flushed(Status::OP_SEND));
    }
}

#[test]
fn reliable_reception_the_error_is_reported_on_the_failing_descriptor_and_nothing_after_it_is_processed() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Reception);
    receive(&mut world, 1, theirs, 0, 10);
    let short = receive(&mut world, 1, theirs, 100, 2);
    let unused = receive(&mut world, 1, theirs, 200, 10);
    let sent: Vec<DescriptorAt> = (0..4).map(|_| send(&mut world, 0, ours, b"text")).collect();
    // All are on the wire before the first answer comes.
    while world.send(0, ours).is_some() {}
    world.run();
    let statuses: Vec<Status> = sent.iter().map(|at| status(&mut world, 0, *at)).collect();
    let lost = flushed(Status::OP_SEND);
    assert_eq!(statuses, [DONE_SEND, failed(Status::OP_SEND, Status::REMOTE_DESC_ERROR), lost, lost]);
    assert_eq!(status(&mut world, 1, short), failed(Status::OP_RECEIVE, Status::LENGTH_ERROR));
    assert_eq!(status(&mut world, 1, unused), flushed(Status::OP_RECEIVE));
    assert_eq!(world.hosts[1].memory(BASE + 200, 4), [0; 4]);
    assert_eq!([state(&world, 0, ours), state(&world, 1, theirs)], [State::Error; 2]);
}

#[test]
fn no_receive_descriptor_posted_an_unreliable_vi_drops_the_message() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Unreliable);
    let sent = send(&mut world, 0, ours, b"lost");
    world.run();
    let late = receive(&mut world, 1, theirs, 0, 10);
    world.run();
    assert_eq!(status(&mut world, 0, sent), DONE_SEND);
    assert_eq!(status(&mut world, 1, late), Status::default());
    assert_eq!(state(&world, 1, theirs), State::Connected);
}

#[test]
fn no_receive_descriptor_posted_a_reliable_vi_breaks() {
    for level in RELIABLE {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(level);
        let sent = send(&mut world, 0, ours, b"text");
        world.run();
        let told = if level == Level::Reception {
            failed(Status::OP_SEND, Status::REMOTE_DESC_ERROR)
        } else {
            DONE_SEND
        };
        assert_eq!(status(&mut world, 0, sent), told);
        assert_eq!([state(&world, 0, ours), state(&world, 1, theirs)], [State::Error; 2]);
        assert_eq!(world.hosts[1].failures(), [AsyncError::RecvqEmpty]);
        assert_eq!(world.hosts[0].failures(), [AsyncError::ConnLost]);
    }
}

#[test]
fn an_rdma_write_with_immediate_consumes_a_receive_descriptor() {
    for level in Level::ALL {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(level);
        let taken = receive(&mut world, 1, theirs, 500, 3);
        let written = Work { immediate: Some(5), ..rdma(&world, true, 300, 4) };
        world.hosts[0].memory(BASE, 4).copy_from_slice(b"text");
        let written = world.hosts[0].post(ours, Side::Send, &written);
        world.run();
        assert_eq!(status(&mut world, 0, written), Status::DONE.with(Status::OP_WRITE));
        let status = Status::DONE.with(Status::OP_REMOTE_WRITE).with(Status::IMMEDIATE);
        assert_eq!(world.hosts[1].status(taken), Completion { status, len: 4, immediate: Some(5) });
        assert_eq!(world.hosts[1].memory(BASE + 300, 4), b"text");
        assert_eq!(world.hosts[1].memory(BASE + 500, 3), [0; 3]);
    }
}

#[test]
fn an_rdma_write_without_immediate_the_target_sees_nothing() {
    for level in Level::ALL {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(level);
        let untouched = receive(&mut world, 1, theirs, 500, 3);
        world.hosts[0].memory(BASE, 4).copy_from_slice(b"text");
        let written = rdma(&world, true, 300, 4);
        world.hosts[0].post(ours, Side::Send, &written);
        let before = world.hosts[1].events.len();
        world.run();
        assert_eq!(world.hosts[1].memory(BASE + 300, 4), b"text");
        assert_eq!(status(&mut world, 1, untouched), Status::default());
        assert_eq!(world.hosts[1].events.len(), before);
    }
}

#[test]
fn an_rdma_write_needs_the_leave_of_the_vi_and_of_the_memory() {
    for level in RELIABLE {
        for is_of_vi in [false, true] {
            let mut world = World::new(2);
            let [ours, theirs] = [0, 1].map(|at| world.hosts[at].create_vi(level));
            let host = &mut world.hosts[1];
            if is_of_vi {
                let closed = ViAttributes { can_be_written: false, ..host.vi_attributes(level) };
                host.nic.set_vi(theirs, closed).unwrap();
            } else {
                let closed = MemAttributes { tag: host.tag, can_be_written: false, can_be_read: true };
                host.nic.set_memory(BASE, host.all, closed).unwrap();
            }
            world.connect_as_peers([ours, theirs]);
            let written = rdma(&world, true, 300, 4);
            let written = world.hosts[0].post(ours, Side::Send, &written);
            world.run();
            let told = match level {
                Level::Reception => failed(Status::OP_WRITE, Status::RDMA_PROT_ERROR),
                _ => Status::DONE.with(Status::OP_WRITE),
            };
            assert_eq!(status(&mut world, 0, written), told);
            assert_eq!(world.hosts[1].failures(), [AsyncError::RdmawProt]);
            assert_eq!([state(&world, 0, ours), state(&world, 1, theirs)], [State::Error; 2]);
        }
    }
}

#[test]
fn an_rdma_write_with_immediate_that_is_denied_is_told_by_the_receive() {
    for level in Level::ALL {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(level);
        let host = &mut world.hosts[1];
        let closed = MemAttributes { tag: host.tag, can_be_written: false, can_be_read: false };
        host.nic.set_memory(BASE, host.all, closed).unwrap();
        let told = receive(&mut world, 1, theirs, 500, 3);
        let written = Work { immediate: Some(7), ..rdma(&world, true, 300, 4) };
        world.hosts[0].post(ours, Side::Send, &written);
        world.run();
        let denied = failed(Status::OP_REMOTE_WRITE, Status::RDMA_PROT_ERROR);
        assert_eq!(world.hosts[1].status(told), Completion { status: denied, len: 0, immediate: None });
        assert_eq!(world.hosts[1].memory(BASE + 300, 4), [0; 4]);
        let failures = if level.is_reliable() { vec![AsyncError::ConnLost] } else { Vec::new() };
        assert_eq!(world.hosts[1].failures(), failures);
        let expected = if level.is_reliable() { State::Error } else { State::Connected };
        assert_eq!(state(&world, 1, theirs), expected);
    }
}

#[test]
fn an_rdma_read_brings_the_bytes_and_the_target_sees_nothing() {
    for level in RELIABLE {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(level);
        let untouched = receive(&mut world, 1, theirs, 500, 3);
        let text: Vec<u8> = (0..700).map(|n| n as u8).collect();
        world.hosts[1].memory(BASE + 300, 700).copy_from_slice(&text);
        let read = rdma(&world, false, 300, 700);
        let read = world.hosts[0].post(ours, Side::Send, &read);
        world.run();
        let completion = Completion { status: Status::DONE.with(Status::OP_READ), len: 700, immediate: None };
        assert_eq!(world.hosts[0].status(read), completion);
        assert_eq!(world.hosts[0].memory(BASE, 700), &text[..]);
        assert_eq!(status(&mut world, 1, untouched), Status::default());
        // Elsewhere it may not.
        let denied = rdma(&world, false, 1 << 15, 1);
        let denied = world.hosts[0].post(ours, Side::Send, &denied);
        world.run();
        assert_eq!(status(&mut world, 0, denied), failed(Status::OP_READ, Status::RDMA_PROT_ERROR));
        assert_eq!(world.hosts[1].failures(), [AsyncError::RdmarProt]);
    }
}

/// A carrier serves reads when there is room, which may be in the middle of a message.
#[test]
fn an_rdma_read_is_answered_beside_the_message_that_is_coming() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Delivery);
    let posted = receive(&mut world, 1, theirs, 1000, 300);
    let read = rdma(&world, false, 300, 4);
    world.hosts[0].post(ours, Side::Send, &read);
    let Outgoing { head, .. } = world.hosts[0].nic.next(ours).unwrap();
    send(&mut world, 0, ours, &[7; 300]);
    world.send(0, ours).unwrap();
    let local = world.hosts[0].links[&ours].local;
    world.deliver(0, local, &mut |world| {
        assert_eq!(world.hosts[1].nic.arrive(theirs, &head), Arrival::Serve);
        assert!(world.hosts[1].nic.serves(theirs, &head, 0, 4).is_ok());
    });
    assert_eq!(status(&mut world, 1, posted), DONE_RECEIVE);
    assert_eq!(world.hosts[1].memory(BASE + 1000, 300), [7; 300]);
}

#[test]
fn an_rdma_read_needs_a_reliable_level_and_is_optional() {
    let nic = Nic::new(NicAttributes::default());
    assert!(!nic.attributes().can_read(Level::Unreliable));
    let mut world = World::new(2);
    let without = NicAttributes { read_levels: attributes::Levels(0), ..NicAttributes::default() };
    world.hosts = (0..2).map(|_| Host::new(without)).collect();
    let host = &mut world.hosts[0];
    let readable = ViAttributes { can_be_read: true, ..host.vi_attributes(Level::Delivery) };
    let refused = ResourceError::Unsupported(Unsupported::RdmaRead);
    assert_eq!(host.nic.create_vi(readable, None, None), Err(refused));
    let [ours, _] = world.connect(Level::Delivery);
    let read = rdma(&world, false, 0, 4);
    let read = world.hosts[0].post(ours, Side::Send, &read);
    world.run();
    assert_eq!(status(&mut world, 0, read), failed(Status::OP_READ, Status::FORMAT_ERROR));
}

#[test]
fn completion_is_in_posting_order_within_one_queue() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Delivery);
    receive(&mut world, 1, theirs, 500, 10);
    let read = rdma(&world, false, 300, 4);
    let read = world.hosts[0].post(ours, Side::Send, &read);
    let sent = send(&mut world, 0, ours, b"text");
    world.send(0, ours).unwrap();
    let Outgoing { number, .. } = world.send(0, ours).unwrap();
    world.progress(0, ours, number, Progress::Accepted);
    // The wire has the send, but the read before it is under way.
    assert_eq!(status(&mut world, 0, sent), Status::default());
    assert_eq!(world.hosts[0].nic.done(ours, Side::Send), Ok(None));
    world.run();
    let order = [(); 2].map(|()| world.hosts[0].nic.done(ours, Side::Send).unwrap().unwrap().at);
    assert_eq!(order, [read, sent]);
}

#[test]
fn a_queue_fence_lets_nothing_begin_before_all_is_complete() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Delivery);
    receive(&mut world, 1, theirs, 500, 10);
    let read = rdma(&world, false, 300, 4);
    world.hosts[0].post(ours, Side::Send, &read);
    let fenced = Work { is_fenced: true, ..work(Operation::Send, &[world.hosts[0].segment(0, 4)]) };
    world.hosts[0].post(ours, Side::Send, &fenced);
    world.send(0, ours).unwrap();
    assert_eq!(world.send(0, ours), None);
    // What was read is what is sent.
    world.hosts[1].memory(BASE + 300, 4).copy_from_slice(b"text");
    world.run();
    assert_eq!(world.hosts[1].memory(BASE + 500, 4), b"text");
}

#[test]
fn memory_is_usable_only_under_a_registration_whose_tag_equals_the_vis() {
    for is_deregistered in [false, true] {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(Level::Reception);
        let host = &mut world.hosts[1];
        let other = host.nic.create_tag().unwrap();
        let foreign = MemAttributes { tag: other, can_be_written: true, can_be_read: true };
        let handle = host.nic.register(BASE + 100, 50, foreign).unwrap();
        if is_deregistered {
            let own = MemAttributes { tag: host.tag, ..foreign };
            host.nic.set_memory(BASE + 100, handle, own).unwrap();
            host.nic.deregister(BASE + 100, handle).unwrap();
        }
        let segment = Segment { address: BASE + 100, handle: handle.0, len: 10 };
        let posted = host.post(theirs, Side::Receive, &work(Operation::Receive, &[segment]));
        let sent = send(&mut world, 0, ours, b"text");
        world.run();
        assert_eq!(status(&mut world, 1, posted), failed(Status::OP_RECEIVE, Status::PROTECTION_ERROR));
        assert_eq!(status(&mut world, 0, sent), failed(Status::OP_SEND, Status::REMOTE_DESC_ERROR));
        assert_eq!(world.hosts[1].memory(BASE + 100, 4), [0; 4]);
    }
}

/// Whatever a receive was allowed when it was posted: what counts is what holds when a message comes.
#[test]
fn what_a_receive_may_use_is_looked_at_when_a_message_comes() {
    for takes_at_once in [false, true] {
        for what in ["nothing", "tag", "memory"] {
            let mut world = World::new(2);
            world.takes_at_once = takes_at_once;
            let [ours, theirs] = [0, 1].map(|at| world.hosts[at].create_vi(Level::Delivery));
            let room = world.hosts[1].memory_of_its_own(500, 10);
            let receive =
                work(Operation::Receive, &[Segment { address: BASE + 500, handle: room.0, len: 10 }]);
            let got = world.hosts[1].post(theirs, Side::Receive, &receive);
            let host = &mut world.hosts[1];
            match what {
                "tag" => {
                    let tag = host.nic.create_tag().unwrap();
                    let attributes = ViAttributes { tag, ..host.vi_attributes(Level::Delivery) };
                    host.nic.set_vi(theirs, attributes).unwrap();
                }
                "memory" => host.nic.deregister(BASE + 500, room).unwrap(),
                _ => {}
            }
            world.connect_as_peers([ours, theirs]);
            send(&mut world, 0, ours, b"text");
            world.run();
            if what == "nothing" {
                assert_eq!(status(&mut world, 1, got), DONE_RECEIVE);
                assert_eq!(world.taken_at_once, u64::from(takes_at_once));
            } else {
                assert_eq!(state(&world, 1, theirs), State::Error, "{what}");
                assert_ne!(world.hosts[1].memory(BASE + 500, 4), b"text");
                assert_eq!(world.taken_at_once, 0);
            }
        }
    }
}

#[test]
fn memory_that_is_deregistered_while_a_message_comes_is_not_written_any_more() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Reception);
    let host = &mut world.hosts[1];
    let open = MemAttributes { tag: host.tag, can_be_written: true, can_be_read: true };
    let handle = host.nic.register(BASE + 1000, 500, open).unwrap();
    let segment = Segment { address: BASE + 1000, handle: handle.0, len: 500 };
    let posted = host.post(theirs, Side::Receive, &work(Operation::Receive, &[segment]));
    let sent = send(&mut world, 0, ours, &[7; 300]);
    world.send(0, ours).unwrap();
    let local = world.hosts[0].links[&ours].local;
    world.deliver(0, local, &mut |world| world.hosts[1].nic.deregister(BASE + 1000, handle).unwrap());
    world.run();
    assert_eq!(world.hosts[1].memory(BASE + 1000, 101)[99..], [7, 0]);
    assert_eq!(status(&mut world, 1, posted), failed(Status::OP_RECEIVE, Status::PROTECTION_ERROR));
    assert_eq!(status(&mut world, 0, sent), failed(Status::OP_SEND, Status::REMOTE_DESC_ERROR));
}

#[test]
fn a_descriptor_must_be_aligned_and_in_memory_of_the_vi() {
    let mut world = World::new(1);
    let host = &mut world.hosts[0];
    let vi = host.create_vi(Level::Delivery);
    let at = host.next_descriptor();
    let empty = || Ok(work(Operation::Receive, &[]));
    let off = DescriptorAt { address: at.address + 32, ..at };
    assert_eq!(host.nic.post(vi, Side::Receive, off, |_| empty()), Err(PostError::Misaligned));
    let stray = DescriptorAt { handle: 1, ..at };
    assert_eq!(host.nic.post(vi, Side::Receive, stray, |_| empty()), Err(PostError::NotRegistered));
    assert_eq!(host.nic.post(ViHandle(1), Side::Receive, at, |_| empty()), Err(PostError::NoSuchVi));
    assert_eq!(host.nic.post(vi, Side::Receive, at, |_| empty()), Ok(()));
}

#[test]
fn a_queue_takes_so_many_descriptors_and_no_more() {
    let mut world = World::new(1);
    let small = NicAttributes { descriptors: 2, ..NicAttributes::default() };
    world.hosts = Vec::from([Host::new(small)]);
    let vi = world.hosts[0].create_vi(Level::Delivery);
    for _ in 0..2 {
        receive(&mut world, 0, vi, 0, 1);
    }
    let at = world.hosts[0].write_descriptor(&work(Operation::Receive, &[]));
    assert_eq!(world.hosts[0].post_at(vi, Side::Receive, at), Err(PostError::Full));
    // What is complete takes its place until the program has it back.
    world.hosts[0].nic.disconnect(vi).unwrap();
    assert_eq!(world.hosts[0].post_at(vi, Side::Receive, at), Err(PostError::Full));
    world.hosts[0].nic.done(vi, Side::Receive).unwrap().unwrap();
    assert_eq!(world.hosts[0].post_at(vi, Side::Receive, at), Ok(()));
}

#[test]
fn receives_may_be_posted_before_there_is_a_connection_and_sends_are_flushed() {
    let mut world = World::new(2);
    let ends = [0, 1].map(|at| world.hosts[at].create_vi(Level::Delivery));
    let posted = receive(&mut world, 1, ends[1], 100, 10);
    let early = send(&mut world, 0, ends[0], b"early");
    world.attend();
    assert_eq!(status(&mut world, 0, early), flushed(Status::OP_SEND));
    world.connect_as_peers(ends);
    send(&mut world, 0, ends[0], b"text");
    world.run();
    assert_eq!(status(&mut world, 1, posted), DONE_RECEIVE);
}

#[test]
fn what_is_no_descriptor_completes_with_a_format_error_in_its_turn() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Delivery);
    receive(&mut world, 1, theirs, 100, 10);
    let first = send(&mut world, 0, ours, b"text");
    let host = &mut world.hosts[0];
    let bad = host.write_descriptor(&work(Operation::Send, &[]));
    host.memory(bad.address, 64)[14] = 3;
    host.post_at(ours, Side::Send, bad).unwrap();
    world.run();
    assert_eq!(status(&mut world, 0, first), DONE_SEND);
    assert_eq!(status(&mut world, 0, bad), failed(Status::OP_SEND, Status::FORMAT_ERROR));
    assert_eq!(world.hosts[1].memory(BASE + 100, 4), b"text");
    assert_eq!(state(&world, 0, ours), State::Error);
}

#[test]
fn a_transfer_is_no_longer_than_the_vi_allows() {
    let mut world = World::new(2);
    let [ours, _] = world.connect(Level::Unreliable);
    let long = world.hosts[0].segment(0, 8001);
    let long = world.hosts[0].post(ours, Side::Send, &work(Operation::Send, &[long]));
    world.run();
    assert_eq!(status(&mut world, 0, long), failed(Status::OP_SEND, Status::LENGTH_ERROR));
}

#[test]
fn a_disconnect_comes_behind_what_was_sent_and_flushes_the_rest() {
    for level in RELIABLE {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(level);
        let got = receive(&mut world, 1, theirs, 100, 10);
        let waits = receive(&mut world, 0, ours, 0, 10);
        let sent = send(&mut world, 0, ours, b"last");
        let Outgoing { number, .. } = world.send(0, ours).unwrap();
        world.progress(0, ours, number, Progress::Accepted);
        let unsent = send(&mut world, 0, ours, b"none");
        world.hosts[0].nic.disconnect(ours).unwrap();
        world.run();
        let told = if level == Level::Reception { flushed(Status::OP_SEND) } else { DONE_SEND };
        assert_eq!(status(&mut world, 0, sent), told);
        assert_eq!(status(&mut world, 0, unsent), flushed(Status::OP_SEND));
        assert_eq!(status(&mut world, 0, waits), flushed(Status::OP_RECEIVE));
        assert_eq!(status(&mut world, 1, got), DONE_RECEIVE);
        assert_eq!(world.hosts[1].memory(BASE + 100, 4), b"last");
        assert_eq!([state(&world, 0, ours), state(&world, 1, theirs)], [State::Idle, State::Error]);
        assert_eq!(
            (world.hosts[0].failures().len(), world.hosts[1].failures()),
            (0, [AsyncError::ConnLost].into())
        );
        // Both can connect again.
        world.hosts[1].nic.disconnect(theirs).unwrap();
        world.connect_as_peers([ours, theirs]);
        assert_eq!([state(&world, 0, ours), state(&world, 1, theirs)], [State::Connected; 2]);
    }
}

#[test]
fn a_peer_that_is_lost_is_told_on_what_was_under_way_for_longest() {
    for (is_write, error) in [(false, AsyncError::ConnLost), (true, AsyncError::RdmaTransport)] {
        let mut world = World::new(2);
        let [ours, _] = world.connect(Level::Reception);
        let first = if is_write { rdma(&world, true, 0, 4) } else { work(Operation::Send, &[]) };
        let operation = first.operation.status();
        let first = world.hosts[0].post(ours, Side::Send, &first);
        let second = send(&mut world, 0, ours, b"text");
        while world.send(0, ours).is_some() {}
        world.hosts[0].nic.lost(ours);
        world.attend();
        assert_eq!(status(&mut world, 0, first), failed(operation, Status::TRANSPORT_ERROR));
        assert_eq!(status(&mut world, 0, second), flushed(Status::OP_SEND));
        assert_eq!(world.hosts[0].failures(), [error]);
    }
}

#[test]
fn a_peer_that_is_lost_in_the_middle_of_its_write_is_told_as_that() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Delivery);
    let written = rdma(&world, true, 0, 300);
    world.hosts[0].post(ours, Side::Send, &written);
    world.send(0, ours).unwrap();
    let local = world.hosts[0].links[&ours].local;
    world.deliver(0, local, &mut |world| {
        world.hosts[1].nic.lost(theirs);
        world.attend();
    });
    assert_eq!(world.hosts[1].failures(), [AsyncError::RdmawAbort]);
}

#[test]
fn a_provider_that_fails_breaks_every_vi() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Unreliable);
    let idle = world.hosts[0].create_vi(Level::Delivery);
    world.hosts[0].nic.fail();
    world.run();
    assert_eq!([state(&world, 0, ours), state(&world, 0, idle)], [State::Error, State::Idle]);
    assert_eq!(world.hosts[0].failures(), [AsyncError::Catastrophic]);
    assert_eq!(state(&world, 1, theirs), State::Error);
}

#[test]
fn a_completion_queue_says_where_something_is_done() {
    let mut world = World::new(2);
    let cq = world.hosts[1].nic.create_cq(8).unwrap();
    let ours = [(); 2].map(|()| world.hosts[0].create_vi(Level::Delivery));
    let attributes = world.hosts[1].vi_attributes(Level::Delivery);
    let theirs = [(); 2].map(|()| world.hosts[1].nic.create_vi(attributes, None, Some(cq)).unwrap());
    for nth in 0..2 {
        world.connect_as_peers([ours[nth], theirs[nth]]);
        receive(&mut world, 1, theirs[nth], 0, 10);
    }
    for nth in [1, 0] {
        send(&mut world, 0, ours[nth], b"text");
        world.run();
    }
    let nic = &mut world.hosts[1].nic;
    let entry = |vi| Ok(Some(Done { vi, side: Side::Receive }));
    assert_eq!([(); 2].map(|()| nic.cq_done(cq)), [entry(theirs[1]), entry(theirs[0])]);
    assert_eq!(nic.cq_done(cq), Ok(None));
    assert!(nic.done(theirs[0], Side::Receive).unwrap().is_some());
    assert_eq!(nic.destroy_cq(cq), Err(CqError::InUse));
    assert_eq!(nic.completes_elsewhere(theirs[0], Side::Receive), Ok(true));
    for vi in theirs {
        nic.disconnect(vi).unwrap();
        nic.destroy_vi(vi).unwrap();
    }
    assert_eq!(nic.destroy_cq(cq), Ok(()));
}

#[test]
fn more_completions_than_a_queue_holds_break_the_vi() {
    for level in Level::ALL {
        let mut world = World::new(2);
        let cq = world.hosts[1].nic.create_cq(1).unwrap();
        let attributes = world.hosts[1].vi_attributes(level);
        let theirs = world.hosts[1].nic.create_vi(attributes, None, Some(cq)).unwrap();
        let ours = world.hosts[0].create_vi(level);
        world.connect_as_peers([ours, theirs]);
        let posted = [0, 100, 200].map(|offset| receive(&mut world, 1, theirs, offset, 10));
        for _ in 0..3 {
            send(&mut world, 0, ours, b"text");
        }
        world.run();
        let statuses = posted.map(|at| status(&mut world, 1, at));
        assert_eq!(statuses, [DONE_RECEIVE, DONE_RECEIVE, flushed(Status::OP_RECEIVE)]);
        assert_eq!(state(&world, 1, theirs), State::Error);
        assert_eq!(world.hosts[1].failures(), [AsyncError::ViOverrun]);
    }
}

#[test]
fn a_program_is_called_once_for_each_time_that_it_wanted_to_be() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Delivery);
    let posted = [(); 3].map(|()| receive(&mut world, 1, theirs, 0, 10));
    let calls = |world: &World| -> Vec<DescriptorAt> {
        let calls = world.hosts[1].events.iter().filter_map(|event| match event {
            Event::Callback { vi, side: Side::Receive, at } => (*vi == theirs).then_some(*at),
            _ => None,
        });
        calls.collect()
    };
    world.hosts[1].nic.notify(theirs, Side::Receive).unwrap();
    for _ in 0..2 {
        send(&mut world, 0, ours, b"text");
    }
    world.run();
    assert_eq!(calls(&world), posted[..1]);
    // For one that is done already, at once.
    world.hosts[1].nic.notify(theirs, Side::Receive).unwrap();
    world.attend();
    assert_eq!(calls(&world), posted[..2]);
    assert_eq!(world.hosts[1].nic.done(theirs, Side::Receive), Ok(None));
}

#[test]
fn nothing_is_written_into_a_descriptor_whose_memory_is_deregistered() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Delivery);
    let host = &mut world.hosts[1];
    let private = MemAttributes { tag: host.tag, can_be_written: false, can_be_read: false };
    let handle = host.nic.register(BASE + 1024, 128, private).unwrap();
    let at = DescriptorAt { address: BASE + 1024, handle: handle.0 };
    let segment = host.segment(0, 10);
    host.nic.post(theirs, Side::Receive, at, |_| Ok(work(Operation::Receive, &[segment]))).unwrap();
    host.nic.deregister(BASE + 1024, handle).unwrap();
    send(&mut world, 0, ours, b"text");
    world.run();
    assert_eq!(world.hosts[1].memory(BASE + 1024, 128), [0; 128]);
    assert_eq!(world.hosts[1].failures(), [AsyncError::CompProt]);
    assert_eq!(state(&world, 1, theirs), State::Error);
    let done = world.hosts[1].nic.done(theirs, Side::Receive).unwrap().unwrap();
    assert_eq!(done.at, at);
}

/// A client asks on host 0, until `until_ns`.
fn ask(world: &mut World, vi: ViHandle, discriminator: &[u8], until_ns: Option<u64>) -> u64 {
    let (number, now_ns) = (world.number(), world.now_ns);
    let names = [address(0, b"client"), address(1, discriminator)];
    world.hosts[0].nic.ask(vi, names, false, number, until_ns, now_ns).unwrap();
    number
}

#[test]
fn clients_and_servers_connect_by_discriminator() {
    let mut world = World::new(2);
    let client = world.hosts[0].create_vi(Level::Delivery);
    let server = world.hosts[1].create_vi(Level::Delivery);
    let waits = [b"one", b"two"].map(|name| world.hosts[1].nic.wait(address(1, name), None).unwrap());
    let number = ask(&mut world, client, b"two", None);
    world.run();
    assert_eq!(state(&world, 0, client), State::ConnectPending);
    assert_eq!(world.hosts[0].nic.answer(client), Ok(None));
    assert_eq!(world.hosts[1].nic.waited(waits[0], 0), Ok(None));
    let conn = world.hosts[1].nic.waited(waits[1], 0).unwrap().unwrap();
    let request = world.hosts[1].nic.request(conn).unwrap();
    assert_eq!((request.number, &request.from), (number, &address(0, b"client")));
    let accepted = world.number();
    world.hosts[1].nic.accept(conn, server, accepted).unwrap();
    assert_eq!(state(&world, 1, server), State::Connected);
    world.run();
    assert_eq!(state(&world, 0, client), State::Connected);
    assert!(world.hosts[0].nic.answer(client).unwrap().is_some());
    assert_eq!(world.hosts[0].nic.answer(client), Err(ConnectError::State));
}

#[test]
fn timeout_no_match_reject_and_no_room_can_be_tried_again() {
    let mut world = World::new(2);
    let small = NicAttributes { vis: 1, ..NicAttributes::default() };
    world.hosts[1] = Host::new(small);
    let client = world.hosts[0].create_vi(Level::Delivery);
    let other = world.hosts[0].create_vi(Level::Delivery);
    let server = world.hosts[1].create_vi(Level::Delivery);
    let expect = |world: &mut World, error| {
        world.run();
        assert_eq!(world.hosts[0].nic.answer(client), Err(error));
        assert_eq!(state(world, 0, client), State::Idle);
    };
    ask(&mut world, client, b"nobody", None);
    expect(&mut world, ConnectError::NoMatch);

    let wait = world.hosts[1].nic.wait(address(1, b"name"), Some(1_000)).unwrap();
    ask(&mut world, client, b"name", Some(500));
    world.run();
    world.hosts[0].nic.on_time(500);
    expect(&mut world, ConnectError::Timeout);
    // Nobody has seen the request: the server still waits, and its own time passes.
    assert_eq!(world.hosts[1].nic.waited(wait, 999), Ok(None));
    assert_eq!(world.hosts[1].nic.waited(wait, 1_000), Err(ConnectError::Timeout));

    let wait = world.hosts[1].nic.wait(address(1, b"name"), None).unwrap();
    ask(&mut world, client, b"name", None);
    world.run();
    let conn = world.hosts[1].nic.waited(wait, 0).unwrap().unwrap();
    // While one request is looked at, there is no room for another.
    let wait = world.hosts[1].nic.wait(address(1, b"name"), None).unwrap();
    ask(&mut world, other, b"name", None);
    world.run();
    assert_eq!(world.hosts[0].nic.answer(other), Err(ConnectError::TooMany));
    world.hosts[1].nic.reject(conn).unwrap();
    expect(&mut world, ConnectError::Rejected);

    ask(&mut world, client, b"name", None);
    world.run();
    let conn = world.hosts[1].nic.waited(wait, 0).unwrap().unwrap();
    let number = world.number();
    world.hosts[1].nic.accept(conn, server, number).unwrap();
    world.run();
    assert_eq!([state(&world, 0, client), state(&world, 1, server)], [State::Connected; 2]);
}

#[test]
fn vis_that_do_not_fit_together_are_not_connected() {
    let mut world = World::new(2);
    let client = world.hosts[0].create_vi(Level::Delivery);
    let [unfit, fit] = [Level::Reception, Level::Delivery].map(|level| world.hosts[1].create_vi(level));
    let wait = world.hosts[1].nic.wait(address(1, b"name"), None).unwrap();
    ask(&mut world, client, b"name", None);
    world.run();
    let conn = world.hosts[1].nic.waited(wait, 0).unwrap().unwrap();
    let conflict = Err(ConnectError::Conflict(Conflict::Level));
    assert_eq!(world.hosts[1].nic.accept(conn, unfit, 1000), conflict);
    assert_eq!(state(&world, 1, unfit), State::Idle);
    // The request is still there, for another VI.
    assert_eq!(world.hosts[1].nic.accept(conn, fit, 1001), Ok(()));
    // Of peers both are told.
    let ends = [world.hosts[0].create_vi(Level::Unreliable), unfit];
    world.ask_as_peers(ends);
    world.run();
    for (at, vi) in ends.into_iter().enumerate() {
        assert_eq!(world.hosts[at].nic.answer(vi), Err(ConnectError::Conflict(Conflict::Level)));
        assert_eq!(state(&world, at, vi), State::Idle);
    }
}

/// Whoever is found not to fit hears that it is so, and the other one that nothing is asked of it any
/// more: a wire may keep something for each request until then.
#[test]
fn a_peer_that_finds_a_conflict_takes_back_what_it_asked() {
    let mut world = World::new(2);
    let ends = [(0, Level::Delivery), (1, Level::Reception)];
    let ends = ends.map(|(at, level)| world.hosts[at].create_vi(level));
    let ours = ask_as_peer(&mut world, ends[0], 0);
    world.run();
    ask_as_peer(&mut world, ends[1], 1);
    let mut is_taken_back = false;
    while let Some((from, _, signal)) = world.signals.front().cloned() {
        is_taken_back |= from == 0 && matches!(signal, Signal::Disconnect { number, .. } if number == ours);
        world.signal();
    }
    assert!(is_taken_back);
    for (at, vi) in ends.into_iter().enumerate() {
        assert_eq!(world.hosts[at].nic.answer(vi), Err(ConnectError::Conflict(Conflict::Level)));
    }
}

fn ask_as_peer(world: &mut World, vi: ViHandle, at: usize) -> u64 {
    let (number, now_ns) = (world.number(), world.now_ns);
    let names = [address(at, b"peer"), address(1 - at, b"peer")];
    world.hosts[at].nic.ask(vi, names, true, number, None, now_ns).unwrap();
    world.attend();
    number
}

#[test]
fn peers_connect_whoever_asks_first_and_whatever_signals_are_lost() {
    // Each bit says whether one of the first signals is lost.
    for lost in 0..256_u32 {
        let mut world = World::new(2);
        let ends = [0, 1].map(|at| world.hosts[at].create_vi(Level::Reception));
        let mut sent = 0;
        world.ask_as_peers(ends);
        for _ in 0..20 {
            while let Some(signal) = world.signals.front().cloned() {
                if sent < 8 && lost >> sent & 1 != 0 {
                    world.signals.pop_front();
                } else {
                    // The first ones that come, come twice.
                    if sent < 8 {
                        world.signals.push_back(signal);
                    }
                    world.signal();
                }
                sent += 1;
            }
            let deadlines = [0, 1].map(|at| world.hosts[at].nic.deadline());
            let Some(next_ns) = deadlines.into_iter().flatten().min() else { break };
            world.now_ns = next_ns;
            (0..2).for_each(|at| world.hosts[at].nic.on_time(next_ns));
            world.attend();
        }
        let [a, b] = [0, 1].map(|at| world.hosts[at].links[&ends[at]].clone());
        assert_eq!((a.local, a.remote), (b.remote, b.local), "{lost:#b}");
        assert_eq!([0, 1].map(|at| world.hosts[at].nic.deadline()), [None; 2]);
        assert_eq!([0, 1].map(|at| world.hosts[at].failures().len()), [0; 2]);
    }
}

#[test]
fn two_vis_can_not_ask_the_same_peer_by_the_same_names() {
    let mut world = World::new(1);
    let [first, second] = [(); 2].map(|()| world.hosts[0].create_vi(Level::Delivery));
    let names = || [address(0, b"us"), address(1, b"them")];
    world.hosts[0].nic.ask(first, names(), true, 1, None, 0).unwrap();
    assert_eq!(world.hosts[0].nic.ask(first, names(), true, 2, None, 0), Err(ConnectError::State));
    assert_eq!(world.hosts[0].nic.ask(second, names(), true, 2, None, 0), Err(ConnectError::Taken));
}

/// Found by a program in the manner of ARMCI, whose ends have one discriminator: on one host its request
/// may come back to itself.
#[test]
fn a_vi_does_not_connect_with_itself() {
    let mut world = World::new(1);
    let vi = world.hosts[0].create_vi(Level::Delivery);
    let own = || address(0, b"both");
    world.hosts[0].nic.ask(vi, [own(), own()], true, 1, None, 0).unwrap();
    world.attend();
    world.run();
    assert_eq!(world.hosts[0].nic.answer(vi), Ok(None));
    assert_eq!(state(&world, 0, vi), State::ConnectPending);
}

/// Found by a random program: a peer that connects and is not heard, and then another VI that asks by
/// the same names.
#[test]
fn a_peer_is_not_offered_to_another_one_while_it_may_be_connected() {
    for has_given_up in [false, true] {
        let mut world = World::new(2);
        let ours = world.hosts[0].create_vi(Level::Delivery);
        let [first, second] = [(); 2].map(|()| world.hosts[1].create_vi(Level::Delivery));
        world.ask_as_peers([ours, first]);
        // Its request comes, and our answer. Then nothing does that it says.
        let from_first = |signal: &(usize, usize, Signal)| signal.0 == 1;
        world.signals.retain(from_first);
        world.signal();
        world.signal();
        world.signals.retain(|signal| !from_first(signal));
        assert_eq!(
            (state(&world, 0, ours), state(&world, 1, first)),
            (State::ConnectPending, State::Connected)
        );
        if has_given_up {
            world.hosts[1].nic.disconnect(first).unwrap();
            world.attend();
            world.wires.clear();
        }
        let number = world.number();
        let names = [address(1, b"peer"), address(0, b"peer")];
        world.hosts[1].nic.ask(second, names, true, number, None, 0).unwrap();
        world.run();
        for now_ns in [20_000_000, 40_000_000] {
            (0..2).for_each(|at| world.hosts[at].nic.on_time(now_ns));
            world.run();
        }
        let (connected, other) = if has_given_up { (second, first) } else { (first, second) };
        assert_eq!(world.hosts[0].links[&ours].remote, world.hosts[1].links[&connected].local);
        assert!(!world.hosts[1].links.contains_key(&other));
    }
}

/// One that was found and does not answer any more is asked whether it is connected, and another one
/// takes its place if it is not.
#[test]
fn a_peer_that_is_gone_makes_place_for_another_one() {
    let mut world = World::new(2);
    let ours = world.hosts[0].create_vi(Level::Delivery);
    let [gone, next] = [(); 2].map(|()| world.hosts[1].create_vi(Level::Delivery));
    ask_as_peer(&mut world, ours, 0);
    ask_as_peer(&mut world, gone, 1);
    // Its request is found, and all else of it is lost.
    world.signals.retain(|(from, ..)| *from == 1);
    world.signal();
    world.hosts[1].nic.disconnect(gone).unwrap();
    world.attend();
    world.signals.clear();
    ask_as_peer(&mut world, next, 1);
    for _ in 0..5 {
        while world.signal() {}
        world.now_ns += 20_000_000;
        (0..2).for_each(|at| world.hosts[at].nic.on_time(world.now_ns));
        world.attend();
    }
    assert_eq!(state(&world, 0, ours), State::Connected);
    assert_eq!(state(&world, 1, next), State::Connected);
}

/// A signal is about the connection that both of its numbers name.
#[test]
fn a_disconnection_with_another_number_is_none_of_a_vis() {
    let mut world = World::new(2);
    let ends = world.connect(Level::Delivery);
    let Link { local, remote, .. } = world.hosts[0].links[&ends[0]].clone();
    world.hosts[0].nic.signal(&[1], Signal::Disconnect { to: local + 100, number: remote });
    world.attend();
    assert_eq!(state(&world, 0, ends[0]), State::Connected);
    world.hosts[0].nic.signal(&[1], Signal::Disconnect { to: local, number: remote });
    world.attend();
    assert_eq!(state(&world, 0, ends[0]), State::Error);
}

/// Whoever accepts has looked at both; who asked looks all the same.
#[test]
fn an_acceptance_that_does_not_fit_is_none() {
    let mut world = World::new(2);
    let vi = world.hosts[0].create_vi(Level::Delivery);
    let number = ask(&mut world, vi, b"name", None);
    let ours = world.hosts[0].vi_attributes(Level::Reception);
    let offer = world.hosts[0].nic.attributes().offer(&ours);
    world.hosts[0].nic.signal(&[1], Signal::Accept { to: number, number: 77, offer });
    world.attend();
    assert_eq!(world.hosts[0].nic.answer(vi), Err(ConnectError::Conflict(Conflict::Level)));
    assert_eq!(state(&world, 0, vi), State::Idle);
    assert!(matches!(world.signals.back(), Some((0, 1, Signal::Disconnect { to: 77, .. }))));
}

#[test]
fn an_answer_that_is_lost_is_given_again() {
    let mut world = World::new(2);
    let client = world.hosts[0].create_vi(Level::Delivery);
    let server = world.hosts[1].create_vi(Level::Delivery);
    let wait = world.hosts[1].nic.wait(address(1, b"name"), None).unwrap();
    ask(&mut world, client, b"name", None);
    world.run();
    let conn = world.hosts[1].nic.waited(wait, 0).unwrap().unwrap();
    world.hosts[1].nic.accept(conn, server, 1000).unwrap();
    world.attend();
    world.signals.clear();
    let again_ns = world.hosts[0].nic.deadline().unwrap();
    world.hosts[0].nic.on_time(again_ns);
    world.run();
    assert_eq!(state(&world, 0, client), State::Connected);
    assert_eq!(state(&world, 1, server), State::Connected);
}

#[test]
fn a_server_that_accepts_a_client_that_has_given_up_learns_it() {
    let mut world = World::new(2);
    let client = world.hosts[0].create_vi(Level::Delivery);
    let server = world.hosts[1].create_vi(Level::Delivery);
    let wait = world.hosts[1].nic.wait(address(1, b"name"), None).unwrap();
    ask(&mut world, client, b"name", Some(10));
    world.run();
    let conn = world.hosts[1].nic.waited(wait, 0).unwrap().unwrap();
    world.hosts[0].nic.on_time(10);
    world.attend();
    let [(.., Signal::Disconnect { .. })] = world.signals.make_contiguous() else { panic!() };
    // Whether that comes before it accepts, or is lost.
    world.run();
    assert_eq!(world.hosts[1].nic.accept(conn, server, 1000), Err(ConnectError::Timeout));
    let wait = world.hosts[1].nic.wait(address(1, b"name"), None).unwrap();
    ask(&mut world, client, b"name", Some(20));
    world.run();
    let conn = world.hosts[1].nic.waited(wait, 0).unwrap().unwrap();
    world.hosts[0].nic.on_time(20);
    world.attend();
    world.signals.clear();
    world.hosts[1].nic.accept(conn, server, 1001).unwrap();
    world.run();
    assert_eq!((state(&world, 1, server), state(&world, 0, client)), (State::Error, State::Idle));
    assert_eq!(world.hosts[1].failures(), [AsyncError::ConnLost]);
}

#[test]
fn tags_memory_and_vis_go_in_their_order() {
    let mut world = World::new(2);
    let [ours, _] = world.connect(Level::Delivery);
    let host = &mut world.hosts[0];
    assert_eq!(host.nic.destroy_vi(ours), Err(ResourceError::State));
    let attributes = host.vi_attributes(Level::Delivery);
    assert_eq!(host.nic.set_vi(ours, attributes), Err(ResourceError::State));
    host.nic.deregister(BASE, host.all).unwrap();
    assert_eq!(host.nic.destroy_tag(host.tag), Err(MemoryError::TagInUse));
    host.nic.disconnect(ours).unwrap();
    let query = host.nic.query_vi(ours).unwrap();
    assert_eq!((query.state, query.is_send_empty, query.is_receive_empty), (State::Idle, true, true));
    host.nic.destroy_vi(ours).unwrap();
    assert_eq!(host.nic.query_vi(ours), Err(ResourceError::NoSuchVi));
    assert_eq!(host.nic.destroy_tag(host.tag), Ok(()));
    assert_eq!(host.nic.create_vi(attributes, None, None), Err(ResourceError::NoSuchTag));
}

#[test]
fn receives_are_lent_to_a_peer_that_copies_by_itself() {
    let mut world = World::new(2);
    let [ours, theirs] = world.connect(Level::Reception);
    receive(&mut world, 1, theirs, 100, 10);
    let stray = Segment { handle: 1, ..world.hosts[1].segment(0, 4) };
    world.hosts[1].post(theirs, Side::Receive, &work(Operation::Receive, &[stray]));
    let lent: Vec<Option<Work>> = world.hosts[1].nic.receives(theirs).map(Option::<&Work>::cloned).collect();
    let [Some(first), None] = &lent[..] else { panic!("{lent:?}") };
    // The peer copies, and says that it has.
    let sent = send(&mut world, 0, ours, b"text");
    let Outgoing { number, head } = world.hosts[0].nic.next(ours).unwrap();
    let to = first.segments.as_slice()[0];
    world.hosts[1].memory(to.address, 4).copy_from_slice(b"text");
    assert_eq!(world.hosts[1].nic.arrive(theirs, &head), Arrival::Place);
    world.hosts[1].nic.arrived(theirs);
    world.progress(0, ours, number, Progress::Received);
    assert_eq!(status(&mut world, 0, sent), DONE_SEND);
    let done = world.hosts[1].nic.done(theirs, Side::Receive).unwrap().unwrap();
    assert_eq!((done.completion.status, done.completion.len), (DONE_RECEIVE, 4));
}

/// Who answers to a number of ours is the host that was told it, from the request to the end.
#[test]
fn a_number_is_known_to_have_been_told_to_one_host() {
    let mut world = World::new(2);
    let ends = [0, 1].map(|at| world.hosts[at].create_vi(Level::Delivery));
    world.ask_as_peers(ends);
    let told = |world: &World, number| world.hosts[0].nic.host_told(number).map(<[u8]>::to_vec);
    let Some((_, _, Signal::Request(request))) = world.signals.front().cloned() else { panic!() };
    assert_eq!(told(&world, request.number), Some(vec![1]));
    world.run();
    assert_eq!(world.hosts[0].links[&ends[0]].local, request.number);
    assert_eq!(told(&world, request.number), Some(vec![1]));
    let remote = world.hosts[0].links[&ends[0]].remote;
    assert_eq!(told(&world, remote), None);
    // And the other way round: whose number it is.
    assert_eq!(world.hosts[0].nic.host_that_told(remote), Some(&[1][..]));
    assert_eq!(world.hosts[0].nic.host_that_told(request.number), None);
    world.hosts[0].nic.disconnect(ends[0]).unwrap();
    assert_eq!(told(&world, request.number), None);
}
