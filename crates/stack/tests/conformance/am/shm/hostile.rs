//! A peer that breaks the protocol. It is reported and disconnected; nothing panics, and it cannot change
//! memory that is not meant for it.

use crate::common::process::{Child, role};
use crate::common::{TIMEOUT, connect, seed, until};
use fastrand::Rng;
use netdyno_host::region::Region;
use netdyno_host::segment::open_segment;
use netdyno_protocol::frame::port::PortAddress;
use netdyno_protocol::frame::slot::{Header, Kind, sequence_at};
use netdyno_stack::am::{Config, Endpoint, Handlers, Loss, PeerId, PeerLost, Port, RequestError, Wait, Wire};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Returns a word of a port's memory, which a hostile peer can write.
fn word(memory: &Region, at: usize) -> &AtomicU64 {
    // SAFETY: this is a second mapping of the memory, and only this test writes to it by hand.
    unsafe { memory.any_word(at) }
}

const ECHO: u8 = 7;
const TELL: u8 = 8;
const MEDIUM: usize = 128;

/// The handled messages.
#[derive(Default)]
struct Seen {
    requests: Vec<u64>,
    replies: Vec<u64>,
    bytes: usize,
}

fn handlers() -> Handlers<Seen> {
    let mut handlers = Handlers::new();
    handlers.on_request(ECHO, |seen: &mut Seen, request| {
        seen.requests.push(request.words()[0]);
        seen.bytes += request.payload().len();
        let (words, payload) = (request.words(), request.payload());
        assert!(request.reply_medium(ECHO, words, payload).is_ok());
    });
    handlers.on_request(TELL, |seen: &mut Seen, request| {
        seen.requests.push(request.words()[0]);
        seen.bytes += request.payload().len();
    });
    handlers.on_reply(ECHO, |seen: &mut Seen, reply| {
        seen.replies.push(reply.words()[0]);
        seen.bytes += reply.payload().len();
    });
    handlers
}

/// Returns handlers for all indices, so that garbage gets further.
fn handlers_everywhere() -> Handlers<Seen> {
    let mut handlers = Handlers::new();
    for index in 0..=255 {
        handlers.on_request(index, |seen: &mut Seen, request| {
            seen.bytes += request.payload().len();
            let (words, payload) = (request.words(), request.payload());
            assert!(request.reply_medium(words[0] as u8, words, payload).is_ok());
        });
        handlers.on_reply(index, |seen: &mut Seen, reply| seen.bytes += reply.payload().len());
        handlers.on_store(index, |seen: &mut Seen, stored| {
            seen.bytes += stored.bytes().len();
            let words = stored.words();
            stored.reply(words[0] as u8, words);
        });
        handlers.on_fetched(index, |seen: &mut Seen, fetched| seen.bytes += fetched.bytes().len());
    }
    handlers.on_refused(|seen: &mut Seen, _| seen.replies.push(0));
    handlers
}

fn config(window: u32) -> Config {
    Config::new().window(window).medium_bytes(MEDIUM as u32).peer_timeout(TIMEOUT).wait(Wait::Yield)
}

/// Maps the memory that the peer of `port` writes to.
fn intrude(port: &Port) -> Region {
    let PortAddress { pid, fd, nonce, .. } = PortAddress::parse(&port.address()).unwrap();
    let len = std::fs::metadata(format!("/proc/{pid}/fd/{fd}")).unwrap().len();
    open_segment(pid, fd, nonce, len as usize).unwrap()
}

/// A victim, a correct peer, and the memory that the peer writes to. Tests corrupt that memory.
struct Scene {
    victim: Endpoint<Seen>,
    peer: Endpoint<Seen>,
    to_peer: PeerId,
    to_victim: PeerId,
    memory: Region,
    at_victim: Seen,
    at_peer: Seen,
}

fn scene(handlers: Handlers<Seen>, window: u32) -> Scene {
    let mut victim = Endpoint::new(handlers.clone(), config(window)).unwrap();
    let mut peer = Endpoint::new(handlers, config(window)).unwrap();
    let (port, peers_port) = (victim.open_port(Wire::Shm).unwrap(), peer.open_port(Wire::Shm).unwrap());
    let memory = intrude(&port);
    let (address, peers_address) = (port.address(), peers_port.address());
    let to_peer = victim.connect(port, &peers_address).unwrap();
    let to_victim = peer.connect(peers_port, &address).unwrap();
    let (at_victim, at_peer) = (Seen::default(), Seen::default());
    Scene { victim, peer, to_peer, to_victim, memory, at_victim, at_peer }
}

