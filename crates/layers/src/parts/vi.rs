//! Virtual Interfaces in parts, over shared memory, over UDP and over AF_XDP.

use super::arrival::arrives;
use super::content::Content;
use super::partner::{Partner, Server};
use super::reliability::{self, times};
use super::rules::{RuleProbes, Way};
use super::{Parts, PartsOptions, lane, lines, rules, wire};
use crate::payload::FILL;
use crate::vi::at;
use crate::vi::pair::ViEnd;
use netdyno_clock::ticks;
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::layer::LayerError;
use netdyno_measure::task::Subject;
use netdyno_protocol::frame::datagram::LONGEST_PAYLOAD;
use netdyno_protocol::frame::slot::MAX_WORDS;
use netdyno_stack::am::Wire;
use netdyno_stack::vi::{Side, WireKind};
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

/// The largest message over shared memory: a line of the lane holds it beside its head.
pub(crate) const LONGEST_OVER_SHM: usize = 32;
/// The largest message over UDP: one datagram holds it beside its head.
pub(crate) const LONGEST_OVER_UDP: usize = LONGEST_PAYLOAD;
/// The indices of the servers of the partner.
const PLAIN: usize = 0;
const ENDS: usize = 1;
const LINES: usize = 2;

/// The probes of two ends.
struct ViProbes {
    post_send: usize,
    reap_send: usize,
    reap_receive: usize,
    post_receive: usize,
    in_vain: usize,
}

/// Opens both ends over shared memory.
pub(crate) fn over_shm(options: PartsOptions) -> Result<Box<dyn Subject>, LayerError> {
    let PartsOptions { size_bytes, partner_cpu } = options;
    let wires = || [WireKind::Shm, WireKind::Shm];
    let mut parts = Parts::new();
    let slots = lane::slots(&mut parts);
    let rules = rules::probes(&mut parts, Way::AtOnce, size_bytes)?;
    let mut pair = ViEnd::pair(wires(), size_bytes)?;
    // A loss of the peer ends the next run.
    let mut in_vain = || drop(black_box(pair[0].is_done(Side::Receive)));
    let (asking, plain) = lane::exchange(&mut in_vain);
    let (of_lines, line_server) = lines::exchange(&mut in_vain);
    let probes = ends(&mut parts, pair);
    let (requester, server) = requester(ViEnd::pair(wires(), size_bytes)?);
    let partner = Rc::new(Partner::start(partner_cpu, vec![plain, server, line_server])?);
    let of_lines = lines::round_trips(&mut parts, &partner, LINES, of_lines);
    let plain = lane::round_trips(&mut parts, &partner, PLAIN, asking);
    let trip = round_trips(&mut parts, &partner, requester);

    let (write, read) = ([(slots.write, 1.0)], [(slots.read, 1.0)]);
    parts.operation(
        Table::Exchange,
        "plain round trip",
        plain,
        &[
            ("2 lines", &[(of_lines, 1.0)]),
            ("2 writes", &[(slots.write, 2.0)]),
            ("2 reads", &[(slots.read, 2.0)]),
        ],
    );
    operations(&mut parts, &probes, &rules, &[("write line", &write)], &[("read line", &read)]);
    parts.operation(
        Table::Operation,
        "round trip",
        trip,
        &[
            ("plain exchange", &[(plain, 1.0)]),
            ("descriptors", &descriptors(&rules)),
            ("reap, post receive", &queues(&probes)),
        ],
    );
    Ok(parts.subject())
}

/// Opens both ends over datagrams.
pub(crate) fn over_datagrams(way: Wire, options: PartsOptions) -> Result<Box<dyn Subject>, LayerError> {
    let PartsOptions { size_bytes, partner_cpu } = options;
    let wires = || {
        [(); 2].map(|()| {
            let udp = at(wire::address(way));
            WireKind::Udp(if way == Wire::Xdp { udp.over_xdp() } else { udp })
        })
    };
    // A message is a request of the reliability protocol, with the head of the message as its words.
    let content = Content { words: vec![1; MAX_WORDS], payload: vec![FILL; size_bytes] };
    let len = reliability::datagram_len(&content);
    let mut parts = Parts::new();
    let bare = wire::ends(way)?;
    let system = wire::system_calls(&mut parts, way, &bare, len)?;
    let protocol = reliability::protocol(&mut parts, &bare, system, &content);
    let probes = ends(&mut parts, ViEnd::pair(wires(), size_bytes)?);
    let rules = rules::probes(&mut parts, Way::InSteps, size_bytes)?;
    let (asking, plain) = wire::exchange(way)?;
    let (requester, server) = requester(ViEnd::pair(wires(), size_bytes)?);
    let partner = Rc::new(Partner::start(partner_cpu, vec![plain, server])?);
    let plain = wire::round_trips(&mut parts, &partner, PLAIN, asking, len);
    let trip = round_trips(&mut parts, &partner, requester);

    wire::plain_exchange(&mut parts, plain);
    // A poll does this whatever arrives.
    let poll = [(probes.in_vain, 1.0), (system.in_vain, -1.0)];
    operations(
        &mut parts,
        &probes,
        &rules,
        &[
            ("flow control", &protocol.request),
            ("format", &protocol.format),
            ("checksum", &protocol.checksum),
            ("send", &[(system.send, 1.0)]),
        ],
        &[
            ("poll", &poll),
            ("receive", &[(system.receive, 1.0)]),
            ("check", &protocol.check),
            ("flow control", &protocol.take_request),
        ],
    );
    parts.operation(
        Table::Operation,
        "round trip",
        trip,
        &[
            ("plain exchange", &[(plain.trip, 1.0)]),
            ("2 polls", &times(2.0, &poll)),
            ("flow control", &times(2.0, &[&protocol.request[..], &protocol.take_request].concat())),
            ("format", &times(2.0, &protocol.format)),
            ("checksum", &times(2.0, &protocol.checksum)),
            ("check", &times(2.0, &protocol.check)),
            ("descriptors", &descriptors(&rules)),
            ("reap, post receive", &queues(&probes)),
        ],
    );
    Ok(parts.subject())
}

