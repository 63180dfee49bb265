//! The reliability protocol without a wire: two connections that hand each other their datagrams.

use super::content::Content;
use super::{Parts, TOGETHER};
use netdyno_clock::ticks;
use netdyno_measure::layer::LayerError;
use netdyno_protocol::frame::datagram::{self, Arrived, Datagram, Header, Kind};
use netdyno_protocol::reliability::{Config, Connection, Delivery};
use std::hint::black_box;

/// The handler index of every message.
const HANDLER: u8 = 0;
/// The length of an acknowledgement that travels alone.
pub(super) const ACKNOWLEDGEMENT_LEN: usize = datagram::HEADER_LEN;
/// Longer than an acknowledgement waits for a message that carries it, in the time of the protocol.
const ACKNOWLEDGED_NS: u64 = 1_000_000;

/// The probes of the protocol.
#[derive(Clone, Copy)]
pub(super) struct ProtocolProbes {
    /// Writing a message, completing it for its transmission, checking and parsing it.
    pub(super) format: usize,
    pub(super) checksum: usize,
    pub(super) check: usize,
    /// All that a connection does to send a request, to take it, to take it and reply, and to take the reply.
    pub(super) request: usize,
    pub(super) take_request: usize,
    pub(super) take_and_reply: usize,
    pub(super) take_reply: usize,
    /// All that it does to make an acknowledgement, and to take it.
    pub(super) acknowledge: usize,
    pub(super) take_acknowledgement: usize,
    /// Copying a datagram, which stands in for the wire, and copying an acknowledgement.
    pub(super) copy: usize,
    pub(super) copy_acknowledgement: usize,
}

/// What the flow control of a step takes: all that the connection does, without the parts that are shown apart.
pub(super) struct FlowControl {
    pub(super) request: Vec<(usize, f64)>,
    pub(super) take_request: Vec<(usize, f64)>,
    pub(super) take_and_reply: Vec<(usize, f64)>,
    pub(super) take_reply: Vec<(usize, f64)>,
}

impl FlowControl {
    pub(super) fn of(protocol: ProtocolProbes) -> Self {
        let (checked, sent) = ([protocol.check], [protocol.format, protocol.checksum, protocol.copy]);
        let without = |probe, parts: &[usize]| {
            let parts = parts.iter().map(|part| (*part, -1.0));
            std::iter::once((probe, 1.0)).chain(parts).collect::<Vec<_>>()
        };
        Self {
            request: without(protocol.request, &sent),
            take_request: without(protocol.take_request, &checked),
            take_and_reply: without(protocol.take_and_reply, &[&checked[..], &sent].concat()),
            take_reply: without(protocol.take_reply, &checked),
        }
    }
}

/// Returns the length of the datagram of a message.
pub(super) fn datagram_len(content: &Content) -> usize {
    datagram::HEADER_LEN + 8 * content.words.len() + content.payload.len()
}

