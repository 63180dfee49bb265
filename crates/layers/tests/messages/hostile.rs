//! Tests of a layer with messages whose peer violates the layer's protocol. The layer ends with an error of
//! one line.

use crate::common::{answers, options};
use netdyno_layers::catalogue::{Layer, half};
use netdyno_layers::half::Role;
use netdyno_measure::layer::{LayerError, Messenger};
use netdyno_measure::order::Order;
use netdyno_stack::am::{Config, Endpoint, Handlers, Memory, PeerId, Port, Wire};
use netdyno_stack::vi::{Address, Consumer, Operation, Remote, Side, UdpOptions, ViHandle, WireKind, Work};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

/// Length of the token in front of the address of a tcp half, in bytes. The worker sends it first.
const TOKEN_LEN: usize = 16;
const LARGEST: usize = 5000;

/// Sends a message and waits for its answer.
fn work(mut worker: Box<dyn Messenger>) -> Result<(), LayerError> {
    crate::common::round_trip(&mut *worker, 1000, answers(1, 1000))
}

/// Returns messages without a valid order.
fn unsound() -> Vec<Vec<u8>> {
    let orders = [
        answers(2 * Order::LARGEST_BATCH + 1, 8),
        answers(1, 7),
        answers(1, LARGEST + 1),
        answers(1, usize::MAX),
    ];
    let mut messages: Vec<Vec<u8>> = orders.iter().map(|order| order.to_bytes().to_vec()).collect();
    messages.extend([vec![0; 8], vec![0xff; LARGEST]]);
    messages
}

mod tcp {
    use super::*;

    fn framed(len: u32, rest: &[u8]) -> Vec<u8> {
        [&len.to_le_bytes()[..], rest].concat()
    }

    fn worker_hears(bytes: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let support = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; TOKEN_LEN]).unwrap();
            stream.write_all(&bytes).unwrap();
            // Reads until the worker closes.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let half = half::open(Layer::Tcp, Role::Requester, options(LARGEST)).unwrap();
        let address = [&[0; TOKEN_LEN][..], at.as_bytes()].concat();
        let error = work(half.messenger(&address).unwrap()).unwrap_err();
        support.join().unwrap();
        error.0
    }

    /// Returns the error of a support whose worker writes these parts, with a pause after each, and then
    /// closes.
    fn support_hears(parts: &[&[u8]]) -> String {
        let half = half::open(Layer::Tcp, Role::Replier, options(LARGEST)).unwrap();
        let address = half.address();
        let (token, at) = address.split_at(TOKEN_LEN);
        let mut stream = TcpStream::connect(str::from_utf8(at).unwrap()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(token).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                for part in parts {
                    // The support may have closed already.
                    let _ = stream.write_all(part);
                    thread::sleep(Duration::from_millis(1));
                }
            });
            half.replier(&[]).unwrap().serve(&AtomicBool::new(false)).unwrap_err().0
        })
    }

    #[test]
    fn no_frame_is_longer_or_shorter_than_can_be() {
        for len in [0, 7, 1001, u32::MAX] {
            assert!(worker_hears(framed(len, &[0; 2000])).contains("8 to 1000 were expected"), "{len}");
        }
        for len in [0, 7, LARGEST as u32 + 1, u32::MAX] {
            assert!(support_hears(&[&framed(len, &[0; 9000])]).contains("8 to 5000 were expected"), "{len}");
        }
    }

    #[test]
    fn no_message_is_without_a_sound_order() {
        for message in unsound() {
            let error = support_hears(&[&framed(message.len() as u32, &message)]);
            assert!(error.contains("without an order"), "{message:?}: {error}");
        }
    }

    /// A row of frames is read to its end, wherever it is cut. Only its last message has no valid order. A
    /// frame that is read at the wrong place would fail earlier, or not at all.
    #[test]
    fn frames_may_be_cut_anywhere() {
        let short = framed(8, &Order::NOTHING.to_bytes());
        let long = framed(LARGEST as u32, &[&short[4..], &[0; LARGEST - 8]].concat());
        let row = [&short[..], &long, &short, &short, &long, &short, &framed(8, &[0; 8])].concat();
        for cut in [0, 3, 4, 12, 13, 16, 20, 4000, 5016, 5030, 5039, 5040, 5041, 5100, row.len() - 1] {
            let error = support_hears(&[&row[..cut], &row[cut..]]);
            assert!(error.contains("without an order"), "{cut}: {error}");
        }
        for cut in [0, 3, 4, 5000, row.len() - 1] {
            let error = support_hears(&[&row[..cut]]);
            assert!(error.contains("closed"), "{cut}: {error}");
        }
    }
}

mod udp {
    use super::*;

