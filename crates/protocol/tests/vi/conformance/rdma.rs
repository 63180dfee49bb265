//! RDMA: its effects at the target and its access rights.

use super::*;

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
        // Outside of the region the read is denied.
        let denied = rdma(&world, false, 1 << 15, 1);
        let denied = world.hosts[0].post(ours, Side::Send, &denied);
        world.run();
        assert_eq!(status(&mut world, 0, denied), failed(Status::OP_READ, Status::RDMA_PROT_ERROR));
        assert_eq!(world.hosts[1].failures(), [AsyncError::RdmarProt]);
    }
}

/// A transport serves a read when it has room, which may be between the pieces of another message.
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
