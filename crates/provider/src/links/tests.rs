use super::nic::WAITS;
use super::*;
use crate::frame::{Header, Kind, TAGGED};

fn look(links: &mut ViLinks) -> Option<LinkEvent<Received>> {
    links.next().or_else(|| if links.look_around() { links.next() } else { None })
}

const WITHIN: Duration = Duration::from_secs(60);

/// Returns the connections of two processes, on one host or on two. Both are in this process.
fn pair(are_far: bool) -> [ViLinks; 2] {
    let mut links = [(); 2].map(|()| ViLinks::open().unwrap());
    if are_far {
        links[1].process.host = [9; 8];
    }
    links
}

/// Makes both know and ask each other, before either hears of the other's request. Returns the number of each there.
fn ask_each_other(links: &mut [ViLinks; 2]) -> [PeerNo; 2] {
    let [left, right] = [0, 1].map(|end| *links[end].process());
    let peers = [links[0].peer(&right), links[1].peer(&left)];
    let header = Header::new(Kind::Done).encode();
    for (links, peer) in links.iter_mut().zip(peers) {
        assert!(!links.try_send(peer, &header, Payload::Bytes(&[])));
    }
    peers
}

/// Lets both work until one has an event that the caller wants.
fn wait<R>(
    links: &mut [ViLinks; 2],
    mut wanted: impl FnMut(usize, LinkEvent<Received>, &mut ViLinks) -> Option<R>,
) -> R {
    let until = Instant::now() + WITHIN;
    loop {
        for (end, links) in links.iter_mut().enumerate() {
            if let Some(event) = look(links)
                && let Some(found) = wanted(end, event, links)
            {
                return found;
            }
        }
        assert!(Instant::now() < until, "nothing comes");
    }
}

fn send(links: &mut [ViLinks; 2], from: usize, peer: PeerNo, tag: u64) {
    let header = Header { flags: TAGGED, tag, ..Header::new(Kind::Message) }.encode();
    let until = Instant::now() + WITHIN;
    while !links[from].try_send(peer, &header, Payload::Bytes(&[tag as u8; 1000])) {
        for links in &mut *links {
            let event = look(links);
            assert!(event.is_none(), "{event:?} {:?}", std::thread::current().name());
        }
        assert!(Instant::now() < until, "there is no connection");
    }
}

/// Waits for a message with this tag. Returns the receiver and the number of the sender there.
fn receive(links: &mut [ViLinks; 2], tag: u64) -> (usize, PeerNo) {
    wait(links, |end, event, links| {
        let LinkEvent::Message(peer, buffer) = event else { return None };
        let (header, payload) = Header::parse(&buffer).unwrap();
        assert_eq!((header.tag, payload), (tag, &[tag as u8; 1000][..]));
        links.give_back(peer, buffer);
        Some((end, peer))
    })
}

#[test]
fn messages_go_both_ways_and_the_end_is_noticed() {
    for are_far in [false, true] {
        let mut links = pair(are_far);
        let process = *links[1].process();
        let there = links[0].peer(&process);
        assert_eq!(links[0].links[there].wire == Wire::Udp, are_far);
        send(&mut links, 0, there, 1);
        let (end, back) = receive(&mut links, 1);
        assert_eq!(end, 1);
        for tag in 2..100 {
            send(&mut links, 1, back, tag);
            assert_eq!(receive(&mut links, tag), (0, there));
            send(&mut links, 0, there, tag);
            assert_eq!(receive(&mut links, tag), (1, back));
        }
        let [mut left, right] = links;
        drop(right);
        let until = Instant::now() + WITHIN;
        while !matches!(look(&mut left), Some(LinkEvent::Lost(peer)) if peer == there) {
            assert!(Instant::now() < until, "the end of the peer is not noticed");
        }
    }
}

