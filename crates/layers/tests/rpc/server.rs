//! The servers of the layers, called with bytes that are written out by hand.

use crate::common::{LARGEST, PROGRAM, with_server, words};
use netdyno_layers::catalogue::Layer;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

/// The time within which a reply comes.
const SOON: Duration = Duration::from_secs(10);

/// Pairs of a call and its reply, as RFC 5531 (section 9) describes them. A word of the highest bit marks a
/// fragment only in front of a message.
fn calls() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    // Transaction id, call, RPC version 2, program, version, procedure, credential, verifier.
    let header = |program, version, procedure| words(&[7, 0, 2, program, version, procedure, 0, 0, 0, 0]);
    let call = |procedure, arguments: &[u8]| [&header(PROGRAM, 1, procedure), arguments].concat();
    // Transaction id, reply, accepted, verifier; then the status.
    let accepted = |status: &[u32]| words(&[&[7, 1, 0, 0, 0], status].concat());
    let denied = |status: &[u32]| words(&[&[7, 1, 1], status].concat());
    let hello = b"\0\0\0\x05hello\0\0\0";
    let longest = [&words(&[LARGEST as u32])[..], &[9; LARGEST]].concat();
    let too_long = [&words(&[LARGEST as u32 + 4])[..], &[9; LARGEST + 4]].concat();
    vec![
        ("NULL", call(0, &[]), accepted(&[0])),
        ("echo", call(1, hello), [&accepted(&[0])[..], hello].concat()),
        ("echo of nothing", call(1, &words(&[0])), accepted(&[0, 0])),
        ("echo of the longest", call(1, &longest), [&accepted(&[0])[..], &longest].concat()),
        (
            "transfer",
            call(2, b"\0\0\0\x03\0\0\0\x05hello\0\0\0"),
            [&accepted(&[0, 3])[..], b"ZZZ\0"].concat(),
        ),
        ("PROG_UNAVAIL", header(PROGRAM + 1, 1, 0), accepted(&[1])),
        ("PROG_MISMATCH", header(PROGRAM, 0, 0), accepted(&[2, 1, 1])),
        ("PROC_UNAVAIL", call(3, &[]), accepted(&[3])),
        ("GARBAGE_ARGS: no argument", call(1, &[]), accepted(&[4])),
        ("GARBAGE_ARGS: cut", call(1, &hello[..8]), accepted(&[4])),
        ("GARBAGE_ARGS: more than the argument", call(1, &[&hello[..], &[0; 4]].concat()), accepted(&[4])),
        ("GARBAGE_ARGS: padding", call(1, b"\0\0\0\x05hello\0\0\x01"), accepted(&[4])),
        ("GARBAGE_ARGS: too long", call(1, &too_long), accepted(&[4])),
        ("GARBAGE_ARGS: too long a reply", call(2, &words(&[LARGEST as u32 + 1, 0])), accepted(&[4])),
        ("RPC_MISMATCH", words(&[7, 0, 3, PROGRAM, 1, 0, 0, 0, 0, 0]), denied(&[0, 2, 2])),
        ("AUTH_BADCRED", words(&[7, 0, 2, PROGRAM, 1, 0, 0, 401, 0, 0]), denied(&[1, 1])),
        ("AUTH_REJECTEDCRED", words(&[7, 0, 2, PROGRAM, 1, 0, 1, 4, 0, 0, 0]), denied(&[1, 2])),
        ("AUTH_BADVERF", words(&[7, 0, 2, PROGRAM, 1, 0, 0, 0, 1, 0]), denied(&[1, 3])),
        ("AUTH_NONE with a body", words(&[7, 0, 2, PROGRAM, 1, 0, 0, 4, 5, 0, 0]), accepted(&[0])),
    ]
}

/// Messages that get no reply.
fn no_calls() -> Vec<Vec<u8>> {
    let null = words(&[7, 0, 2, PROGRAM, 1, 0, 0, 0, 0, 0]);
    let cut = [1, 4, 11, 12, 39].map(|len| null[..len].to_vec());
    cut.into_iter().chain([words(&[7, 1, 0, 0, 0, 0])]).collect()
}

fn udp_client(wait: Duration) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(wait)).unwrap();
    socket
}

fn reply(socket: &UdpSocket) -> Option<Vec<u8>> {
    let mut room = [0; 1 << 16];
    socket.recv(&mut room).ok().map(|len| room[..len].to_vec())
}

#[test]
fn calls_over_udp_are_answered_as_the_rfc_says() {
    let socket = udp_client(SOON);
    with_server(Layer::OncRpcUdp, socket.local_addr().unwrap(), |server| {
        socket.connect(server).unwrap();
        for (name, call, expected) in calls() {
            for message in no_calls() {
                socket.send(&message).unwrap();
            }
            socket.send(&call).unwrap();
            assert_eq!(reply(&socket), Some(expected), "{name}");
        }
    });
}

/// A datagram may come from a forged address, so that it must not bring that address more bytes than it has.
#[test]
fn an_unknown_client_over_udp_is_refused_a_reply_longer_than_its_call() {
    let known = udp_client(SOON).local_addr().unwrap();
    let socket = udp_client(SOON);
    with_server(Layer::OncRpcUdp, known, |server| {
        socket.connect(server).unwrap();
        socket.send(&words(&[7, 0, 2, PROGRAM, 1, 2, 0, 0, 0, 0, 1000, 0])).unwrap();
        // A reply that is denied, because the authentication is too weak.
        assert_eq!(reply(&socket), Some(words(&[7, 1, 1, 1, 5])));
        socket.send(&words(&[8, 0, 2, PROGRAM, 1, 2, 0, 0, 0, 0, 1, 0])).unwrap();
        assert_eq!(reply(&socket), Some([&words(&[8, 1, 0, 0, 0, 0, 1])[..], b"Z\0\0\0"].concat()));
    });
}

