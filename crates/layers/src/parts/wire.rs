//! The datagrams of the stack without its protocol: two sockets in one thread, and two between threads.

use super::partner::{Partner, Server};
use super::{Parts, TOGETHER};
use netdyno_clock::ticks;
use netdyno_host::datagram::{DatagramSocket, DatagramWire, ROOM};
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::layer::LayerError;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::rc::Rc;

/// Any free port of the loopback interface.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// A datagram of this length fits into no packet of IP.
const TOO_LONG: usize = 1 << 16;

/// The probes of a wire.
#[derive(Clone, Copy)]
pub(super) struct WireProbes {
    pub(super) send: usize,
    pub(super) receive: usize,
    pub(super) in_vain: usize,
}

/// A socket that only knows its peer.
pub(super) struct End {
    socket: DatagramSocket,
    peer: SocketAddr,
    room: Box<[u8]>,
}

impl End {
    /// Returns two ends that know each other, on the loopback interface.
    pub(super) fn pair() -> Result<[Self; 2], LayerError> {
        let bind = || DatagramSocket::bind(LOOPBACK);
        let sockets = [bind().map_err(LayerError::new)?, bind().map_err(LayerError::new)?];
        let addresses = sockets.each_ref().map(DatagramWire::local);
        let mut peers = [addresses[1], addresses[0]].into_iter();
        Ok(sockets.map(|mut socket| {
            let peer = peers.next().unwrap_or(addresses[0]);
            socket.set_only_peer(Some(peer));
            Self { socket, peer, room: vec![0; ROOM].into() }
        }))
    }

    #[inline(always)]
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.socket.send(self.peer, bytes, 0);
    }

    /// Receives a datagram. Returns its length.
    #[inline(always)]
    pub(super) fn receive(&mut self) -> Option<usize> {
        self.socket.receive(&mut self.room).map(|datagrams| datagrams.len)
    }

    /// Sends back what has arrived.
    #[inline(always)]
    fn echo(&mut self) -> bool {
        match self.receive() {
            Some(len) => {
                let Self { socket, peer, room } = self;
                socket.send(*peer, &room[..len], 0);
                true
            }
            None => false,
        }
    }
}

/// Adds sending and receiving datagrams of `bytes`. Returns the probes of both.
pub(super) fn datagrams(parts: &mut Parts, bytes: usize) -> Result<[usize; 2], LayerError> {
    let (mut ends, data) = (End::pair()?, vec![1; bytes]);
    Ok(parts.run(TOGETHER, ["send", "receive"], move |count| {
        let [one, other] = &mut ends;
        let began = ticks::now();
        for _ in 0..count {
            one.send(&data);
        }
        let sent = ticks::now();
        for _ in 0..count {
            if other.receive().is_none() {
                return Err(LayerError::new("a datagram did not arrive on the loopback interface"));
            }
        }
        Ok([sent - began, ticks::now() - sent])
    }))
}

/// Adds the system calls of datagrams of `bytes`: the crossing, then sending and receiving. Returns the probes.
pub(super) fn system_calls(parts: &mut Parts, bytes: usize) -> Result<WireProbes, LayerError> {
    let crossing = parts.crossing();
    let [send, receive] = datagrams(parts, bytes)?;
    let refused = refused_send(parts)?;
    let [mut end, _other] = End::pair()?;
    let in_vain = parts.simple("receive in vain", move || {
        black_box(end.receive());
    });
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
    Ok(WireProbes { send, receive, in_vain })
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
pub(super) fn exchange() -> Result<(End, Server), LayerError> {
    let [asking, mut answering] = End::pair()?;
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