/// Returns the offset of a header in `memory`.
fn find(memory: &Region, header: Header) -> usize {
    let mut places = (0..rings_end(memory))
        .step_by(8)
        .filter(|&at| word(memory, at).load(Ordering::Acquire) == header.pack());
    let place = places.next().expect("the header is there");
    assert_eq!(places.next(), None, "the header is there once");
    place
}

fn lost(error: Result<usize, PeerLost>) -> Loss {
    error.unwrap_err().loss
}

/// Replaces a part of a raw header.
fn with_kind(raw: u64, kind: u64) -> u64 {
    raw & !(0xf << 56) | kind << 56
}

fn with_words(raw: u64, words: u64) -> u64 {
    raw & !(0xf << 60) | words << 60
}

fn with_handler(raw: u64, handler: u8) -> u64 {
    raw & !(0xff << 48) | u64::from(handler) << 48
}

fn with_completed(raw: u64, completed: u16) -> u64 {
    raw & !(0xffff << 32) | u64::from(completed) << 32
}

/// Turns a valid header into a forged one.
type Spoil = fn(u64) -> u64;

const UNKNOWN: u8 = 200;

#[test]
fn a_request_that_no_correct_peer_writes() {
    let spoilt: [(&str, Spoil); 8] = [
        ("an unknown kind", |raw| with_kind(raw, 13)),
        ("the last unknown kind", |raw| with_kind(raw, 15)),
        ("five words", |raw| with_words(raw, 5)),
        ("fifteen words", |raw| with_words(raw, 15)),
        ("an unknown handler", |raw| with_handler(raw, UNKNOWN)),
        ("an unknown handler of a medium message", |raw| with_handler(with_kind(raw, 1), UNKNOWN)),
        ("a credit", |raw| with_kind(raw, 2)),
        ("everything at once", |raw| raw | 0xffff_ffff << 32),
    ];
    for (what, spoil) in spoilt {
        let Scene { mut victim, mut peer, to_peer, to_victim, memory, mut at_victim, .. } =
            scene(handlers(), 8);
        victim.try_request(to_peer, ECHO, [1]).unwrap();
        peer.try_request(to_victim, TELL, [0]).unwrap();
        peer.try_request(to_victim, TELL, [1]).unwrap();
        let second =
            Header { sequence: sequence_at(1), completed: 0, handler: TELL, kind: Kind::Short, words: 1 };
        let found = word(&memory, find(&memory, second));
        found.store(spoil(second.pack()), Ordering::Release);

        let expected = PeerLost { peer: to_peer, loss: Loss::Misbehaved, unresolved: 1, not_sent: 0 };
        assert_eq!(victim.poll(&mut at_victim), Err(expected), "{what}");
        assert_eq!(victim.poll(&mut at_victim), Ok(0), "{what}: reported once");
        assert_eq!(victim.try_request(to_peer, ECHO, [1]), Err(RequestError::Lost(expected)), "{what}");
        assert_eq!(at_victim.requests, [0], "{what}");
    }
}

#[test]
fn a_payload_longer_than_its_cell() {
    for (len, is_sound) in [(MEDIUM as u64, true), (MEDIUM as u64 + 1, false), (u64::MAX, false)] {
        let Scene { mut victim, mut peer, to_victim, memory, mut at_victim, .. } = scene(handlers(), 8);
        peer.try_request_medium(to_victim, TELL, [], &[1, 2, 3]).unwrap();
        let header =
            Header { sequence: sequence_at(0), completed: 0, handler: TELL, kind: Kind::Medium, words: 0 };
        // The length follows the header.
        let found = word(&memory, find(&memory, header) + 8);
        assert_eq!(found.swap(len, Ordering::Release), 3);
        if is_sound {
            assert_eq!(victim.poll(&mut at_victim), Ok(1));
            assert_eq!(at_victim.bytes, MEDIUM);
        } else {
            assert_eq!(lost(victim.poll(&mut at_victim)), Loss::Misbehaved);
            assert_eq!(at_victim.bytes, 0);
        }
    }
}

/// The kind of a short message is changed to medium. The length that stands there is checked.
#[test]
fn a_kind_that_was_changed() {
    let Scene { mut victim, mut peer, to_victim, memory, mut at_victim, .. } = scene(handlers(), 8);
    peer.try_request(to_victim, TELL, [5]).unwrap();
    let header =
        Header { sequence: sequence_at(0), completed: 0, handler: TELL, kind: Kind::Short, words: 1 };
    let found = word(&memory, find(&memory, header));
    found.store(with_kind(header.pack(), 1), Ordering::Release);
    assert_eq!(victim.poll(&mut at_victim), Ok(1));
    assert_eq!((at_victim.requests, at_victim.bytes), (vec![5], 0));
}