/// Each asks the other before it hears of its request.
#[test]
fn two_that_ask_each_other_both_get_through() {
    for are_far in [false, true] {
        let mut links = pair(are_far);
        let [there, back] = ask_each_other(&mut links);
        send(&mut links, 0, there, 7);
        assert_eq!(receive(&mut links, 7), (1, back));
        send(&mut links, 1, back, 8);
        assert_eq!(receive(&mut links, 8), (0, there));
        // One request was refused, and its VI is gone.
        let until = Instant::now() + WITHIN;
        while links.iter().any(|links| !links.asking.is_empty()) {
            links.iter_mut().for_each(ViLinks::maintain);
            assert!(Instant::now() < until, "a request has no end");
        }
        assert_eq!([0, 1].map(|end| links[end].by_vi.len()), [1; 2], "far: {are_far}");
    }
}

/// A process that ends leaves its last messages behind, also if there is another connection, which ends as well.
#[test]
fn what_a_peer_has_sent_arrives_before_its_end() {
    for (are_far, are_two) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut links = pair(are_far);
        let [left, right] = [0, 1].map(|end| *links[end].process());
        let (there, back) = (links[0].peer(&right), links[1].peer(&left));
        if are_two {
            assert_eq!(ask_each_other(&mut links), [there, back]);
        }
        send(&mut links, 0, there, 1);
        assert_eq!(receive(&mut links, 1), (1, back));
        // More in a row than the receiver takes of one connection.
        for tag in 20..60 {
            send(&mut links, 1, back, tag);
            receive(&mut links, tag);
            send(&mut links, 0, there, tag);
            receive(&mut links, tag);
        }
        for tag in 2..10 {
            send(&mut links, 0, there, tag);
        }
        // As when an endpoint is closed: the messages have left, and the receiver has not looked at them.
        let until = Instant::now() + WITHIN;
        while !links[0].is_flushed() {
            links.iter_mut().for_each(ViLinks::maintain);
            assert!(Instant::now() < until, "the messages do not leave");
        }
        let [left, mut right] = links;
        drop(left);
        right.maintain();
        let mut tags = Vec::new();
        let until = Instant::now() + WITHIN;
        loop {
            match look(&mut right) {
                Some(LinkEvent::Message(peer, buffer)) => {
                    tags.push(Header::parse(&buffer).unwrap().0.tag);
                    right.give_back(peer, buffer);
                }
                Some(LinkEvent::Lost(peer)) => break assert_eq!(peer, back),
                None => assert!(Instant::now() < until, "the end of the peer is not noticed"),
            }
        }
        assert_eq!(tags, (2..10).collect::<Vec<_>>(), "far: {are_far}, two: {are_two}");
        assert!(right.by_vi.is_empty());
    }
}

/// A process accepts a connection, sends over it and ends, before the requester has seen the answer.
#[test]
fn what_came_over_a_connection_without_an_answer_is_taken() {
    for are_far in [false, true] {
        let mut links = pair(are_far);
        // The process with the smaller nonce is accepted by the other one.
        links.sort_by_key(|links| std::cmp::Reverse(links.process().nonce));
        let [there, back] = ask_each_other(&mut links);
        let header = Header { flags: TAGGED, tag: 3, ..Header::new(Kind::Message) }.encode();
        let [mut left, mut right] = links;
        let until = Instant::now() + WITHIN;
        while left.links[there].vi.is_none() {
            left.maintain();
            assert!(Instant::now() < until);
        }
        while !right.try_send(back, &header, Payload::Bytes(&[])) {
            right.maintain();
            assert!(Instant::now() < until);
        }
        drop(right);
        let mut count = 0;
        loop {
            match look(&mut left) {
                Some(LinkEvent::Message(peer, buffer)) => {
                    count += 1;
                    left.give_back(peer, buffer);
                }
                Some(LinkEvent::Lost(peer)) => {
                    break assert_eq!((peer, count), (there, 1), "far: {are_far}");
                }
                None => assert!(Instant::now() < until, "the end of the peer is not noticed"),
            }
        }
    }
}

