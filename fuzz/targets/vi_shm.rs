//! Drives a provider over shared memory with an unknown peer of the same user. The peer sends anything to the
//! agent's socket, passes anything as its memory, and writes anything into the provider's inbox. Nothing
//! panics. Memory that is not registered does not change. When the peer has gone, the VI is available to
//! others.
#![no_main]

#[path = "../../crates/stack/tests/conformance/vi/stranger.rs"]
mod stranger;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_host::lane::{PIECE, WORDS, Writer};
use netdyno_protocol::frame::vi_fragment;
use netdyno_protocol::frame::vi_message::{Head, Kind};
use netdyno_protocol::frame::vi_signal::{HEADER_LEN, Signal};
use netdyno_stack::vi::*;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use stranger::{Said, Stranger};

/// Lengths in bytes of the registered memory, all of which peers may access, and of the unregistered memory
/// behind it.
const OPEN_LEN: usize = 1 << 17;
const GUARD_LEN: usize = 1 << 12;
/// The number of descriptors. Peers may not access them.
const DESCRIPTORS: usize = 64;
const GUARDED: u8 = 0x5a;
/// The unknown peer's number for its connection.
const NUMBER: u64 = 9;
/// Length of the control words beside a message ring, in bytes.
const PAGE: usize = 4096;

#[derive(Arbitrary, Debug)]
struct Input {
    level: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// Any bytes, with a valid checksum or not, and with the inbox, another descriptor or none.
    Say {
        bytes: Vec<u8>,
        is_sealed: bool,
        passes: u8,
    },
    Request {
        number: u8,
        is_of_peer: bool,
    },
    Disconnect {
        number: u8,
    },
    Hear,
    /// A cache-line slot as a peer writes it, or almost.
    Message {
        code: u8,
        what: u8,
        len: u32,
        at: u32,
        number: u32,
    },
    /// A cache-line slot with any content.
    Line {
        code: u8,
        words: [u64; WORDS],
    },
    /// A control word of its own inbox.
    Word {
        at: u16,
        value: u64,
    },
    Again,
    Waited,
    Receive {
        len: u32,
    },
    Send {
        what: u8,
        len: u32,
    },
    Progress,
    Done,
    Deregister,
    Part,
}

/// The memory of the program.
#[repr(C, align(64))]
struct Memory {
    open: [u8; OPEN_LEN],
    guard: [u8; GUARD_LEN],
    descriptors: [[u8; 128]; DESCRIPTORS],
}

/// A program that waits for connection requests and accepts all.
struct Program {
    // Dropped before the memory, which it uses until then.
    provider: Provider,
    memory: Box<Memory>,
    open: MemHandle,
    closed: MemHandle,
    vi: ViHandle,
    wait: Option<WaitHandle>,
    address: Address,
    posted: usize,
}

impl Program {
    fn open(level: Level) -> Self {
        let mut provider = Provider::open(Config::default()).expect("a provider");
        // SAFETY: all fields are bytes, and zero is a valid byte.
        let mut memory = unsafe { Box::<Memory>::new_zeroed().assume_init() };
        memory.guard.fill(GUARDED);
        let tag = provider.create_tag().expect("a tag");
        let can_be_read = level.is_reliable();
        let open = MemAttributes { tag, can_be_written: true, can_be_read: true };
        let closed = MemAttributes { tag, can_be_written: false, can_be_read: false };
        let at = &raw mut *memory;
        // SAFETY: the memory outlives the provider, and is accessed only as bytes.
        let (open, closed) = unsafe {
            let open = provider.register((&raw mut (*at).open).cast(), OPEN_LEN, open);
            let len = 128 * DESCRIPTORS;
            (open, provider.register((&raw mut (*at).descriptors).cast(), len, closed))
        };
        let attributes = ViAttributes {
            level,
            transfer_bytes: OPEN_LEN as u32,
            qos: 0,
            tag,
            can_be_written: true,
            can_be_read,
        };
        let vi = provider.create_vi(attributes, None, None).expect("a VI");
        let discriminator = format!("fuzz-{}", std::process::id()).into_bytes();
        let address = Address { host: provider.host(), discriminator };
        let wait = provider.wait(&address.discriminator, None).ok();
        let (open, closed) = (open.expect("memory"), closed.expect("memory"));
        Self { provider, memory, open, closed, vi, wait, address, posted: 0 }
    }

    fn base(&self) -> u64 {
        self.memory.open.as_ptr().expose_provenance() as u64
    }

    fn post(&mut self, side: Side, operation: Operation, len: u32) {
        let len = len % OPEN_LEN as u32;
        let segments = [Segment { address: self.base(), handle: self.open.0, len }].into_iter().collect();
        let work = Work { operation, immediate: None, is_fenced: false, segments, len };
        let place = &mut self.memory.descriptors[self.posted % DESCRIPTORS];
        let address = place.as_ptr().expose_provenance() as u64;
        let _ = View::new(&mut place[..]).and_then(|mut view| view.set_work(&work));
        let at = DescriptorAt { address, handle: self.closed.0 };
        // SAFETY: the descriptor is in registered memory.
        self.posted += usize::from(unsafe { self.provider.post(self.vi, side, at) }.is_ok());
    }