/// Adds the runs of the protocol.
pub(super) fn protocol(parts: &mut Parts, content: &Content) -> ProtocolProbes {
    let (format, checksum, check) = formats(parts, content.clone());
    let copy_acknowledgement = copy(parts, "copy acknowledgement", ACKNOWLEDGEMENT_LEN);
    let copy = copy(parts, "copy", datagram_len(content));
    let [request, take_and_reply, take_reply] = exchanges(parts, content.clone());
    let [take_request, acknowledge, take_acknowledgement] = requests(parts, content.clone());
    ProtocolProbes {
        format,
        checksum,
        check,
        request,
        take_request,
        take_and_reply,
        take_reply,
        acknowledge,
        take_acknowledgement,
        copy,
        copy_acknowledgement,
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

fn formats(parts: &mut Parts, content: Content) -> (usize, usize, usize) {
    let Content { words, payload } = content;
    let mut bytes = Vec::new();
    datagram::write(&header(), &words, &payload, &mut bytes);
    datagram::stamp(&mut bytes, 0, 0, Arrived::default());
    let (mut stamped, sound) = (bytes.clone(), bytes.clone());
    let format = parts.simple("format", move || {
        bytes.clear();
        datagram::write(&header(), black_box(&words), black_box(&payload), &mut bytes);
        black_box(&bytes);
    });
    let mut sequence = 0;
    let checksum = parts.simple("checksum", move || {
        sequence += 1;
        datagram::stamp(&mut stamped, sequence, sequence as u16, Arrived::default());
        black_box(&stamped);
    });
    let check = parts.simple("check", move || {
        black_box(datagram::parse(black_box(&sound)).is_ok());
    });
    (format, checksum, check)
}

fn copy(parts: &mut Parts, name: &'static str, len: usize) -> usize {
    let from = vec![1; len];
    let mut room = Vec::with_capacity(len);
    parts.simple(name, move || {
        room.clear();
        room.extend_from_slice(black_box(&from));
        black_box(&room);
    })
}

/// Two connections, and the datagrams on their way.
struct Pair {
    one: Connection,
    other: Connection,
    on_the_way: Vec<Vec<u8>>,
    content: Content,
    now_ns: u64,
}

impl Pair {
    fn new(content: Content) -> Self {
        let connection = |local, remote| Connection::new(Config::default(), local, remote, 0);
        Self {
            one: connection(1, 2),
            other: connection(2, 1),
            on_the_way: vec![Vec::new(); TOGETHER as usize],
            content,
            now_ns: 0,
        }
    }

    /// Sends a request, which becomes the datagram of this number.
    #[inline(always)]
    fn request(&mut self, nth: usize) -> Result<(), LayerError> {
        let Content { words, payload } = &self.content;
        let sent = self.one.request(HANDLER, words, payload, self.now_ns);
        sent.map_err(|_| LayerError::new("the window of the protocol is full"))?;
        transmit(&mut self.one, self.now_ns, &mut self.on_the_way[nth]);
        Ok(())
    }

    /// Makes `count` exchanges. Returns the ticks of sending, of taking and replying, and of taking the replies.
    fn exchange(&mut self, count: u64) -> Result<[u64; 3], LayerError> {
        let began = ticks::now();
        for nth in 0..count as usize {
            self.request(nth)?;
        }
        let requested = ticks::now();
        for nth in 0..count as usize {
            take(&mut self.other, self.now_ns, &self.on_the_way[nth])?;
            let Content { words, payload } = &self.content;
            self.other.reply(HANDLER, words, payload, self.now_ns);
            transmit(&mut self.other, self.now_ns, &mut self.on_the_way[nth]);
        }
        let replied = ticks::now();
        for nth in 0..count as usize {
            take(&mut self.one, self.now_ns, &self.on_the_way[nth])?;
        }
        Ok([requested - began, replied - requested, ticks::now() - replied])
    }

    /// Sends `count` requests without a reply. Returns the ticks of taking them, of making their acknowledgement and of
    /// taking that.
    fn take_requests(&mut self, count: u64) -> Result<[u64; 3], LayerError> {
        for nth in 0..count as usize {
            self.request(nth)?;
        }
        let began = ticks::now();
        for nth in 0..count as usize {
            take(&mut self.other, self.now_ns, &self.on_the_way[nth])?;
        }
        let taken = ticks::now();
        self.now_ns += ACKNOWLEDGED_NS;
        self.other.on_time(self.now_ns);
        transmit(&mut self.other, self.now_ns, &mut self.on_the_way[0]);
        let acknowledged = ticks::now();
        let acknowledgement = parse(&self.on_the_way[0])?;
        self.one.receive(&acknowledgement, self.now_ns);
        Ok([taken - began, acknowledged - taken, ticks::now() - acknowledged])
    }
}

fn exchanges(parts: &mut Parts, content: Content) -> [usize; 3] {
    let mut pair = Pair::new(content);
    parts.run(TOGETHER, ["request", "take request, reply", "take reply"], move |count| pair.exchange(count))
}

fn requests(parts: &mut Parts, content: Content) -> [usize; 3] {
    let mut pair = Pair::new(content);
    let probes = ["take request", "acknowledge", "take acknowledgement"];
    parts.run(TOGETHER, probes, move |count| pair.take_requests(count))
}

/// Transmits what a connection has ready, as the stack does.
#[inline(always)]
fn transmit(connection: &mut Connection, now_ns: u64, to: &mut Vec<u8>) {
    while let Some(datagram) = connection.transmit(now_ns) {
        to.clear();
        to.extend_from_slice(datagram);
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
