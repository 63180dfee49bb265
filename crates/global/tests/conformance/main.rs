//! Global memory over every transport: threads as ranks, and processes where a rank is killed.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../../stack/tests/conformance/common/cables.rs"]
#[allow(dead_code, reason = "the stack's tests use more of it")]
mod cables;
mod job;
mod killed;
mod launched;
mod misbehaved;
#[path = "../common/shared_memory.rs"]
mod shared_memory;

use job::{Transport, run};
use netdyno_global::{Combination, Error, GlobalPointer, World};

/// Lengths around the limits of messages and of bulk transfers.
const LENGTHS: [usize; 13] = [0, 1, 2, 7, 8, 9, 1023, 1025, 1471, 4096, 4097, 65_537, 3_000_001];

/// Returns bytes that a seed determines.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) ^ seed.wrapping_mul(97) ^ (at >> 8)) as u8).collect()
}

fn at(rank: u32, segment: netdyno_global::Segment, offset: u64) -> GlobalPointer {
    GlobalPointer { rank, segment: segment.number(), offset }
}

fn transfers_of_every_length(transport: Transport) {
    run(3, transport, |world| {
        let longest = 8 + LENGTHS[LENGTHS.len() - 1];
        let [shared, landing] = [0; 2].map(|_| world.allocate(longest).unwrap());
        world.barrier().unwrap();
        let (me, right) = (world.rank() as usize, (world.rank() + 1) % world.ranks());
        for (nth, len) in LENGTHS.into_iter().enumerate() {
            let there = at(right, shared, 3);
            let mut bytes = pattern(nth + me, len);
            world.write(there, &bytes).unwrap();
            let mut back = vec![0; len];
            world.read(there, &mut back).unwrap();
            assert!(back == bytes, "{len} bytes, blocking");

            bytes = pattern(nth + me + 100, len);
            world.put(there, &bytes).unwrap();
            world.sync().unwrap();
            world.get(there, landing, 5, len).unwrap();
            world.sync().unwrap();
            world.load(landing, 5, &mut back).unwrap();
            assert!(back == bytes, "{len} bytes, split-phase");
            let words = world.words(landing, 5, len / 8).unwrap().flat_map(u64::to_le_bytes);
            assert!(words.eq(bytes[..len / 8 * 8].iter().copied()), "{len} bytes, as words");

            bytes = pattern(nth + me + 200, len);
            world.store(there, &bytes).unwrap();
            world.all_store_sync().unwrap();
            let left = (me + world.ranks() as usize - 1) % world.ranks() as usize;
            world.load(shared, 3, &mut back).unwrap();
            assert!(back == pattern(nth + left + 200, len), "{len} bytes, one way");
            // The next write of the neighbour follows this read.
            world.barrier().unwrap();
        }
    });
}

fn many_are_under_way_at_once(transport: Transport) {
    run(4, transport, |world| {
        let words = 256;
        let shared = world.allocate(8 * words * 4).unwrap();
        let landing = world.allocate(8 * words * 4).unwrap();
        world.barrier().unwrap();
        let me = u64::from(world.rank());
        for word in 0..words as u64 {
            for rank in 0..world.ranks() {
                let place = at(rank, shared, 8 * (word * 4 + me));
                world.put(place, &(word << 32 | me << 8 | u64::from(rank)).to_le_bytes()).unwrap();
            }
        }
        world.sync().unwrap();
        world.barrier().unwrap();
        let right = (world.rank() + 1) % world.ranks();
        for place in 0..4 * words as u64 {
            world.get(at(right, shared, 8 * place), landing, 8 * place, 8).unwrap();
        }
        world.sync().unwrap();
        for place in 0..4 * words as u64 {
            let mut bytes = [0; 8];
            world.load(landing, 8 * place, &mut bytes).unwrap();
            let (word, writer) = (place / 4, place % 4);
            let expected = word << 32 | writer << 8 | u64::from(right);
            assert_eq!(u64::from_le_bytes(bytes), expected);
        }
    });
}

