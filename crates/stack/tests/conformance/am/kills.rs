//! Peers killed at random moments. The test has a process of its own, so that it can count what
//! the process holds before and after. `NETDYNO_KILLS` sets the number of kills.

use crate::common::killing::{BOUND, loss, peer_timeout};
use crate::common::process::{Child, argument, held, in_own_process, role};
use crate::common::{Deadline, TIMEOUT, Transport, seed};
use fastrand::Rng;
use netdyno_stack::am::{Endpoint, Handlers, PeerId, PeerLost, RequestError};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ASK: u8 = 0;
const TELL: u8 = 1;
const WINDOW: u32 = 16;

/// Counts of arrivals, which come in order.
#[derive(Default)]
struct Seen {
    requests: u64,
    replies: u64,
}

fn endpoint(transport: &Transport) -> Endpoint<Seen> {
    let mut handlers = Handlers::new();
    handlers.on_request(ASK, |seen: &mut Seen, request| {
        let [n, ..] = request.words();
        assert_eq!(n, seen.requests);
        assert_eq!(request.payload().iter().map(|&byte| u64::from(byte)).sum::<u64>(), 64 * (n % 256));
        seen.requests += 1;
        request.reply(ASK, [n]);
    });
    handlers.on_request(TELL, |seen: &mut Seen, request| {
        assert_eq!(request.words()[0], seen.requests);
        seen.requests += 1;
    });
    handlers.on_reply(ASK, |seen: &mut Seen, reply| {
        assert_eq!(reply.words()[0], answered(seen.replies));
        seen.replies += 1;
    });
    let config =
        transport.config().window(WINDOW).medium_bytes(64).peer_timeout(peer_timeout(transport.wire));
    Endpoint::new(handlers, config).unwrap()
}

