//! The guarantees of each reliability level.

use super::*;

#[test]
fn a_message_goes_into_the_first_receive_with_its_length_and_immediate_data() {
    for level in Level::ALL {
        let mut world = World::new(2);
        let [ours, theirs] = world.connect(level);
        let receives = [100, 200].map(|offset| receive(&mut world, 1, theirs, offset, 50));
        let host = &mut world.hosts[0];
        host.memory(BASE, 6).copy_from_slice(b"abcdef");
        // Two segments of the sender go into one of the receiver.
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
    // Without its middle piece the message is not delivered. A complete message is delivered once,
    // however often its pieces come.
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
    // Errors: a message too long for its receive, a send from unregistered memory, a write to
    // unregistered memory, and a read, which this level lacks.
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
        // The peer learns that the connection has ended.
        assert_eq!(status(&mut world, 1, theirs_posted), flushed(Status::OP_RECEIVE));
        assert_eq!(world.hosts[1].failures(), [AsyncError::ConnLost]);
        assert_eq!([state(&world, 0, ours), state(&world, 1, theirs)], [State::Error; 2]);
        // Descriptors posted now are flushed at once.
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
    // All messages are on the wire before the first answer comes.
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
