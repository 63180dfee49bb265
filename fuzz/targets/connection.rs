//! Drives two ends of a connection over a network that the input controls. Nothing panics, and memory is
//! bounded.
//!
//! If no datagram is forged, more holds. No live peer is given up. Each message is delivered at most once, in
//! order and undamaged. The sender never sees a completion or an acknowledgement of an undelivered message.
//! Once the network behaves, all messages are delivered, unless an end has left.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_fuzz::datagram::{Fields, encoded};
use netdyno_protocol::frame::datagram::{Arrived, Datagram, Kind, LONGEST, LONGEST_PAYLOAD, parse};
use netdyno_protocol::reliability::{Config, Connection, Delivery, Loss};
use std::collections::VecDeque;

const PEER_TIMEOUT_NS: u64 = 5_000_000_000;
/// The most messages that are kept ahead of a missing one. As many buffers are kept for reuse.
const AHEAD_AT_MOST: usize = 64;
/// The memory of a connection beside its messages, in bytes.
const CHANGE: usize = 1 << 16;
/// The most datagrams that an end sends at once.
const BURST_AT_MOST: usize = 1000;
/// The most datagrams that a link holds. It loses the others.
const LINK_AT_MOST: usize = 1000;
/// The exchanges within which a network that behaves delivers all messages.
const EXCHANGES_AT_MOST: usize = 1000;
/// The time between two exchanges.
const EXCHANGE_NS: u64 = 5_000;

#[derive(Arbitrary, Debug)]
struct Input {
    window: u8,
    first_sequence: u32,
    has_forger: bool,
    steps: Vec<(bool, Step)>,
}

/// An event at one end, or on the link that leads to it. Forged datagrams have consecutive sequence numbers.
/// A sleep can exceed the peer timeout. A program that finishes handles no more messages. It leaves once
/// everything that it sent has arrived.
#[derive(Arbitrary, Debug)]
enum Step {
    Requests { count: u8, are_answered: bool, payload: u16 },
    Transmit,
    Deliver { nth: u8 },
    Drop { nth: u8 },
    Duplicate { nth: u8 },
    Damage { nth: u8, at: u16, bit: u8 },
    Forge { count: u8, fields: Fields, is_near: bool, payload: u16 },
    Wait { us: u16 },
    Sleep { ms: u16 },
    WaitForDeadline,
    Finish,
    Leave,
}

fuzz_target!(|input: Input| {
    let config = Config {
        // The same range as in `netdyno soak`.
        window: u32::from(input.window % 128) + 1,
        peer_timeout_ns: PEER_TIMEOUT_NS,
        first_sequence: input.first_sequence,
        ..Config::default()
    };
    let side = |local, remote| {
        Side::new(Connection::new(config, local, remote, 0), config.first_sequence, input.has_forger)
    };
    let mut world = World { sides: [side(11, 22), side(22, 11)], config, now_ns: 0 };
    for (side, step) in input.steps {
        world.take(usize::from(side), step);
    }
    if !input.has_forger {
        world.behave();
    }
});

struct World {
    sides: [Side; 2],
    config: Config,
    now_ns: u64,
}

/// One end, the program on it, and the link that leads to it.
struct Side {
    connection: Connection,
    program: Program,
    link: VecDeque<Flight>,
    /// Whether datagrams may be forged. Then most checks do not apply.
    has_forger: bool,
    issued: u64,
    /// The number of the peer's next request.
    next_request: u64,
    /// The numbers of its own requests whose replies have not arrived.
    replies: VecDeque<u64>,
    /// When the peer last acknowledged something new, and its latest acknowledgement.
    heard_ns: u64,
    arrived: Arrived,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Runs,
    Finishes,
    HasLeft,
}

struct Flight {
    bytes: Vec<u8>,
    is_damaged: bool,
}

