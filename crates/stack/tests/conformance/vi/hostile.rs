//! A connected peer that follows the protocol of connections, but sends messages that no provider sends.

use super::end::{End, LONGEST, connect, drive};
use crate::common::transport::UDP;
use crate::common::{Deadline, TIMEOUT, seed};
use fastrand::Rng;
use netdyno_protocol::frame::datagram;
use netdyno_protocol::frame::transfer::Range;
use netdyno_protocol::frame::vi_message::{Head, Kind, Verdict};
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_protocol::reliability::{Config, Connection, Delivery, Memories};
use netdyno_stack::vi::*;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};

const PEERS: usize = 150;
const STEPS: usize = 60;
/// The number of the first peer's connection request.
const NUMBER: u64 = 0x5eed;

/// Memory that allows every access and holds arbitrary bytes.
struct Anything;

impl Memories for Anything {
    fn source(&mut self, _: u32, _: u64, len: usize, out: &mut Vec<u8>) -> bool {
        out.resize(out.len() + len, 7);
        true
    }
    fn has(&mut self, _: &[u8]) -> bool {
        true
    }
    fn read(&mut self, _: &Range, _: u64, len: usize, out: &mut Vec<u8>) -> bool {
        out.resize(out.len() + len, 7);
        true
    }
    fn write(&mut self, _: &Range, _: u64, _: &[u8]) -> bool {
        true
    }
    fn fetched(&mut self, _: u32, _: u64, _: &[u8]) {}
}

struct Hostile {
    socket: UdpSocket,
    victim: SocketAddr,
    connection: Connection,
    now_ns: u64,
}

impl Hostile {
    /// Sends what the connection has to send, and processes what has arrived.
    fn run(&mut self, rng: &mut Rng) {
        self.now_ns += 1_000_000;
        self.connection.on_time(self.now_ns);
        loop {
            while let Some(bytes) = self.connection.transmit(self.now_ns) {
                let _ = self.socket.send_to(bytes, self.victim);
            }
            if !self.connection.feed(&mut Anything, self.now_ns) {
                break;
            }
        }
        let mut room = [0; 2048];
        while let Some(len) = received(&self.socket, &mut room) {
            let Ok(datagram) = datagram::parse(&room[..len]) else { continue };
            let mut is_next = self.connection.receive(&datagram, self.now_ns) == Delivery::Now;
            let mut bytes = room[..len].to_vec();
            while is_next {
                let datagram = datagram::parse(&bytes).unwrap();
                if datagram.header.kind.is_of_transfer() {
                    self.connection.transfer(&datagram, &mut Anything);
                } else if datagram.header.kind == datagram::Kind::Request && rng.bool() {
                    self.connection.reply(rng.u8(..3), &[word(rng)], &[], self.now_ns);
                }
                let next = self.connection.buffered();
                is_next = next.is_some();
                bytes = next.unwrap_or_default();
            }
        }
    }

    /// Sends a random message.
    fn speak(&mut self, end: &End, rng: &mut Rng) {
        let (words, now_ns) = (words(end, rng), self.now_ns);
        let payload = vec![7; [0, 1, 100, 1000, 1380][rng.usize(..5)]];
        let len = [0, 1, 1500, 5000, u64::from(u32::MAX), u64::MAX][rng.usize(..6)];
        let Remote { address, handle } = end.remote(rng.usize(..10_000));
        let _ = match rng.u32(..5) {
            // A valid head with the right length.
            0 => {
                let head = Head::parse(words).unwrap_or(Head { number: 0, len: 0, kind: send() });
                let head = Head { len: payload.len() as u32, ..head };
                self.connection.request(0, &head.pack(), &payload, now_ns)
            }
            1 => self.connection.request(rng.u8(..4), &words[..rng.usize(..=4)], &payload, now_ns),
            2 => self.connection.request(1, &words, &[], now_ns),
            3 => {
                // The victim may never take the store, so a longer one would only be sent in vain.
                let len = len.min(20_000);
                self.connection.store(rng.u8(..2), &words, [rng.u64(..2), 0, len], now_ns).map(|_| ())
            }
            _ => self.connection.get([handle.into(), address, len], now_ns).map(|_| ()),
        };
    }
}

fn send() -> Kind {
    Kind::Send { immediate: None }
}

