//! Transfers arrive completely, once, at the right place, and change nothing else.

use crate::common::bulk::{
    ANSWERED, BLANK, ECHO, FETCHED, ORIGINS, Origin, QUIET, Side, Told, bytes, config, contents, pair,
    pair_with, while_polled,
};
use crate::common::{Deadline, Idler, TIMEOUT, Transport, seed, until};
use fastrand::Rng;
use netdyno_stack::am::{Config, Memory, Shared};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lengths around the sizes of pages, bounce-buffer slots and datagrams.
const LENGTHS: [usize; 18] = [
    0,
    1,
    7,
    63,
    64,
    65,
    1400,
    1500,
    4095,
    4096,
    4097,
    65_535,
    65_536,
    65_537,
    131_072,
    131_073,
    1 << 20,
    (3 << 20) + 5,
];

/// Checks that memory holds `inner` at `offset` and is [`BLANK`] elsewhere.
fn assert_holds(memory: &Memory, offset: usize, inner: &[u8]) {
    let found = contents(memory);
    let (before, rest) = found.split_at(offset);
    let (there, after) = rest.split_at(inner.len());
    assert!(there == inner, "{} bytes at {offset} are others", inner.len());
    assert!(before.iter().chain(after).all(|&byte| byte == BLANK), "a neighbour was touched");
}

pub fn of_every_length_at_every_offset(transport: &Transport) {
    for origin in ORIGINS {
        let [mut a, mut b] = pair(transport);
        for (n, len) in LENGTHS.into_iter().enumerate() {
            for offset in [0, 1, 4095] {
                println!("{origin:?}: {len} bytes at {offset}");
                let n = n as u64;
                let room = offset + len + 3;
                let (memory, local) = (b.memory(origin, room), a.memory(origin, room));
                let sent = bytes(n, len);
                while_polled(&mut b, || {
                    let remote = a.attach(&memory);
                    assert_eq!((remote.len(), remote.memory(), remote.peer()), (room, memory.id(), a.peer));
                    let words = [n, 1, 2, 3];
                    a.endpoint.store(&mut a.seen, remote.at(offset), &sent, ANSWERED, words).unwrap();
                    a.settle("a store is answered");
                    assert_eq!(a.seen.replies.pop(), Some(n));
                    assert_holds(&memory, offset, &sent);

                    let at = 3 - offset % 3;
                    a.endpoint
                        .get(&mut a.seen, remote.at(offset), local.range(at, len), FETCHED, [n])
                        .unwrap();
                    assert_eq!(a.seen.fetched, [], "a handler does not run in the call");
                    a.settle("a get is answered");
                    let told =
                        Told { memory: local.id(), offset: at, words: [n, 0, 0, 0], bytes: sent.clone() };
                    assert!(a.seen.fetched == [told], "a get is told as it was asked for");
                    assert_holds(&local, at, &sent);
                    a.endpoint.detach(remote);
                });
                let told = Told { memory: memory.id(), offset, words: [n, 1, 2, 3], bytes: sent };
                assert!(b.seen.stored == [told], "a store is told as it was made");
                b.seen.stored.clear();
                a.seen.fetched.clear();
                b.endpoint.deregister(memory.id()).unwrap();
                a.endpoint.deregister(local.id()).unwrap();
            }
        }
        assert_eq!((a.seen.refused.len(), b.seen.refused.len()), (0, 0));
    }
}

/// The number of transfers of one side, and the room for each.
const TRANSFERS: u64 = 60;
const ROOM: usize = 80_000;

/// Returns the offset and the length of the `n`-th transfer.
fn place(seed: u64, n: u64) -> (usize, usize) {
    let mut rng = Rng::with_seed(seed ^ n.wrapping_mul(0x1234_5678_9abc_def1));
    let lengths = [0, 1, 100, 4096, 65_536, rng.usize(..70_000)];
    let len = lengths[rng.usize(..lengths.len())];
    (n as usize * ROOM + rng.usize(..ROOM - len), len)
}

/// The memory of one side for the other: bytes to get, and room to store into.
struct Memories {
    given: Memory,
    taken: Memory,
}

impl Memories {
    fn new(side: &mut Side, origin: Origin, seed: u64) -> Self {
        let [given, taken] = [(); 2].map(|()| side.memory(origin, TRANSFERS as usize * ROOM));
        for n in 0..TRANSFERS {
            let (offset, len) = place(seed, n);
            given.write(offset, &bytes(!n, len)).unwrap();
        }
        Self { given, taken }
    }
}

