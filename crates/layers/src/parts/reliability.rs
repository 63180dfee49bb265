//! What format, checksum, check and flow control add to bare datagrams.
//!
//! Each run does over the same two ends what the run before it does, and one step more: bare datagrams (`wire`), formatted
//! ones, complete ones, and those of two connections. A step is the difference of two runs. So it is measured between
//! two system calls, as in a layer. By itself it would be faster, because the kernel's code takes its place in the
//! processor's caches and predictors.

use super::Parts;
use super::content::Content;
use super::wire::{End, Ends, WireProbes};
use netdyno_clock::ticks;
use netdyno_measure::layer::LayerError;
use netdyno_protocol::frame::datagram::{self, Arrived, Datagram, Header, Kind};
use netdyno_protocol::reliability::{Config, Connection, Delivery};
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The handler index of every message.
const HANDLER: u8 = 0;
/// Longer than an acknowledgement waits for a message that carries it.
const UNTIL_ACKNOWLEDGED: Duration = Duration::from_micros(60);
/// The same in the time of the protocol.
const ACKNOWLEDGED_NS: u64 = 1_000_000;

/// Probes, each with the number of times that it counts.
pub(super) type Terms = Vec<(usize, f64)>;

/// The steps of the protocol.
pub(super) struct ProtocolSteps {
    pub(super) format: Terms,
    pub(super) checksum: Terms,
    pub(super) check: Terms,
    /// The flow control of a request, of taking it, of taking it and replying, and of taking the reply.
    pub(super) request: Terms,
    pub(super) take_request: Terms,
    pub(super) take_and_reply: Terms,
    pub(super) take_reply: Terms,
    pub(super) acknowledgement: AcknowledgementSteps,
}

/// The steps of an acknowledgement that travels alone. It is made after a wait for a message that could carry it, in which
/// nothing else is done.
pub(super) struct AcknowledgementSteps {
    /// A receive in vain and then the send, and all that the connection does to make it.
    pub(super) send: Terms,
    pub(super) make: Terms,
    /// The receive and then one in vain, and all that the connection does to take it.
    pub(super) receive: Terms,
    pub(super) take: Terms,
}

/// Returns what the terms sum to so many times.
pub(super) fn times(count: f64, terms: &[(usize, f64)]) -> Terms {
    terms.iter().map(|(probe, times)| (*probe, count * times)).collect()
}

/// Returns the length of the datagram of a message.
pub(super) fn datagram_len(content: &Content) -> usize {
    datagram::HEADER_LEN + 8 * content.words.len() + content.payload.len()
}

/// Adds the runs of the protocol over two bare ends, whose own probes are `bare`.
pub(super) fn protocol(parts: &mut Parts, ends: &Ends, bare: WireProbes, content: &Content) -> ProtocolSteps {
    let formatted = formatted(parts, ends, content.clone());
    let [complete, checked] = complete(parts, ends, content.clone());
    let [request, take_and_reply, take_reply] = exchanges(parts, ends, content.clone());
    let [take_request, make, take] = requests(parts, ends, content.clone());
    let [send, receive] = late_datagrams(parts, ends);
    let step = |with, without| vec![(with, 1.0), (without, -1.0)];
    ProtocolSteps {
        format: step(formatted, bare.send),
        checksum: step(complete, formatted),
        check: step(checked, bare.receive),
        request: step(request, complete),
        take_request: step(take_request, checked),
        take_and_reply: vec![(take_and_reply, 1.0), (checked, -1.0), (complete, -1.0)],
        take_reply: step(take_reply, checked),
        acknowledgement: AcknowledgementSteps {
            send: vec![(send, 1.0)],
            receive: vec![(receive, 1.0)],
            make: step(make, send),
            take: step(take, receive),
        },
    }
}

fn header() -> Header {
    Header {
        kind: Kind::Request,
        handler: HANDLER,
        connection: 1,
        sequence: 0,
        transmission: 0,
        arrived: Arrived::default(),
        completed: 0,
        departed: None,
    }
}

/// Passes the time in which a message may come that carries an acknowledgement.
pub(super) fn wait_for_carrier() {
    let until = Instant::now() + UNTIL_ACKNOWLEDGED;
    while Instant::now() < until {}
}

/// Adds sending and receiving datagrams as long as an acknowledgement, each time after its wait: the sender first finds
/// nothing, and the receiver finds nothing more. Returns the probes of both.
fn late_datagrams(parts: &mut Parts, ends: &Ends) -> [usize; 2] {
    let (ends, data) = (Rc::clone(ends), [1; datagram::HEADER_LEN]);
    parts.run(1, ["find nothing and send after a wait", "receive and find nothing"], move |_| {
        let [one, other] = &mut *ends.borrow_mut();
        wait_for_carrier();
        let began = ticks::now();
        one.find_empty();
        one.send(&data);
        let sent = ticks::now();
        black_box(other.take()?);
        other.find_empty();
        Ok([sent - began, ticks::now() - sent])
    })
}

/// Adds sending a datagram that is written before. Returns the index of its probe.
fn formatted(parts: &mut Parts, ends: &Ends, content: Content) -> usize {
    let (ends, mut bytes) = (Rc::clone(ends), Vec::new());
    let [send] = parts.run(1, ["format and send"], move |_| {
        let [one, other] = &mut *ends.borrow_mut();
        let began = ticks::now();
        format(&content, &mut bytes);
        one.send(&bytes);
        let sent = ticks::now();
        other.take()?;
        other.find_empty();
        Ok([sent - began])
    });
    send
}