fn a_target_refuses_and_the_initiator_learns_why(transport: Transport) {
    run(2, transport, |world| {
        let shared = world.allocate(100_000).unwrap();
        let freed = world.allocate(100_000).unwrap();
        world.barrier().unwrap();
        let other = 1 - world.rank();
        // Maps the segment that is freed next.
        world.write(at(other, freed, 0), &pattern(1, 90_000)).unwrap();
        world.barrier().unwrap();
        world.free(freed).unwrap();
        world.barrier().unwrap();
        for rank in [world.rank(), other] {
            for len in [1, 9, 5000, 90_000] {
                let bytes = pattern(0, len);
                for place in [at(rank, shared, 100_001 - len as u64), at(rank, shared, u64::MAX)] {
                    let expected =
                        Err(Error::OutOfBounds { at: place, len: len as u64, segment_len: 100_000 });
                    assert_eq!(world.write(place, &bytes), expected);
                    assert_eq!(world.read(place, &mut vec![0; len]), expected);
                    // Errors of split-phase operations come back to their own sync, once.
                    world.put(place, &bytes).unwrap();
                    world.store(place, &bytes).unwrap();
                    assert_eq!(world.sync(), expected);
                    assert_eq!(world.sync(), Ok(()));
                    assert_eq!(world.all_store_sync(), expected);
                }
                for gone in [at(rank, freed, 0), GlobalPointer { rank, segment: 99, offset: 0 }] {
                    assert_eq!(world.write(gone, &bytes), Err(Error::NoSuchSegment(gone)));
                    assert_eq!(world.read(gone, &mut vec![0; len]), Err(Error::NoSuchSegment(gone)));
                }
            }
            let odd = at(rank, shared, 4);
            assert_eq!(world.fetch_add(odd, 1), Err(Error::Misaligned(odd)));
            assert_eq!(world.compare_swap(odd, 0, 1), Err(Error::Misaligned(odd)));
            world.add(odd, 1).unwrap();
            assert_eq!(world.sync(), Err(Error::Misaligned(odd)));
            world.get_add(odd, 1, shared, 0).unwrap();
            assert_eq!(world.sync(), Err(Error::Misaligned(odd)));
            let beyond = at(world.rank(), shared, 99_993);
            let outside = Error::OutOfBounds { at: beyond, len: 8, segment_len: 100_000 };
            assert_eq!(world.get_add(at(rank, shared, 0), 1, shared, 99_993), Err(outside));
            for len in [8, 5000, 90_000] {
                let place = at(rank, shared, 100_001 - len);
                let expected = Error::OutOfBounds { at: place, len, segment_len: 100_000 };
                // A long one may be refused at once.
                let begun = world.get(place, shared, 0, len as usize);
                assert_eq!(begun.and_then(|()| world.sync()), Err(expected), "{len}");
                let gone = at(rank, freed, 0);
                let begun = world.get(gone, shared, 0, len as usize);
                assert_eq!(begun.and_then(|()| world.sync()), Err(Error::NoSuchSegment(gone)), "{len}");
                assert_eq!(world.sync(), Ok(()));
            }
            let end = at(rank, shared, 100_000);
            assert_eq!(
                world.compare_swap(end, 0, 1),
                Err(Error::OutOfBounds { at: end, len: 8, segment_len: 100_000 })
            );
            assert_eq!(
                world.fetch_add(end, 1),
                Err(Error::OutOfBounds { at: end, len: 8, segment_len: 100_000 })
            );
            let mut bytes = [1; 8];
            world.read(at(rank, shared, 0), &mut bytes).unwrap();
            assert_eq!(bytes, [0; 8], "a refused operation changed memory");
        }
        let nobody = at(2, shared, 0);
        assert_eq!(world.put(nobody, &[1]), Err(Error::NoSuchRank { rank: 2, ranks: 2 }));
        assert_eq!(world.put(nobody, &pattern(0, 90_000)), Err(Error::NoSuchRank { rank: 2, ranks: 2 }));
    });
}

fn atomics_lose_no_update(transport: Transport) {
    run(4, transport, |world| {
        let [shared, old] = [0; 2].map(|_| world.allocate(24).unwrap());
        world.barrier().unwrap();
        let [counter, swapped, added] = [0, 8, 16].map(|offset| at(0, shared, offset));
        let rounds = 200;
        let mut last = None;
        for _ in 0..rounds {
            let old = world.fetch_add(counter, 1).unwrap();
            assert!(last < Some(old));
            last = Some(old);
        }
        for _ in 0..rounds {
            world.add(added, 3).unwrap();
        }
        world.get_add(added, 0, old, 8).unwrap();
        world.sync().unwrap();
        let mut bytes = [0; 8];
        world.load(old, 8, &mut bytes).unwrap();
        assert!(u64::from_le_bytes(bytes) <= 3 * rounds * u64::from(world.ranks()));
        // A get and add after the sync sees all additions before it.
        world.get_add(added, 0, old, 16).unwrap();
        world.sync().unwrap();
        world.load(old, 16, &mut bytes).unwrap();
        assert!(u64::from_le_bytes(bytes) >= 3 * rounds);
        let mut guess = 0;
        for _ in 0..rounds {
            loop {
                let old = world.compare_swap(swapped, guess, guess + 1).unwrap();
                if std::mem::replace(&mut guess, old) == old {
                    break;
                }
            }
        }
        world.barrier().unwrap();
        for word in [counter, swapped] {
            assert_eq!(world.read_u64(word).unwrap(), rounds * u64::from(world.ranks()));
        }
        assert_eq!(world.read_u64(added).unwrap(), 3 * rounds * u64::from(world.ranks()));
        world.barrier().unwrap();
    });
}

