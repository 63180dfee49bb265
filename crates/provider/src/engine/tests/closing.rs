//! Endpoints, regions, receives and peers that end while something is under way.

use super::*;

/// After an endpoint is closed, nothing is read from or written to the memory of its messages. The other side hears of
/// it.
#[test]
fn a_closed_endpoint_leaves_memory_alone() {
    for closed in [0, 1] {
        for nth in [0, 1] {
            let mut engines = pair(Copied::NotHere, 5);
            let (mut sent, mut got) = (vec![1; LONG], vec![0; LONG]);
            // The endpoint that is closed is another one of its engine half of the time.
            let reports = engines[closed].endpoints.get(0).unwrap().reports;
            engines[closed].endpoints.insert(Endpoint { reports, ..Endpoint::default() }).unwrap();
            let place = memory(&mut got);
            engines[1].receive(0, posting(ANY, place.clone(), 5)).unwrap();
            engines[0].send(0, message(9, memory(&mut sent), 1, REPORTED)).unwrap();
            begin_pieces(&mut engines, &place);
            engines[closed].close(nth);
            if nth == 0 {
                if closed == 0 {
                    sent.fill(2)
                } else {
                    got.fill(2)
                };
            }
            settle(&mut engines);
            assert!(engines.iter().all(|engine| engine.transfers.is_empty()));
            let done = engines.each_mut().map(completions);
            if nth == 1 {
                assert!(done.iter().all(|done| done.len() == 1 && done[0].failure.is_none()));
                assert_eq!(got, sent);
                continue;
            }
            assert!(done[closed].is_empty());
            assert_eq!(done[1 - closed][0].failure.unwrap().0, Failure::NoEndpoint);
            assert!(got.iter().all(|byte| if closed == 0 { *byte < 2 } else { *byte == 2 }));
        }
    }
}

#[test]
fn a_withdrawn_region_is_left_alone() {
    for is_write in [true, false] {
        let mut engines = pair(Copied::NotHere, 5);
        let (mut region, mut bytes) = (vec![u8::from(!is_write); LONG], vec![u8::from(is_write); LONG]);
        let access = Access { can_be_read: true, can_be_written: true };
        let (theirs, own) = (memory(&mut region), memory(&mut bytes));
        engines[1].regions.insert(40, Region { memory: theirs.clone(), access, counters: [None; 2] });
        let (to, place) = (Target { peer: PEER, endpoint: 0 }, Place { key: 40, offset: 0 });
        if is_write {
            engines[0].write(0, to, place, own.clone(), None, (1, REPORTED)).unwrap();
        } else {
            engines[0].read(0, to, place, own.clone(), (1, true)).unwrap();
        }
        begin_pieces(&mut engines, if is_write { &theirs } else { &own });
        engines[1].withdraw(40);
        region.fill(3);
        settle(&mut engines);
        assert!(engines.iter().all(|engine| engine.transfers.is_empty()));
        assert_eq!(completions(&mut engines[0])[0].failure, Some((Failure::NoMemory, 0)));
        assert!(region.iter().all(|byte| *byte == 3) && !bytes.contains(&3));
        // The target counts what was not done, and has no entry for it.
        assert!(completions(&mut engines[1]).is_empty());
        assert_eq!(engines[1].completions.counters[0].errors, u64::from(is_write));
        assert_eq!(engines[1].completions.counters[0].value, 0);
    }
}

#[test]
fn offers_that_nobody_took_are_answered_when_the_endpoint_closes() {
    let mut engines = pair(Copied::NotHere, 0);
    let mut sent = [(); 3].map(|()| vec![1; 2 * PAYLOAD]);
    for (nth, bytes) in sent.iter_mut().enumerate() {
        let tag = (nth < 2).then_some(nth as u64);
        let send = Send { tag, ..message(0, memory(bytes), nth, REPORTED) };
        engines[0].send(0, send).unwrap();
    }
    settle(&mut engines);
    let one = Wanted { source: None, tag: 1, ignore: 0 };
    assert!(engines[1].find(0, &one, true, Some(7)).unwrap().is_some());
    engines[1].close(0);
    settle(&mut engines);
    let done = completions(&mut engines[0]);
    assert_eq!(done.len(), 3);
    assert!(done.iter().all(|done| done.failure == Some((Failure::NoEndpoint, 0))));
}