/// Returns a verdict or a random word.
fn word(rng: &mut Rng) -> u64 {
    if rng.bool() { Verdict { number: rng.u32(..5), refusal: None }.pack() } else { rng.u64(..) }
}

/// Returns a message head, sometimes with a flipped bit.
fn words(end: &End, rng: &mut Rng) -> [u64; 4] {
    let remote = end.remote(rng.usize(..10_000));
    let immediate = rng.bool().then_some(5);
    let kind = match rng.u32(..3) {
        0 => Kind::Send { immediate },
        1 => Kind::Write { remote, immediate },
        _ => Kind::Read { remote },
    };
    let len = [0, 100, 1380, 1500, 5000, LONGEST + 1, u32::MAX][rng.usize(..7)];
    let mut words = Head { number: rng.u32(..5), len, kind }.pack();
    if rng.u32(..8) == 0 {
        words[rng.usize(..4)] ^= 1 << rng.u32(..64);
    }
    words
}

fn received(socket: &UdpSocket, room: &mut [u8]) -> Option<usize> {
    match socket.recv(room) {
        Ok(len) => Some(len),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}

/// Connects a hostile peer with a VI. Each request has a number of its own. Hostile peers sometimes reuse
/// a port, and a provider does not answer the late copy of an earlier request.
fn admit(end: &mut End, vi: ViHandle, offer: Offer, number: u64) -> Hostile {
    let host = end.provider.host();
    let victim = SocketAddr::from(([127, 0, 0, 1], u16::from_be_bytes([host[4], host[5]])));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let wait = end.wait("server", TIMEOUT);
    let to = end.address("server");
    let request = Request { number, is_of_peer: false, from: Address::default(), to, offer };
    let (deadline, mut room) = (Deadline::after(TIMEOUT), [0; 2048]);
    let mut conn = None;
    loop {
        deadline.check("a connection");
        socket.send_to(&Signal::Request(request.clone()).encode(), victim).unwrap();
        end.progress();
        if conn.is_none() {
            conn = end.provider.waited(wait).unwrap();
            conn.into_iter().for_each(|conn| end.provider.accept(conn, vi).unwrap());
        }
        while let Some(len) = received(&socket, &mut room) {
            if let Ok(Signal::Accept { number: of_end, .. }) = Signal::parse(&room[..len]) {
                let connection = Connection::new(Config::default(), number, of_end, 0);
                return Hostile { socket, victim, connection, now_ns: 0 };
            }
        }
    }
}

#[test]
fn a_peer_that_says_anything_breaks_its_own_vi_at_most() {
    let mut rng = Rng::with_seed(seed());
    let mut ends = [(); 2].map(|()| End::open(&UDP));
    for nth in 0..PEERS {
        let level = [Level::Delivery, Level::Reception][nth % 2];
        let vi = ends[0].vi(level);
        let offer = ends[0].provider.attributes().offer(&ends[0].attributes(level));
        let mut hostile = admit(&mut ends[0], vi, offer, NUMBER + nth as u64);
        for _ in 0..STEPS {
            match rng.u32(..4) {
                0 => {
                    ends[0].receive_into(vi, 20_000, [10, 2000, 6000][rng.usize(..3)]);
                }
                1 => {
                    ends[0].send_from(vi, 0, [10, 3000][rng.usize(..2)]);
                }
                _ => hostile.speak(&ends[0], &mut rng),
            }
            hostile.run(&mut rng);
            ends[0].progress();
            while ends[0].done(vi, Side::Send).is_some() || ends[0].done(vi, Side::Receive).is_some() {}
        }
        assert!(ends[0].failures.iter().all(|failure| failure.vi == Some(vi)));
        ends[0].failures.clear();
        ends[0].provider.disconnect(vi).unwrap();
        while ends[0].done(vi, Side::Send).is_some() || ends[0].done(vi, Side::Receive).is_some() {}
        ends[0].provider.destroy_vi(vi).unwrap();
    }
    // Other connections still work.
    let vis = ends.each_mut().map(|end| end.vi(Level::Reception));
    connect(&mut ends, vis);
    let received = ends[1].receive_into(vis[1], 0, 10);
    ends[0].send_from(vis[0], 0, 10);
    drive(&mut ends, "a message", |ends| ends[1].completion(received).status.has(Status::DONE));
    assert!(!ends[1].completion(received).status.is_error());
}