/// Adds sending a datagram that is written and completed before, and receiving and checking it. Returns the probes.
fn complete(parts: &mut Parts, ends: &Ends, content: Content) -> [usize; 2] {
    let (ends, mut bytes, mut sequence) = (Rc::clone(ends), Vec::new(), 0);
    parts.run(1, ["complete and send", "receive and check"], move |_| {
        let [one, other] = &mut *ends.borrow_mut();
        sequence += 1;
        let began = ticks::now();
        format(&content, &mut bytes);
        datagram::stamp(&mut bytes, sequence, sequence as u16, Arrived::default());
        one.send(&bytes);
        let sent = ticks::now();
        black_box(parse(other.take()?)?);
        let received = ticks::now();
        other.find_empty();
        Ok([sent - began, received - sent])
    })
}

#[inline(always)]
fn format(content: &Content, bytes: &mut Vec<u8>) {
    let Content { words, payload } = content;
    bytes.clear();
    datagram::write(&header(), black_box(words), black_box(payload), bytes);
}

/// Two connections.
struct Pair {
    one: Connection,
    other: Connection,
    content: Content,
    now_ns: u64,
}

impl Pair {
    fn new(content: Content) -> Self {
        let connection = |local, remote| Connection::new(Config::default(), local, remote, 0);
        Self { one: connection(1, 2), other: connection(2, 1), content, now_ns: 0 }
    }

    #[inline(always)]
    fn request(&mut self, end: &mut End) -> Result<(), LayerError> {
        let Content { words, payload } = &self.content;
        let sent = self.one.request(HANDLER, words, payload, self.now_ns);
        sent.map_err(|_| LayerError::new("the window of the protocol is full"))?;
        transmit(&mut self.one, self.now_ns, end);
        Ok(())
    }

    /// Makes an exchange. Returns the ticks of sending, of taking and replying, and of taking the reply.
    fn exchange(&mut self, [requester, responder]: &mut [End; 2]) -> Result<[u64; 3], LayerError> {
        let began = ticks::now();
        self.request(requester)?;
        let requested = ticks::now();
        take(&mut self.other, self.now_ns, responder.take()?)?;
        let Content { words, payload } = &self.content;
        self.other.reply(HANDLER, words, payload, self.now_ns);
        transmit(&mut self.other, self.now_ns, responder);
        let replied = ticks::now();
        take(&mut self.one, self.now_ns, requester.take()?)?;
        transmit(&mut self.one, self.now_ns, requester);
        let ended = ticks::now();
        requester.find_empty();
        responder.find_empty();
        Ok([requested - began, replied - requested, ended - replied])
    }

    /// Sends a request without a reply. Returns the ticks of taking it, of making its acknowledgement and of taking that.
    fn take_request(&mut self, [requester, responder]: &mut [End; 2]) -> Result<[u64; 3], LayerError> {
        self.request(requester)?;
        let began = ticks::now();
        take(&mut self.other, self.now_ns, responder.take()?)?;
        transmit(&mut self.other, self.now_ns, responder);
        let taken = ticks::now();
        self.now_ns += ACKNOWLEDGED_NS;
        wait_for_carrier();
        let due = ticks::now();
        responder.find_empty();
        self.other.on_time(self.now_ns);
        transmit(&mut self.other, self.now_ns, responder);
        let acknowledged = ticks::now();
        self.one.receive(&parse(requester.take()?)?, self.now_ns);
        transmit(&mut self.one, self.now_ns, requester);
        requester.find_empty();
        Ok([taken - began, acknowledged - due, ticks::now() - acknowledged])
    }
}

fn exchanges(parts: &mut Parts, ends: &Ends, content: Content) -> [usize; 3] {
    let (ends, mut pair) = (Rc::clone(ends), Pair::new(content));
    let probes = ["request", "take request, reply", "take reply"];
    parts.run(1, probes, move |_| pair.exchange(&mut ends.borrow_mut()))
}

fn requests(parts: &mut Parts, ends: &Ends, content: Content) -> [usize; 3] {
    let (ends, mut pair) = (Rc::clone(ends), Pair::new(content));
    let probes = ["take request", "acknowledge", "take acknowledgement"];
    parts.run(1, probes, move |_| pair.take_request(&mut ends.borrow_mut()))
}

/// Transmits what a connection has ready, as the stack does.
#[inline(always)]
fn transmit(connection: &mut Connection, now_ns: u64, end: &mut End) {
    while let Some(datagram) = connection.transmit(now_ns) {
        end.send(datagram);
    }
    black_box(connection.deadline());
}

/// Takes a datagram, as the stack does. Its handler does nothing.
#[inline(always)]
fn take(connection: &mut Connection, now_ns: u64, bytes: &[u8]) -> Result<(), LayerError> {
    let datagram = parse(black_box(bytes))?;
    let is_there = connection.receive(&datagram, now_ns) == Delivery::Now;
    black_box(connection.buffered().is_some() || connection.lost().is_some());
    if is_there { Ok(()) } else { Err(LayerError::new("the protocol did not deliver a message")) }
}

#[inline(always)]
fn parse(bytes: &[u8]) -> Result<Datagram<'_>, LayerError> {
    datagram::parse(bytes)
        .map_err(|error| LayerError(format!("the protocol did not understand itself: {error:?}")))
}
