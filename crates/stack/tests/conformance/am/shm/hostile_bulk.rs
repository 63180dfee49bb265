//! A peer that breaks the protocol of transfers. It cannot write where it may not, and nothing panics. It
//! is disconnected if it does what no correct peer does.

use crate::common::bulk::{BLANK, FETCHED, Origin, QUIET, Seen, Side, config, contents, handlers};
use crate::common::transport::SHM;
use crate::common::{TIMEOUT, seed, until};
use fastrand::Rng;
use netdyno_host::bounce::CELL;
use netdyno_host::bytes::Bytes;
use netdyno_host::region::CONTROL_BYTES;
use netdyno_host::ring::{Extent, Place, Writer};
use netdyno_host::segment::open_segment;
use netdyno_protocol::am::{Credit, Credits};
use netdyno_protocol::frame::memory_key::{self, MemoryKey};
use netdyno_protocol::frame::port::PortAddress;
use netdyno_protocol::frame::slot::{Header, Kind};
use netdyno_stack::am::{AttachError, Endpoint, Loss, Memory, PeerLost, Wire};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::mpsc::channel;

const WINDOW: u32 = 16;
/// The minimum size of a page.
const PAGE: usize = 4096;

/// A victim, and the rings that its peer writes to. The test writes to them instead of the peer.
struct Scene {
    victim: Side,
    requests: Writer,
    replies: Writer,
    /// The correct peer. It takes no part, but owns memory.
    peer: Endpoint<Seen>,
}

fn scene() -> Scene {
    let config = config(&SHM).window(WINDOW).medium_bytes(64);
    let [mut victim, mut peer] = [(); 2].map(|()| Endpoint::new(handlers(), config).unwrap());
    let (port, peers_port) = (victim.open_port(Wire::Shm).unwrap(), peer.open_port(Wire::Shm).unwrap());
    let PortAddress { pid, fd, nonce, .. } = PortAddress::parse(&port.address()).unwrap();
    let len = std::fs::metadata(format!("/proc/{pid}/fd/{fd}")).unwrap().len();
    let memory = Arc::new(open_segment(pid, fd, nonce, len as usize).unwrap());
    let (address, peers_address) = (port.address(), peers_port.address());
    let id = victim.connect(port, &peers_address).unwrap();
    peer.connect(peers_port, &address).unwrap();
    let first = Place { offset: CONTROL_BYTES, slots: WINDOW as usize, cell: 64 };
    let second = (first.offset + first.len()).next_multiple_of(PAGE) + PAGE / 2;
    // SAFETY: the peer, which could also write to the rings, is not used.
    let [requests, replies] =
        [first.offset, second].map(|offset| unsafe { Writer::new(&memory, Place { offset, ..first }) });
    Scene { victim: Side { endpoint: victim, peer: id, seen: Seen::default() }, requests, replies, peer }
}

/// Returns a credit that the victim has not given.
fn credit() -> Credit {
    Credits::new(1).take().unwrap()
}

fn header(kind: Kind, handler: u8, completed: u16) -> Header {
    Header { sequence: 0, completed, handler, kind, words: 0 }
}

impl Scene {
    fn request(&mut self, kind: Kind, handler: u8, extent: Extent) -> Result<usize, PeerLost> {
        self.requests.write_with_extent(credit(), header(kind, handler, 0), &[], extent);
        self.victim.endpoint.poll(&mut self.victim.seen)
    }
}

fn whole(memory: &Memory) -> Extent {
    Extent { memory: memory.id(), offset: 0, len: memory.len() as u64 }
}

/// Returns extents that are not completely inside `memory`, or are of no memory.
fn outside(memory: &Memory) -> [Extent; 8] {
    let (right, len) = (whole(memory), memory.len() as u64);
    [
        Extent { len: len + 1, ..right },
        Extent { offset: 1, ..right },
        Extent { offset: len, len: 1, ..right },
        Extent { offset: len + 1, len: 0, ..right },
        Extent { offset: u64::MAX, ..right },
        Extent { offset: u64::MAX - 10, len: 20, ..right },
        Extent { memory: right.memory ^ 1, ..right },
        Extent { memory: 0, ..right },
    ]
}