/// Returns what the queues take in a round trip: of each side, reaping its send and posting its receive.
fn queues(probes: &ViProbes) -> [(usize, f64); 2] {
    [(probes.reap_send, 2.0), (probes.post_receive, 2.0)]
}

/// Returns what the rules take of the two messages of a round trip, beside the queues.
fn descriptors(rules: &RuleProbes) -> [(usize, f64); 2] {
    [(rules.post_send, 2.0), (rules.take, 2.0)]
}

/// Adds the operations of messages, with the steps of those that send and that receive beside the rules.
fn operations(
    parts: &mut Parts,
    probes: &ViProbes,
    rules: &RuleProbes,
    sending: &[(&str, &[(usize, f64)])],
    receiving: &[(&str, &[(usize, f64)])],
) {
    for (name, whole, rule, others) in [
        ("post send", probes.post_send, rules.post_send, sending),
        ("reap send", probes.reap_send, rules.reap_send, &[]),
        ("reap receive", probes.reap_receive, rules.take, receiving),
        ("post receive", probes.post_receive, rules.post_receive, &[]),
    ] {
        let rule = [(rule, 1.0)];
        let steps = [&[("descriptor", &rule[..])], others].concat();
        parts.operation(Table::Operation, name, whole, &steps);
    }
    parts.operation(Table::Operation, "poll in vain", probes.in_vain, &[]);
}

/// Adds the runs of two ends within a thread: one message at a time.
fn ends(parts: &mut Parts, pair: [ViEnd; 2]) -> ViProbes {
    let pair = Rc::new(RefCell::new(pair));
    let of_run = Rc::clone(&pair);
    let names = ["post send", "reap send", "reap receive", "post receive"];
    let [post_send, reap_send, reap_receive, post_receive] = parts.run(1, names, move |_| {
        let [one, other] = &mut *of_run.borrow_mut();
        let there = message(one, other)?;
        // The answer acknowledges the message, so that none waits for its timer.
        let back = message(other, one)?;
        // As in a round trip: an end over UDP that last found a message looks for two.
        for end in [one, other] {
            end.is_done(Side::Receive)?;
        }
        Ok(std::array::from_fn(|at| there[at].midpoint(back[at])))
    });
    let in_vain = parts.simple("poll in vain", move || {
        black_box(pair.borrow_mut()[0].is_done(Side::Receive).is_ok());
    });
    ViProbes { post_send, reap_send, reap_receive, post_receive, in_vain }
}

/// Sends a message. Returns the ticks of posting and reaping the send, and of reaping and posting the receive.
fn message(sender: &mut ViEnd, receiver: &mut ViEnd) -> Result<[u64; 4], LayerError> {
    let began = ticks::now();
    sender.post_send()?;
    let posted = ticks::now();
    arrives(|| sender.is_done(Side::Send))?;
    let reaped = ticks::now();
    arrives(|| receiver.is_done(Side::Receive))?;
    let received = ticks::now();
    receiver.post_receive()?;
    Ok([posted - began, reaped - posted, received - reaped, ticks::now() - received])
}

/// Returns the end that asks, and the server of the end that answers.
fn requester([requester, mut replier]: [ViEnd; 2]) -> (ViEnd, Server) {
    let server = move || {
        let is_there = replier.is_done(Side::Receive)?;
        if is_there {
            replier.post_receive()?;
            replier.post_send()?;
            arrives(|| replier.is_done(Side::Send))?;
        }
        Ok(is_there)
    };
    (requester, Box::new(server))
}

/// Adds round trips with the partner. Returns the index of the probe.
fn round_trips(parts: &mut Parts, partner: &Rc<Partner>, mut requester: ViEnd) -> usize {
    parts.round_trips("round trip", partner, ENDS, move |partner| {
        requester.post_send()?;
        arrives(|| requester.is_done(Side::Send))?;
        partner.until(|| requester.is_done(Side::Receive))?;
        requester.post_receive()
    })
}