impl World {
    fn take(&mut self, at: usize, step: Step) {
        let now_ns = self.now_ns;
        let side = &mut self.sides[at];
        match step {
            Step::Requests { count, are_answered, payload } => {
                (0..count).for_each(|_| side.request(are_answered, payload, now_ns));
            }
            Step::Transmit => self.wake(at),
            Step::Deliver { nth } => {
                if let Some(flight) = side.nth(nth).and_then(|nth| side.link.remove(nth)) {
                    self.arrive(at, &flight);
                }
            }
            Step::Drop { nth } => {
                side.nth(nth).and_then(|nth| side.link.remove(nth));
            }
            Step::Duplicate { nth } => {
                if let Some(nth) = side.nth(nth) {
                    let Flight { bytes, is_damaged } = &side.link[nth];
                    let again = Flight { bytes: bytes.clone(), is_damaged: *is_damaged };
                    side.link.push_back(again);
                }
            }
            Step::Damage { nth, at, bit } => {
                if let Some(flight) = side.nth(nth).map(|nth| &mut side.link[nth]) {
                    let at = usize::from(at) % flight.bytes.len();
                    flight.bytes[at] ^= 1 << (bit % 8);
                    flight.is_damaged = true;
                }
            }
            Step::Forge { .. } if !side.has_forger => {}
            Step::Forge { count, mut fields, is_near, payload } => {
                if is_near {
                    side.place(&mut fields, self.config.first_sequence);
                }
                for _ in 0..=count {
                    let flight = self.sides[at].forged(fields, payload);
                    self.arrive(at, &flight);
                    fields.sequence = fields.sequence.wrapping_add(1);
                }
            }
            Step::Wait { us } => self.now_ns += 1_000 * u64::from(us),
            Step::Sleep { ms } => self.now_ns += 1_000_000 * u64::from(ms),
            Step::WaitForDeadline => self.now_ns = now_ns.max(side.connection.deadline().unwrap_or(now_ns)),
            Step::Finish if side.program == Program::HasLeft => {}
            Step::Finish => side.program = Program::Finishes,
            Step::Leave => self.leave(at),
        }
        self.check();
    }

    /// Passes a datagram to an end. An end that has gone answers with a goodbye, unless the datagram is one.
    fn arrive(&mut self, at: usize, flight: &Flight) {
        let Ok(datagram) = parse(&flight.bytes) else {
            return assert!(flight.is_damaged, "a datagram of ours is refused");
        };
        if flight.is_damaged {
            // The checksum is right by chance, or two bit flips cancelled each other.
            return;
        }
        if !self.sides[at].is_gone() {
            self.sides[at].receive(&datagram, self.now_ns);
        } else if datagram.header.kind != Kind::Goodbye {
            self.say_goodbye(at);
        }
    }

    fn leave(&mut self, at: usize) {
        self.sides[at].program = Program::HasLeft;
        self.say_goodbye(at);
    }

    fn say_goodbye(&mut self, at: usize) {
        let goodbye = self.sides[at].connection.goodbye().to_vec();
        self.sides[1 - at].put_on_link(goodbye);
    }

    /// Passes the time to an end, and sends its datagrams.
    fn wake(&mut self, at: usize) {
        let side = &mut self.sides[at];
        if side.is_gone() {
            return;
        }
        if side.connection.deadline().is_some_and(|at_ns| at_ns <= self.now_ns) {
            side.connection.on_time(self.now_ns);
        }
        if side.connection.lost() == Some(Loss::Silent) && !side.has_forger {
            assert!(self.now_ns - side.heard_ns >= PEER_TIMEOUT_NS, "a living peer was given up");
        }
        let mut sent = 0;
        while let Some(bytes) = self.sides[at].connection.transmit(self.now_ns).map(<[u8]>::to_vec) {
            self.sides[1 - at].put_on_link(bytes);
            sent += 1;
            assert!(sent <= BURST_AT_MOST, "it sends without end");
        }
    }