/// Starts all stores and gets without waiting for any of them, while the other side does the same.
fn transfer_all(side: &mut Side, theirs: &Memories, seed: u64, done: &AtomicUsize) {
    let mut rng = Rng::with_seed(seed);
    let (deadline, mut idler) = (Deadline::after(TIMEOUT), Idler::default());
    let [given, taken] = [&theirs.given, &theirs.taken].map(|memory| side.attach(memory));
    let local = side.memory(Origin::Registered, TRANSFERS as usize * ROOM);
    let Side { endpoint, peer, seen } = side;
    for n in 0..TRANSFERS {
        let (offset, len) = place(seed, n);
        let handler = if rng.bool() { ANSWERED } else { QUIET };
        let mut sent = bytes(n, len);
        if rng.bool() {
            endpoint.store(seen, taken.at(offset), &sent, handler, [n, 7]).unwrap();
        } else {
            // The buffer may be longer than the part that is sent.
            sent.extend(vec![0; rng.usize(..100)]);
            let sent = Shared::first(sent.into(), len);
            endpoint.store_shared(seen, taken.at(offset), sent, handler, [n, 7]).unwrap();
        }
        endpoint.get(seen, given.at(offset), local.range(offset, len), FETCHED, [n]).unwrap();
        if rng.u32(..4) == 0 {
            endpoint.poll(seen).unwrap();
        }
    }
    let mut is_counted = false;
    while done.load(Ordering::Acquire) < 2 {
        deadline.check("transfers in both directions");
        if endpoint.poll(seen).unwrap() == 0 {
            idler.idle();
        }
        let has_all = seen.stored.len() as u64 == TRANSFERS
            && seen.fetched.len() as u64 == TRANSFERS
            && endpoint.in_flight(*peer) == 0;
        if has_all && !is_counted {
            is_counted = true;
            done.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Checks that each transfer was reported once, at the right place and with the right bytes.
fn assert_all(told: &[Told], seed: u64, memory: Option<u64>, first: impl Fn(u64) -> u64) {
    let mut order: Vec<&Told> = told.iter().collect();
    order.sort_by_key(|told| told.words[0]);
    assert_eq!(order.len() as u64, TRANSFERS);
    for (n, told) in (0..).zip(order) {
        let (offset, len) = place(seed, n);
        assert_eq!((told.words[0], told.offset, told.bytes.len()), (n, offset, len));
        assert!(told.bytes == bytes(first(n), len), "{n}: {len} bytes are others");
        assert!(memory.is_none_or(|memory| memory == told.memory));
    }
}

fn in_both_directions(transport: &Transport, origin: Origin, config: Config) {
    let seed = seed();
    println!("{origin:?}, {config:?}");
    let [mut a, mut b] = pair_with(transport, config);
    let [of_a, of_b] = [&mut a, &mut b].map(|side| Memories::new(side, origin, seed));
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| transfer_all(&mut a, &of_b, seed, &done));
        transfer_all(&mut b, &of_a, seed, &done);
    });
    for (side, memories) in [(&a, &of_a), (&b, &of_b)] {
        assert_all(&side.seen.stored, seed, Some(memories.taken.id()), |n| n);
        assert_all(&side.seen.fetched, seed, None, |n| !n);
        assert!(side.seen.refused.is_empty());
        assert!(side.seen.replies.is_sorted(), "stores are answered in order");
    }
}

pub fn many_in_flight_in_both_directions(transport: &Transport) {
    for origin in ORIGINS {
        for window in [1, 4, 256] {
            in_both_directions(transport, origin, config(transport).window(window));
        }
    }
}

/// Transfers do not depend on the room for payloads of messages.
pub fn where_no_message_has_a_payload(transport: &Transport) {
    for origin in ORIGINS {
        in_both_directions(transport, origin, config(transport).medium_bytes(0));
    }
}

/// A store is complete when its handler runs, with other requests before and behind it.
pub fn between_short_requests(transport: &Transport) {
    const LEN: usize = 70_001;
    for origin in ORIGINS {
        let [mut a, mut b] = pair(transport);
        let memory = b.memory(origin, 40 * LEN);
        while_polled(&mut b, || {
            let remote = a.attach(&memory);
            for n in 0..40 {
                let Side { endpoint, peer, seen } = &mut a;
                endpoint.store(seen, remote.at(n as usize * LEN), &bytes(n, LEN), QUIET, [n]).unwrap();
                endpoint.request(seen, *peer, ECHO, [n]).unwrap();
            }
            a.settle("requests between stores are answered");
        });
        assert!(a.seen.replies.iter().copied().eq(0..40));
        let told = b.seen.stored.iter().zip(0..);
        told.for_each(|(told, n)| assert!(told.words[0] == n && told.bytes == bytes(n, LEN)));
    }
}

/// Both sides wait for room at each other during long transfers.
pub fn both_sides_may_wait_in_a_transfer(transport: &Transport) {
    for origin in ORIGINS {
        let [mut a, mut b] = pair_with(transport, config(transport).window(2));
        let len = 6 << 20;
        let [of_a, of_b] = [&mut a, &mut b].map(|side| side.memory(origin, len));
        let done = AtomicUsize::new(0);
        let store = |side: &mut Side, memory: &Memory, n: u64| {
            let remote = side.attach(memory);
            side.endpoint.store(&mut side.seen, remote.at(0), &bytes(n, len), ANSWERED, [n]).unwrap();
            until("both have stored", || {
                side.poll();
                side.seen.stored.len() == 1 && side.seen.replies == [n]
            });
            done.fetch_add(1, Ordering::AcqRel);
            until("both know", || {
                side.poll();
                done.load(Ordering::Acquire) == 2
            });
        };
        std::thread::scope(|scope| {
            scope.spawn(|| store(&mut a, &of_b, 1));
            store(&mut b, &of_a, 2);
        });
        assert!(contents(&of_b) == bytes(1, len) && contents(&of_a) == bytes(2, len));
    }
}

/// Local memory may be deregistered while a get to it is in flight.
pub fn the_memory_of_a_get_is_kept_until_it_has_come(transport: &Transport) {
    for origin in ORIGINS {
        let [mut a, mut b] = pair(transport);
        let memory = b.memory(origin, 300_000);
        memory.write(0, &bytes(1, 300_000)).unwrap();
        let remote = while_polled(&mut b, || a.attach(&memory));
        let local = a.memory(Origin::Registered, 300_000);
        a.endpoint.get(&mut a.seen, remote.at(0), local.range(0, 300_000), FETCHED, []).unwrap();
        a.endpoint.deregister(local.id()).unwrap();
        drop(local);
        while_polled(&mut b, || a.settle("a get is answered"));
        assert!(a.seen.fetched[0].bytes == bytes(1, 300_000));
    }
}