#[test]
fn requests_for_what_is_not_there() {
    for kind in [Kind::Store, Kind::StagedStore, Kind::Chunk, Kind::Fetch, Kind::Ask] {
        let mut scene = scene();
        let memory = scene.victim.memory(Origin::Registered, 1000);
        for extent in outside(&memory) {
            assert_eq!(scene.request(kind, QUIET, extent), Ok(1), "{kind:?} {extent:?}");
        }
        assert!(scene.victim.seen.stored.is_empty(), "{kind:?}");
        assert!(contents(&memory).iter().all(|&byte| byte == BLANK), "{kind:?}");
    }
}

#[test]
fn requests_that_no_correct_peer_makes() {
    let long = |memory: &Memory| Extent { len: CELL as u64 + 1, ..whole(memory) };
    let cases: [(Kind, u8, bool); 11] = [
        (Kind::Chunk, QUIET, true),
        (Kind::Fetch, QUIET, true),
        (Kind::Store, 99, false),
        (Kind::StagedStore, 99, false),
        (Kind::Credit, QUIET, false),
        (Kind::Refused, QUIET, false),
        (Kind::Fetched, QUIET, false),
        (Kind::NotFetched, QUIET, false),
        (Kind::Granted, QUIET, false),
        (Kind::Denied, QUIET, false),
        (Kind::Short, 99, false),
    ];
    for (kind, handler, is_long) in cases {
        let mut scene = scene();
        let memory = scene.victim.memory(Origin::Registered, 2 * CELL);
        let extent = if is_long { long(&memory) } else { whole(&memory) };
        let lost = scene.request(kind, handler, extent).unwrap_err();
        assert_eq!(lost.loss, Loss::Misbehaved, "{kind:?}");
        assert!(scene.victim.seen.stored.is_empty());
        assert!(contents(&memory).iter().all(|&byte| byte == BLANK), "{kind:?}");
    }
}

#[test]
fn answers_to_what_was_not_asked() {
    let kinds = [
        Kind::Fetched,
        Kind::NotFetched,
        Kind::Granted,
        Kind::Denied,
        Kind::Store,
        Kind::StagedStore,
        Kind::Chunk,
        Kind::Fetch,
        Kind::Ask,
    ];
    for kind in kinds {
        let mut scene = scene();
        let memory = scene.victim.memory(Origin::Registered, 100);
        scene.victim.endpoint.try_request(scene.victim.peer, 0, []).unwrap();
        scene.replies.write_with_extent(credit(), header(kind, QUIET, 1), &[], whole(&memory));
        let lost = scene.victim.endpoint.poll(&mut scene.victim.seen).unwrap_err();
        assert_eq!(lost.loss, Loss::Misbehaved, "{kind:?}");
        assert!(contents(&memory).iter().all(|&byte| byte == BLANK), "{kind:?}");
    }
}

/// A get that is answered by another message is detected, even if the peer is correct otherwise.
#[test]
fn a_get_that_is_answered_by_something_else() {
    for kind in [Kind::Credit, Kind::Short] {
        let mut scene = scene();
        let local = scene.victim.memory(Origin::Registered, 100);
        let key = scene.peer.register(vec![0; 100].into()).unwrap().key();
        let Side { endpoint, peer, seen } = &mut scene.victim;
        let granted = Extent { memory: 0, offset: 0, len: 0 };
        scene.replies.write_with_extent(credit(), header(Kind::Granted, 0, 1), &[], granted);
        let remote = endpoint.attach(seen, *peer, &key).unwrap();
        endpoint.get(seen, remote.at(0), local.range(0, 100), FETCHED, []).unwrap();
        scene.replies.write(credit(), header(kind, crate::common::bulk::DONE, 2), &[]);
        let mut lost = None;
        until("the peer is found out", || {
            lost = endpoint.poll(seen).err();
            lost.is_some()
        });
        assert_eq!(lost.unwrap().loss, Loss::Misbehaved);
        assert!(seen.fetched.is_empty());
    }
}