    /// Runs the ends over a network without errors. Everything that was issued is delivered, unless an end
    /// has gone; then the other end must learn that. A peer may be given up in the first exchange only,
    /// because the silence before it may have been too long.
    fn behave(&mut self) {
        for exchange in 0..EXCHANGES_AT_MOST {
            for at in 0..2 {
                while let Some(flight) = self.sides[at].link.pop_front() {
                    self.arrive(at, &flight);
                }
                let was_here = !self.sides[at].is_gone();
                self.wake(at);
                if was_here && self.sides[at].connection.lost() == Some(Loss::Silent) {
                    assert_eq!(exchange, 0, "a living peer was given up");
                }
                // If both finish, neither handles messages, so both would wait forever.
                let are_both = self.sides.iter().all(|side| side.program == Program::Finishes);
                if self.sides[at].has_finished() || are_both {
                    self.leave(at);
                }
                self.check();
            }
            self.now_ns += EXCHANGE_NS;
            if self.sides.iter().all(|side| side.link.is_empty()) {
                let here = self.sides.iter().filter(|side| !side.is_gone());
                let Some(next_ns) = here.filter_map(|side| side.connection.deadline()).min() else { break };
                self.now_ns = self.now_ns.max(next_ns);
            }
        }
        for at in 0..2 {
            let (side, peer) = (&self.sides[at], &self.sides[1 - at]);
            if side.is_gone() {
                continue;
            }
            if peer.is_gone() {
                assert_eq!(side.connection.deadline(), None, "it waits for somebody who has gone");
                continue;
            }
            assert_eq!(side.program, Program::Runs, "what was sent last did not arrive");
            assert_eq!(side.next_request, peer.issued, "requests were not delivered");
            assert_eq!(side.replies, [0; 0], "replies were not delivered");
            assert_eq!(side.connection.in_flight(), 0, "credits did not come back");
        }
    }

    /// Checks the invariants.
    fn check(&self) {
        for at in 0..2 {
            let (side, peer) = (&self.sides[at], &self.sides[1 - at]);
            let Side { connection, issued, replies, .. } = side;
            let held = connection.memory_bytes();
            assert!(held <= memory_at_most(self.config.window), "a connection holds {held} bytes");
            if side.has_forger {
                continue;
            }
            assert_eq!(connection.counters().absurd, 0, "an honest peer is not believed");
            // A request with a reply is complete when its reply has arrived.
            assert!(connection.in_flight() as usize >= replies.len(), "a credit came too early");
            let not_handled = issued - peer.next_request;
            assert!(u64::from(connection.in_flight()) >= not_handled, "a credit came for nothing");
            assert!(u64::from(connection.not_sent()) <= not_handled, "what was handled was never sent");
            if !connection.has_unacknowledged() {
                assert_eq!(not_handled, 0, "a request was acknowledged and not delivered");
                let is_missing = peer.replies.front().is_some_and(|&number| number < side.next_request);
                assert!(!is_missing, "a reply was acknowledged and not delivered");
            }
            assert!(connection.lost() != Some(Loss::Closed) || peer.is_gone(), "nobody has closed");
        }
    }
}

impl Side {
    fn new(connection: Connection, first_sequence: u32, has_forger: bool) -> Self {
        Self {
            connection,
            program: Program::Runs,
            link: VecDeque::new(),
            has_forger,
            issued: 0,
            next_request: 0,
            replies: VecDeque::new(),
            heard_ns: 0,
            arrived: Arrived { expected: first_sequence, ..Arrived::default() },
        }
    }

    /// Reports whether the end takes no more messages, and sends nothing but a goodbye.
    fn is_gone(&self) -> bool {
        self.program == Program::HasLeft || self.connection.lost().is_some()
    }

    /// Reports whether the program finishes and everything that it sent has arrived.
    fn has_finished(&self) -> bool {
        self.program == Program::Finishes && !self.connection.has_unacknowledged()
    }

    fn put_on_link(&mut self, bytes: Vec<u8>) {
        if self.link.len() < LINK_AT_MOST {
            self.link.push_back(Flight { bytes, is_damaged: false });
        }
    }

    /// Returns the index of a datagram on the link, if there is one.
    fn nth(&self, nth: u8) -> Option<usize> {
        usize::from(nth).checked_rem(self.link.len())
    }

