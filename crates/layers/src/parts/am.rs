//! Active Messages in parts, over shared memory, over UDP and over AF_XDP.

use super::arrival::arrives;
use super::content::Content;
use super::partner::{Partner, Server};
use super::reliability::{self, FlowControl, ProtocolProbes};
use super::{Parts, PartsOptions, TOGETHER, lines, ring, wire};
use crate::am::echo::{ECHO, EchoMessage, echo, medium_bytes};
use crate::peer_wait::PEER_TIMEOUT;
use netdyno_clock::ticks;
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::layer::LayerError;
use netdyno_measure::task::Subject;
use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId, Wire};
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The handler index of requests without a reply.
const TAKE: u8 = 1;
/// Requests in flight to a peer over UDP.
const WINDOW: u32 = 64;
/// Longer than the protocol delays an acknowledgement.
const UNTIL_ACKNOWLEDGED: Duration = Duration::from_micros(60);
/// Tries until an acknowledgement is made and taken by one poll each.
const TRIES: usize = 100;
/// The indices of the servers of the partner.
const PLAIN: usize = 0;
const ENDPOINT: usize = 1;
const LINES: usize = 2;

/// The state of the handlers of one end.
#[derive(Default)]
struct Handled {
    requests: u64,
    replies: u64,
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
            handlers.on_request(TAKE, |state: &mut Handled, _| state.requests += 1);
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
struct EndpointProbes {
    send: usize,
    handle_and_reply: usize,
    handle_reply: usize,
    handle: usize,
    in_vain: usize,
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
    let (asking, plain) = ring::exchange(&content);
    let (requester, server) = requester(Wire::Shm, size_bytes, window)?;
    let (lines, of_lines) = lines::exchange();
    let partner = Rc::new(Partner::start(partner_cpu, vec![plain, server, of_lines])?);
    let lines = lines::round_trips(&mut parts, &partner, LINES, lines);
    let plain = ring::round_trips(&mut parts, &partner, PLAIN, asking);
    let trip = round_trips(&mut parts, &partner, requester);