fn collectives_of_every_size(transport: Transport) {
    for ranks in [1, 2, 3, 5, 8] {
        run(ranks, transport, move |world| {
            let me = u64::from(world.rank());
            for len in [0, 1, 128, 129, 700] {
                for root in [0, ranks - 1] {
                    let mut bytes = pattern(if me == u64::from(root) { 7 } else { 8 }, len);
                    world.broadcast(root, &mut bytes).unwrap();
                    assert!(bytes == pattern(7, len));
                    let mine: Vec<u64> = (0..len as u64).map(|at| at * 10 + me).collect();
                    let mut words = mine.clone();
                    world.reduce(root, Combination::Max, &mut words).unwrap();
                    let most: Vec<u64> = (0..len as u64).map(|at| at * 10 + u64::from(ranks) - 1).collect();
                    assert_eq!(words, if world.rank() == root { most } else { mine.clone() });
                    let mut words = mine;
                    world.all_reduce(Combination::Sum, &mut words).unwrap();
                    let n = u64::from(ranks);
                    assert!((0..).zip(words).all(|(at, word)| word == at * 10 * n + n * (n - 1) / 2));
                }
            }
            assert_eq!(world.broadcast(ranks, &mut []), Err(Error::NoSuchRank { rank: ranks, ranks }));
        });
    }
}

fn a_target_waits_for_its_bytes(transport: Transport) {
    run(2, transport, |world| {
        let shared = world.allocate(50_000).unwrap();
        world.barrier().unwrap();
        if world.rank() == 0 {
            for (offset, len) in [(0, 10), (10, 40_000), (40_010, 9)] {
                world.store(at(1, shared, offset), &pattern(4, 50_000)[offset as usize..][..len]).unwrap();
            }
        } else {
            world.store_sync(40_019).unwrap();
            let mut bytes = vec![0; 40_019];
            world.load(shared, 0, &mut bytes).unwrap();
            assert!(bytes == pattern(4, 50_000)[..40_019]);
        }
    });
}

fn traffic_is_counted(transport: Transport) {
    run(2, transport, |world| {
        let shared = world.allocate(50_000).unwrap();
        let (me, other) = (world.rank(), 1 - world.rank());
        let (there, here) = (at(other, shared, 0), at(me, shared, 0));
        let first = world.traffic();
        world.barrier().unwrap();
        // By one rank at a time: messages sent, their bytes, and round trips.
        for initiator in 0..2 {
            let mut begin = world.traffic();
            let mut counted = |world: &World| {
                let traffic = world.traffic().since(std::mem::replace(&mut begin, world.traffic()));
                (traffic.sent, traffic.sent_bytes, traffic.round_trips)
            };
            if me == initiator {
                world.write(there, &[0; 100]).unwrap();
                assert_eq!(counted(world), (1, 32 + 100, 1));
                (0..3).for_each(|_| world.put(there, &[0; 8]).unwrap());
                // Eight bytes travel in a word.
                assert_eq!(counted(world), (3, 3 * 32, 0));
                world.sync().unwrap();
                world.sync().unwrap();
                assert_eq!(counted(world), (0, 0, 1));
                world.read(there, &mut [0; 24]).unwrap();
                world.fetch_add(there, 0).unwrap();
                assert_eq!(counted(world), (2, 2 * 32, 2));
                world.write(here, &[0; 24]).unwrap();
                world.read(here, &mut [0; 50_000]).unwrap();
                assert_eq!(counted(world), (0, 0, 0));
                // Asks for the key of the segment first.
                world.write(there, &[0; 50_000]).unwrap();
                assert_eq!(counted(world), (2, 32 + 16 + 50_000, 2));
            }
            world.barrier().unwrap();
        }
        let traffic = world.traffic().since(first);
        assert_eq!((traffic.collectives, traffic.got_bytes), (3, 0));
        // Either rank sent eight messages and answered those of the other one, and each barrier is a message of either.
        assert_eq!((traffic.sent, traffic.received), (3 + 8 + 8, 3 + 8 + 8));
    });
}

