//! What is made of a link by its dials, seen from its two ends.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_clock::calibrate::Clock;
use netdyno_clock::ticks;
use netdyno_stack::am::{
    Config, Dial, Dials, Endpoint, Handlers, Loss, OpenError, PeerId, PeerLost, Setting, Wire,
};
use std::time::{Duration, Instant};

const ASK: u8 = 0;

/// When each message was handled.
type Seen = Vec<u64>;

struct Link {
    a: Endpoint<Seen>,
    b: Endpoint<Seen>,
    to_b: PeerId,
    clock: Clock,
}

fn handlers() -> Handlers<Seen> {
    let mut handlers = Handlers::<Seen>::new();
    handlers.on_request(ASK, |seen, request| {
        seen.push(ticks::now());
        request.reply(ASK, []);
    });
    handlers.on_reply(ASK, |seen, _| seen.push(ticks::now()));
    handlers.on_store(ASK, |seen, _| seen.push(ticks::now()));
    handlers.on_refused(|_, refused| panic!("{refused}"));
    handlers
}

fn connect(a: &mut Endpoint<Seen>, b: &mut Endpoint<Seen>) -> (PeerId, PeerId) {
    let (port_a, port_b) = (a.open_port(Wire::Shm).unwrap(), b.open_port(Wire::Shm).unwrap());
    let (address_a, address_b) = (port_a.address(), port_b.address());
    (a.connect(port_a, &address_b).unwrap(), b.connect(port_b, &address_a).unwrap())
}

fn link(dials: &str) -> Link {
    let config = Config { dials: dials.parse().unwrap(), ..Config::default() };
    let [mut a, mut b] = [0, 1].map(|_| Endpoint::new(handlers(), config).unwrap());
    let (to_b, _) = connect(&mut a, &mut b);
    Link { a, b, to_b, clock: Clock::calibrate() }
}

impl Link {
    /// Nanoseconds from one reading to a later one.
    fn ns(&self, from: u64, to: u64) -> f64 {
        to.checked_sub(from).unwrap() as f64 * self.clock.tick_ns
    }
}

/// Polls until so many were handled.
fn until(endpoint: &mut Endpoint<Seen>, seen: &mut Seen, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while seen.len() < count {
        endpoint.poll(seen).unwrap();
        assert!(Instant::now() < deadline, "{count} were to come, {} did", seen.len());
    }
}

#[test]
fn no_message_is_early_and_replies_are_as_late_again() {
    let mut link = link("latency=200us");
    let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
    let mut least_to_send = f64::INFINITY;
    for round in 1..=20 {
        let sent = ticks::now();
        link.a.request(&mut at_a, link.to_b, ASK, [1]).unwrap();
        least_to_send = least_to_send.min(link.ns(sent, ticks::now()));
        until(&mut link.b, &mut at_b, round);
        until(&mut link.a, &mut at_a, round);
        let (handled, answered) = (at_b[round - 1], at_a[round - 1]);
        assert!(link.ns(sent, handled) >= 199_999.0 && link.ns(handled, answered) >= 199_999.0);
    }
    // The sender itself is not held up; of many rounds one at least was not interrupted.
    assert!(least_to_send < 199_999.0, "{least_to_send}");
}

#[test]
fn a_burst_comes_at_the_pace_of_the_gap() {
    const MESSAGES: usize = 50;
    for dials in ["send-gap=30us", "recv-gap=30us", "gap-per-byte=1us/B"] {
        let mut link = link(dials);
        let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
        let began = ticks::now();
        for _ in 0..MESSAGES {
            // 31 further bytes.
            link.a.request(&mut at_a, link.to_b, ASK, [1, 2, 3, 4]).unwrap();
        }
        until(&mut link.b, &mut at_b, MESSAGES);
        let first_at = if dials.starts_with("gap") { 31_000.0 } else { 0.0 };
        let pace_ns = if dials.starts_with("gap") { 31_000.0 } else { 30_000.0 };
        for (nth, &at) in at_b.iter().enumerate() {
            let least = first_at + nth as f64 * pace_ns;
            assert!(link.ns(began, at) >= 0.999_999 * least, "{dials}: message {nth}");
        }
    }
}

