//! The datagrams of the stack without its protocol: two ends in one thread, and two between threads.

use super::partner::{Partner, Server};
use super::{Parts, TRIPS};
use netdyno_clock::ticks;
use netdyno_host::datagram::{Carrier, DatagramSocket, DatagramWire, ROOM, XdpWire};
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::layer::LayerError;
use netdyno_stack::am::Wire;
use std::cell::RefCell;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
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
    /// A receive that finds nothing, time and again, and right after one that has found a datagram.
    pub(super) in_vain: usize,
    pub(super) in_vain_after: usize,
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
            other.take()?;
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

    /// Receives a datagram that has been sent, and returns it. On the loopback interface it is there already.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Result<&[u8], LayerError> {
        let len = match self.receive() {
            Some(len) => len,
            None => self.await_longer()?,
        };
        Ok(&self.room[..len])
    }

    /// Looks for a datagram where none is, as an endpoint does between two messages. A socket that never is empty receives
    /// several datagrams in a call, and such a call takes longer.
    pub(super) fn find_empty(&mut self) {
        black_box(self.receive());
    }

    #[cold]
    fn await_longer(&mut self) -> Result<usize, LayerError> {
        let until = Instant::now() + ARRIVED_AFTER;
        while Instant::now() < until {
            if let Some(len) = self.receive() {
                return Ok(len);
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
        let arrived = self.receive();
        arrived.into_iter().for_each(|len| self.send_back(len));
        arrived.is_some()
    }

    /// Sends what was received last, `len` bytes of it.
    #[inline(always)]
    fn send_back(&mut self, len: usize) {
        let Self { wire, peer, room } = self;
        wire.send(*peer, &room[..len], 0);
    }
}

fn bind(way: Wire) -> Result<Carrier, LayerError> {
    match way {
        Wire::Xdp => XdpWire::bind(address(way)).map(Carrier::from).map_err(LayerError::new),
        _ => DatagramSocket::bind(address(way)).map(Carrier::from).map_err(LayerError::new),
    }
}

/// Adds sending and receiving datagrams of `bytes`, and a receive in vain after each. Returns the probes.
fn datagrams(parts: &mut Parts, ends: &Ends, bytes: usize) -> [usize; 3] {
    let (ends, data) = (Rc::clone(ends), vec![1; bytes]);
    parts.run(1, ["send", "receive", "receive in vain after a datagram"], move |_| {
        let [one, other] = &mut *ends.borrow_mut();
        let began = ticks::now();
        one.send(&data);
        let sent = ticks::now();
        black_box(other.take()?);
        let received = ticks::now();
        other.find_empty();
        Ok([sent - began, received - sent, ticks::now() - received])
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
    let [send, receive, in_vain_after] = datagrams(parts, ends, bytes);
    let of_run = Rc::clone(ends);
    let in_vain = parts.simple("receive in vain", move || {
        black_box(of_run.borrow_mut()[0].receive());
    });
    let probes = WireProbes { send, receive, in_vain, in_vain_after };
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
    let WireProbes { send, receive, in_vain, .. } = probes;
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
    let WireProbes { send, receive, in_vain, .. } = probes;
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
    let [put] = parts.run(1, ["put frame"], move |_| {
        let [one, other] = &mut *ends.borrow_mut();
        let peer = one.peer;
        let began = ticks::now();
        one.wire.join(peer, &data, 0);
        let put = ticks::now();
        one.wire.flush();
        other.take()?;
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

/// What the end that answers is to do: answer whatever arrives, rest, or answer one datagram and then rest.
const ANSWER: u32 = 0;
const REST: u32 = 1;
const ANSWER_ONE: u32 = 2;
/// It rests.
const RESTS: u32 = 3;

/// The end that asks another processor.
pub(super) struct Asking {
    end: End,
    /// What the end that answers is to do, or that it rests.
    order: Arc<AtomicU32>,
}

/// The probes of the plain exchange.
#[derive(Clone, Copy)]
pub(super) struct PlainProbes {
    pub(super) trip: usize,
    send: usize,
    receive: usize,
}

/// Returns the end that asks and the server of the end that answers.
pub(super) fn exchange(way: Wire) -> Result<(Asking, Server), LayerError> {
    let [end, mut answering] = End::pair(way)?;
    let order = Arc::new(AtomicU32::new(ANSWER));
    let theirs = Arc::clone(&order);
    let server = move || match theirs.load(Ordering::Acquire) {
        ANSWER => Ok(answering.echo()),
        REST => {
            theirs.store(RESTS, Ordering::Release);
            Ok(true)
        }
        ANSWER_ONE => {
            let len = answering.take()?.len();
            answering.send_back(len);
            answering.find_empty();
            theirs.store(RESTS, Ordering::Release);
            Ok(true)
        }
        _ => Ok(false),
    };
    Ok((Asking { end, order }, Box::new(server)))
}

/// Adds round trips of `bytes` with the server of this index, and sends and receives in turn with it. Returns the
/// probes.
pub(super) fn round_trips(
    parts: &mut Parts,
    partner: &Rc<Partner>,
    server: usize,
    asking: Asking,
    bytes: usize,
) -> PlainProbes {
    let data: Rc<[u8]> = vec![1; bytes].into();
    let asking = Rc::new(RefCell::new(asking));
    let (of_trips, of_trips_data) = (Rc::clone(&asking), Rc::clone(&data));
    let trip = parts.round_trips("plain round trip", partner, server, move |partner| {
        let Asking { end, .. } = &mut *of_trips.borrow_mut();
        end.send(&of_trips_data);
        partner.until(|| Ok(end.receive().is_some()))
    });
    let partner = Rc::clone(partner);
    let probes = ["send to another processor", "receive from another processor"];
    let [send, receive] = parts.run(TRIPS, probes, move |count| {
        partner.answering(server, || asking.borrow_mut().in_turn(&partner, &data, count))
    });
    PlainProbes { trip, send, receive }
}

impl Asking {
    /// Sends while the other end rests, which then answers, and receives while it rests again, so many times. Returns the
    /// ticks of both.
    fn in_turn(&mut self, partner: &Partner, data: &[u8], count: u64) -> Result<[u64; 2], LayerError> {
        let Self { end, order } = self;
        let [mut sending, mut receiving, mut clock] = [0; 3];
        let rests = || Ok(order.load(Ordering::Acquire) == RESTS);
        order.store(REST, Ordering::Release);
        partner.until(rests)?;
        for _ in 0..count {
            let began = ticks::now();
            end.send(data);
            sending += ticks::now() - began;
            order.store(ANSWER_ONE, Ordering::Release);
            partner.until(rests)?;
            let answered = ticks::now();
            black_box(end.take()?);
            receiving += ticks::now() - answered;
            end.find_empty();
            let read = ticks::now();
            clock += ticks::now() - read;
        }
        order.store(ANSWER, Ordering::Release);
        // The clock is taken off once, as for a run that reads it once.
        let surplus = clock * count.saturating_sub(1) / count.max(1);
        Ok([sending, receiving].map(|ticks: u64| ticks.saturating_sub(surplus)))
    }
}

/// Adds the plain exchange: what its two sends and its two receives explain of a round trip.
pub(super) fn plain_exchange(parts: &mut Parts, plain: PlainProbes) {
    let PlainProbes { trip, send, receive } = plain;
    parts.operation(
        Table::Exchange,
        "plain round trip",
        trip,
        &[("2 sends", &[(send, 2.0)]), ("2 receives", &[(receive, 2.0)])],
    );
}
