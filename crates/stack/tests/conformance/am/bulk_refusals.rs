//! A transfer that is not possible is refused at the side that started it, and nothing is written.

use crate::common::bulk::{
    ANSWERED, BLANK, FETCHED, ORIGINS, Origin, QUIET, Seen, Side, bytes, config, contents, handlers, pair,
    pair_with, while_polled,
};
use crate::common::{TIMEOUT, Transport, connect, seed, until};
use fastrand::Rng;
use netdyno_protocol::frame::memory_key::{LEN, MemoryKey, Place};
use netdyno_stack::am::{
    AttachError, Dial, Dials, Endpoint, Handlers, Memory, MemoryError, OutOfBounds, Setting, Transfer,
    TransferError, Wire,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

fn attach_error(side: &mut Side, key: &[u8]) -> AttachError {
    let error = side.endpoint.attach(&mut side.seen, side.peer, key).unwrap_err();
    assert!(!error.to_string().is_empty());
    error
}

pub fn ranges_that_are_not_all_inside(transport: &Transport) {
    let most = usize::MAX;
    for origin in ORIGINS {
        let [mut a, mut b] = pair(transport);
        let (memory, local) = (b.memory(origin, 1000), a.memory(origin, 1000));
        let remote = while_polled(&mut b, || a.attach(&memory));
        let ranges = [(0, 1001), (1, 1000), (1000, 1), (1001, 0), (most, 0), (most, 1), (most - 3, 500)];
        for (offset, len) in ranges {
            let out = OutOfBounds { offset, len, memory_len: 1000 };
            let Side { endpoint, seen, .. } = &mut a;
            let error = endpoint.store(seen, remote.at(offset), &vec![1; len], QUIET, []).unwrap_err();
            assert_eq!(error, TransferError::Remote(out));
            let error = endpoint.get(seen, remote.at(offset), local.range(0, len), FETCHED, []).unwrap_err();
            assert_eq!(error, TransferError::Remote(out));
            let error =
                endpoint.get(seen, remote.at(0), local.range(offset.max(1), len.min(1000)), FETCHED, []);
            assert!(matches!(error.unwrap_err(), TransferError::Local(_)) || len == 1 && offset == 1000);
            assert_eq!(memory.write(offset, &vec![1; len]), Err(out));
            assert_eq!(memory.read(offset, &mut vec![1; len]), Err(out));
        }
        // A length beyond any memory.
        let Side { endpoint, seen, .. } = &mut a;
        for len in [1001, most] {
            let error = endpoint.get(seen, remote.at(1), local.range(0, len), FETCHED, []).unwrap_err();
            assert!(matches!(error, TransferError::Remote(_)));
        }
        assert_eq!(a.endpoint.in_flight(a.peer), 0);
        while_polled(&mut b, || a.settle("nothing"));
        assert!(b.seen.stored.is_empty() && a.seen.fetched.is_empty() && a.seen.refused.is_empty());
        assert!(contents(&memory).iter().chain(&contents(&local)).all(|&byte| byte == BLANK));
    }
}

pub fn memory_that_cannot_be(transport: &Transport) {
    let [mut a, _b] = pair(transport);
    assert!(matches!(a.endpoint.allocate(usize::MAX), Err(MemoryError::TooLong(usize::MAX))));
    assert!(matches!(a.endpoint.allocate(1 << 62), Err(MemoryError::Segment(_))));
    assert!(matches!(a.endpoint.deregister(1), Err(MemoryError::NotRegistered(_))));
    let memory = a.endpoint.allocate(0).unwrap();
    assert!(memory.is_empty());
    a.endpoint.deregister(memory.id()).unwrap();
    assert!(matches!(a.endpoint.deregister(memory.id()), Err(MemoryError::NotRegistered(_))));
}

pub fn keys_that_are_none(transport: &Transport) {
    let [mut a, mut b] = pair(transport);
    let key = b.memory(Origin::Allocated, 100).key();
    for len in 0..LEN {
        assert!(matches!(attach_error(&mut a, &key[..len]), AttachError::Key(_)));
    }
    assert!(matches!(attach_error(&mut a, &[&key[..], &[0]].concat()), AttachError::Key(_)));
    assert!(matches!(attach_error(&mut a, &[0x55; LEN]), AttachError::Key(_)));
}

/// A key with any bit changed opens nothing.
pub fn keys_that_were_forged(transport: &Transport) {
    for origin in ORIGINS {
        let [mut a, mut b] = pair(transport);
        let memory = b.memory(origin, 5000);
        let key = memory.key();
        while_polled(&mut b, || {
            for at in 0..key.len() {
                let mut forged = key.clone();
                forged[at] ^= 1 << (at % 8);
                attach_error(&mut a, &forged);
            }
            let right = MemoryKey::parse(&key).unwrap();
            for key in [
                MemoryKey { id: 0, ..right },
                MemoryKey { len: 4999, ..right },
                MemoryKey { len: 0, ..right },
                MemoryKey { len: 1 << 62, ..right },
                MemoryKey { place: Place::Segment { pid: 1, fd: 0, nonce: [0; 16] }, ..right },
            ] {
                attach_error(&mut a, &key.encode());
            }
            a.attach(&memory);
        });
    }
}

/// The right key at the wrong peer, even at a peer of the same process.
pub fn the_key_of_another_endpoint(transport: &Transport) {
    for origin in ORIGINS {
        let [mut a, mut b] = pair(transport);
        let mut c = Endpoint::new(handlers(), config(transport)).unwrap();
        let (_, _) = connect(transport.wire, &mut a.endpoint, &mut c);
        let memory = match origin {
            Origin::Allocated => c.allocate(100).unwrap(),
            _ => c.register(vec![0; 100].into()).unwrap(),
        };
        while_polled(&mut b, || attach_error(&mut a, &memory.key()));
    }
}

pub fn keys_of_memory_that_was_deregistered(transport: &Transport) {
    for origin in ORIGINS {
        let [mut a, mut b] = pair(transport);
        let memory = b.memory(origin, 100);
        b.endpoint.deregister(memory.id()).unwrap();
        let key = memory.key();
        // With a handle that is still held, and without one.
        let memories = [Some(memory), None];
        while_polled(&mut b, || {
            for memory in memories {
                let error = attach_error(&mut a, &key);
                assert!(matches!(error, AttachError::NotRegistered), "{error}");
                drop(memory);
            }
        });
    }
}

pub fn without_handlers_nothing_is_begun(transport: &Transport) {
    let mut deaf = Handlers::<Seen>::new();
    deaf.on_fetched(FETCHED, |_, _| {});
    let mut a = Endpoint::new(deaf, config(transport)).unwrap();
    let mut b = Endpoint::new(handlers(), config(transport)).unwrap();
    let (peer, to_a) = connect(transport.wire, &mut a, &mut b);
    let mut b = Side { endpoint: b, peer: to_a, seen: Seen::default() };
    let memory = b.memory(Origin::Allocated, 100);
    let local = a.allocate(100).unwrap();
    let mut seen = Seen::default();
    let remote = while_polled(&mut b, || a.attach(&mut seen, peer, &memory.key()).unwrap());
    let error = a.store(&mut seen, remote.at(0), &[1], QUIET, []).unwrap_err();
    assert_eq!(error, TransferError::NoHandlerOfRefusals);
    let error = a.get(&mut seen, remote.at(0), local.range(0, 1), FETCHED, []).unwrap_err();
    assert_eq!(error, TransferError::NoHandlerOfRefusals);
    let [mut a, mut b] = pair(transport);
    let memory = b.memory(Origin::Allocated, 100);
    let remote = while_polled(&mut b, || a.attach(&memory));
    let error = a.endpoint.get(&mut a.seen, remote.at(0), memory.range(0, 1), 99, []).unwrap_err();
    assert_eq!(error, TransferError::NoHandler(99));
}

/// Memory is deregistered after it was attached. A transfer fails at once or is refused later, with its
/// arguments.
pub fn memory_that_was_deregistered_since(transport: &Transport) {
    for origin in ORIGINS {
        let [mut a, mut b] = pair(transport);
        let memory = b.memory(origin, 100_000);
        let local = a.memory(origin, 100_000);
        let remote = while_polled(&mut b, || a.attach(&memory));
        b.endpoint.deregister(memory.id()).unwrap();
        let (stored, got) = while_polled(&mut b, || {
            let Side { endpoint, seen, .. } = &mut a;
            let stored = endpoint.store(seen, remote.at(10), &bytes(1, 70_000), ANSWERED, [1, 2, 3]);
            let got = endpoint.get(seen, remote.at(20), local.range(5, 70_001), FETCHED, [4]);
            a.settle("transfers are refused");
            (stored, got)
        });
        if transport.wire == Wire::Shm && matches!(origin, Origin::Allocated) {
            // A peer that maps the memory notices at once.
            assert_eq!((stored, got), (Err(TransferError::Deregistered), Err(TransferError::Deregistered)));
        }
        let later = a.seen.refused.iter().map(|refused| {
            assert_eq!((refused.peer, refused.memory), (a.peer, memory.id()));
            (refused.transfer, refused.offset, refused.len, refused.handler, refused.words)
        });
        let mut later: Vec<_> = later.collect();
        match got {
            Ok(()) => assert_eq!(later.pop(), Some((Transfer::Get, 20, 70_001, FETCHED, [4, 0, 0, 0]))),
            Err(error) => assert_eq!(error, TransferError::Deregistered),
        }
        match stored {
            Ok(()) => assert_eq!(later.pop(), Some((Transfer::Store, 10, 70_000, ANSWERED, [1, 2, 3, 0]))),
            Err(error) => assert_eq!(error, TransferError::Deregistered),
        }
        assert_eq!(later, []);
        assert!(b.seen.stored.is_empty() && a.seen.fetched.is_empty() && a.seen.replies.is_empty());
        assert!(contents(&memory).iter().all(|&byte| byte == BLANK));
    }
}

/// Memory is deregistered while stores arrive. All stores before some point are handled, all later ones
/// are refused, and nothing is written afterwards.
pub fn memory_that_is_deregistered_while_in_use(transport: &Transport) {
    let mut rng = Rng::with_seed(seed());
    for round in 0..12 {
        let origin = ORIGINS[round % ORIGINS.len()];
        let stores_before = rng.usize(..40);
        println!("{origin:?}, after {stores_before} stores");
        let [mut a, mut b] = pair_with(transport, config(transport).window(8));
        let memory = b.memory(origin, 200_000);
        let local = a.memory(Origin::Registered, 200_000);
        let remote = while_polled(&mut b, || a.attach(&memory));
        let is_over = AtomicBool::new(false);
        let (begun_stores, begun_gets) = std::thread::scope(|scope| {
            let asker = scope.spawn(|| {
                let (mut stores, mut gets) = (0, 0);
                let Side { endpoint, seen, .. } = &mut a;
                for n in 0..200u64 {
                    let (offset, len) = (n as usize % 100, 100_000);
                    let stored = endpoint.store(seen, remote.at(offset), &vec![n as u8; len], QUIET, [n]);
                    let got = endpoint.get(seen, remote.at(offset), local.range(0, len), FETCHED, [n]);
                    for (result, count) in [(stored, &mut stores), (got, &mut gets)] {
                        match result {
                            Ok(()) => *count += 1,
                            Err(error) => assert_eq!(error, TransferError::Deregistered),
                        }
                    }
                }
                a.settle("transfers are answered");
                is_over.store(true, Ordering::Release);
                (stores, gets)
            });
            until("some stores come in", || {
                b.poll();
                b.seen.stored.len() >= stores_before
            });
            b.endpoint.deregister(memory.id()).unwrap();
            let then = contents(&memory);
            until("the rest is refused", || {
                b.poll();
                is_over.load(Ordering::Acquire)
            });
            assert!(contents(&memory) == then, "something landed later");
            asker.join().unwrap()
        });
        let refused = |transfer| a.seen.refused.iter().filter(|refused| refused.transfer == transfer).count();
        assert_eq!(b.seen.stored.len() + refused(Transfer::Store), begun_stores);
        assert_eq!(a.seen.fetched.len() + refused(Transfer::Get), begun_gets);
        assert!(b.seen.stored.iter().zip(0..).all(|(told, n)| told.words[0] == n), "handled in order");
        // This side has all its answers. The other side would wait in vain for its acknowledgements.
        drop(a);
    }
}

/// Memory is deregistered when the bytes of a store are in place. On a dialled link the handler of the
/// store is not due yet, so the store is refused.
pub fn memory_that_is_deregistered_before_a_store_is_due(transport: &Transport) {
    let dials = match transport.dials {
        Dials::NONE => Dials::NONE,
        dials => dials.with(Dial::Latency, Setting::Add(20_000_000.0)),
    };
    for origin in ORIGINS {
        let [mut a, mut b] = pair_with(transport, config(transport).dials(dials));
        let memory = b.memory(origin, 100);
        let remote = while_polled(&mut b, || a.attach(&memory));
        let Side { endpoint, seen, .. } = &mut a;
        endpoint.store(seen, remote.at(10), &[1; 50], ANSWERED, [1, 2, 3]).unwrap();
        until("the bytes are in place", || {
            a.poll();
            b.poll();
            contents(&memory)[59] == 1 || !b.seen.stored.is_empty()
        });
        b.endpoint.deregister(memory.id()).unwrap();
        while_polled(&mut b, || a.settle("the store is answered"));
        let refused = a.seen.refused.iter().map(|refused| (refused.offset, refused.len, refused.words));
        assert!(refused.clone().all(|told| told == (10, 50, [1, 2, 3, 0])));
        assert_eq!(b.seen.stored.len() + refused.len(), 1);
        assert_eq!(a.seen.replies.len(), b.seen.stored.len());
    }
}

/// The memory of a closed endpoint is out of reach of peers, and stays usable through a handle.
pub fn memory_outlives_its_endpoint(transport: &Transport) {
    for origin in ORIGINS {
        let [mut a, mut b] = pair(transport);
        let memory = b.memory(origin, 10_000);
        let remote = while_polled(&mut b, || a.attach(&memory));
        drop(b);
        let Side { endpoint, seen, .. } = &mut a;
        // Either the memory or the endpoint is found closed first.
        until("the end is noticed", || endpoint.store(seen, remote.at(0), &[1], QUIET, []).is_err());
        assert!(contents(&memory).iter().all(|&byte| byte == BLANK));
        memory.write(1, &[1, 2]).unwrap();
        assert_eq!(contents(&memory)[..4], [BLANK, 1, 2, BLANK]);
    }
}

/// A peer that does not answer does not block a question for ever.
pub fn a_question_that_nobody_answers(transport: &Transport) {
    let timeout = std::time::Duration::from_millis(300);
    let [mut a, mut b] = pair_with(transport, config(transport).peer_timeout(timeout));
    let memory = b.memory(Origin::Registered, 10);
    let (tell, told) = channel();
    let key = memory.key();
    std::thread::spawn(move || {
        let error = attach_error(&mut a, &key);
        tell.send(matches!(error, AttachError::Lost(_))).unwrap();
    });
    assert_eq!(told.recv_timeout(TIMEOUT), Ok(true));
}

/// Threads may share a handle.
pub fn memory_may_be_used_by_any_thread(transport: &Transport) {
    fn check<T: Send + Sync + Clone>(_: &T) {}
    let [mut a, _b] = pair(transport);
    let memory: Memory = a.memory(Origin::Allocated, 10);
    check(&memory);
}