    let (take, complete) = ((slots.take_credit, 1.0), (slots.complete, 1.0));
    // Writing a slot takes a credit, and completes it.
    let write = [(slots.write, 1.0), (slots.take_credit, -1.0), (slots.complete, -1.0)];
    let (read, ledger) = ((slots.read, 1.0), (slots.ledger, 1.0));
    parts.operation(
        Table::Operation,
        "send request",
        probes.send,
        &[("flow control", &[take]), ("write slot", &write)],
    );
    parts.operation(
        Table::Operation,
        "handle request, reply",
        probes.handle_and_reply,
        &[("read slot", &[read]), ("flow control", &[ledger]), ("write slot", &write)],
    );
    parts.operation(
        Table::Operation,
        "handle request",
        probes.handle,
        &[("read slot", &[read]), ("flow control", &[ledger])],
    );
    parts.operation(
        Table::Operation,
        "handle reply",
        probes.handle_reply,
        &[("read slot", &[read]), ("flow control", &[complete])],
    );
    parts.operation(Table::Operation, "poll in vain", probes.in_vain, &[]);
    parts.operation(
        Table::Exchange,
        "plain round trip",
        plain,
        &[
            ("2 lines", &[(lines, 1.0)]),
            ("2 writes", &[(slots.write, 2.0)]),
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
            ("flow control", &[take, complete, ledger]),
        ],
    );
    Ok(parts.subject())
}

/// Opens both ends over datagrams.
pub(crate) fn over_datagrams(way: Wire, options: PartsOptions) -> Result<Box<dyn Subject>, LayerError> {
    let PartsOptions { size_bytes, partner_cpu } = options;
    let content = Content::of(size_bytes);
    let mut parts = Parts::new();
    let len = reliability::datagram_len(&content);
    let bare = wire::ends(way)?;
    let wire = wire::system_calls(&mut parts, way, &bare, len)?;
    let of_ack = wire::datagrams(&mut parts, &bare, reliability::ACKNOWLEDGEMENT_LEN);
    let protocol = reliability::protocol(&mut parts, &content);
    let clock = parts.simple("read the clock", || {
        black_box(Instant::now());
    });
    let ends = Rc::new(RefCell::new(End::pair(way, size_bytes, WINDOW)?));
    let probes = endpoints(&mut parts, &ends, TOGETHER);
    let [make_ack, take_ack] = acknowledgements(&mut parts, &ends);
    let (asking, plain) = wire::exchange(way)?;
    let (requester, server) = requester(way, size_bytes, WINDOW)?;
    let partner = Rc::new(Partner::start(partner_cpu, vec![plain, server])?);
    let plain = wire::round_trips(&mut parts, &partner, PLAIN, asking, len);
    let trip = round_trips(&mut parts, &partner, requester);

    wire::plain_exchange(&mut parts, plain, wire);
    let system = [wire.send, wire.receive, wire.in_vain, clock];
    operations_over_udp(&mut parts, &probes, system, protocol);
    let [send_ack, receive_ack] = of_ack;
    let of_ack = [send_ack, receive_ack, wire.in_vain, clock];
    acknowledgements_over_udp(
        &mut parts,
        [make_ack, take_ack],
        poll_itself(&probes, system),
        of_ack,
        protocol,
    );
    let poll = poll_itself(&probes, system).map(|(probe, times)| (probe, 2.0 * times));
    round_trip_over_udp(&mut parts, [trip, plain, clock], &poll, protocol);
    Ok(parts.subject())
}

/// Adds the operations of messages. `system` has the probes of a send, of a receive, of a receive in vain and of the
/// clock.
fn operations_over_udp(
    parts: &mut Parts,
    probes: &EndpointProbes,
    system: [usize; 4],
    protocol: ProtocolProbes,
) {
    let [send, receive, in_vain, clock] = system.map(|probe| [(probe, 1.0)]);
    // A poll does this whatever arrives.
    let poll = poll_itself(probes, system);
    let (format, checksum, check) =
        ([(protocol.format, 1.0)], [(protocol.checksum, 1.0)], [(protocol.check, 1.0)]);
    let flow = FlowControl::of(protocol);
    parts.operation(
        Table::Operation,
        "send request",
        probes.send,
        &[
            ("clock", &clock),
            ("flow control", &flow.request),
            ("format", &format),
            ("checksum", &checksum),
            ("send", &send),
        ],
    );
    parts.operation(
        Table::Operation,
        "handle request, reply",
        probes.handle_and_reply,
        &[
            ("poll", &poll),
            ("clock", &clock),
            ("receive", &receive),
            ("check", &check),
            ("flow control", &flow.take_and_reply),
            ("format", &format),
            ("checksum", &checksum),
            ("send", &send),
        ],
    );
    let handle = |flow: &[(usize, f64)]| {
        [
            ("poll", poll.to_vec()),
            ("clock", clock.to_vec()),
            ("receive", receive.to_vec()),
            ("check", check.to_vec()),
            ("flow control", flow.to_vec()),
        ]
    };
    for (name, whole, flow) in [
        ("handle request", probes.handle, &flow.take_request),
        ("handle reply", probes.handle_reply, &flow.take_reply),
    ] {
        let steps = handle(flow);
        let steps: Vec<(&str, &[(usize, f64)])> =
            steps.iter().map(|(name, terms)| (*name, &terms[..])).collect();
        parts.operation(Table::Operation, name, whole, &steps);
    }
    parts.operation(
        Table::Operation,
        "poll in vain",
        probes.in_vain,
        &[("poll", &poll), ("clock", &clock), ("receive in vain", &in_vain)],
    );
}

/// Adds the explicit acknowledgement. `system` has the probes of datagrams of its length. A poll makes it once its timer is due, and a poll takes it and then finds nothing
/// more.
fn acknowledgements_over_udp(
    parts: &mut Parts,
    [make, take]: [usize; 2],
    poll: [(usize, f64); 3],
    system: [usize; 4],
    protocol: ProtocolProbes,
) {
    let [send, receive, in_vain, clock] = system.map(|probe| [(probe, 1.0)]);
    // An acknowledgement has no words: its checksum is part of what the connection does.
    let made = [(protocol.acknowledge, 1.0), (protocol.copy_acknowledgement, -1.0)];
    parts.operation(
        Table::Operation,
        "make acknowledgement",
        make,
        &[
            ("poll", &poll),
            ("clock", &clock),
            ("receive in vain", &in_vain),
            ("flow control", &made),
            ("send", &send),
        ],
    );
    parts.operation(
        Table::Operation,
        "handle acknowledgement",
        take,
        &[
            ("poll", &poll),
            ("clock", &clock),
            ("receive", &receive),
            ("flow control", &[(protocol.take_acknowledgement, 1.0)]),
            ("receive in vain", &in_vain),
        ],
    );
}

/// Returns what a poll of the endpoint takes beside the clock and the receive.
fn poll_itself(probes: &EndpointProbes, system: [usize; 4]) -> [(usize, f64); 3] {
    let [_, _, in_vain, clock] = system;
    [(probes.in_vain, 1.0), (in_vain, -1.0), (clock, -1.0)]
}

/// Adds the round trip: the plain exchange of the same bytes, and what the protocol adds to it.
fn round_trip_over_udp(
    parts: &mut Parts,
    [trip, plain, clock]: [usize; 3],
    polls: &[(usize, f64)],
    protocol: ProtocolProbes,
) {
    let flow = FlowControl::of(protocol);
    let flow: Vec<(usize, f64)> =
        [flow.request, flow.take_and_reply, flow.take_reply].into_iter().flatten().collect();
    parts.operation(
        Table::Operation,
        "round trip",
        trip,
        &[
            ("plain exchange", &[(plain, 1.0)]),
            ("2 polls", polls),
            // The requester reads it for its request. Both sides read it in each poll.
            ("clock", &[(clock, 3.0)]),
            ("flow control", &flow),
            ("format", &[(protocol.format, 2.0)]),
            ("checksum", &[(protocol.checksum, 2.0)]),
            ("check", &[(protocol.check, 2.0)]),
        ],
    );
}

/// Adds the runs of endpoints within a thread.
fn endpoints(parts: &mut Parts, ends: &Ends, together: u64) -> EndpointProbes {
    let of_run = Rc::clone(ends);
    let [send, handle_and_reply, handle_reply] =
        parts.run(together, ["send request", "handle request, reply", "handle reply"], move |count| {
            exchange(&mut of_run.borrow_mut(), count)
        });
    let of_run = Rc::clone(ends);
    let [handle] = parts.run(together, ["handle request"], move |count| {
        let [requester, responder] = &mut *of_run.borrow_mut();
        for _ in 0..count {
            requester.request(TAKE)?;
        }
        let before = responder.state.requests;
        let began = ticks::now();
        responder.take_requests(before, count)?;
        let handled = ticks::now() - began;
        acknowledged(requester, responder)?;
        Ok([handled])
    });
    let ends = Rc::clone(ends);
    let in_vain = parts.simple("poll in vain", move || {
        // A loss of the peer ends the next run.
        black_box(ends.borrow_mut()[0].poll().is_ok());
    });
    EndpointProbes { send, handle_and_reply, handle_reply, handle, in_vain }
}

/// Makes `count` exchanges. Returns the ticks of sending, of handling and replying, and of handling the replies. Then
/// each end polls in vain once, as in a round trip: an end over UDP that last found a message looks for two.
fn exchange([requester, responder]: &mut [End; 2], count: u64) -> Result<[u64; 3], LayerError> {
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
    responder.poll()?;
    requester.poll()?;
    Ok([sent - began, handled - sent, ended - handled])
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
            let until = Instant::now() + UNTIL_ACKNOWLEDGED;
            while Instant::now() < until {}
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