/// Returns the message as a record in fragments of at most `fragment` bytes.
fn record(message: &[u8], fragment: usize) -> Vec<u8> {
    let mut fragments = message.chunks(fragment).peekable();
    let mut record = Vec::new();
    while let Some(bytes) = fragments.next() {
        let last = if fragments.peek().is_none() { 0x8000_0000 } else { 0 };
        record.extend((last | bytes.len() as u32).to_be_bytes());
        record.extend(bytes);
    }
    record
}

fn tcp_client(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

#[test]
fn calls_over_tcp_are_answered_as_the_rfc_says() {
    let unused = udp_client(SOON).local_addr().unwrap();
    with_server(Layer::OncRpcTcp, unused, |server| {
        for fragment in [1, 7, 40, 1 << 20] {
            // All calls are sent before a reply is read.
            let mut stream = tcp_client(server);
            let sent: Vec<u8> = calls().iter().flat_map(|(_, call, _)| record(call, fragment)).collect();
            stream.write_all(&sent).unwrap();
            for (name, _, expected) in calls() {
                let expected = record(&expected, 1 << 20);
                let mut got = vec![0; expected.len()];
                stream.read_exact(&mut got).unwrap();
                assert_eq!(got, expected, "{name} in fragments of {fragment}");
            }
        }
    });
}

#[test]
fn a_record_may_arrive_in_any_pieces() {
    let unused = udp_client(SOON).local_addr().unwrap();
    let call = record(&words(&[7, 0, 2, PROGRAM, 1, 0, 0, 0, 0, 0]), 21);
    with_server(Layer::OncRpcTcp, unused, |server| {
        let mut stream = tcp_client(server);
        for cut in 1..call.len() {
            stream.write_all(&call[..cut]).unwrap();
            thread::sleep(Duration::from_millis(1));
            stream.write_all(&call[cut..]).unwrap();
            let mut got = [0; 28];
            stream.read_exact(&mut got).unwrap();
            assert_eq!(got[..], words(&[0x8000_0018, 7, 1, 0, 0, 0, 0]));
        }
    });
}

#[test]
fn a_client_that_breaks_the_protocol_disturbs_no_other() {
    let unused = udp_client(SOON).local_addr().unwrap();
    with_server(Layer::OncRpcTcp, unused, |server| {
        let mut good = tcp_client(server);
        let mut silent = tcp_client(server);
        silent.write_all(b"\x80").unwrap();
        let mut too_long = tcp_client(server);
        too_long.write_all(&[0xff; 100]).unwrap();
        // The server closes the connection, with or without unread bytes.
        assert!(matches!(too_long.read(&mut [0; 1]), Ok(0) | Err(_)));
        drop(too_long);
        for message in no_calls() {
            good.write_all(&record(&message, 100)).unwrap();
        }
        good.write_all(&record(&words(&[7, 0, 2, PROGRAM, 1, 0, 0, 0, 0, 0]), 100)).unwrap();
        let mut got = [0; 28];
        good.read_exact(&mut got).unwrap();
        assert_eq!(got[..], words(&[0x8000_0018, 7, 1, 0, 0, 0, 0]));
    });
}

/// They once kept all places for ever.
#[test]
fn silent_connections_lock_nobody_out() {
    let unused = udp_client(SOON).local_addr().unwrap();
    with_server(Layer::OncRpcTcp, unused, |server| {
        let null = record(&words(&[7, 0, 2, PROGRAM, 1, 0, 0, 0, 0, 0]), 100);
        let call = |stream: &mut TcpStream| {
            stream.write_all(&null).unwrap();
            stream.read_exact(&mut [0; 28]).unwrap();
        };
        let mut good = tcp_client(server);
        call(&mut good);
        let mut silent = Vec::new();
        for _ in 0..3 {
            silent.extend((0..7).map(|_| tcp_client(server)));
            call(&mut tcp_client(server));
            // The one that calls keeps its place.
            call(&mut good);
        }
    });
}

/// The server keeps what the socket does not take, and goes on with other clients.
#[test]
fn a_client_that_reads_late_gets_all_replies() {
    let unused = udp_client(SOON).local_addr().unwrap();
    const CALLS: u32 = 20_000;
    with_server(Layer::OncRpcTcp, unused, |server| {
        let mut late = tcp_client(server);
        let mut writer = late.try_clone().unwrap();
        let call = |xid| record(&words(&[xid, 0, 2, PROGRAM, 1, 2, 0, 0, 0, 0, LARGEST as u32, 0]), 100);
        let writing = thread::spawn(move || {
            for xid in 0..CALLS {
                writer.write_all(&call(xid)).unwrap();
            }
        });
        let mut other = tcp_client(server);
        other.write_all(&record(&words(&[7, 0, 2, PROGRAM, 1, 0, 0, 0, 0, 0]), 100)).unwrap();
        other.read_exact(&mut [0; 28]).unwrap();
        for xid in 0..CALLS {
            let mut got = [0; 32 + LARGEST];
            late.read_exact(&mut got).unwrap();
            assert_eq!(got[4..8], xid.to_be_bytes());
        }
        writing.join().unwrap();
    });
}
