//! The clients of the layers, which call servers that are written out by hand.

use crate::common::{PROGRAM, options, words};
use netdyno_layers::catalogue::{Layer, half};
use netdyno_layers::half::Role;
use netdyno_layers::peer_wait::PEER_TIMEOUT;
use netdyno_measure::layer::{Face, LayerError};
use netdyno_measure::logp::pattern::{BATCH_MESSAGES, LONGEST_BURST, Plan};
use netdyno_measure::task::{Data, Task};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Measures with calls of 5 bytes.
pub fn measure(layer: Layer, server: SocketAddr) -> Result<Data, LayerError> {
    let half = half::open(layer, Role::Requester, options(5, Face::Requests)).unwrap();
    let task = Task::Logp(Plan {
        launch: 0,
        shape: None,
        budget_ns: 1e7,
        precision: 0.5,
        confidence: 0.95,
        seed: 1,
        longest_burst: LONGEST_BURST,
        batch_messages: BATCH_MESSAGES,
    });
    half.requester(server.to_string().as_bytes())?.measure(&task, &mut |_| {})
}

/// Returns the transaction id of a call of procedure 1 with 5 bytes. Every other byte of the call is as RFC 5531
/// (section 9) says.
fn xid_of(call: &[u8]) -> u32 {
    let (xid, rest) = call.split_first_chunk().unwrap();
    assert_eq!(rest, [&words(&[0, 2, PROGRAM, 1, 1, 0, 0, 0, 0, 5])[..], b"ZZZZZ\0\0\0"].concat());
    u32::from_be_bytes(*xid)
}

fn reply_to(xid: u32) -> Vec<u8> {
    [&words(&[xid, 1, 0, 0, 0, 0, 5])[..], b"ZZZZZ\0\0\0"].concat()
}

/// Runs `serve` with each call over UDP and its number, while `work` runs.
fn with_udp_server<T>(
    mut serve: impl FnMut(&UdpSocket, SocketAddr, u32, usize) + Send,
    work: impl FnOnce(SocketAddr) -> T,
) -> T {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    let at = socket.local_addr().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut calls = 0;
            while !over.load(Ordering::Relaxed) {
                let mut room = [0; 1000];
                let Ok((len, from)) = socket.recv_from(&mut room) else { continue };
                serve(&socket, from, xid_of(&room[..len]), calls);
                calls += 1;
            }
        });
        let result = work(at);
        over.store(true, Ordering::Relaxed);
        serving.join().unwrap();
        result
    })
}

#[test]
fn lost_calls_are_sent_again_and_duplicate_replies_ignored() {
    let mut lost = None;
    let serve = |socket: &UdpSocket, from, xid, nth| {
        if nth == 3 {
            return lost = Some(xid);
        }
        // No reply, a reply to a call that was never made, and then two replies.
        socket.send_to(b"no reply", from).unwrap();
        socket.send_to(&reply_to(xid ^ 0x8000_0000), from).unwrap();
        for _ in 0..2 {
            socket.send_to(&reply_to(xid), from).unwrap();
        }
    };
    let data = with_udp_server(serve, |server| measure(Layer::OncRpcUdp, server).unwrap());
    let Data::Logp(data) = data else { panic!("{data:?}") };
    let transport = data.transport.unwrap();
    assert!(lost.is_some() && transport.retransmitted >= 1, "{transport:?}");
    assert!(transport.duplicates > 0 && transport.malformed > 0, "{transport:?}");
}

/// All calls that have arrived are answered in reverse.
#[test]
fn replies_are_matched_in_any_order() {
    let mut most_at_once = 0;
    let serve = |socket: &UdpSocket, from, xid, _| {
        let mut xids = vec![xid];
        let mut room = [0; 1000];
        // The client's next calls arrive meanwhile.
        thread::sleep(Duration::from_micros(200));
        socket.set_nonblocking(true).unwrap();
        while let Ok((len, _)) = socket.recv_from(&mut room) {
            xids.push(xid_of(&room[..len]));
        }
        socket.set_nonblocking(false).unwrap();
        most_at_once = most_at_once.max(xids.len());
        for xid in xids.into_iter().rev() {
            socket.send_to(&reply_to(xid), from).unwrap();
        }
    };
    with_udp_server(serve, |server| measure(Layer::OncRpcUdp, server).unwrap());
    assert!(most_at_once > 1);
}

#[test]
fn a_server_that_is_silent_is_given_up_after_some_attempts() {
    let mut sent: HashMap<u32, usize> = HashMap::new();
    let serve = |_: &UdpSocket, _, xid, _| *sent.entry(xid).or_default() += 1;
    let error = with_udp_server(serve, |server| measure(Layer::OncRpcUdp, server).err().unwrap());
    assert!(error.0.contains(&format!("nothing for {PEER_TIMEOUT:?}")), "{error}");
    // After 1 s, 3 s and 7 s.
    assert!(sent.values().all(|&times| (2..=4).contains(&times)), "{sent:?}");
}

/// Returns the error of a client over TCP whose server sends `reply` after the first call.
fn after_first_call(reply: impl FnOnce(u32) -> Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let measuring = scope.spawn(move || measure(Layer::OncRpcTcp, at).err().unwrap().0);
        let (mut stream, _) = listener.accept().unwrap();
        let mut call = [0; 56];
        stream.read_exact(&mut call).unwrap();
        assert_eq!(call[..4], [0x80, 0, 0, 52]);
        stream.write_all(&reply(xid_of(&call[4..]))).unwrap();
        drop((stream, listener));
        measuring.join().unwrap()
    })
}

#[test]
fn a_client_says_why_its_call_failed() {
    let framed = |message: Vec<u8>| [&words(&[0x8000_0000 | message.len() as u32]), &message[..]].concat();
    let unavailable = after_first_call(|xid| framed(words(&[xid, 1, 0, 0, 0, 1])));
    assert!(unavailable.contains("does not have the program"), "{unavailable}");
    let mismatch = after_first_call(|xid| framed(words(&[xid, 1, 0, 0, 0, 2, 2, 3])));
    assert!(mismatch.contains("versions 2 to 3 of the program"), "{mismatch}");
    let short = after_first_call(|xid| framed(words(&[xid, 1, 0, 0, 0, 0, 0])));
    assert!(short.contains("0 bytes came, 5 were expected"), "{short}");
    let long = after_first_call(|_| words(&[0xffff_ffff]));
    assert!(long.contains("too long"), "{long}");
    let closed = after_first_call(|_| Vec::new());
    assert!(closed.contains("closed") || closed.contains("failed"), "{closed}");
}
