//! Drives a provider of Virtual Interfaces with a hostile peer and an incorrect program. Nothing panics.
//! Parsed input encodes to the same bytes again. All bytes go to and come from registered memory. A queue
//! returns descriptors in the order in which they were posted.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::vi_fragment::{self, HEADER_LEN};
use netdyno_protocol::frame::vi_message::{Head, Refusal, Verdict};
use netdyno_protocol::frame::vi_signal::{self, Address, Signal};
use netdyno_protocol::vi::{
    Arrival, DescriptorAt, Level, MemAttributes, Nic, NicAttributes, Progress, Segment, Side, ViAttributes,
    View,
};

const BASE: u64 = 1 << 20;
const LEN: u64 = 1 << 16;
/// The number of this side's connection request. An attacker would have to guess it.
const NUMBER: u64 = 7;

#[derive(Arbitrary, Debug)]
struct Input {
    level: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Signal(Vec<u8>),
    Accept { to: bool, number: u64 },
    Disconnect,
    Ask { is_of_peer: bool },
    Arrive([u64; 4]),
    Places { at: u32, len: u16 },
    Arrived,
    Piece(Vec<u8>),
    Post { descriptor: Vec<u8>, is_send: bool },
    Next,
    Progress { number: u8, how: u8 },
    Done { is_send: bool },
    Deregister,
    Time { ns: u32 },
    Lost,
    Left,
}

fuzz_target!(|input: Input| {
    let mut nic = Nic::new(NicAttributes::default());
    let tag = nic.create_tag().expect("the first");
    let open = MemAttributes { tag, can_be_written: true, can_be_read: true };
    let handle = nic.register(BASE, LEN, open).expect("the first");
    let level = Level::ALL[usize::from(input.level) % 3];
    let can_be_read = level.is_reliable();
    let attributes =
        ViAttributes { level, transfer_bytes: 5000, qos: 0, tag, can_be_written: true, can_be_read };
    let vi = nic.create_vi(attributes, None, None).expect("the first");
    let is_within = |segment: &Segment| {
        let end = segment.address.checked_add(segment.len.into());
        segment.handle == handle.0 && segment.address >= BASE && end.is_some_and(|end| end <= BASE + LEN)
    };
    let (mut now_ns, mut posted, mut done) = (0_u64, [0_u64; 2], [0_u64; 2]);
    for step in input.steps {
        let mut places = Vec::new();
        match step {
            Step::Signal(mut bytes) => {
                seal(&mut bytes);
                if let Ok(signal) = Signal::parse(&bytes) {
                    assert_eq!(signal.encode(), bytes);
                    nic.signal(&[1], signal);
                }
            }
            Step::Accept { to, number } => {
                let offer = nic.attributes().offer(&attributes);
                nic.signal(&[1], Signal::Accept { to: if to { NUMBER } else { number }, number, offer });
            }
            Step::Disconnect => {
                let _ = nic.disconnect(vi);
            }
            Step::Ask { is_of_peer } => {
                let names = [address(0), address(1)];
                let _ = nic.ask(vi, names, is_of_peer, NUMBER, Some(now_ns + 1_000_000_000), now_ns);
            }
            Step::Arrive(words) => {
                if let Ok(verdict) = Verdict::parse(words[0]) {
                    assert_eq!(verdict.pack(), words[0]);
                }
                let Ok(head) = Head::parse(words) else { continue };
                assert_eq!(head.pack(), words);
                if nic.arrive(vi, &head) == Arrival::Serve {
                    places.extend(nic.serves(vi, &head, 0, head.len));
                }
            }
            Step::Places { at, len } => {
                let _ = nic.places(vi, at, len.into(), &mut places);
            }
            Step::Arrived => nic.arrived(vi),
            Step::Piece(mut bytes) => {
                seal(&mut bytes);
                let Ok(piece) = vi_fragment::parse(&bytes) else { continue };
                if nic.arrive_in_pieces(vi, &piece, &mut places) == Some(true) {
                    nic.arrived(vi);
                }
            }
            Step::Post { descriptor, is_send } => {
                let side = if is_send { Side::Send } else { Side::Receive };
                let work = View::new(&descriptor[..]).and_then(|view| view.work(side));
                // The address identifies the descriptor.
                let address = BASE + 64 * (posted[usize::from(is_send)] % 1000);
                if nic.post(vi, side, DescriptorAt { address, handle: handle.0 }, |_| work).is_ok() {
                    posted[usize::from(is_send)] += 1;
                }
            }
            Step::Next => {
                if let Some(outgoing) = nic.next(vi) {
                    let _ = nic.bytes_of(vi, outgoing.number, 0, outgoing.head.len, &mut places);
                }
            }
            Step::Progress { number, how } => {
                let progress = match how % 4 {
                    0 => Progress::Accepted,
                    1 => Progress::Received,
                    2 => Progress::Fetched,
                    _ => Progress::Refused(Refusal::NoReceive),
                };
                nic.progress(vi, number.into(), progress);
            }
            Step::Done { is_send } => {
                let side = if is_send { Side::Send } else { Side::Receive };
                if let Ok(Some(completed)) = nic.done(vi, side) {
                    let expected = BASE + 64 * (done[usize::from(is_send)] % 1000);
                    assert_eq!(completed.at.address, expected, "out of its order");
                    done[usize::from(is_send)] += 1;
                }
            }
            Step::Deregister => {
                let _ = nic.deregister(BASE, handle);
            }
            Step::Time { ns } => {
                now_ns += u64::from(ns);
                nic.on_time(now_ns);
            }
            Step::Lost => nic.lost(vi),
            Step::Left => nic.left(vi),
        }
        assert!(places.iter().all(|place| place.len == 0 || is_within(place)), "{places:?}");
        while nic.next_event().is_some() {}
        while let Some((_, signal)) = nic.next_signal() {
            assert_eq!(Signal::parse(&signal.encode()), Ok(signal));
        }
    }
});

fn address(host: u8) -> Address {
    Address { host: vec![host], discriminator: b"peer".to_vec() }
}

/// Writes a valid checksum, because random bytes have none. Signals and fragments have the same checksum.
fn seal(bytes: &mut [u8]) {
    if bytes.len() >= vi_signal::HEADER_LEN.min(HEADER_LEN) {
        vi_fragment::seal(bytes);
    }
}
