//! A port that cannot be opened or connected is refused, with an error that says what to do.

use crate::common::{TIMEOUT, until};
use netdyno_host::datagram::{DatagramSocket, DatagramWire};
use netdyno_protocol::frame::datagram::LONGEST_PAYLOAD;
use netdyno_protocol::frame::udp_port::{Malformed, UdpPortAddress};
use netdyno_stack::am::{Config, ConnectError, Endpoint, Handlers, Loss, OpenError, Wire};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::time::Duration;

fn endpoint() -> Endpoint<()> {
    Endpoint::new(Handlers::new(), Config::new().window(8).medium_bytes(64)).unwrap()
}

fn refuse(address: &[u8]) -> ConnectError {
    let mut endpoint = endpoint();
    let port = endpoint.open_port(Wire::Udp).unwrap();
    let error = endpoint.connect(port, address).unwrap_err();
    assert_eq!(error.to_string().lines().count(), 1);
    error
}

/// Returns why the bytes are no address.
fn malformed(address: &[u8]) -> String {
    match refuse(address) {
        ConnectError::Address { wire: Wire::Udp, reason } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn bytes_that_are_no_address() {
    let mut other = endpoint();
    let address = other.open_port(Wire::Udp).unwrap().address();
    for len in 0..address.len() {
        assert_eq!(malformed(&address[..len]), format!("{:?}", Malformed::Length(len)));
    }
    let sound = UdpPortAddress::parse(&address).unwrap();
    let spoilt = |at: usize, byte: u8| {
        let mut bytes = sound.encode();
        bytes[at] = byte;
        malformed(&bytes)
    };
    assert_eq!(spoilt(3, b'2'), "Magic");
    assert_eq!(spoilt(4, 3), "Window(3)");
    assert!(spoilt(10, 1).starts_with("Medium("));
    assert_eq!(spoilt(22, 5), "Socket");
    assert_eq!(spoilt(39, 1), "Socket", "IPv4 has four bytes");
    for socket in ["0.0.0.0:1", "224.0.0.1:1", "127.0.0.1:0", "[::]:1"] {
        let bytes = UdpPortAddress { socket: socket.parse().unwrap(), ..sound }.encode();
        assert_eq!(malformed(&bytes), "Socket", "{socket}");
    }
}

#[test]
fn the_address_of_another_wire() {
    let mut endpoint = endpoint();
    let shm = endpoint.open_port(Wire::Shm).unwrap();
    malformed(&shm.address());
    let udp = endpoint.open_port(Wire::Udp).unwrap().address();
    assert!(matches!(endpoint.connect(shm, &udp), Err(ConnectError::Address { wire: Wire::Shm, .. })));
}

#[test]
fn the_port_of_another_endpoint() {
    let (mut a, mut b, mut c) = (endpoint(), endpoint(), endpoint());
    let address = b.open_port(Wire::Udp).unwrap().address();
    let ports = [a.open_port(Wire::Udp).unwrap(), a.open_port(Wire::Udp).unwrap()];
    for (port, other) in ports.into_iter().zip([&mut b, &mut c]) {
        assert!(matches!(other.connect(port, &address), Err(ConnectError::ForeignPort)));
    }
}

#[test]
fn sockets_that_cannot_be_had() {
    let taken = DatagramSocket::bind(Config::default().bind).unwrap();
    for (bind, advice) in [
        (taken.local(), "choose another port"),
        ("192.0.2.1:0".parse().unwrap(), "an address of this host"),
        ("0.0.0.0:0".parse().unwrap(), "name the one address"),
    ] {
        let mut endpoint = Endpoint::<()>::new(Handlers::new(), Config::new().bind(bind)).unwrap();
        let error = endpoint.open_port(Wire::Udp).unwrap_err();
        assert!(matches!(error, OpenError::Socket(_)));
        let text = error.to_string();
        assert!(text.contains(advice) && text.lines().count() == 1, "{text}");
    }
}

/// The configured port is used. The longest payload is the one that fits a datagram.
#[test]
fn a_port_that_was_asked_for() {
    let bind = {
        let free = DatagramSocket::bind(Config::default().bind).unwrap();
        free.local()
    };
    let config = Config::new().bind(bind).medium_bytes(1 << 20);
    let mut a = Endpoint::<()>::new(Handlers::new(), config).unwrap();
    let port = a.open_port(Wire::Udp).unwrap();
    let address = UdpPortAddress::parse(&port.address()).unwrap();
    assert_eq!((address.socket, address.medium_bytes as usize), (bind, LONGEST_PAYLOAD));
    // The ports of an endpoint share its socket, and have different connection numbers.
    let other = UdpPortAddress::parse(&a.open_port(Wire::Udp).unwrap().address()).unwrap();
    assert_eq!(other.socket, bind);
    assert_ne!(other.connection, address.connection);
}

/// A peer that does not exist is reported after the timeout, and not before.
#[test]
fn a_peer_that_is_not_there() {
    let timeout = Duration::from_millis(200);
    for socket in ["127.0.0.1:9", "192.0.2.1:9"] {
        let config = Config::new().peer_timeout(timeout);
        let mut handlers = Handlers::<()>::new();
        handlers.on_reply(0, |(), _| {});
        let mut endpoint = Endpoint::new(handlers, config).unwrap();
        let port = endpoint.open_port(Wire::Udp).unwrap();
        let mut nobody = UdpPortAddress::parse(&port.address()).unwrap();
        nobody.socket = socket.parse().unwrap();
        let peer = endpoint.connect(port, &nobody.encode()).unwrap();
        let start = std::time::Instant::now();
        endpoint.try_request(peer, 0, [1]).unwrap();
        let mut found = None;
        until("the loss is reported", || {
            found = endpoint.poll(&mut ()).err();
            found.is_some()
        });
        let found = found.unwrap();
        assert_eq!((found.loss, found.unresolved), (Loss::Silent(timeout), 1), "{socket}");
        assert!(start.elapsed() >= timeout && start.elapsed() < TIMEOUT);
    }
}

/// A program may sleep on the descriptor of an endpoint, as long as the endpoint says.
#[test]
fn the_descriptor_becomes_readable() {
    let [mut a, mut b] = [(); 2].map(|()| {
        let mut handlers = Handlers::<Vec<u64>>::new();
        handlers.on_request(0, |seen, request| seen.push(request.words()[0]));
        Endpoint::new(handlers, Config::new()).unwrap()
    });
    let is_readable = |endpoint: &Endpoint<Vec<u64>>, timeout: Duration| {
        let timeout = Timespec::try_from(timeout).unwrap();
        rustix::event::poll(&mut [PollFd::new(endpoint, PollFlags::IN)], Some(&timeout)).unwrap() == 1
    };
    assert!(!is_readable(&b, Duration::ZERO));
    let (port_a, port_b) = (a.open_port(Wire::Udp).unwrap(), b.open_port(Wire::Udp).unwrap());
    let (address_a, address_b) = (port_a.address(), port_b.address());
    let peer = a.connect(port_a, &address_b).unwrap();
    b.connect(port_b, &address_a).unwrap();
    assert!(!is_readable(&b, Duration::ZERO) && b.until_due() > Duration::ZERO);
    let (mut at_a, mut at_b) = (Vec::new(), Vec::new());
    a.request(&mut at_a, peer, 0, [7]).unwrap();
    assert!(is_readable(&b, TIMEOUT));
    until("the request is handled", || b.poll(&mut at_b).unwrap() > 0);
    assert_eq!(at_b, [7]);
    let (port_a, port_b) = (a.open_port(Wire::Shm).unwrap(), b.open_port(Wire::Shm).unwrap());
    b.connect(port_b, &port_a.address()).unwrap();
    assert_eq!(b.until_due(), Duration::ZERO, "shared memory sends no wake-up");
}