/// Nobody looks for requests while the program computes.
#[test]
fn more_may_ask_than_wait_at_once() {
    let mut all: Vec<ViLinks> = (0..WAITS + 8).map(|_| ViLinks::open().unwrap()).collect();
    let process = *all[0].process();
    let header = Header::new(Kind::Message).encode();
    let [asked, askers @ ..] = &mut all[..] else { unreachable!() };
    let theirs: Vec<PeerNo> = askers.iter_mut().map(|asker| asker.peer(&process)).collect();
    let mut sent = vec![false; askers.len()];
    let began = Instant::now();
    let (mut got, mut is_awake) = (0, false);
    while got < askers.len() {
        for ((asker, peer), sent) in askers.iter_mut().zip(&theirs).zip(&mut sent) {
            *sent = *sent || asker.try_send(*peer, &header, Payload::Bytes(&[]));
            assert!(look(asker).is_none());
        }
        is_awake |= began.elapsed() > Duration::from_millis(100);
        while is_awake && let Some(event) = look(asked) {
            let LinkEvent::Message(peer, buffer) = event else { panic!("{event:?}") };
            asked.give_back(peer, buffer);
            got += 1;
        }
        assert!(began.elapsed() < WITHIN, "{got} messages came");
    }
}

#[test]
fn a_process_that_is_not_there_is_lost_at_last() {
    let mut links = ViLinks::open().unwrap();
    let gone = Process { pid: u32::MAX >> 1, nonce: [5; 16], ..*links.process() };
    let peer = links.peer(&gone);
    let began = Instant::now();
    assert!(!links.try_send(peer, &Header::new(Kind::Done).encode(), Payload::Bytes(&[])));
    while !matches!(look(&mut links), Some(LinkEvent::Lost(lost)) if lost == peer) {
        assert!(began.elapsed() < WITHIN);
    }
    assert!(began.elapsed() >= UNKNOWN_TIMEOUT && links.asking.is_empty());
    links.end(peer);
}

/// A process without free descriptors gets an error, and does not ask for ever.
#[test]
fn a_peer_for_whom_there_is_no_descriptor_is_lost() {
    // The limit is the process's, and the other tests need descriptors.
    const CHILD: &str = "NETDYNO_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let name = "links::tests::a_peer_for_whom_there_is_no_descriptor_is_lost";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        assert!(child.args(["--exact", name]).env(CHILD, "1").status().unwrap().success());
        return;
    }
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(40), maximum: Some(200) }).unwrap();
    let mut links = pair(false);
    assert_eq!(getrlimit(Resource::Nofile).current, Some(200));
    let process = *links[1].process();
    let peer = links[0].peer(&process);
    let taken: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    assert!(!links[0].try_send(peer, &Header::new(Kind::Done).encode(), Payload::Bytes(&[])));
    wait(&mut links, |end, event, _| matches!(event, LinkEvent::Lost(lost) if lost == peer).then_some(end));
    drop(taken);
    // Another peer can be reached once there are descriptors again.
    let mut third = ViLinks::open().unwrap();
    let process = *third.process();
    let peer = links[0].peer(&process);
    let until = Instant::now() + WITHIN;
    while !links[0].try_send(peer, &Header::new(Kind::Done).encode(), Payload::Bytes(&[])) {
        assert!(look(&mut links[0]).is_none() && look(&mut third).is_none() && Instant::now() < until);
    }
}

/// A process of another host that has the nonce of a process of this host.
#[test]
fn nobody_takes_the_place_of_a_known_peer() {
    let mut links = pair(true);
    let (asked, own) = (*links[1].process(), *links[0].process());
    // The asked process knows the other one as a neighbour.
    let known = links[1].peer(&Process { host: asked.host, ..own });
    let there = links[0].peer(&asked);
    let header = Header::new(Kind::Done).encode();
    let until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < until {
        assert!(!links[0].try_send(there, &header, Payload::Bytes(&[])));
        assert!(links.iter_mut().all(|links| look(links).is_none()));
    }
    assert!(links[1].by_vi.is_empty() && links[1].links[known].vi.is_none());
}