#[test]
fn a_reply_that_no_correct_peer_writes() {
    let spoilt: [(&str, Spoil); 9] = [
        ("an unknown kind", |raw| with_kind(raw, 13)),
        ("seven words", |raw| with_words(raw, 7)),
        ("an unknown handler", |raw| with_handler(raw, UNKNOWN)),
        ("more completed than sent", |raw| with_completed(raw, 4)),
        ("many more completed than sent", |raw| with_completed(raw, 40_000)),
        ("fewer completed than before", |raw| with_completed(raw, 0)),
        ("no more completed than before", |raw| with_completed(raw, 1)),
        ("a credit for more than was sent", |raw| with_completed(with_kind(raw, 2), 4)),
        ("a credit for nothing", |raw| with_completed(with_kind(raw, 2), 1)),
    ];
    for (what, spoil) in spoilt {
        let Scene { mut victim, mut peer, to_peer, memory, mut at_victim, mut at_peer, .. } =
            scene(handlers(), 8);
        for n in 0..3 {
            victim.try_request(to_peer, ECHO, [n]).unwrap();
        }
        for _ in 0..2 {
            peer.poll(&mut at_peer).unwrap();
        }
        let second =
            Header { sequence: sequence_at(1), completed: 2, handler: ECHO, kind: Kind::Medium, words: 4 };
        let found = word(&memory, find(&memory, second));
        found.store(spoil(second.pack()), Ordering::Release);

        assert_eq!(victim.poll(&mut at_victim), Ok(1), "{what}: the message before it is sound");
        let error = victim.poll(&mut at_victim).unwrap_err();
        assert_eq!(error.loss, Loss::Misbehaved, "{what}");
        assert_eq!(error.unresolved, victim.in_flight(to_peer), "{what}");
        assert_eq!(at_victim.replies, [0], "{what}");
    }
}

#[test]
fn child_process() {
    let Some((_, parent)) = role() else { return };
    let mut endpoint = Endpoint::new(handlers(), config(256)).unwrap();
    parent.connect(Wire::Shm, &mut endpoint);
    while !parent.is_gone() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the end of the rings in a port's memory, where the bounce buffers begin.
fn rings_end(memory: &Region) -> usize {
    memory.len() - 2 * netdyno_host::bounce::LEN
}

/// Fills the reply ring, which is the second half of the rings, with headers that are valid as the first
/// message.
fn fill_replies(memory: &Region) {
    let header =
        Header { sequence: sequence_at(0), completed: 0, handler: ECHO, kind: Kind::Short, words: 0 };
    for at in (rings_end(memory) / 2..rings_end(memory)).step_by(8) {
        word(memory, at).store(header.pack(), Ordering::Release);
    }
}

/// A reply without a request is reported, and the end of the peer that wrote it is still noticed.
#[test]
fn a_reply_without_a_request() {
    let mut child = Child::start(module_path!(), "idle");
    let mut victim = Endpoint::new(handlers(), config(256)).unwrap();
    let port = victim.open_port(Wire::Shm).unwrap();
    let memory = intrude(&port);
    child.tell(&crate::common::process::to_hex(&port.address()));
    let to_peer = victim.connect(port, &crate::common::process::from_hex(&child.hear())).unwrap();
    child.tell("connected");
    fill_replies(&memory);
    child.kill();
    let mut at_victim = Seen::default();
    let mut found = None;
    until("the loss is reported", || {
        found = victim.poll(&mut at_victim).err();
        found.is_some()
    });
    let found = found.unwrap();
    assert_eq!((found.peer, found.unresolved), (to_peer, 0));
    assert!(matches!(found.loss, Loss::Misbehaved | Loss::Ended), "{found}");
    assert!(at_victim.replies.is_empty());
}

/// Returns a random word that often looks like the next header.
fn garbage(rng: &mut Rng, window: u64) -> u64 {
    let sequence = u64::from(sequence_at(rng.u64(..window)));
    match rng.u32(..8) {
        0 => rng.u64(..),
        1 => u64::MAX,
        2 => rng.u64(..2 * MEDIUM as u64),
        // Valid except for some bits.
        3..=5 => {
            let kind = rng.u64(..14) << 56;
            let completed = rng.u64(..2 * window) << 32;
            sequence | completed | rng.u64(..256) << 48 | kind | rng.u64(..=4) << 60
        }
        _ => sequence | rng.u64(..) << 32,
    }
}

/// Overwrites everything but the nonce and, in most rounds, the control words, which tell whether the
/// peer has closed.
fn spoil_all(memory: &Region, rng: &mut Rng, window: u64) {
    let start = if rng.u32(..8) == 0 { 16 } else { 4096 };
    for at in (start..rings_end(memory)).step_by(8) {
        word(memory, at).store(garbage(rng, window), Ordering::Release);
    }
}

#[test]
fn garbage_everywhere() {
    let seed = seed();
    let mut rng = Rng::with_seed(seed);
    for round in 0..300 {
        let window = 1 << rng.u32(..6);
        let Scene { mut victim, mut peer, to_peer, to_victim, memory, mut at_victim, mut at_peer } =
            scene(if round % 2 == 0 { handlers_everywhere() } else { handlers() }, window);
        // Some correct traffic first, so that the next message is not always the first one.
        for n in 0..rng.u64(..20) {
            let _ = victim.try_request(to_peer, ECHO, [n]);
            let _ = peer.try_request(to_victim, ECHO, [n]);
            victim.poll(&mut at_victim).unwrap();
            peer.poll(&mut at_peer).unwrap();
        }
        // Several laps of garbage. Each poll advances by one slot.
        'laps: for _ in 0..4 {
            spoil_all(&memory, &mut rng, u64::from(window) + 20);
            for n in 0..2 * u64::from(window) + 2 {
                match victim.poll(&mut at_victim) {
                    Ok(_) => {}
                    Err(lost) => {
                        assert!(matches!(lost.loss, Loss::Misbehaved | Loss::Closed), "{lost}");
                        break 'laps;
                    }
                }
                let _ = victim.try_request(to_peer, ECHO, [n]);
            }
        }
        assert!(victim.in_flight(to_peer) <= window);
        // The victim still follows the protocol, so its peer may take its messages.
        for _ in 0..2 * window {
            let _ = peer.poll(&mut at_peer);
        }
    }
}

