//! The datagrams of the stack without its protocol: two ends in one thread, and two between threads.

use super::partner::{Partner, Server};
use super::{Parts, TOGETHER};
use netdyno_clock::ticks;
use netdyno_host::datagram::{Carrier, DatagramSocket, DatagramWire, ROOM, XdpWire};
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::layer::LayerError;
use netdyno_stack::am::Wire;
use std::cell::RefCell;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Any free port of the loopback interface.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Any interface that is free for AF_XDP.
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
/// A datagram of this length fits into no packet of IP.
const TOO_LONG: usize = 1 << 16;
/// Longest time until a datagram has arrived.
const ARRIVED_AFTER: Duration = Duration::from_millis(100);
/// Longest time until two ends know each other's hardware addresses. The kernel is asked for them every second.
const KNOWN_AFTER: Duration = Duration::from_secs(3);

/// Returns the address at which an end is opened.
pub(super) fn address(way: Wire) -> SocketAddr {
    if way == Wire::Xdp { ANYWHERE } else { LOOPBACK }
}

/// The probes of a wire.
#[derive(Clone, Copy)]
pub(super) struct WireProbes {
    pub(super) send: usize,
    pub(super) receive: usize,
    pub(super) in_vain: usize,
}

/// An end that only knows its peer.
pub(super) struct End {
    wire: Carrier,
    peer: SocketAddr,
    room: Box<[u8]>,
}

/// Two ends in one thread.
pub(super) type Ends = Rc<RefCell<[End; 2]>>;

/// Opens two ends for the runs of one thread.
pub(super) fn ends(way: Wire) -> Result<Ends, LayerError> {
    Ok(Rc::new(RefCell::new(End::pair(way)?)))
}

impl End {
    /// Returns two ends that know each other: on the loopback interface, or at the next two interfaces that are free for
    /// AF_XDP.
    fn pair(way: Wire) -> Result<[Self; 2], LayerError> {
        let wires = [bind(way)?, bind(way)?];
        let addresses = wires.each_ref().map(DatagramWire::local);
        let mut peers = [addresses[1], addresses[0]].into_iter();
        let mut ends = wires.map(|mut wire| {
            let peer = peers.next().unwrap_or(addresses[0]);
            wire.set_only_peer(Some(peer));
            Self { wire, peer, room: vec![0; ROOM].into() }
        });
        let [one, other] = &mut ends;
        one.meet(other)?;
        other.meet(one)?;
        Ok(ends)
    }

    /// Sends datagrams to the other end until one of them has not been sent by the kernel's protocols.
    fn meet(&mut self, other: &mut Self) -> Result<(), LayerError> {
        let began = Instant::now();
        loop {
            let by_kernel = self.wire.by_kernel();
            // The wire asks the kernel again as time passes.
            self.wire.send(self.peer, &[0], began.elapsed().as_nanos() as u64);
            other.await_one()?;
            if self.wire.by_kernel() == by_kernel {
                return Ok(());
            }
            if began.elapsed() > KNOWN_AFTER {
                return Err(LayerError(format!(
                    "the hardware address of {} is not known at {}: add it with `ip neighbour add`",
                    self.peer,
                    self.wire.local()
                )));
            }
        }
    }

    #[inline(always)]
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.wire.send(self.peer, bytes, 0);
    }

    /// Receives a datagram. Returns its length.
    #[inline(always)]
    pub(super) fn receive(&mut self) -> Option<usize> {
        self.wire.receive(&mut self.room).map(|datagrams| datagrams.len)
    }

    /// Receives `count` datagrams that have been sent.
    #[inline(always)]
    fn await_all(&mut self, count: u64) -> Result<(), LayerError> {
        (0..count).try_for_each(|_| self.await_one())
    }

    /// Receives a datagram that has been sent. On the loopback interface it is there already.
    #[inline(always)]
    fn await_one(&mut self) -> Result<(), LayerError> {
        if self.receive().is_some() { Ok(()) } else { self.await_longer() }
    }

    #[cold]
    fn await_longer(&mut self) -> Result<(), LayerError> {
        let until = Instant::now() + ARRIVED_AFTER;
        while Instant::now() < until {
            if self.receive().is_some() {
                return Ok(());
            }
        }
        Err(LayerError(format!(
            "a datagram from {} to {} did not arrive: each two interfaces must reach each other (docs/xdp.md)",
            self.peer,
            self.wire.local()
        )))
    }

    /// Sends back what has arrived.
    #[inline(always)]
    fn echo(&mut self) -> bool {
        match self.receive() {
            Some(len) => {
                let Self { wire, peer, room } = self;
                wire.send(*peer, &room[..len], 0);
                true
            }
            None => false,
        }
    }
}

fn bind(way: Wire) -> Result<Carrier, LayerError> {
    match way {
        Wire::Xdp => XdpWire::bind(address(way)).map(Carrier::from).map_err(LayerError::new),
        _ => DatagramSocket::bind(address(way)).map(Carrier::from).map_err(LayerError::new),
    }
}

