//! What is made of a link by its dials, seen from its two ends.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_clock::calibrate::Clock;
use netdyno_clock::ticks;
use netdyno_stack::am::{Config, Dial, Dials, Endpoint, Handlers, OpenError, PeerId, Setting, Wire};
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

fn link(dials: &str) -> Link {
    let mut handlers = Handlers::<Seen>::new();
    handlers.on_request(ASK, |seen, request| {
        seen.push(ticks::now());
        request.reply(ASK, []);
    });
    handlers.on_reply(ASK, |seen, _| seen.push(ticks::now()));
    handlers.on_store(ASK, |seen, _| seen.push(ticks::now()));
    handlers.on_refused(|_, refused| panic!("{refused}"));
    let config = Config { dials: dials.parse().unwrap(), ..Config::default() };
    let mut a = Endpoint::new(handlers.clone(), config).unwrap();
    let mut b = Endpoint::new(handlers, config).unwrap();
    let (port_a, port_b) = (a.open_port(Wire::Shm).unwrap(), b.open_port(Wire::Shm).unwrap());
    let (address_a, address_b) = (port_a.address(), port_b.address());
    let to_b = a.connect(port_a, &address_b).unwrap();
    b.connect(port_b, &address_a).unwrap();
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
    for round in 1..=20 {
        let sent = ticks::now();
        link.a.request(&mut at_a, link.to_b, ASK, [1]).unwrap();
        // The sender itself is not held up.
        let went_on = ticks::now();
        until(&mut link.b, &mut at_b, round);
        until(&mut link.a, &mut at_a, round);
        let (handled, answered) = (at_b[round - 1], at_a[round - 1]);
        assert!(link.ns(sent, handled) >= 199_999.0 && link.ns(handled, answered) >= 199_999.0);
        assert!(went_on < handled);
    }
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
