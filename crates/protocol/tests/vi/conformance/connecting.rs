//! Connecting and disconnecting.

use super::*;

/// Lets a client on host 0 request a connection, with the time limit `until_ns`.
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
    // The program has not seen the request, so the server still waits, until its own time limit.
    assert_eq!(world.hosts[1].nic.waited(wait, 999), Ok(None));
    assert_eq!(world.hosts[1].nic.waited(wait, 1_000), Err(ConnectError::Timeout));

    let wait = world.hosts[1].nic.wait(address(1, b"name"), None).unwrap();
    ask(&mut world, client, b"name", None);
    world.run();
    let conn = world.hosts[1].nic.waited(wait, 0).unwrap().unwrap();
    // While the program holds one request, there is no room for another.
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
    // The request stays, for another VI.
    assert_eq!(world.hosts[1].nic.accept(conn, fit, 1001), Ok(()));
    // If peers conflict, both are told.
    let ends = [world.hosts[0].create_vi(Level::Unreliable), unfit];
    world.ask_as_peers(ends);
    world.run();
    for (at, vi) in ends.into_iter().enumerate() {
        assert_eq!(world.hosts[at].nic.answer(vi), Err(ConnectError::Conflict(Conflict::Level)));
        assert_eq!(state(&world, at, vi), State::Idle);
    }
}

/// A peer whose request is refused for a conflict withdraws it with a signal. The other side's
/// transport may hold resources for the request until then.
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
                    // The first signals that arrive are duplicated.
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

/// Found by a program in the style of ARMCI, whose two ends have the same discriminator: on one host a
/// request may return to its own VI.
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