pub fn child_process(transport: &Transport) {
    let Some((role, parent)) = role() else { return };
    let mut endpoint = endpoint(transport);
    let peer = parent.connect(transport.wire, &mut endpoint);
    let mut seen = Seen::default();
    let sends = match role[0].as_str() {
        "answers" => false,
        "sends" => true,
        // Answers some requests, and then never polls again.
        "stalls" => {
            while seen.requests < argument(&role, 1) {
                endpoint.poll(&mut seen).unwrap();
            }
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        other => panic!("no such role: {other}"),
    };
    let mut sent = 0;
    while !parent.is_gone() {
        if sends && send(&mut endpoint, peer, sent).unwrap() {
            sent += 1;
        }
        endpoint.poll(&mut seen).unwrap();
    }
}

/// Returns the number of the request that the `n`-th answer is for. Every third request has no answer.
fn answered(n: u64) -> u64 {
    n / 2 * 3 + n % 2
}

/// Sends the `n`-th request: every third one without an answer, the others with a payload. Returns
/// whether the window had room.
fn send(endpoint: &mut Endpoint<Seen>, peer: PeerId, n: u64) -> Result<bool, PeerLost> {
    let sent = if n % 3 == 2 {
        endpoint.try_request(peer, TELL, [n])
    } else {
        endpoint.try_request_medium(peer, ASK, [n], &[n as u8; 64])
    };
    match sent {
        Ok(()) => Ok(true),
        Err(RequestError::Full) => Ok(false),
        Err(RequestError::Lost(lost)) => Err(lost),
        Err(RequestError::TooLong(too_long)) => panic!("{too_long}"),
    }
}

/// The work of the survivor when its peer is killed.
#[derive(Clone, Copy, Debug)]
enum Survivor {
    /// Sends requests and polls.
    Asks,
    /// Waits in `request` with a full window.
    IsBlocked,
    /// Only polls. Over UDP it sends a request once the peer is killed, because the timeout needs one
    /// outstanding.
    Answers,
}

/// The maximum number of requests that one poll takes: over UDP, those behind a datagram that was
/// missing.
const SOME: u64 = WINDOW as u64;

const SURVIVORS: [Survivor; 3] = [Survivor::Asks, Survivor::IsBlocked, Survivor::Answers];

/// Kills a peer once, and checks what the survivor is told.
fn kill_one(transport: &Transport, survivor: Survivor, rng: &mut Rng) {
    let delay = Duration::from_micros(rng.u64(..20_000));
    let answers = rng.u64(..100);
    println!("{survivor:?}, killed after {delay:?}, {answers} answers where it stalls");
    let mut child = Child::start(
        &transport.path_of(module_path!()),
        &match survivor {
            Survivor::Asks => "answers".to_owned(),
            Survivor::IsBlocked => format!("stalls {answers}"),
            Survivor::Answers => "sends".to_owned(),
        },
    );
    let mut endpoint = endpoint(transport);
    let mut seen = Seen::default();
    let peer = child.connect(transport.wire, &mut endpoint);
    let deadline = Deadline::after(TIMEOUT);
    let mut asked = 0;
    let pid = Pid::from_raw(child.pid() as i32).unwrap();
    let is_killed = &AtomicBool::new(false);
    let (lost, killed) = std::thread::scope(|scope| {
        let killer = scope.spawn(move || {
            std::thread::sleep(delay);
            let killed = Instant::now();
            // The child is not reaped yet: for the survivor a zombie has ended.
            kill_process(pid, Signal::KILL).unwrap();
            is_killed.store(true, Ordering::Release);
            killed
        });
        let lost = loop {
            deadline.check("the end of a killed peer");
            let result = match survivor {
                Survivor::Asks => send(&mut endpoint, peer, asked).and_then(|is_sent| {
                    asked += u64::from(is_sent);
                    endpoint.poll(&mut seen).map(|_| ())
                }),
                Survivor::IsBlocked => endpoint.request(&mut seen, peer, TELL, [asked]).map(|()| asked += 1),
                Survivor::Answers => {
                    let asks = transport.is_of_datagrams() && asked == 0 && is_killed.load(Ordering::Acquire);
                    let sent = if asks { send(&mut endpoint, peer, asked) } else { Ok(false) };
                    asked += u64::from(asks);
                    sent.and_then(|_| endpoint.poll(&mut seen).map(|_| ()))
                }
            };
            if let Err(lost) = result {
                break lost;
            }
        };
        (lost, killer.join().unwrap())
    });
    let told_after = killed.elapsed();
    assert!(told_after < BOUND, "told after {told_after:?}");
    assert!(is_killed.load(Ordering::Acquire), "told of the end of a peer that lives: {lost}");
    assert_eq!(lost.loss, loss(transport.wire));
    assert_eq!((lost.peer, lost.unresolved), (peer, endpoint.in_flight(peer)));
    match survivor {
        Survivor::Asks => {
            // Answered requests are not unresolved. Credits may have resolved more.
            let resolved = asked - u64::from(lost.unresolved);
            assert!(seen.replies == 0 || resolved > answered(seen.replies - 1));
        }
        Survivor::IsBlocked => {
            assert_eq!(lost.unresolved, WINDOW);
            // The last poll of the stalling child may have taken some more.
            assert!(asked <= answers + SOME + u64::from(WINDOW));
        }
        Survivor::Answers => assert_eq!(u64::from(lost.unresolved), asked),
    }
    // The loss is reported once, and nothing more is sent.
    assert_eq!(endpoint.poll(&mut seen), Ok(0));
    assert_eq!(send(&mut endpoint, peer, asked), Err(lost));

    let entry = PathBuf::from(format!("/proc/{}", child.pid()));
    assert!(entry.exists(), "a zombie until it is reaped");
    child.kill();
    assert!(!entry.exists());
}

pub fn a_killed_peer_is_reported_and_leaves_nothing_behind(transport: &Transport) {
    if !in_own_process(transport, a_killed_peer_is_reported_and_leaves_nothing_behind) {
        return;
    }
    let kills: usize = std::env::var("NETDYNO_KILLS").map_or(10, |text| text.parse().unwrap());
    let mut rng = Rng::with_seed(seed());
    kill_one(transport, Survivor::Asks, &mut rng);
    let before = held();
    for n in 0..kills {
        kill_one(transport, SURVIVORS[n % SURVIVORS.len()], &mut rng);
    }
    // A failed attempt to connect holds nothing, either.
    let mut endpoint = endpoint(transport);
    for _ in 0..20 {
        let (port, other) =
            (endpoint.open_port(transport.wire).unwrap(), endpoint.open_port(transport.wire).unwrap());
        let mut address = other.address();
        // A byte of the segment's nonce; in a UDP address, a byte that must be zero for IPv4.
        address[35] ^= 1;
        assert!(endpoint.connect(port, &address).is_err());
    }
    drop(endpoint);
    assert_eq!(held(), before, "descriptors and mappings");
}
