//! Active Messages in parts, over shared memory, over UDP and over AF_XDP.

use super::arrival::arrives;
use super::content::Content;
use super::partner::{Partner, Server};
use super::reliability::{self, ProtocolSteps, Terms, times, wait_for_carrier};
use super::wire::WireProbes;
use super::{MANY, Parts, PartsOptions, TOGETHER, lines, ring, wire};
use crate::am::echo::{ECHO, EchoMessage, echo, medium_bytes};
use crate::peer_wait::PEER_TIMEOUT;
use netdyno_clock::ticks;
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::layer::LayerError;
use netdyno_measure::task::Subject;
use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId, Request, Wire};
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

/// The handler index of requests without a reply.
const TAKE: u8 = 1;
/// The same through one call more: the handler calls that of [`TAKE`].
const CALL: u8 = 2;
/// Requests in flight to a peer over UDP.
const WINDOW: u32 = 64;
/// Tries until an acknowledgement is made and taken by one poll each.
const TRIES: usize = 100;
/// Requests of a peer that one poll over shared memory handles.
const REQUESTS_AT_ONCE: f64 = 4.0;
/// The indices of the servers of the partner.
const PLAIN: usize = 0;
const ENDPOINT: usize = 1;
const LINES: usize = 2;

/// A handler of requests.
type Handler = fn(&mut Handled, Request<'_>);

/// The state of the handlers of one end.
struct Handled {
    requests: u64,
    replies: u64,
    /// What the handler of [`CALL`] calls, by a table as that of an endpoint.
    table: [Option<Handler>; 256],
    called: u8,
    calls: u64,
}

impl Default for Handled {
    fn default() -> Self {
        let mut table: [Option<Handler>; 256] = [None; 256];
        table[usize::from(TAKE)] = Some(take);
        Self { requests: 0, replies: 0, table, called: TAKE, calls: 0 }
    }
}

fn take(state: &mut Handled, _: Request<'_>) {
    state.requests += 1;
}

/// Calls a handler as an endpoint does: looks it up, calls it, and counts.
fn call(state: &mut Handled, request: Request<'_>) {
    if let Some(handler) = state.table[usize::from(state.called)] {
        handler(state, request);
    }
    state.calls += 1;
}

/// One end: an endpoint with one peer.
struct End {
    endpoint: Endpoint<Handled>,
    peer: PeerId,
    state: Handled,
    message: EchoMessage,
}

impl End {
    /// Returns two ends that are connected.
    fn pair(way: Wire, size_bytes: usize, window: u32) -> Result<[Self; 2], LayerError> {
        let open = || {
            let mut handlers = Handlers::new();
            handlers.on_request(ECHO, |state: &mut Handled, request| {
                state.requests += 1;
                echo(state, request);
            });
            handlers.on_request(TAKE, take);
            handlers.on_request(CALL, call);
            handlers.on_reply(ECHO, |state: &mut Handled, _| state.replies += 1);
            let medium_bytes = u32::try_from(medium_bytes(size_bytes)).map_err(LayerError::new)?;
            let config = Config::new()
                .peer_timeout(PEER_TIMEOUT)
                .window(window)
                .medium_bytes(medium_bytes)
                .bind(wire::address(way));
            let mut endpoint = Endpoint::new(handlers, config).map_err(LayerError::new)?;
            let port = endpoint.open_port(way).map_err(LayerError::new)?;
            Ok::<_, LayerError>((endpoint, port))
        };
        let ((mut one, of_one), (mut other, of_other)) = (open()?, open()?);
        let addresses = [of_one.address(), of_other.address()];
        let to_other = one.connect(of_one, &addresses[1]).map_err(LayerError::new)?;
        let to_one = other.connect(of_other, &addresses[0]).map_err(LayerError::new)?;
        let end = |endpoint, peer| {
            let message = EchoMessage::new(size_bytes);
            Self { endpoint, peer, state: Handled::default(), message }
        };
        Ok([end(one, to_other), end(other, to_one)])
    }

    #[inline(always)]
    fn request(&mut self, handler: u8) -> Result<(), LayerError> {
        let Self { endpoint, peer, state, message } = self;
        message.request(endpoint, state, *peer, handler).map_err(LayerError::new)
    }

    #[inline(always)]
    fn poll(&mut self) -> Result<usize, LayerError> {
        self.endpoint.poll(&mut self.state).map_err(LayerError::new)
    }

    /// Polls until `count` requests more than `before` are handled.
    #[inline(always)]
    fn take_requests(&mut self, before: u64, count: u64) -> Result<(), LayerError> {
        arrives(|| {
            self.poll()?;
            Ok(self.state.requests >= before + count)
        })
    }

    #[inline(always)]
    fn take_replies(&mut self, before: u64, count: u64) -> Result<(), LayerError> {
        arrives(|| {
            self.poll()?;
            Ok(self.state.replies >= before + count)
        })
    }

    /// Returns the acknowledgements that this end has sent without a message.
    fn acknowledgements(&self) -> u64 {
        self.endpoint.statistics(self.peer).map_or(0, |of_peer| of_peer.counters.acknowledgements)
    }
}

/// The probes of the endpoints.
#[derive(Clone, Copy)]
struct EndpointProbes {
    send: usize,
    handle_and_reply: usize,
    handle_reply: usize,
    handle: usize,
    /// Handling a request by one call more.
    call: usize,
    in_vain: usize,
    /// A poll in vain right after a message.
    in_vain_after: usize,
}

impl EndpointProbes {
    /// What the call of a handler takes.
    fn calling(&self) -> Terms {
        vec![(self.call, 1.0), (self.handle, -1.0)]
    }
}

/// Two ends in one thread.
type Ends = Rc<RefCell<[End; 2]>>;

/// Opens both ends over shared memory.
pub(crate) fn over_shm(options: PartsOptions) -> Result<Box<dyn Subject>, LayerError> {
    let PartsOptions { size_bytes, partner_cpu } = options;
    let content = Content::of(size_bytes);
    let mut parts = Parts::new();
    let slots = ring::slots(&mut parts, &content);
    let window = content.together() as u32;
    let ends = Rc::new(RefCell::new(End::pair(Wire::Shm, size_bytes, window)?));
    let probes = endpoints(&mut parts, &ends, window.into());
    // A loss of the peer ends the next run.
    let in_vain = || drop(black_box(ends.borrow_mut()[0].poll()));
    let (asking, plain) = ring::exchange(&content, in_vain);
    let (lines, of_lines) = lines::exchange(in_vain);
    let (requester, server) = requester(Wire::Shm, size_bytes, window)?;
    let partner = Rc::new(Partner::start(partner_cpu, vec![plain, server, of_lines])?);
    let lines = lines::round_trips(&mut parts, &partner, LINES, lines);
    let plain = ring::round_trips(&mut parts, &partner, PLAIN, asking);
    let trip = round_trips(&mut parts, &partner, requester);

    let find = finding(&mut parts, &ends);

    let call = probes.calling();
    let (take, complete, find) = ((slots.take_credit, 1.0), (slots.complete, 1.0), (find, 1.0));
    // Reading a slot includes the look that finds it.
    let poll = [(probes.in_vain, 1.0), (slots.look, -1.0)];
    let poll_of_request = poll.map(|(probe, times)| (probe, times / REQUESTS_AT_ONCE));
    let write = [(slots.write, 1.0), (slots.take_credit, -1.0)];
    let (read, ledger) = ((slots.read, 1.0), (slots.ledger, 1.0));
    parts.operation(
        Table::Operation,
        "send request",
        probes.send,
        &[("find peer", &[find]), ("flow control", &[take]), ("write slot", &write)],
    );
    parts.operation(
        Table::Operation,
        "handle request, reply",
        probes.handle_and_reply,
        &[
            ("poll", &poll_of_request),
            ("read slot", &[read]),
            ("call handler", &call),
            ("flow control", &[ledger]),
            ("write slot", &write),
        ],
    );
    parts.operation(
        Table::Operation,
        "handle request",
        probes.handle,
        &[
            ("poll", &poll_of_request),
            ("read slot", &[read]),
            ("call handler", &call),
            ("flow control", &[ledger]),
        ],
    );
    parts.operation(
        Table::Operation,
        "handle reply",
        probes.handle_reply,
        &[("poll", &poll), ("read slot", &[read]), ("call handler", &call), ("flow control", &[complete])],
    );
    parts.operation(Table::Operation, "poll in vain", probes.in_vain, &[]);
    parts.operation(
        Table::Exchange,
        "plain round trip",
        plain,
        &[
            ("2 lines", &[(lines, 1.0)]),
            ("2 writes", &[(slots.write, 2.0), (slots.complete, 2.0)]),
            ("2 reads", &[(slots.read, 2.0)]),
        ],
    );
    parts.operation(
        Table::Operation,
        "round trip",
        trip,
        // Each of the two writes of the plain exchange takes a credit, and completes it.
        &[
            ("plain exchange", &[(plain, 1.0), (slots.take_credit, -2.0), (slots.complete, -2.0)]),
            ("find peer", &[find]),
            ("2 handlers", &times(2.0, &call)),
            ("flow control", &[take, complete, ledger]),
        ],
    );
    Ok(parts.subject())
}

/// Adds the run that finds a peer in the table of an endpoint.
fn finding(parts: &mut Parts, ends: &Ends) -> usize {
    let ends = Rc::clone(ends);
    let [find] = parts.run(MANY, ["find peer"], move |count| {
        let End { endpoint, peer, .. } = &ends.borrow()[0];
        let began = ticks::now();
        for _ in 0..count {
            black_box(endpoint.medium_bytes(black_box(*peer)));
        }
        Ok([ticks::now() - began])
    });
    find
}

/// Opens both ends over datagrams.
pub(crate) fn over_datagrams(way: Wire, options: PartsOptions) -> Result<Box<dyn Subject>, LayerError> {
    let PartsOptions { size_bytes, partner_cpu } = options;
    let content = Content::of(size_bytes);
    let mut parts = Parts::new();
    let len = reliability::datagram_len(&content);
    let bare = wire::ends(way)?;
    let wire = wire::system_calls(&mut parts, way, &bare, len)?;
    let protocol = reliability::protocol(&mut parts, &bare, wire, &content);
    let clock = parts.simple("read the clock", || {
        black_box(Instant::now());
    });
    let ends = Rc::new(RefCell::new(End::pair(way, size_bytes, WINDOW)?));
    let probes = endpoints(&mut parts, &ends, TOGETHER);
    let acknowledgements = acknowledgements(&mut parts, &ends);
    let (asking, plain) = wire::exchange(way)?;
    let (requester, server) = requester(way, size_bytes, WINDOW)?;
    let partner = Rc::new(Partner::start(partner_cpu, vec![plain, server])?);
    let plain = wire::round_trips(&mut parts, &partner, PLAIN, asking, len);
    let trip = round_trips(&mut parts, &partner, requester);

    wire::plain_exchange(&mut parts, plain);
    let steps = Steps::new(&probes, wire, clock, protocol);
    operations_over_udp(&mut parts, &probes, &steps);
    acknowledgements_over_udp(&mut parts, acknowledgements, &steps);
    round_trip_over_udp(&mut parts, [trip, plain.trip], &steps);
    Ok(parts.subject())
}

/// The steps of the operations over datagrams.
struct Steps {
    clock: Terms,
    send: Terms,
    receive: Terms,
    in_vain: Terms,
    /// What a poll of the endpoint takes beside the clock and the receive: right after a message, and time and again.
    poll: Terms,
    poll_in_vain: Terms,
    call: Terms,
    protocol: ProtocolSteps,
}

impl Steps {
    fn new(probes: &EndpointProbes, wire: WireProbes, clock: usize, protocol: ProtocolSteps) -> Self {
        let one = |probe| vec![(probe, 1.0)];
        Self {
            clock: one(clock),
            send: one(wire.send),
            receive: one(wire.receive),
            in_vain: one(wire.in_vain),
            poll: vec![(probes.in_vain_after, 1.0), (wire.in_vain_after, -1.0), (clock, -1.0)],
            poll_in_vain: vec![(probes.in_vain, 1.0), (wire.in_vain, -1.0), (clock, -1.0)],
            call: probes.calling(),
            protocol,
        }
    }
}

/// Adds the operations of messages.
fn operations_over_udp(parts: &mut Parts, probes: &EndpointProbes, steps: &Steps) {
    let Steps { clock, send, receive, in_vain, poll, poll_in_vain, call, protocol } = steps;
    let ProtocolSteps { format, checksum, check, .. } = protocol;
    parts.operation(
        Table::Operation,
        "send request",
        probes.send,
        &[
            ("clock", clock),
            ("flow control", &protocol.request),
            ("format", format),
            ("checksum", checksum),
            ("send", send),
        ],
    );
    parts.operation(
        Table::Operation,
        "handle request, reply",
        probes.handle_and_reply,
        &[
            ("poll", poll),
            ("clock", clock),
            ("receive", receive),
            ("check", check),
            ("call handler", call),
            ("flow control", &protocol.take_and_reply),
            ("format", format),
            ("checksum", checksum),
            ("send", send),
        ],
    );
    for (name, whole, flow) in [
        ("handle request", probes.handle, &protocol.take_request),
        ("handle reply", probes.handle_reply, &protocol.take_reply),
    ] {
        parts.operation(
            Table::Operation,
            name,
            whole,
            &[
                ("poll", poll),
                ("clock", clock),
                ("receive", receive),
                ("check", check),
                ("call handler", call),
                ("flow control", flow),
            ],
        );
    }
    parts.operation(
        Table::Operation,
        "poll in vain",
        probes.in_vain,
        &[("poll", poll_in_vain), ("clock", clock), ("receive in vain", in_vain)],
    );
}

/// Adds the explicit acknowledgement. A poll makes it once its timer is due, and a poll takes it and then finds nothing
/// more. It has no words: its checksum and its check are part of the flow control.
fn acknowledgements_over_udp(parts: &mut Parts, [make, take]: [usize; 2], steps: &Steps) {
    let Steps { clock, poll, protocol, .. } = steps;
    let steps = &protocol.acknowledgement;
    parts.operation(
        Table::Operation,
        "make acknowledgement",
        make,
        &[
            ("poll", poll),
            ("clock", clock),
            ("flow control", &steps.make),
            ("receive in vain, send", &steps.send),
        ],
    );
    parts.operation(
        Table::Operation,
        "handle acknowledgement",
        take,
        &[
            ("poll", poll),
            ("clock", clock),
            ("flow control", &steps.take),
            ("receive, receive in vain", &steps.receive),
        ],
    );
}

/// Adds the round trip: the plain exchange of the same bytes, and what the protocol adds to it.
fn round_trip_over_udp(parts: &mut Parts, [trip, plain]: [usize; 2], steps: &Steps) {
    let Steps { clock, poll, call, protocol, .. } = steps;
    let flow = [&protocol.request[..], &protocol.take_and_reply, &protocol.take_reply].concat();
    parts.operation(
        Table::Operation,
        "round trip",
        trip,
        &[
            ("plain exchange", &[(plain, 1.0)]),
            ("2 polls", &times(2.0, poll)),
            // The requester reads it for its request. Both sides read it in each poll.
            ("clock", &times(3.0, clock)),
            ("flow control", &flow),
            ("format", &times(2.0, &protocol.format)),
            ("checksum", &times(2.0, &protocol.checksum)),
            ("check", &times(2.0, &protocol.check)),
            ("2 handlers", &times(2.0, call)),
        ],
    );
}

/// Adds the runs of endpoints within a thread.
fn endpoints(parts: &mut Parts, ends: &Ends, together: u64) -> EndpointProbes {
    let of_run = Rc::clone(ends);
    let names = ["send request", "handle request, reply", "handle reply", "poll in vain after a message"];
    let [send, handle_and_reply, handle_reply, in_vain_after] =
        parts.run(together, names, move |count| exchange(&mut of_run.borrow_mut(), count));
    let of_run = Rc::clone(ends);
    let [handle, call] =
        parts.run(together, ["handle request", "handle request, one call more"], move |count| {
            let ends = &mut *of_run.borrow_mut();
            Ok([handle(ends, TAKE, count)?, handle(ends, CALL, count)?])
        });
    let ends = Rc::clone(ends);
    let in_vain = parts.simple("poll in vain", move || {
        // A loss of the peer ends the next run.
        black_box(ends.borrow_mut()[0].poll().is_ok());
    });
    EndpointProbes { send, handle_and_reply, handle_reply, handle, call, in_vain, in_vain_after }
}

/// Sends `count` requests for a handler that does not reply. Returns the ticks in which they are handled.
fn handle([requester, responder]: &mut [End; 2], handler: u8, count: u64) -> Result<u64, LayerError> {
    for _ in 0..count {
        requester.request(handler)?;
    }
    let before = responder.state.requests;
    let began = ticks::now();
    responder.take_requests(before, count)?;
    let handled = ticks::now() - began;
    acknowledged(requester, responder)?;
    Ok(handled)
}

/// Makes `count` exchanges. Returns the ticks of sending, of handling and replying, and of handling the replies. Then
/// each end polls in vain once, as in a round trip: an end over UDP that last found a message looks for two. Also
/// returns the ticks of the first of these polls.
fn exchange([requester, responder]: &mut [End; 2], count: u64) -> Result<[u64; 4], LayerError> {
    let (requests, replies) = (responder.state.requests, requester.state.replies);
    let began = ticks::now();
    for _ in 0..count {
        requester.request(ECHO)?;
    }
    let sent = ticks::now();
    responder.take_requests(requests, count)?;
    let handled = ticks::now();
    requester.take_replies(replies, count)?;
    let ended = ticks::now();
    requester.poll()?;
    let polled = ticks::now();
    responder.poll()?;
    // The probe is of one poll, however many exchanges were made before.
    Ok([sent - began, handled - sent, ended - handled, count * (polled - ended)])
}

/// Polls both ends until all requests are acknowledged.
fn acknowledged(requester: &mut End, responder: &mut End) -> Result<(), LayerError> {
    arrives(|| {
        responder.poll()?;
        requester.poll()?;
        Ok(requester.endpoint.in_flight(requester.peer) == 0)
    })
}

/// Adds the run of one explicit acknowledgement: a poll makes it, and a poll of the other end takes it.
fn acknowledgements(parts: &mut Parts, ends: &Ends) -> [usize; 2] {
    let ends = Rc::clone(ends);
    parts.run(1, ["make acknowledgement", "handle acknowledgement"], move |_| {
        let [requester, responder] = &mut *ends.borrow_mut();
        for _ in 0..TRIES {
            let (requests, acknowledgements) = (responder.state.requests, responder.acknowledgements());
            requester.request(TAKE)?;
            responder.take_requests(requests, 1)?;
            wait_for_carrier();
            let began = ticks::now();
            responder.poll()?;
            let made = ticks::now();
            requester.poll()?;
            let taken = ticks::now();
            let is_made = responder.acknowledgements() == acknowledgements + 1;
            let is_taken = requester.endpoint.in_flight(requester.peer) == 0;
            acknowledged(requester, responder)?;
            if is_made && is_taken {
                return Ok([made - began, taken - made]);
            }
        }
        Err(LayerError::new("no poll made an acknowledgement by itself"))
    })
}

/// Returns the end that asks, and the server of the end that answers.
fn requester(way: Wire, size_bytes: usize, window: u32) -> Result<(End, Server), LayerError> {
    let [requester, mut responder] = End::pair(way, size_bytes, window)?;
    Ok((requester, Box::new(move || Ok(responder.poll()? > 0))))
}

/// Adds round trips with the partner. Returns the index of the probe.
fn round_trips(parts: &mut Parts, partner: &Rc<Partner>, mut requester: End) -> usize {
    parts.round_trips("round trip", partner, ENDPOINT, move |partner| {
        let before = requester.state.replies;
        requester.request(ECHO)?;
        partner.until(|| {
            requester.poll()?;
            Ok(requester.state.replies > before)
        })
    })
}