/// Found by a random program: a peer connects, its signals are lost, and then another VI of its host
/// requests with the same addresses.
#[test]
fn a_peer_is_not_offered_to_another_one_while_it_may_be_connected() {
    for has_given_up in [false, true] {
        let mut world = World::new(2);
        let ours = world.hosts[0].create_vi(Level::Delivery);
        let [first, second] = [(); 2].map(|()| world.hosts[1].create_vi(Level::Delivery));
        world.ask_as_peers([ours, first]);
        // The peer's request arrives, and then this side's answer. All later signals of the peer are
        // lost.
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

/// A peer that was found and no longer answers is asked whether it is connected. If it is not, another
/// one takes its place.
#[test]
fn a_peer_that_is_gone_makes_place_for_another_one() {
    let mut world = World::new(2);
    let ours = world.hosts[0].create_vi(Level::Delivery);
    let [gone, next] = [(); 2].map(|()| world.hosts[1].create_vi(Level::Delivery));
    ask_as_peer(&mut world, ours, 0);
    ask_as_peer(&mut world, gone, 1);
    // The peer's request arrives, and all its other signals are lost.
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

/// A disconnect signal must have both numbers of the connection.
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

/// The accepting side has compared the attributes; the requester compares them as well.
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

/// Returns the request that a server's wait has received, after delivering all signals.
fn found(world: &mut World, wait: WaitHandle) -> ConnHandle {
    world.run();
    world.hosts[1].nic.waited(wait, 0).unwrap().unwrap()
}

/// Returns a copy of the request in flight from host 0, which the network may deliver later.
fn copy_of_request(world: &mut World) -> (usize, usize, Signal) {
    world.attend();
    let is_request =
        |signal: &&(usize, usize, Signal)| signal.0 == 0 && matches!(signal.2, Signal::Request(_));
    world.signals.iter().find(is_request).unwrap().clone()
}

/// The ways in which a request ends before a late copy of it arrives.
#[derive(Clone, Copy, Debug)]
enum End {
    Rejected,
    NoMatch,
    Withdrawn,
    /// The withdrawal arrives before the request.
    WithdrawnUnheard,
    ClosedByServer,
    ClosedByClient,
}

/// Found over a network with injected faults (`NETDYNO_SEED=7070276938517440111`): a late copy of a
/// rejected request reached the program that waited next. The request that this program waited for was
/// then refused with `NoMatch`.
#[test]
fn a_late_copy_of_a_settled_request_reaches_no_program() {
    let ends = [
        End::Rejected,
        End::NoMatch,
        End::Withdrawn,
        End::WithdrawnUnheard,
        End::ClosedByServer,
        End::ClosedByClient,
    ];
    for end in ends {
        let mut world = World::new(2);
        let client = world.hosts[0].create_vi(Level::Delivery);
        let server = world.hosts[1].create_vi(Level::Delivery);
        let wait = |world: &mut World| world.hosts[1].nic.wait(address(1, b"name"), None).unwrap();
        let first = if matches!(end, End::NoMatch) { None } else { Some(wait(&mut world)) };
        ask(&mut world, client, b"name", None);
        let late = copy_of_request(&mut world);
        match end {
            End::Rejected => {
                let conn = found(&mut world, first.unwrap());
                world.hosts[1].nic.reject(conn).unwrap();
            }
            End::NoMatch => {}
            End::Withdrawn => {
                world.run();
                world.hosts[0].nic.disconnect(client).unwrap();
            }
            End::WithdrawnUnheard => {
                world.signals.clear();
                world.hosts[0].nic.disconnect(client).unwrap();
            }
            End::ClosedByServer | End::ClosedByClient => {
                let conn = found(&mut world, first.unwrap());
                let number = world.number();
                world.hosts[1].nic.accept(conn, server, number).unwrap();
                world.run();
                let (at, vi) = if matches!(end, End::ClosedByServer) { (1, server) } else { (0, client) };
                world.hosts[at].nic.disconnect(vi).unwrap();
                world.run();
                let (at, vi) = (1 - at, [client, server][1 - at]);
                world.hosts[at].nic.disconnect(vi).unwrap();
            }
        }
        world.run();
        assert_eq!(state(&world, 0, client), State::Idle, "{end:?}");
        let second = match end {
            // The first wait still has no request.
            End::Withdrawn | End::WithdrawnUnheard => first.unwrap(),
            _ => wait(&mut world),
        };
        world.signals.push_back(late);
        world.run();
        assert_eq!(world.hosts[1].nic.waited(second, 0), Ok(None), "{end:?}");
        let number = ask(&mut world, client, b"name", None);
        let conn = found(&mut world, second);
        assert_eq!(world.hosts[1].nic.request(conn).unwrap().number, number, "{end:?}");
        let accepted = world.number();
        world.hosts[1].nic.accept(conn, server, accepted).unwrap();
        world.run();
        assert_eq!([state(&world, 0, client), state(&world, 1, server)], [State::Connected; 2], "{end:?}");
    }
}

#[test]
fn a_refusal_that_is_lost_is_said_again() {
    let mut world = World::new(2);
    let client = world.hosts[0].create_vi(Level::Delivery);
    let wait = world.hosts[1].nic.wait(address(1, b"name"), None).unwrap();
    ask(&mut world, client, b"name", None);
    let conn = found(&mut world, wait);
    world.hosts[1].nic.reject(conn).unwrap();
    world.attend();
    world.signals.clear();
    let again_ns = world.hosts[0].nic.deadline().unwrap();
    world.hosts[0].nic.on_time(again_ns);
    world.run();
    assert_eq!(world.hosts[0].nic.answer(client), Err(ConnectError::Rejected));
}

/// The server accepts and disconnects before the client learns of either.
#[test]
fn a_client_whose_connection_has_ended_unheard_is_told() {
    let mut world = World::new(2);
    let client = world.hosts[0].create_vi(Level::Delivery);
    let server = world.hosts[1].create_vi(Level::Delivery);
    let wait = world.hosts[1].nic.wait(address(1, b"name"), None).unwrap();
    ask(&mut world, client, b"name", None);
    let conn = found(&mut world, wait);
    world.hosts[1].nic.accept(conn, server, 1000).unwrap();
    world.attend();
    let late = world.signals.pop_front().unwrap();
    assert!(matches!(late.2, Signal::Accept { .. }));
    world.hosts[1].nic.disconnect(server).unwrap();
    // The goodbye overtakes the acceptance, which is no longer valid.
    world.signals.push_back((1, 0, Signal::Disconnect { to: 1, number: 1000 }));
    world.signals.push_back(late);
    while world.signal() {}
    assert_eq!(state(&world, 0, client), State::ConnectPending);
    let again_ns = world.hosts[0].nic.deadline().unwrap();
    world.hosts[0].nic.on_time(again_ns);
    world.run();
    assert_eq!(world.hosts[0].nic.answer(client), Err(ConnectError::Rejected));
}

/// Two VIs request each other as peers and give up. Then two others do, with the same addresses and
/// another level.
#[test]
fn a_late_copy_of_a_peers_request_ends_no_newer_one() {
    for is_heard in [false, true] {
        let mut world = World::new(2);
        let old = world.hosts[0].create_vi(Level::Delivery);
        let new = [0, 1].map(|at| world.hosts[at].create_vi(Level::Reception));
        ask_as_peer(&mut world, old, 0);
        let late = copy_of_request(&mut world);
        world.hosts[0].nic.disconnect(old).unwrap();
        world.attend();
        // Host 1 may miss the withdrawal.
        if !is_heard {
            world.signals.clear();
        }
        world.run();
        ask_as_peer(&mut world, new[1], 1);
        world.signals.push_back(late);
        world.run();
        assert_eq!(world.hosts[1].nic.answer(new[1]), Ok(None), "{is_heard}");
        ask_as_peer(&mut world, new[0], 0);
        world.run();
        assert_eq!([0, 1].map(|at| state(&world, at, new[at])), [State::Connected; 2], "{is_heard}");
    }
}

#[test]
fn peers_that_do_not_fit_are_both_told_whatever_signals_are_lost() {
    for lost in 0..64_u32 {
        let mut world = World::new(2);
        let ends = [(0, Level::Delivery), (1, Level::Reception)];
        let ends = ends.map(|(at, level)| world.hosts[at].create_vi(level));
        let mut sent = 0;
        world.ask_as_peers(ends);
        for _ in 0..10 {
            while !world.signals.is_empty() {
                if sent < 6 && lost >> sent & 1 != 0 {
                    world.signals.pop_front();
                } else {
                    world.signal();
                }
                sent += 1;
            }
            world.now_ns += 20_000_000;
            (0..2).for_each(|at| world.hosts[at].nic.on_time(world.now_ns));
            world.attend();
        }
        for (at, vi) in ends.into_iter().enumerate() {
            let answer = world.hosts[at].nic.answer(vi);
            assert_eq!(answer, Err(ConnectError::Conflict(Conflict::Level)), "{lost:#b}");
        }
    }
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
    // The withdrawal arrives before the server accepts. In the second case, below, it is lost.
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

/// A number of this side is known to the host that was told it, from the request to the end of the
/// connection.
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
    // The reverse: the host that chose a number.
    assert_eq!(world.hosts[0].nic.host_that_told(remote), Some(&[1][..]));
    assert_eq!(world.hosts[0].nic.host_that_told(request.number), None);
    world.hosts[0].nic.disconnect(ends[0]).unwrap();
    assert_eq!(told(&world, request.number), None);
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