/// A peer that does not know of the end of an endpoint sends no message to the next one.
#[test]
fn the_number_of_a_closed_endpoint_is_the_last_to_be_given_again() {
    let mut engines = pair(Copied::NotHere, 0);
    engines[1].close(0);
    let reports = engines[0].endpoints.get(0).unwrap().reports;
    let next = engines[1].endpoints.insert(Endpoint { reports, ..Endpoint::default() }).unwrap();
    engines[0].send(0, message(9, memory(&mut vec![1; 2 * PAYLOAD]), 1, REPORTED)).unwrap();
    settle(&mut engines);
    assert_eq!(completions(&mut engines[0])[0].failure, Some((Failure::NoEndpoint, 0)));
    assert!(engines[1].endpoints.get_mut(next).unwrap().untagged.find_message(&ANY).is_none());
    let all = u32::from(u16::MAX);
    let others: Vec<_> =
        (1..all).map(|_| engines[1].endpoints.insert(Endpoint::default()).unwrap()).collect();
    assert_eq!((next, others.last()), (1, Some(&0)));
    assert_eq!(engines[1].endpoints.insert(Endpoint::default()), None);
    engines[1].close(7);
    assert_eq!(engines[1].endpoints.insert(Endpoint::default()), Some(7));
}

#[test]
fn a_buffer_is_cancelled_while_messages_come_into_it() {
    let mut engines = pair(Copied::NotHere, 5);
    let (mut sent, mut got) = ([(); 2].map(|()| vec![1; LONG / 4]), vec![0; LONG]);
    let place = memory(&mut got);
    let posted = Posting { is_tagged: false, is_of_several: true, ..posting(ANY, place.clone(), 5) };
    engines[1].receive(0, posted.clone()).unwrap();
    for (nth, bytes) in sent.iter_mut().enumerate() {
        engines[0].send(0, Send { tag: None, ..message(0, memory(bytes), nth, REPORTED) }).unwrap();
    }
    begin_pieces(&mut engines, &place);
    assert!(engines[1].cancel(0, 5) && !engines[1].cancel(0, 5));
    // The number of a buffer that is gone would be given to the next one.
    let mut other = vec![0; 100];
    engines[1].receive(0, Posting { memory: memory(&mut other), context: 6, ..posted }).unwrap();
    settle(&mut engines);
    let done = completions(&mut engines[1]);
    let flags: Vec<_> =
        done.iter().map(|done| (done.context, done.flags & crate::abi::MULTI_RECV != 0)).collect();
    assert_eq!(flags, [(5, false), (5, true)]);
    assert!(engines[1].cancel(0, 6) && other == [0; 100]);
}

#[test]
fn the_offer_of_a_lost_peer_fails_when_it_is_taken() {
    let mut engines = pair(Copied::NotHere, 0);
    let (mut sent, mut got) = (vec![1; 2 * PAYLOAD], vec![0; 2 * PAYLOAD]);
    engines[0].send(0, message(9, memory(&mut sent), 1, REPORTED)).unwrap();
    settle(&mut engines);
    engines[1].links.into.borrow_mut().is_broken = true;
    engines[1].progress();
    engines[1].receive(0, posting(ANY, memory(&mut got), 5)).unwrap();
    assert_eq!(completions(&mut engines[1])[0].failure.unwrap().0, Failure::PeerLost);
}

/// A peer that asks for the bytes of a message and says at once that it has them gets no more of them.
#[test]
fn nothing_is_read_after_a_message_is_complete() {
    for is_asked_twice in [false, true] {
        let [mut engine, _] = pair(Copied::NotHere, 0);
        let mut sent = vec![1; LONG];
        engine.send(0, message(9, memory(&mut sent), 1, REPORTED)).unwrap();
        let say = |kind| {
            let header = Header { len: LONG as u64, ..Header::new(kind) };
            engine.links.into.borrow_mut().messages.push_back(header.encode().to_vec());
            engine.links.into.borrow_mut().taken += 1;
        };
        say(Kind::Accept);
        say(if is_asked_twice { Kind::Accept } else { Kind::Done });
        engine.progress();
        assert!(engine.peers[PEER].streams.is_empty());
        assert_eq!(engine.peers[PEER].is_lost, is_asked_twice);
        assert_eq!(completions(&mut engine)[0].failure.is_some(), is_asked_twice);
    }
}

#[test]
fn the_end_of_a_peer_ends_what_waits_for_it() {
    let mut engines = pair(Copied::NotHere, 0);
    let (mut sent, mut got) = (vec![0; 3 * PAYLOAD], vec![0; 8]);
    let to = Target { peer: PEER, endpoint: 0 };
    engines[0].send(0, message(1, memory(&mut sent), 1, REPORTED)).unwrap();
    engines[0].read(0, to, Place { key: 1, offset: 0 }, memory(&mut got), (2, true)).unwrap();
    engines[0].links.into.borrow_mut().is_broken = true;
    engines[0].progress();
    let done = completions(&mut engines[0]);
    assert!(done.iter().all(|done| done.failure == Some((Failure::PeerLost, 0))) && done.len() == 2);
    assert_eq!(engines[0].send(0, message(1, memory(&mut got), 3, REPORTED)), Err(Refused::PeerLost));
}
