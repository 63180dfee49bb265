//! RDMA and atomic accesses.

use super::*;

#[test]
fn memory_of_a_peer_is_written_and_read() {
    for copied in [Copied::Whole, Copied::NotHere] {
        for len in [0, 9, PAYLOAD, PAYLOAD + 1, 3 * PAYLOAD] {
            let mut engines = pair(copied, 3);
            let (mut region, mut bytes, mut back) = (vec![0; len + 16], pattern(3, len), vec![0; len]);
            let access = Access { can_be_read: true, can_be_written: true };
            engines[1]
                .regions
                .insert(40, Region { memory: memory(&mut region), access, counters: [None; 2] });
            let (to, place) = (Target { peer: PEER, endpoint: 0 }, Place { key: 40, offset: 16 });
            while engines[0].write(0, to, place, memory(&mut bytes), Some(5), (1, REPORTED)).is_err() {}
            settle(&mut engines);
            while engines[0].read(0, to, place, memory(&mut back), (2, true)).is_err() {}
            settle(&mut engines);
            assert_eq!((&region[16..], &back), (&bytes[..], &bytes));
            let done = completions(&mut engines[0]);
            assert_eq!(
                done.iter().map(|done| (done.context, done.failure)).collect::<Vec<_>>(),
                [(1, None), (2, None)]
            );
            let [told] = completions(&mut engines[1]).try_into().unwrap();
            assert_eq!((told.data, told.len), (5, len));
        }
    }
}

#[test]
fn memory_that_a_peer_does_not_give_fails() {
    let mut engines = pair(Copied::NotHere, 0);
    let (mut region, mut bytes) = (vec![0; 64], vec![1; 2 * PAYLOAD]);
    let access = Access { can_be_read: false, can_be_written: true };
    engines[1].regions.insert(40, Region { memory: memory(&mut region), access, counters: [None; 2] });
    let to = Target { peer: PEER, endpoint: 0 };
    let part = |bytes: &mut Vec<u8>, len: usize| memory(&mut bytes[..len]);
    let mut at = |key, offset, len| {
        let done = engines[0].write(0, to, Place { key, offset }, part(&mut bytes, len), None, (1, REPORTED));
        done.unwrap();
        settle(&mut engines);
    };
    at(41, 0, 8);
    at(40, 60, 8);
    at(40, u64::MAX, 8);
    at(40, 0, 2 * PAYLOAD);
    at(40, 56, 8);
    engines[0].read(0, to, Place { key: 40, offset: 0 }, part(&mut bytes, 8), (1, true)).unwrap();
    settle(&mut engines);
    let failures: Vec<_> =
        completions(&mut engines[0]).into_iter().map(|done| done.failure.is_some()).collect();
    assert_eq!(failures, [true, true, true, true, false, true]);
    assert_eq!((region[55], region[56]), (0, 1));
}

#[test]
fn a_read_counts_at_the_target_when_its_last_bytes_leave() {
    let mut engines = pair(Copied::NotHere, 5);
    let (mut region, mut bytes) = (vec![1; LONG], vec![0; LONG]);
    let access = Access { can_be_read: true, can_be_written: true };
    engines[1].regions.insert(40, Region { memory: memory(&mut region), access, counters: [None; 2] });
    let (to, place) = (Target { peer: PEER, endpoint: 0 }, Place { key: 40, offset: 0 });
    let own = memory(&mut bytes);
    engines[0].read(0, to, place, own.clone(), (1, true)).unwrap();
    begin_pieces(&mut engines, &own);
    assert_eq!(engines[1].completions.counters[0].value, 0);
    settle(&mut engines);
    assert_eq!((engines[1].completions.counters[0].value, bytes), (1, region));
}

#[test]
fn memory_of_a_peer_is_accessed_atomically() {
    let mut engines = pair(Copied::NotHere, 3);
    let mut region: Vec<u8> = [5_u32, 7].map(u32::to_ne_bytes).concat();
    let access = Access { can_be_read: true, can_be_written: true };
    engines[1].regions.insert(40, Region { memory: memory(&mut region), access, counters: [None; 2] });
    engines[1].regions.insert(
        41,
        Region {
            memory: memory(&mut region),
            access: Access { can_be_written: false, ..access },
            counters: [None; 2],
        },
    );
    let to = Target { peer: PEER, endpoint: 0 };
    let (mut operands, mut comparands, mut old) =
        ([3_u32, 1].map(u32::to_ne_bytes).concat(), [8_u32, 7].map(u32::to_ne_bytes).concat(), vec![0; 8]);
    let atomic = |operation, operands, comparands, result| Atomic {
        operation,
        datatype: Datatype::U32,
        len: 8,
        operands,
        comparands,
        result,
    };
    let none = Memory::default;
    let all = [
        (40, atomic(Operation::Sum, memory(&mut operands), none(), None)),
        (40, atomic(Operation::SwapIfEqual, memory(&mut operands), memory(&mut comparands), None)),
        (40, atomic(Operation::Read, none(), none(), Some(memory(&mut old)))),
        (41, atomic(Operation::Sum, memory(&mut operands), none(), None)),
    ];
    for (nth, (key, atomic)) in all.into_iter().enumerate() {
        let place = Place { key, offset: 0 };
        while engines[0].access(0, to, place, atomic.clone(), (nth, REPORTED)).is_err() {
            engines[0].progress();
        }
    }
    settle(&mut engines);
    // 5 + 3 = 8 is swapped for 3, and 7 + 1 = 8 is not 7.
    assert_eq!(old, [3_u32, 8].map(u32::to_ne_bytes).concat());
    assert_eq!(old, region);
    let done: Vec<_> =
        completions(&mut engines[0]).iter().map(|done| (done.context, done.failure.is_some())).collect();
    assert_eq!(done, [(0, false), (1, false), (2, false), (3, true)]);
    let place = Place { key: 40, offset: 4 };
    engines[1].regions.get_mut(&40).unwrap().access.can_be_read = false;
    let secret = atomic(Operation::BitOr, memory(&mut operands), none(), Some(memory(&mut old)));
    engines[0].access(0, to, Place { offset: 0, ..place }, secret, (0, REPORTED)).unwrap();
    settle(&mut engines);
    assert!(completions(&mut engines[0])[0].failure.is_some());
    let beyond = atomic(Operation::Sum, memory(&mut operands), none(), None);
    engines[0].access(0, to, place, beyond, (0, REPORTED)).unwrap();
    settle(&mut engines);
    assert!(completions(&mut engines[0])[0].failure.is_some());
    assert_eq!(engines[1].completions.counters[0].value, 3);
}