    /// Returns a datagram with this sequence number, from an end that has received nothing.
    fn numbered(number: u32, message: &[u8]) -> Vec<u8> {
        [&u64::from(number).to_le_bytes()[..], message].concat()
    }

    fn support_hears(datagrams: &[Vec<u8>]) -> String {
        let half = half::open(Layer::Udp, Role::Replier, options(LARGEST)).unwrap();
        let worker = UdpSocket::bind("127.0.0.1:0").unwrap();
        worker.connect(String::from_utf8(half.address()).unwrap()).unwrap();
        let mut support = half.replier(worker.local_addr().unwrap().to_string().as_bytes()).unwrap();
        for datagram in datagrams {
            worker.send(datagram).unwrap();
        }
        support.serve(&AtomicBool::new(false)).unwrap_err().0
    }

    #[test]
    fn what_is_no_message_ends_the_run() {
        assert!(support_hears(&[vec![1, 2, 3]]).contains("no message"));
        assert!(support_hears(&[vec![]]).contains("closed"));
        assert!(support_hears(&[numbered(0, &[0; 7])]).contains("8 to 5000 were expected"));
        assert!(support_hears(&[numbered(0, &[0; LARGEST + 1])]).contains("8 to 5000 were expected"));
        for message in unsound() {
            let error = support_hears(&[numbered(0, &message)]);
            assert!(error.contains("without an order"), "{message:?}: {error}");
        }
    }

    #[test]
    fn a_lost_datagram_is_noticed_by_the_next_one() {
        let sound = Order::NOTHING.to_bytes();
        let error = support_hears(&[numbered(0, &sound), numbered(1, &sound), numbered(3, &sound)]);
        assert!(error.contains("lost or overtaken"), "{error}");
    }

    /// A peer that claims to have received more than was sent is not believed.
    #[test]
    fn nobody_has_taken_more_than_was_sent() {
        let sound = answers(1, 8).to_bytes();
        let mut lie = numbered(0, &sound);
        lie[4..8].fill(0xff);
        let error = support_hears(&[lie, numbered(1, &sound), numbered(1, &sound)]);
        assert!(error.contains("lost or overtaken"), "{error}");
    }
}

mod am {
    use super::*;

    /// An endpoint that connects as a half of Active Messages does, but violates the protocol of messages.
    struct Stranger {
        endpoint: Endpoint<()>,
        _memory: Memory,
    }

    impl Stranger {
        fn open(wire: Wire) -> (Self, Port, Vec<u8>) {
            let mut handlers = Handlers::new();
            handlers.on_request(0, |(), _| {});
            handlers.on_store(0, |(), _| {});
            handlers.on_refused(|(), _| {});
            let mut endpoint = Endpoint::new(handlers, Config::default()).unwrap();
            let port = endpoint.open_port(wire).unwrap();
            let memory = endpoint.allocate(15 * LARGEST.next_multiple_of(64)).unwrap();
            let at = port.address();
            let address = [&(at.len() as u16).to_le_bytes()[..], &at, &memory.key()].concat();
            (Self { endpoint, _memory: memory }, port, address)
        }

        /// Connects to the half with this address. Also returns the key of the half's memory for receives.
        fn connect(&mut self, port: Port, address: &[u8]) -> (PeerId, Vec<u8>) {
            let (len, rest) = address.split_first_chunk().unwrap();
            let (at, key) = rest.split_at(u16::from_le_bytes(*len).into());
            (self.endpoint.connect(port, at).unwrap(), key.to_vec())
        }

        /// Tells the peer that a receive is posted.
        fn post(&mut self, peer: PeerId, turn: u64, slot: u64, bytes: u64) {
            self.endpoint.request(&mut (), peer, 0, [turn << 40 | slot << 32 | bytes]).unwrap();
        }

        /// Stores a message at this offset in the memory of the key.
        fn store(&mut self, peer: PeerId, key: &[u8], offset: usize, bytes: &[u8]) {
            let remote = self.endpoint.attach(&mut (), peer, key).unwrap();
            self.endpoint.store(&mut (), remote.at(offset), bytes, 0, []).unwrap();
        }
    }

    const WAYS: [(Layer, Wire); 2] = [(Layer::AmShm, Wire::Shm), (Layer::AmUdp, Wire::Udp)];