/// A process that serves a port is one peer, whatever it is called.
#[test]
fn a_service_has_two_names_and_is_one_peer() {
    let mut links = pair(false);
    let free = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    links[1].serve(free).unwrap();
    let service = service(free);
    assert_eq!(links[1].peer(&service), SELF);
    let there = links[0].peer(&service);
    send(&mut links, 0, there, 5);
    let (_, back) = receive(&mut links, 5);
    assert_eq!((links[1].next_stranger(), links[1].next_stranger()), (Some(back), None));
    assert!(links[0].know(there, &links[1].introduction()));
    let process = *links[1].process();
    assert_eq!(links[0].peer(&process), there);
    // It says so once, and it cannot say that it is somebody else.
    let other = Process { nonce: [9; 16], ..process };
    assert!(links[0].know(there, &other.encode()));
    assert_ne!(links[0].peer(&other), there);
    assert!(!links[0].know(there, &Process { host: [1; 8], ..other }.encode()));
    assert!(!process.udp_address().unwrap().ip().is_unspecified());
}

/// A process of another host that says it is of this one would make this process copy from a third one.
#[test]
fn a_requester_over_the_wrong_wire_is_refused() {
    for is_itself in [false, true] {
        let mut links = pair(true);
        let (asked, mut said) = (*links[1].process(), *links[0].process());
        said.host = asked.host;
        if is_itself {
            said = Process { host: [1; 8], ..asked };
        }
        links[0].process = said;
        let there = links[0].peer(&asked);
        let header = Header::new(Kind::Done).encode();
        links[0].links[there].wire = Wire::Udp;
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {
            assert!(!links[0].try_send(there, &header, Payload::Bytes(&[])));
            assert!(links.iter_mut().all(|links| look(links).is_none()));
        }
        assert!(links[1].by_vi.is_empty() && links[1].links.len() == 1);
    }
}

/// Returns the connections of a process with many others, and its number at each of them.
fn star(others: usize) -> (ViLinks, Vec<(ViLinks, PeerNo)>) {
    let mut middle = ViLinks::open().unwrap();
    let process = *middle.process();
    let mut all: Vec<_> = (0..others)
        .map(|_| {
            let mut links = ViLinks::open().unwrap();
            let there = links.peer(&process);
            (links, there)
        })
        .collect();
    let header = Header::new(Kind::Done).encode();
    for (links, there) in &mut all {
        let until = Instant::now() + WITHIN;
        while !links.try_send(*there, &header, Payload::Bytes(&[])) {
            assert!(look(links).is_none() && Instant::now() < until, "there is no connection");
            if let Some(LinkEvent::Message(peer, buffer)) = look(&mut middle) {
                middle.give_back(peer, buffer);
            }
        }
    }
    while let Some(LinkEvent::Message(peer, buffer)) = look(&mut middle) {
        middle.give_back(peer, buffer);
    }
    (middle, all)
}

/// A look does not include all of many peers, but each of them within some looks, and at once when it must.
#[test]
fn everyone_of_many_peers_is_heard_beside_others_that_send_all_the_time() {
    const OTHERS: usize = 40;
    const LOUD: usize = 6;
    let (mut middle, mut others) = star(OTHERS);
    let say = |(links, there): &mut (ViLinks, PeerNo), tag: u64| {
        let header = Header { flags: TAGGED, tag, ..Header::new(Kind::Message) }.encode();
        links.try_send(*there, &header, Payload::Bytes(&[]))
    };
    let hear = |middle: &mut ViLinks| {
        let Some(LinkEvent::Message(peer, buffer)) = middle.next() else { return None };
        let tag = Header::parse(&buffer).unwrap().0.tag;
        middle.give_back(peer, buffer);
        Some(tag)
    };
    for nth in LOUD..OTHERS {
        for loud in &mut others[..LOUD] {
            while say(loud, 0) {}
        }
        assert!(say(&mut others[nth], nth as u64));
        let looks = (0..1000).find(|_| {
            for loud in &mut others[..LOUD] {
                say(loud, 0);
            }
            hear(&mut middle) == Some(nth as u64)
        });
        assert!(looks.is_some(), "peer {nth} is not heard");
    }
    // A look that finds nothing may have left out a peer, unless it was to include all.
    for (nth, other) in others.iter_mut().enumerate().skip(LOUD) {
        middle.look_at_all();
        while hear(&mut middle).is_some() {}
        assert!(say(other, 7));
        middle.look_at_all();
        assert_eq!(hear(&mut middle), Some(7), "peer {nth} is left out");
    }
}