#[test]
fn overheads_take_the_processor_of_the_side_that_pays() {
    for dials in ["send-overhead+300us", "recv-overhead+300us"] {
        let mut link = link(dials);
        let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
        let mut least_to_send = f64::INFINITY;
        for round in 1..=20 {
            let began = ticks::now();
            link.a.request(&mut at_a, link.to_b, ASK, [1]).unwrap();
            least_to_send = least_to_send.min(link.ns(began, ticks::now()));
            until(&mut link.b, &mut at_b, round);
            until(&mut link.a, &mut at_a, round);
            let (handled, answered) = (at_b[round - 1], at_a[round - 1]);
            assert!(link.ns(began, handled) >= 299_999.0 && link.ns(began, answered) >= 599_999.0);
        }
        // Of many one at least was not interrupted.
        assert_eq!(least_to_send >= 299_999.0, dials.starts_with("send"), "{dials}: {least_to_send}");
    }
}

#[test]
fn a_store_takes_the_time_of_its_bytes() {
    let mut link = link("gap-per-byte=10ns/B");
    let (mut at_a, mut at_b) = (Seen::new(), Seen::new());
    let memory = link.b.allocate(100_001).unwrap();
    let remote = link.a.attach(&mut at_a, link.to_b, &memory.key()).unwrap();
    let began = ticks::now();
    link.a.store(&mut at_a, remote, 0, &[7; 100_001], ASK, []).unwrap();
    until(&mut link.b, &mut at_b, 1);
    assert!(link.ns(began, at_b[0]) >= 999_999.0);
}

/// Whom `endpoint` loses, polled and made to do `meanwhile` until it does.
fn lost(
    endpoint: &mut Endpoint<Seen>,
    seen: &mut Seen,
    mut meanwhile: impl FnMut(&mut Endpoint<Seen>),
) -> PeerLost {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        meanwhile(endpoint);
        if let Err(lost) = endpoint.poll(seen) {
            return lost;
        }
        assert!(Instant::now() < deadline, "nobody is lost");
    }
}

#[test]
fn a_silent_peer_is_given_up_while_others_are_sent_to() {
    let dials = "latency=1ms".parse().unwrap();
    let config = Config { dials, peer_timeout: Duration::from_millis(400), ..Config::default() };
    let mut ends = [0, 1, 2].map(|_| Endpoint::new(handlers(), config).unwrap());
    let [a, b, c] = &mut ends;
    let (to_b, _) = connect(a, b);
    let (to_c, _) = connect(a, c);
    let (mut at_a, mut at_c) = (Seen::new(), Seen::new());
    a.request(&mut at_a, to_b, ASK, [1]).unwrap();
    let lost = lost(a, &mut at_a, |a| {
        // As much as there is room for, so that something is always on its way.
        let _ = a.try_request(to_c, ASK, [1]);
        let _ = c.poll(&mut at_c);
    });
    assert_eq!((lost.peer, lost.loss), (to_b, Loss::Silent(config.peer_timeout)));
}

/// What a peer has left behind is handled, but not waited for as long as the dials say: here four
/// minutes.
#[test]
fn the_end_of_a_peer_is_not_held_back_for_long() {
    let Link { mut a, mut b, to_b, .. } = link("send-gap=1s");
    let mut at_b = Seen::new();
    for _ in 0..240 {
        a.try_request(to_b, ASK, [1]).unwrap();
    }
    drop(a);
    let lost = lost(&mut b, &mut at_b, |_| {});
    assert_eq!((lost.loss, at_b.len()), (Loss::Closed, 240));
}

#[test]
fn what_cannot_be_dialled_is_refused() {
    let open = |dials: Dials| Endpoint::new(Handlers::<()>::new(), Config { dials, ..Config::default() });
    let gap = Dials::NONE.with(Dial::SendGap, Setting::Add(1000.0));
    let error = open(gap).err().unwrap().to_string();
    assert_eq!(error, "what send-gap the link has of its own is not known: set it (=)");
    let mut endpoint = open(Dials::NONE.with(Dial::Latency, Setting::Add(1.0))).unwrap();
    assert!(matches!(endpoint.open_port(Wire::Udp), Err(OpenError::DialledUdp)));
    assert!(endpoint.open_port(Wire::Shm).is_ok());
}