    /// Accepts the connection request that has arrived, if any.
    fn waited(&mut self) {
        let Some(wait) = self.wait else { return };
        match self.provider.waited(wait) {
            Ok(None) => {}
            Ok(Some(conn)) => {
                if self.provider.accept(conn, self.vi).is_err() {
                    let _ = self.provider.reject(conn);
                }
                self.wait = self.provider.wait(&self.address.discriminator, None).ok();
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

fuzz_target!(|input: Input| {
    let level = Level::ALL[usize::from(input.level) % 3];
    let mut program = Program::open(level);
    let user = rustix::process::geteuid().as_raw();
    let mut stranger = Stranger::connect(user, &program.address).expect("somebody waits");
    let mut writer = None;
    let is_reliable = level.is_reliable();
    let offer = Offer {
        level,
        transfer_bytes: OPEN_LEN as u32,
        qos: 0,
        can_be_written: true,
        can_be_read: is_reliable,
        can_read: is_reliable,
    };
    let request = |number, is_of_peer| {
        let to = program.address.clone();
        Signal::Request(Request { number, is_of_peer, from: to.clone(), to, offer }).encode()
    };
    // Most steps need a connected peer.
    let first = request(NUMBER, false);
    let requests: Vec<_> =
        (0..4).map(|number| [false, true].map(|is_of_peer| request(NUMBER + number, is_of_peer))).collect();
    let _ = stranger.say_with_inbox(&first);
    program.waited();
    for step in input.steps {
        if writer.is_none() && matches!(stranger.hear(), Said::Bytes(_)) {
            writer = stranger.writer();
        }
        match step {
            Step::Say { mut bytes, is_sealed, passes } => {
                bytes.truncate(1000);
                if is_sealed && bytes.len() >= HEADER_LEN {
                    vi_fragment::seal(&mut bytes);
                }
                let _ = match passes % 3 {
                    0 => stranger.say_with_inbox(&bytes),
                    1 => stranger.say(&bytes, Some(std::io::stderr().as_fd())),
                    _ => stranger.say(&bytes, None),
                };
            }
            Step::Request { number, is_of_peer } => {
                let request = &requests[usize::from(number) % 4][usize::from(is_of_peer)];
                let _ = stranger.say_with_inbox(request);
            }
            Step::Disconnect { number } => {
                let number = NUMBER + u64::from(number % 4);
                let _ = stranger.say(&Signal::Disconnect { to: 0, number }.encode(), None);
            }
            Step::Hear => drop(stranger.hear()),
            Step::Message { code, what, len, at, number } => {
                let remote = Remote { address: program.base() + u64::from(at >> 8), handle: program.open.0 };
                let kind = match what % 4 {
                    0 => Kind::Send { immediate: None },
                    1 => Kind::Write { remote, immediate: Some(at) },
                    2 => Kind::Write { remote, immediate: None },
                    _ => Kind::Read { remote },
                };
                let len = len % (OPEN_LEN as u32 + 10);
                let mut words = [0; WORDS];
                words[..4].copy_from_slice(&Head { number, len, kind }.pack());
                if code % 8 == 4 {
                    words[0] = u64::from(number) << 32 | u64::from(len.min(PIECE as u32));
                }
                if let Some(room) = writer.as_mut().and_then(Writer::room) {
                    room.write(code % 8, &words);
                }
            }
            Step::Line { code, words } => {
                if let Some(room) = writer.as_mut().and_then(Writer::room) {
                    room.write(code, &words);
                }
            }
            Step::Word { at, value } => {
                let at = usize::from(at) % (PAGE / 8) * 8;
                stranger.inbox.region.word(at).store(value, Ordering::Release);
            }
            Step::Again => {
                if let Ok(again) = Stranger::connect(user, &program.address) {
                    (stranger, writer) = (again, None);
                }
            }
            Step::Waited => program.waited(),
            Step::Receive { len } => program.post(Side::Receive, Operation::Receive, len),
            Step::Send { what, len } => {
                let remote = Remote { address: 1, handle: 1 };
                let operation = match what % 3 {
                    0 => Operation::Send,
                    1 => Operation::Write(remote),
                    _ => Operation::Read(remote),
                };
                program.post(Side::Send, operation, len);
            }
            Step::Progress => drop(program.provider.progress()),
            Step::Done => {
                for side in [Side::Send, Side::Receive] {
                    let _ = program.provider.done(program.vi, side);
                }
            }
            Step::Deregister => {
                let base = program.memory.open.as_ptr();
                let _ = program.provider.deregister(base, program.open);
            }
            Step::Part => drop(program.provider.disconnect(program.vi)),
        }
    }
    drop(stranger);
    program.provider.progress();
    assert!(program.memory.guard.iter().all(|byte| *byte == GUARDED), "memory that is not registered");
    program.provider.disconnect(program.vi).expect("it is there");
    program.provider.destroy_vi(program.vi).expect("it is idle");
});