/// Adds sending and receiving datagrams of `bytes`. Returns the probes of both.
pub(super) fn datagrams(parts: &mut Parts, ends: &Ends, bytes: usize) -> [usize; 2] {
    let (ends, data) = (Rc::clone(ends), vec![1; bytes]);
    parts.run(TOGETHER, ["send", "receive"], move |count| {
        let [one, other] = &mut *ends.borrow_mut();
        let began = ticks::now();
        for _ in 0..count {
            one.send(&data);
        }
        let sent = ticks::now();
        other.await_all(count)?;
        let received = ticks::now();
        // An endpoint finds its socket empty between two messages. One that never does takes several datagrams in a call,
        // and such a call takes longer.
        black_box(other.receive());
        Ok([sent - began, received - sent])
    })
}

/// Adds the system calls of datagrams of `bytes`: the crossing, then sending and receiving. Returns the probes.
pub(super) fn system_calls(
    parts: &mut Parts,
    way: Wire,
    ends: &Ends,
    bytes: usize,
) -> Result<WireProbes, LayerError> {
    let crossing = parts.crossing();
    let [send, receive] = datagrams(parts, ends, bytes);
    let of_run = Rc::clone(ends);
    let in_vain = parts.simple("receive in vain", move || {
        black_box(of_run.borrow_mut()[0].receive());
    });
    let probes = WireProbes { send, receive, in_vain };
    match way {
        Wire::Xdp => {
            let put = frames_put(parts, ends, bytes);
            calls_of_xdp(parts, crossing, put, probes);
        }
        _ => {
            let refused = refused_send(parts)?;
            calls_of_udp(parts, crossing, refused, probes);
        }
    }
    Ok(probes)
}

fn calls_of_udp(parts: &mut Parts, crossing: usize, refused: usize, probes: WireProbes) {
    let WireProbes { send, receive, in_vain } = probes;
    parts.operation(
        Table::Crossing,
        "send",
        send,
        &[
            ("crossing", &[(crossing, 1.0)]),
            ("checks", &[(refused, 1.0), (crossing, -1.0)]),
            ("push, delivery", &[(send, 1.0), (refused, -1.0)]),
        ],
    );
    parts.operation(
        Table::Crossing,
        "receive",
        receive,
        &[
            ("crossing", &[(crossing, 1.0)]),
            ("checks", &[(in_vain, 1.0), (crossing, -1.0)]),
            ("pull", &[(receive, 1.0), (in_vain, -1.0)]),
        ],
    );
}

/// A send puts a frame into the ring and kicks the kernel. A receive takes a frame from a ring, without a system call.
fn calls_of_xdp(parts: &mut Parts, crossing: usize, put: usize, probes: WireProbes) {
    let WireProbes { send, receive, in_vain } = probes;
    parts.operation(
        Table::Crossing,
        "send",
        send,
        &[
            ("put frame", &[(put, 1.0)]),
            ("crossing", &[(crossing, 1.0)]),
            ("push, delivery", &[(send, 1.0), (put, -1.0), (crossing, -1.0)]),
        ],
    );
    parts.operation(
        Table::Crossing,
        "receive",
        receive,
        &[("look", &[(in_vain, 1.0)]), ("take frame", &[(receive, 1.0), (in_vain, -1.0)])],
    );
}

/// Adds putting a frame of `bytes` into the ring of sends, without the kick. Returns the index of its probe.
fn frames_put(parts: &mut Parts, ends: &Ends, bytes: usize) -> usize {
    let (ends, data) = (Rc::clone(ends), vec![1; bytes]);
    let [put] = parts.run(TOGETHER, ["put frame"], move |count| {
        let [one, other] = &mut *ends.borrow_mut();
        let peer = one.peer;
        let began = ticks::now();
        for _ in 0..count {
            one.wire.join(peer, &data, 0);
        }
        let put = ticks::now();
        one.wire.flush();
        other.await_all(count)?;
        Ok([put - began])
    });
    put
}

/// Adds a send that the kernel refuses once it has checked the call: the datagram is too long for any network.
/// Returns the index of its probe.
fn refused_send(parts: &mut Parts) -> Result<usize, LayerError> {
    let socket = UdpSocket::bind(LOOPBACK).map_err(LayerError::new)?;
    let address = socket.local_addr().map_err(LayerError::new)?;
    socket.connect(address).map_err(LayerError::new)?;
    let too_long = vec![0; TOO_LONG];
    Ok(parts.simple("send that is refused", move || {
        black_box(socket.send(&too_long).is_err());
    }))
}

/// Returns the end that asks and the server of the end that answers.
pub(super) fn exchange(way: Wire) -> Result<(End, Server), LayerError> {
    let [asking, mut answering] = End::pair(way)?;
    Ok((asking, Box::new(move || Ok(answering.echo()))))
}

/// Adds round trips of `bytes` with the server of this index. Returns the index of the probe.
pub(super) fn round_trips(
    parts: &mut Parts,
    partner: &Rc<Partner>,
    server: usize,
    mut asking: End,
    bytes: usize,
) -> usize {
    let data = vec![1; bytes];
    parts.round_trips("plain round trip", partner, server, move |partner| {
        asking.send(&data);
        partner.until(|| Ok(asking.receive().is_some()))
    })
}

/// Adds the plain exchange: what its two sends and its two receives explain of a round trip.
pub(super) fn plain_exchange(parts: &mut Parts, whole: usize, probes: WireProbes) {
    parts.operation(
        Table::Exchange,
        "plain round trip",
        whole,
        &[("2 sends", &[(probes.send, 2.0)]), ("2 receives", &[(probes.receive, 2.0)])],
    );
}