    fn request(&mut self, is_answered: bool, len: u16, now_ns: u64) {
        if self.program != Program::Runs || self.is_gone() {
            return;
        }
        let number = self.issued;
        let payload = payload(number, len.into());
        let words = [number, is_answered.into(), payload.len() as u64];
        if self.connection.request(0, &words, &payload, now_ns).is_ok() {
            self.issued += 1;
            self.replies.extend(is_answered.then_some(number));
        }
    }

    /// Moves the numbers in `fields` close to those that the connection expects.
    fn place(&self, fields: &mut Fields, first_sequence: u32) {
        let counters = self.connection.counters();
        let about = |count: u64, off: u32| {
            let off = i32::from(off as i8) as u32;
            first_sequence.wrapping_add(count as u32).wrapping_add(off)
        };
        fields.sequence = about(counters.delivered, fields.sequence);
        fields.expected = about(counters.sent, fields.expected);
        let transmissions = counters.sent + counters.retransmitted;
        fields.latest = (transmissions as u16).wrapping_add(i16::from(fields.latest as i8) as u16);
    }

    /// Returns a datagram of an attacker that knows the number of the connection.
    fn forged(&self, fields: Fields, len: u16) -> Flight {
        let header = fields.header(self.connection.local());
        let payload = payload(0, len.into());
        let words = [0, 1, payload.len() as u64];
        Flight { bytes: encoded(&header, &words, &payload), is_damaged: false }
    }

    fn receive(&mut self, datagram: &Datagram<'_>, now_ns: u64) {
        let in_flight = self.connection.in_flight();
        if self.is_news(datagram.header.arrived) {
            self.heard_ns = now_ns;
        }
        if self.program == Program::Finishes {
            self.connection.acknowledge(&datagram.header, now_ns);
            if datagram.header.kind == Kind::Goodbye {
                self.program = Program::HasLeft;
            }
        } else if self.connection.receive(datagram, now_ns) == Delivery::Now {
            self.handle(datagram, now_ns);
            while let Some(bytes) = self.connection.buffered() {
                self.handle(&parse(&bytes).expect("what was kept"), now_ns);
                self.connection.recycle(bytes);
            }
        }
        // A completion is a sign of the peer as well.
        if self.connection.in_flight() < in_flight {
            self.heard_ns = now_ns;
        }
    }

    /// Reports whether the peer acknowledges more than it did before.
    fn is_news(&mut self, arrived: Arrived) -> bool {
        let Arrived { expected, selective, .. } = self.arrived;
        let ahead = arrived.expected.wrapping_sub(expected);
        let is_news = if ahead == 0 { arrived.selective & !selective != 0 } else { ahead < u32::MAX / 2 };
        if is_news {
            let known = if ahead == 0 { selective } else { 0 };
            self.arrived = Arrived { selective: arrived.selective | known, ..arrived };
        }
        is_news
    }

    fn handle(&mut self, datagram: &Datagram<'_>, now_ns: u64) {
        let [number, is_answered, len, _] = datagram.words;
        if !self.has_forger {
            assert_eq!(datagram.payload, payload(number, len as usize), "a message came damaged");
        }
        match datagram.header.kind {
            Kind::Request => {
                assert!(self.has_forger || number == self.next_request, "request {number} is not the next");
                self.next_request = number + 1;
                if is_answered != 0 {
                    self.connection.reply(0, &[number, 0, len], datagram.payload, now_ns);
                }
            }
            Kind::Reply => {
                let next = self.replies.pop_front();
                assert!(self.has_forger || next == Some(number), "reply {number} is not the next");
            }
            kind => panic!("{kind:?} was delivered"),
        }
    }
}

/// Returns the upper bound of a connection's memory, in bytes. The unacknowledged messages are a window of
/// requests, a window of replies, and the replies to messages that were kept ahead of a missing one.
fn memory_at_most(window: u32) -> usize {
    let messages = 2 * window as usize + 3 * AHEAD_AT_MOST;
    // A buffer doubles when it grows.
    messages * 2 * LONGEST + CHANGE
}

/// Returns the payload of the message with this number.
fn payload(number: u64, len: usize) -> Vec<u8> {
    vec![number as u8; len.min(LONGEST_PAYLOAD)]
}
