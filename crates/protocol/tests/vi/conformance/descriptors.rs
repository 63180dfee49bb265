//! Descriptors, the memory that they name, and the queues in which they complete.

use super::*;

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
    // The wire has taken the send, but the read before it is in progress.
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
    // The send has the bytes that the read fetched.
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

/// A receive's access to memory is checked when a message comes, whatever the check at posting found.
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
    // A completed descriptor occupies its place until the program takes it.
    world.hosts[0].nic.disconnect(vi).unwrap();
    assert_eq!(world.hosts[0].post_at(vi, Side::Receive, at), Err(PostError::Full));
    world.hosts[0].nic.done(vi, Side::Receive).unwrap().unwrap();
    assert_eq!(world.hosts[0].post_at(vi, Side::Receive, at), Ok(()));
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
    // For a descriptor that is already complete the callback comes at once.
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
    // The peer copies the bytes and reports it.
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