    /// Returns the error of a half in this role whose peer does `does`.
    fn fails(
        (layer, wire): (Layer, Wire),
        role: Role,
        does: impl FnOnce(&mut Stranger, PeerId, &[u8]) + Send + 'static,
    ) -> String {
        let (to_stranger, at_stranger) = mpsc::channel::<Vec<u8>>();
        let (to_half, at_half) = mpsc::channel();
        let thread = thread::spawn(move || {
            let (mut stranger, port, address) = Stranger::open(wire);
            to_half.send(address).unwrap();
            let (peer, key) = stranger.connect(port, &at_stranger.recv().unwrap());
            does(&mut stranger, peer, &key);
            while at_stranger.try_recv() == Err(TryRecvError::Empty) {
                // Errors of the unknown peer do not matter.
                let _ = stranger.endpoint.poll(&mut ());
                thread::yield_now();
            }
        });
        let half = half::open(layer, role, options(LARGEST)).unwrap();
        to_stranger.send(half.address()).unwrap();
        let stranger = at_half.recv().unwrap();
        let error = match role {
            Role::Requester => work(half.messenger(&stranger).unwrap()).unwrap_err(),
            Role::Replier => half.replier(&stranger).unwrap().serve(&AtomicBool::new(false)).unwrap_err(),
        };
        drop(to_stranger);
        thread.join().unwrap();
        error.0
    }

    #[test]
    fn receives_are_in_slots_and_have_turns() {
        for way in WAYS {
            for (turn, slot) in [(0, 16), (16, 0), (255, 255), (0, 0)] {
                let error = fails(way, Role::Replier, move |stranger, peer, _| {
                    stranger.post(peer, 0, 0, 8);
                    stranger.post(peer, turn, slot, 8);
                });
                assert!(error.contains("receives that cannot be"), "{way:?}: {error}");
            }
        }
    }

    /// The unknown peer has memory for 15 receives instead of 16, so the last slot is outside of it.
    #[test]
    fn receives_lie_inside_of_memory() {
        for way in WAYS {
            let error = fails(way, Role::Requester, |stranger, peer, _| stranger.post(peer, 0, 15, 5000));
            assert!(error.contains("not all inside"), "{way:?}: {error}");
        }
    }

    #[test]
    fn no_message_is_longer_than_its_receive() {
        for way in WAYS {
            let error = fails(way, Role::Requester, |stranger, peer, _| stranger.post(peer, 0, 0, 999));
            assert!(error.contains("a receive of 999"), "{way:?}: {error}");
            let error =
                fails(way, Role::Requester, |stranger, peer, key| stranger.store(peer, key, 0, &[0; 1001]));
            assert!(error.contains("no receive"), "{way:?}: {error}");
        }
    }

    /// The message is not at the start of a slot, or its slot has a message already.
    #[test]
    fn no_message_comes_without_a_receive() {
        for way in WAYS {
            for offsets in [&[1][..], &[5055], &[5056, 5056]] {
                let error = fails(way, Role::Replier, move |stranger, peer, key| {
                    offsets.iter().for_each(|&offset| stranger.store(peer, key, offset, &[0; 8]));
                });
                assert!(error.contains("no receive"), "{way:?}: {error}");
            }
        }
    }

    #[test]
    fn no_message_is_without_a_sound_order() {
        for (way, message) in WAYS.into_iter().flat_map(|way| unsound().into_iter().map(move |m| (way, m))) {
            let error = fails(way, Role::Replier, move |stranger, peer, key| {
                stranger.store(peer, key, 0, &message);
            });
            assert!(error.contains("without an order"), "{way:?}: {error}");
        }
    }
}

mod vi {
    use super::*;

    /// Lengths of a key and of a discriminator, in bytes.
    const KEY_LEN: usize = 12;
    const DISCRIMINATOR_LEN: usize = 16;
    /// A false count of posted receives.
    const LIE: u32 = i32::MAX as u32;

    const WAYS: [Layer; 2] = [Layer::ViShm, Layer::ViUdp];

    fn wire(layer: Layer) -> WireKind {
        let bind = SocketAddr::from(([127, 0, 0, 1], 0));
        if layer == Layer::ViShm { WireKind::Shm } else { WireKind::Udp(UdpOptions::new().bind(bind)) }
    }

    /// A VI that violates the protocol of messages. The support can write into its word, as into any peer's.
    struct Stranger {
        consumer: Consumer,
        vi: ViHandle,
        /// The word of the support into which a peer writes its count of posted receives.
        word: Remote,
    }

    impl Stranger {
        /// Also returns its address: the key of its word, and a discriminator at which no VI waits.
        fn open(layer: Layer) -> (Self, Vec<u8>) {
            let mut consumer = Consumer::open(wire(layer), 1).unwrap();
            let vi = consumer.create_vi(None).unwrap();
            let own = consumer.allocate(8).unwrap();
            consumer.register(own, true).unwrap();
            let Remote { address, handle } = consumer.remote(own, 0);
            let key = [&address.to_le_bytes()[..], &handle.to_le_bytes()].concat();
            let address = [&key[..], &[0; DISCRIMINATOR_LEN]].concat();
            (Self { consumer, vi, word: Remote::default() }, address)
        }

