//! Two ends of a connection and a network that does what the input says. Nothing panics, and
//! memory is bounded. Where no datagram is forged, nobody is given up too early, and every
//! message is delivered at most once, in order and whole; once the network behaves, all are.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_fuzz::datagram::{Fields, encoded};
use netdyno_protocol::frame::datagram::{Datagram, Kind, LONGEST_PAYLOAD, parse};
use netdyno_protocol::reliability::{Config, Connection, Delivery, Loss};
use std::collections::VecDeque;

const PEER_TIMEOUT_NS: u64 = 5_000_000_000;
/// As in the soak.
const MEMORY_AT_MOST: usize = 1 << 20;
/// Datagrams that an end sends at once at most.
const BURST_AT_MOST: usize = 1000;
/// Datagrams that a link holds; it loses more.
const LINK_AT_MOST: usize = 1000;
/// Exchanges within which a network that behaves delivers all there is.
const EXCHANGES_AT_MOST: usize = 1000;
/// Time between two of them.
const EXCHANGE_NS: u64 = 5_000;
/// They do so only before this time as yet: an end that sleeps takes its sleep for a round
/// trip, and notices no loss for three times as long, or gives up its peer before that.
const SLEPT_AT_MOST_NS: u64 = 500_000_000;

#[derive(Arbitrary, Debug)]
struct Input {
    window: u8,
    first_sequence: u32,
    has_forger: bool,
    steps: Vec<(bool, Step)>,
}

/// What happens at one end, or on the link that leads to it. Forged datagrams come in a row
/// with a sequence number each; a sleep can be long enough for a peer to be given up.
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
}

fuzz_target!(|input: Input| {
    let config = Config {
        // As in the soak.
        window: u32::from(input.window % 128) + 1,
        peer_timeout_ns: PEER_TIMEOUT_NS,
        first_sequence: input.first_sequence,
        ..Config::default()
    };
    let side = |local, remote| Side::new(Connection::new(config, local, remote, 0), input.has_forger);
    let sides = [side(11, 22), side(22, 11)];
    let mut world = World { sides, first_sequence: input.first_sequence, now_ns: 0 };
    for (side, step) in input.steps {
        world.take(usize::from(side), step);
    }
    if !input.has_forger && world.now_ns <= SLEPT_AT_MOST_NS {
        world.behave();
    }
});

struct World {
    sides: [Side; 2],
    first_sequence: u32,
    now_ns: u64,
}

/// One end, the program on it, and the link that leads to it.
struct Side {
    connection: Connection,
    link: VecDeque<Flight>,
    /// Whether what comes may be from somebody else: then nothing is sure.
    has_forger: bool,
    issued: u64,
    /// The number of the peer's request that comes next.
    next_request: u64,
    /// The numbers of its own requests whose replies are to come.
    replies: VecDeque<u64>,
    heard_ns: u64,
}

struct Flight {
    bytes: Vec<u8>,
    is_damaged: bool,
}

impl World {
    fn take(&mut self, at: usize, step: Step) {
        let (now_ns, first_sequence) = (self.now_ns, self.first_sequence);
        let side = &mut self.sides[at];
        match step {
            Step::Requests { count, are_answered, payload } => {
                (0..count).for_each(|_| side.request(are_answered, payload, now_ns));
            }
            Step::Transmit => self.wake(at),
            Step::Deliver { nth } => {
                if let Some(flight) = side.nth(nth).and_then(|nth| side.link.remove(nth)) {
                    side.receive(&flight, now_ns);
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
                    side.place(&mut fields, first_sequence);
                }
                for _ in 0..=count {
                    side.receive(&side.forged(fields, payload), now_ns);
                    fields.sequence = fields.sequence.wrapping_add(1);
                }
            }
            Step::Wait { us } => self.now_ns += 1_000 * u64::from(us),
            Step::Sleep { ms } => self.now_ns += 1_000_000 * u64::from(ms),
            Step::WaitForDeadline => self.now_ns = now_ns.max(side.connection.deadline().unwrap_or(now_ns)),
        }
        for side in &self.sides {
            side.check();
        }
    }