/// The same for the question of whether a memory is registered.
#[test]
fn a_question_that_is_answered_by_something_else() {
    let mut scene = scene();
    let key = scene.peer.register(vec![0; 100].into()).unwrap().key();
    scene.replies.write(credit(), header(Kind::Credit, 0, 1), &[]);
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let Side { endpoint, peer, seen } = &mut scene.victim;
        tell.send(endpoint.attach(seen, *peer, &key)).unwrap();
    });
    match told.recv_timeout(TIMEOUT).expect("a question hangs") {
        Err(AttachError::Lost(lost)) => assert_eq!(lost.loss, Loss::Misbehaved),
        other => panic!("{other:?}"),
    }
}

/// Random requests for existing memory do not change the bytes around it.
#[test]
fn nothing_is_written_beside_the_memory() {
    const LEN: usize = 3 * CELL;
    let mut rng = Rng::with_seed(seed());
    for _ in 0..40 {
        let mut scene = scene();
        let mut buffer = vec![BLANK; LEN + 2 * PAGE];
        let base = NonNull::from(&mut buffer[PAGE]);
        // SAFETY: the buffer outlives the endpoint, and nothing else uses it meanwhile.
        let memory = unsafe { scene.victim.endpoint.register_raw(base, LEN).unwrap() };
        for _ in 0..500 {
            let near = |rng: &mut Rng, at: usize| (at as u64).wrapping_add_signed(rng.i64(-3..3));
            let edges = [0, 1, CELL, LEN - CELL, LEN];
            let extent = Extent {
                memory: if rng.u32(..8) == 0 { rng.u64(..) } else { memory.id() },
                offset: {
                    let edge = edges[rng.usize(..5)];
                    near(&mut rng, edge)
                },
                len: {
                    let edge = edges[rng.usize(..5)];
                    near(&mut rng, edge)
                },
            };
            let kinds = [Kind::Store, Kind::StagedStore, Kind::Chunk, Kind::Fetch, Kind::Ask];
            if let Err(lost) = scene.request(kinds[rng.usize(..5)], QUIET, extent) {
                assert_eq!(lost.loss, Loss::Misbehaved);
                break;
            }
        }
        drop((memory, scene));
        assert!(buffer[..PAGE].iter().chain(&buffer[PAGE + LEN..]).all(|&byte| byte == BLANK));
    }
}

/// A store counts with the bytes that its bounce-buffer slots hold, even if the peer has not filled them.
#[test]
fn a_store_of_cells_that_nobody_filled() {
    let mut scene = scene();
    let memory = scene.victim.memory(Origin::Registered, 2 * CELL);
    assert_eq!(scene.request(Kind::StagedStore, QUIET, whole(&memory)), Ok(1));
    let [told] = &scene.victim.seen.stored[..] else { panic!("handled once") };
    let expected = [vec![BLANK; CELL], vec![0; CELL]].concat();
    assert!(told.bytes == expected);
}

/// A peer may go on writing to its mapping of memory that was deregistered. It then writes to pages that
/// the owner no longer uses, also where the owner's endpoint is gone.
#[test]
fn memory_that_was_deregistered_is_out_of_reach() {
    for is_dropped in [false, true] {
        let mut scene = scene();
        let memory = scene.victim.memory(Origin::Allocated, 10_000);
        let key = MemoryKey::parse(&memory.key()).unwrap();
        let memory_key::Place::Segment { pid, fd, nonce } = key.place else { panic!("a segment") };
        let theirs = Bytes::of_segment(pid, fd, nonce, 10_000).unwrap();
        theirs.write(5, &[1; 5]);
        if is_dropped {
            drop(scene);
        } else {
            scene.victim.endpoint.deregister(memory.id()).unwrap();
        }
        let then = contents(&memory);
        assert_eq!(then[4..11], [BLANK, 1, 1, 1, 1, 1, BLANK]);
        theirs.write(0, &[2; 10_000]);
        assert_eq!(contents(&memory), then);
    }
}