/// The same while both sides work, so that words change between two reads of them.
#[test]
fn garbage_at_any_time() {
    let seed = seed();
    let mut rng = Rng::with_seed(seed);
    for round in 0..40 {
        let window = 1 << rng.u32(..6);
        let Scene { mut victim, mut peer, to_peer, to_victim, memory, mut at_victim, mut at_peer } =
            scene(if round % 2 == 0 { handlers_everywhere() } else { handlers() }, window);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (mut rng, is_over) = (rng.fork(), &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    for _ in 0..4 {
                        let at = rng.usize(4096 / 8..rings_end(&memory) / 8) * 8;
                        word(&memory, at).store(garbage(&mut rng, 1 << 12), Ordering::Release);
                    }
                    std::thread::yield_now();
                }
            });
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = peer.try_request(to_victim, ECHO, [1]);
                    let _ = peer.poll(&mut at_peer);
                    std::thread::yield_now();
                }
            });
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_millis(30) {
                let _ = victim.try_request_medium(to_peer, ECHO, [2], &[3; 100]);
                if let Err(lost) = victim.poll(&mut at_victim) {
                    assert_eq!(lost.loss, Loss::Misbehaved);
                    break;
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

/// A peer that breaks the protocol does not affect the traffic with another peer.
#[test]
fn the_other_peers_go_on() {
    let Scene { mut victim, peer: _peer, to_peer, memory, mut at_victim, .. } = scene(handlers(), 8);
    let mut good = Endpoint::new(handlers(), config(8)).unwrap();
    let (_, to_victim) = connect(Wire::Shm, &mut victim, &mut good);
    let mut at_good = Seen::default();
    let mut losses = Vec::new();
    for n in 0..100 {
        if n == 50 {
            // Writes an unknown kind wherever the first request of the peer may be read.
            for at in (4096..rings_end(&memory)).step_by(8) {
                let raw = with_kind(u64::from(sequence_at(0)), 15);
                word(&memory, at).store(raw, Ordering::Release);
            }
        }
        good.request(&mut at_good, to_victim, ECHO, [n]).unwrap();
        // The report of the other peer's loss takes the place of one poll.
        until("both are answered", || {
            losses.extend(victim.poll(&mut at_victim).err());
            good.poll(&mut at_good).unwrap();
            good.in_flight(to_victim) == 0
        });
    }
    assert_eq!(losses.len(), 1);
    assert_eq!((losses[0].peer, losses[0].loss), (to_peer, Loss::Misbehaved));
    assert!(at_good.replies.iter().copied().eq(0..100));
}