    /// Hands in the time and sends what is to be sent.
    fn wake(&mut self, at: usize) {
        let side = &mut self.sides[at];
        if side.connection.deadline().is_some_and(|at_ns| at_ns <= self.now_ns) {
            side.connection.on_time(self.now_ns);
        }
        if side.connection.lost() == Some(Loss::Silent) && !side.has_forger {
            assert!(self.now_ns - side.heard_ns >= PEER_TIMEOUT_NS, "a living peer was given up");
        }
        let mut sent = 0;
        while let Some(bytes) = self.sides[at].connection.transmit(self.now_ns).map(<[u8]>::to_vec) {
            let link = &mut self.sides[1 - at].link;
            if link.len() < LINK_AT_MOST {
                link.push_back(Flight { bytes, is_damaged: false });
            }
            sent += 1;
            assert!(sent <= BURST_AT_MOST, "it sends without end");
        }
    }

    /// Everything that was issued is delivered once nothing goes wrong any more, unless
    /// somebody has been silent for too long already.
    fn behave(&mut self) {
        for exchange in 0..EXCHANGES_AT_MOST {
            for at in 0..2 {
                while let Some(flight) = self.sides[at].link.pop_front() {
                    self.sides[at].receive(&flight, self.now_ns);
                }
                self.wake(at);
                self.sides[at].check();
                if self.sides[at].connection.lost().is_some() {
                    return assert_eq!(exchange, 0, "a living peer was given up");
                }
            }
            self.now_ns += EXCHANGE_NS;
            if self.sides.iter().all(|side| side.link.is_empty()) {
                let deadlines = self.sides.iter().filter_map(|side| side.connection.deadline());
                let Some(next_ns) = deadlines.min() else { break };
                self.now_ns = self.now_ns.max(next_ns);
            }
        }
        for at in 0..2 {
            let (side, peer) = (&self.sides[at], &self.sides[1 - at]);
            assert_eq!(side.next_request, peer.issued, "requests were not delivered");
            assert_eq!(side.replies, [0; 0], "replies were not delivered");
            assert_eq!(side.connection.in_flight(), 0, "credits did not come back");
        }
    }
}

impl Side {
    fn new(connection: Connection, has_forger: bool) -> Self {
        Self {
            connection,
            link: VecDeque::new(),
            has_forger,
            issued: 0,
            next_request: 0,
            replies: VecDeque::new(),
            heard_ns: 0,
        }
    }

    /// A datagram on the link, where there is one.
    fn nth(&self, nth: u8) -> Option<usize> {
        usize::from(nth).checked_rem(self.link.len())
    }

    fn request(&mut self, is_answered: bool, len: u16, now_ns: u64) {
        let number = self.issued;
        let payload = payload(number, len.into());
        let words = [number, is_answered.into(), payload.len() as u64];
        if self.connection.request(0, &words, &payload, now_ns).is_ok() {
            self.issued += 1;
            self.replies.extend(is_answered.then_some(number));
        }
    }

    /// Moves `fields` to about where the connection stands.
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

    /// A datagram by somebody who knows the number of the connection.
    fn forged(&self, fields: Fields, len: u16) -> Flight {
        let header = fields.header(self.connection.local());
        let payload = payload(0, len.into());
        let words = [0, 1, payload.len() as u64];
        Flight { bytes: encoded(&header, &words, &payload), is_damaged: false }
    }

    fn receive(&mut self, flight: &Flight, now_ns: u64) {
        let Ok(datagram) = parse(&flight.bytes) else {
            return assert!(flight.is_damaged, "a datagram of ours is refused");
        };
        if flight.is_damaged {
            // The checksum fits by accident, or two damages were none.
            return;
        }
        if self.connection.lost().is_none() {
            self.heard_ns = now_ns;
        }
        if self.connection.receive(&datagram, now_ns) == Delivery::Now {
            self.handle(&datagram, now_ns);
            while let Some(bytes) = self.connection.buffered() {
                self.handle(&parse(&bytes).expect("what was kept"), now_ns);
                self.connection.recycle(bytes);
            }
        }
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

    fn check(&self) {
        let held = self.connection.memory_bytes();
        assert!(held <= MEMORY_AT_MOST, "a connection holds {held} bytes");
        if self.has_forger {
            return;
        }
        assert_eq!(self.connection.counters().absurd, 0, "an honest peer is not believed");
        // Its reply is what completes an answered request.
        assert!(self.connection.in_flight() as usize >= self.replies.len(), "a credit came too early");
    }
}

/// What a message with that number carries.
fn payload(number: u64, len: usize) -> Vec<u8> {
    vec![number as u8; len.min(LONGEST_PAYLOAD)]
}