fn different_collectives_are_told(transport: Transport) {
    let ends = job::run_raw(2, transport, |mut world: World| {
        if world.rank() == 0 { world.barrier() } else { world.all_reduce(Combination::Sum, &mut [1]) }
    });
    assert_eq!(ends[0], Err(Error::Mismatch { rank: 1, sequence: 1 }));
    assert!(matches!(ends[1], Err(Error::PeerLost { rank: 0, .. })), "{:?}", ends[1]);
}

/// The last rank waits in a barrier, to which the others do not come because they have finished.
fn a_barrier_without_the_others_is_told(transport: Transport) {
    for last in 0..4 {
        let ends = job::run_raw(4, transport, |mut world: World| {
            // As many barriers as the others call to finish, and one more.
            if world.rank() == last { (0..3).try_for_each(|_| world.barrier()) } else { world.finish() }
        });
        let is_told = |end: &Result<(), Error>| match end {
            Err(Error::Mismatch { rank, sequence }) => *rank != last && *sequence == 3,
            // The first of them to end has closed its connection.
            Err(Error::PeerLost { rank, .. }) => *rank != last,
            _ => false,
        };
        assert!(is_told(&ends[last as usize]), "{ends:?}");
    }
}

/// A rank goes on with operations on another one that has finished.
fn an_operation_on_a_rank_that_has_finished_is_told(transport: Transport) {
    let ends = job::run_raw(3, transport, |mut world: World| {
        let segment = world.allocate(8)?.number();
        world.barrier()?;
        if world.rank() != 1 {
            return world.finish();
        }
        // As many barriers as the others call to finish.
        (0..2).try_for_each(|_| world.barrier())?;
        loop {
            world.put(GlobalPointer { rank: 2, segment, offset: 0 }, &[7; 8])?;
            world.sync()?;
        }
    });
    assert_eq!([&ends[0], &ends[2]], [&Ok(()); 2]);
    assert!(matches!(ends[1], Err(Error::PeerLost { rank: 2, .. })), "{:?}", ends[1]);
}

fn a_world_that_is_dropped_ends_the_others(transport: Transport) {
    let ends = job::run_raw(3, transport, |mut world: World| {
        world.barrier()?;
        if world.rank() == 1 { Ok(()) } else { world.barrier() }
    });
    // The first one to notice ends as well, and is not taken for the lost one.
    assert!(matches!(ends[0], Err(Error::PeerLost { rank: 1, .. })), "{:?}", ends[0]);
    assert!(matches!(ends[2], Err(Error::PeerLost { rank: 1, .. })), "{:?}", ends[2]);
}

/// Makes a test of each function.
macro_rules! tests {
    ($transport:expr; $($module:ident::$name:ident,)*) => {$(
        #[test]
        fn $name() {
            if $transport.is_ready() {
                $module::$name($transport);
            }
        }
    )*};
}

macro_rules! over {
    ($($name:ident: $transport:expr;)*) => {$(
        mod $name {
            use super::{Transport, killed, launched, misbehaved};

            tests! {
                $transport;
                super::transfers_of_every_length,
                super::many_are_under_way_at_once,
                super::a_target_refuses_and_the_initiator_learns_why,
                super::atomics_lose_no_update,
                super::collectives_of_every_size,
                super::a_target_waits_for_its_bytes,
                super::traffic_is_counted,
                super::different_collectives_are_told,
                super::a_barrier_without_the_others_is_told,
                super::an_operation_on_a_rank_that_has_finished_is_told,
                super::a_world_that_is_dropped_ends_the_others,
                killed::a_killed_rank_ends_the_others,
                launched::launched_ranks_share_memory,
                launched::a_killed_rank_ends_its_launch,
                misbehaved::a_rank_that_breaks_the_protocol_is_named,
                misbehaved::the_messages_of_an_imitated_rank_are_right,
            }
        }
    )*};
}

over! {
    shm: Transport::Shm;
    udp: Transport::Udp;
    bad_udp: Transport::BadUdp;
    xdp: Transport::Xdp;
}