        /// Connects to the support at this address.
        fn connect(&mut self, address: &[u8]) {
            let (key, rest) = address.split_at(KEY_LEN);
            let (discriminator, host) = rest.split_at(DISCRIMINATOR_LEN);
            let (address, handle) = key.split_first_chunk().unwrap();
            let handle = u32::from_le_bytes(handle.try_into().unwrap());
            self.word = Remote { address: u64::from_le_bytes(*address), handle };
            let to = Address { host: host.to_vec(), discriminator: discriminator.to_vec() };
            self.consumer.ask(self.vi, b"stranger", to, Duration::from_secs(20)).unwrap();
            while !self.consumer.is_answered(self.vi).unwrap() {
                self.consumer.sleep(Duration::from_millis(1));
            }
        }

        fn post(&mut self, operation: Operation, immediate: Option<u32>, bytes: &[u8]) {
            let Self { consumer, vi, .. } = self;
            let piece = consumer.allocate(bytes.len()).unwrap();
            consumer.register(piece, false).unwrap();
            consumer.write(piece, 0, bytes);
            let segment = consumer.segment(piece, 0, bytes.len());
            let segments = [segment].into_iter().collect();
            consumer
                .describe(0, &Work { operation, immediate, is_fenced: false, segments, len: segment.len });
            consumer.post(*vi, Side::Send, 0).unwrap();
            // Waits until it is complete, with any outcome: only the support's error matters.
            while matches!(consumer.done(*vi, Side::Send), Ok(None)) {
                consumer.sleep(Duration::from_millis(1));
            }
        }

        fn send(&mut self, immediate: Option<u32>, bytes: &[u8]) {
            self.post(Operation::Send, immediate, bytes);
        }
    }

    /// Returns the error of a support whose peer does `does`.
    fn fails(layer: Layer, does: impl FnOnce(&mut Stranger) + Send + 'static) -> String {
        let (to_stranger, at_stranger) = mpsc::channel::<Vec<u8>>();
        let (to_half, at_half) = mpsc::channel();
        let thread = thread::spawn(move || {
            let (mut stranger, address) = Stranger::open(layer);
            to_half.send(address).unwrap();
            stranger.connect(&at_stranger.recv().unwrap());
            does(&mut stranger);
            while at_stranger.try_recv() == Err(TryRecvError::Empty) {
                stranger.consumer.sleep(Duration::from_millis(1));
            }
        });
        let half = half::open(layer, Role::Replier, options(LARGEST)).unwrap();
        to_stranger.send(half.address()).unwrap();
        let error =
            half.replier(&at_half.recv().unwrap()).unwrap().serve(&AtomicBool::new(false)).unwrap_err();
        drop(to_stranger);
        thread.join().unwrap();
        error.0
    }

    #[test]
    fn what_is_no_message_ends_the_support() {
        for way in WAYS {
            let error = fails(way, |stranger| stranger.send(None, &[0; 8]));
            assert!(error.contains("are no message"), "{way}: {error}");
            let error = fails(way, |stranger| stranger.send(Some(0), &[0; 7]));
            assert!(error.contains("are no message"), "{way}: {error}");
            let error = fails(way, |stranger| stranger.send(Some(0), &[0; LARGEST + 1]));
            assert!(error.contains("longer than the receive"), "{way}: {error}");
            let error = fails(way, |stranger| {
                for _ in 0..100 {
                    stranger.send(Some(0), &Order::NOTHING.to_bytes());
                }
                stranger.consumer.disconnect(stranger.vi).unwrap();
            });
            println!("{way}: {error}");
            for message in unsound() {
                let error = fails(way, move |stranger| stranger.send(Some(0), &message));
                assert!(error.contains("without an order"), "{way}: {error}");
            }
        }
    }

    #[test]
    fn nobody_has_posted_more_receives_than_there_are_slots() {
        for way in WAYS {
            let error = fails(way, |stranger| stranger.send(Some(LIE), &Order::NOTHING.to_bytes()));
            assert!(error.contains("receives that cannot be"), "{way}: {error}");
            let error = fails(way, |stranger| {
                stranger.post(Operation::Write(stranger.word), None, &LIE.to_le_bytes());
                stranger.send(Some(0), &answers(1, 8).to_bytes());
            });
            assert!(error.contains("receives that cannot be"), "{way}: {error}");
        }
    }

    /// A peer can write to no memory beside the word.
    #[test]
    fn no_other_memory_is_written() {
        for way in WAYS {
            for (address, handle) in [(1, 0), (0_u64.wrapping_sub(1), 0), (0, 1)] {
                let error = fails(way, move |stranger| {
                    let Remote { address: base, handle: own } = stranger.word;
                    let beside =
                        Remote { address: base.wrapping_add(address), handle: own.wrapping_add(handle) };
                    stranger.post(Operation::Write(beside), None, &LIE.to_le_bytes());
                });
                assert!(error.contains("RdmawProt"), "{way}: {error}");
            }
        }
    }
}
