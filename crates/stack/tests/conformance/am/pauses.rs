//! Processes that are stopped and continued at random moments, on either side of the traffic. Nothing is
//! lost or duplicated. `NETDYNO_KILLS` sets the number of pauses of each side.

use crate::common::asking::{ASK, Counted as Seen, counting};
use crate::common::process::{Child, argument, role};
use crate::common::{Deadline, TIMEOUT, Transport, seed};
use fastrand::Rng;
use netdyno_stack::am::{Endpoint, Loss, PeerId};
use rustix::process::Signal;
use std::time::{Duration, Instant};

fn endpoint(transport: &Transport) -> Endpoint<Seen> {
    let config = transport.config().window(16).medium_bytes(64).peer_timeout(TIMEOUT);
    Endpoint::new(counting(), config).unwrap()
}

/// Sends requests and answers until `is_over` returns true, or the peer has closed.
fn ask(
    endpoint: &mut Endpoint<Seen>,
    seen: &mut Seen,
    peer: PeerId,
    asked: &mut u64,
    is_over: impl Fn() -> bool,
) {
    while !is_over() {
        if endpoint.try_request(peer, ASK, [*asked]).is_ok() {
            *asked += 1;
        }
        match endpoint.poll(seen) {
            Ok(0) => endpoint.idle(Duration::from_millis(1)),
            Ok(_) => {}
            // The parent closes its endpoint when it has all its answers.
            Err(lost) => {
                assert_eq!(lost.loss, Loss::Closed);
                return;
            }
        }
    }
}

pub fn child_process(transport: &Transport) {
    let Some((role, parent)) = role() else { return };
    let mut endpoint = endpoint(transport);
    let peer = parent.connect(transport.wire, &mut endpoint);
    let (mut seen, mut asked) = (Seen::default(), 0);
    let asks: bool = argument(&role, 1);
    if asks {
        ask(&mut endpoint, &mut seen, peer, &mut asked, || parent.is_gone());
    }
    while endpoint.poll(&mut seen).is_ok() {}
}

/// Stops and continues the child, `times`. The parent sends requests; the child answers, and sends some
/// too if `child_asks`.
fn pause(transport: &Transport, times: usize, child_asks: bool, rng: &mut Rng) {
    let mut child = Child::start(&transport.path_of(module_path!()), &format!("peer {child_asks}"));
    let mut endpoint = endpoint(transport);
    let peer = child.connect(transport.wire, &mut endpoint);
    let (mut seen, mut asked) = (Seen::default(), 0);
    let deadline = Deadline::after(2 * TIMEOUT);
    for _ in 0..times {
        deadline.check("pauses");
        for signal in [Signal::STOP, Signal::CONT] {
            child.signal(signal);
            let until = Instant::now() + Duration::from_micros(rng.u64(..8_000));
            ask(&mut endpoint, &mut seen, peer, &mut asked, || Instant::now() >= until);
        }
    }
    // A pause that is long for RTT estimates and timeouts.
    child.signal(Signal::STOP);
    let until = Instant::now() + Duration::from_millis(300);
    ask(&mut endpoint, &mut seen, peer, &mut asked, || Instant::now() >= until);
    child.signal(Signal::CONT);
    while endpoint.in_flight(peer) > 0 {
        deadline.check("the answers");
        endpoint.poll(&mut seen).unwrap();
    }
    assert!(asked > 16, "traffic in spite of the pauses");
    assert_eq!(seen.replies, asked);
    println!("{asked} requests answered, {} taken, {:?}", seen.requests, endpoint.statistics(peer));
    assert_eq!(seen.requests > 0, child_asks);
}

pub fn a_paused_peer_goes_on_where_it_was(transport: &Transport) {
    let times: usize = std::env::var("NETDYNO_KILLS").map_or(10, |text| text.parse().unwrap());
    let mut rng = Rng::with_seed(seed());
    pause(transport, times, false, &mut rng);
    pause(transport, times, true, &mut rng);
}
