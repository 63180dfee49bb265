//! Drives a connection with bulk transfers against a hostile peer. The peer keeps the order of messages, and
//! no other rule. Nothing panics, and memory is bounded. Bytes are written only within the checked range, in
//! order and without holes. The same holds on a dialled link, where arriving messages are held until they are
//! due.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_fuzz::datagram::encoded;
use netdyno_protocol::dial::timing::Departed;
use netdyno_protocol::frame::datagram::{Arrived, Header, Kind, LONGEST, parse};
use netdyno_protocol::frame::memory_key;
use netdyno_protocol::frame::transfer::Range;
use netdyno_protocol::reliability::{Config, Connection, Delivery, Event, Memories, Released};
use std::collections::VecDeque;

const WINDOW: u32 = 16;
/// The upper bound of the memory, in bytes. The unacknowledged messages are a window of requests, a window of
/// replies, and the messages of transfers in flight. As many messages as both windows are held. Buffers
/// double when they grow, and free ones are kept for reuse.
const MEMORY_AT_MOST: usize = (4 * WINDOW as usize + 3 * 64) * 2 * LONGEST + (1 << 16);
const MEMORY_LEN: u64 = 5000;

#[derive(Arbitrary, Debug)]
enum Step {
    Forge { kind: u8, number: u8, offset: u16, len: u16, is_there: bool, bytes: u16, words: u8, tells: bool },
    Store { len: u16 },
    Get { len: u16 },
    Attach,
    Request,
    Transmit { us: u16 },
}

#[derive(Default)]
struct Shelf {
    writing: Option<(Range, u64)>,
    /// Stores whose bytes are all in place and whose event has not come. On a dialled link the event comes
    /// later, when the next store may have begun.
    placed: VecDeque<Range>,
    /// Gets in their order: number, length, and bytes that arrived.
    gets: Vec<(u32, u64, u64)>,
}

impl Memories for Shelf {
    fn source(&mut self, number: u32, _: u64, len: usize, out: &mut Vec<u8>) -> bool {
        out.resize(out.len() + len, 0);
        // Some sources are not available now.
        number % 4 != 0
    }

    fn has(&mut self, key: &[u8]) -> bool {
        key[0] == 0
    }

    fn read(&mut self, range: &Range, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        assert!(at + len as u64 <= range.len);
        out.resize(out.len() + len, 0);
        is_there(range)
    }

    fn write(&mut self, range: &Range, at: u64, bytes: &[u8]) -> bool {
        let next = match self.writing.take() {
            Some((other, next)) if at != 0 => {
                assert_eq!(other, *range, "a store goes on as another one");
                next
            }
            _ => 0,
        };
        assert_eq!(at, next, "bytes of a store are missing");
        let end = at + bytes.len() as u64;
        assert!(end <= range.len);
        self.writing = Some((*range, end));
        // A store without bytes writes nothing.
        if end == range.len && end > 0 && is_there(range) {
            self.placed.push_back(*range);
        }
        is_there(range)
    }

    fn fetched(&mut self, number: u32, at: u64, bytes: &[u8]) {
        // Earlier gets may be complete and held.
        let get = self.gets.iter_mut().find(|(expected, ..)| *expected == number);
        let (_, len, came) = get.expect("nothing was asked for");
        assert_eq!(*came, at);
        *came += bytes.len() as u64;
        assert!(*came <= *len);
    }
}

fn is_there(range: &Range) -> bool {
    range.memory == 1 && range.offset + range.len <= MEMORY_LEN
}

fn departs(at: u64) -> Departed {
    Departed { at, at_once: at % 2 == 0 }
}

/// Handles an event of a transfer as a program does.
fn handle(connection: &mut Connection, shelf: &mut Shelf, event: Event, now_ns: u64) {
    match event {
        Event::Nothing => {}
        Event::Stored(stored) => {
            if stored.range.len > 0 {
                assert_eq!(shelf.placed.pop_front(), Some(stored.range));
            }
            assert!(self::is_there(&stored.range), "a refused store is handled");
            connection.reply(0, &[], &[], now_ns);
        }
        Event::Fetched(number) => {
            let (expected, len, came) = shelf.gets.remove(0);
            assert_eq!((expected, len), (number, came));
        }
        Event::GetRefused(range) => {
            let (expected, len, _) = shelf.gets.remove(0);
            assert_eq!((expected, len), (range.number, range.len));
        }
        Event::StoreRefused(_) => {}
    }
}

fuzz_target!(|steps: Vec<Step>| {
    run(&steps, false);
    run(&steps, true);
});

fn run(steps: &[Step], is_dialled: bool) {
    let config = Config { window: WINDOW, ..Config::default() };
    let mut connection = Connection::new(config, 1, 2, 0);
    if is_dialled {
        connection.hold_messages();
    }
    let mut shelf = Shelf::default();
    let (mut now_ns, mut sequence, mut completed) = (0, 0, 0_u16);
    for step in steps {
        if is_dialled {
            connection.depart(departs(now_ns));
        }
        match *step {
            Step::Forge { kind, number, offset, len, is_there, bytes, words, tells } => {
                completed = completed.wrapping_add(u16::from(tells));
                let kinds = [
                    Kind::Request,
                    Kind::Reply,
                    Kind::Store,
                    Kind::Chunk,
                    Kind::Get,
                    Kind::Fetched,
                    Kind::Refused,
                    Kind::Attach,
                ];
                let kind = kinds[usize::from(kind) % kinds.len()];
                let bytes = vec![number; usize::from(bytes) % LONGEST];
                let memory = u64::from(is_there);
                let range =
                    Range { number: number.into(), memory, offset: offset.into(), len: len.into() }.encode();
                let words = vec![u64::from(number); usize::from(words) % 5];
                let one = vec![u64::from(number)];
                let (words, payload) = match kind {
                    Kind::Request | Kind::Reply => (words, bytes),
                    Kind::Store => (words, [&range[..], &bytes].concat()),
                    Kind::Chunk | Kind::Fetched => (one, bytes),
                    Kind::Get => (Vec::new(), range.to_vec()),
                    Kind::Attach => (one, vec![number; memory_key::LEN]),
                    _ => (words, range.to_vec()),
                };
                let sent = connection.counters().sent as u32;
                let arrived = Arrived { expected: sent, ..Arrived::default() };
                let header = Header {
                    kind,
                    handler: 0,
                    connection: 1,
                    sequence,
                    transmission: sequence as u16,
                    arrived,
                    completed,
                    departed: (is_dialled && words.len() % 2 == 0).then(|| departs(now_ns)),
                };
                let datagram = encoded(&header, &words, &payload);
                let Ok(datagram) = parse(&datagram) else { continue };
                let before = connection.counters().delivered;
                if connection.receive(&datagram, now_ns) == Delivery::Now {
                    if is_dialled {
                        connection.hold(&datagram, &mut shelf, |_, _| now_ns);
                    } else if kind.is_of_transfer() {
                        let event = connection.transfer(&datagram, &mut shelf);
                        handle(&mut connection, &mut shelf, event, now_ns);
                    }
                }
                sequence += (connection.counters().delivered - before) as u32;
            }
            Step::Store { len } => {
                let _ = connection.store(0, &[1], [1, 0, len.into()], now_ns);
            }
            Step::Get { len } => {
                if let Ok(number) = connection.get([1, 0, len.into()], now_ns) {
                    shelf.gets.push((number, len.into(), 0));
                }
            }
            Step::Attach => {
                if let Ok(number) = connection.attach(&[0; memory_key::LEN], now_ns) {
                    shelf.gets.push((number, 0, 0));
                }
            }
            Step::Request => {
                let _ = connection.request(0, &[1], &[7; 100], now_ns);
            }
            Step::Transmit { us } => {
                now_ns += 1_000 * u64::from(us);
                connection.on_time(now_ns);
                // Releases some of the held messages, sometimes all of them.
                for _ in 0..us % 16 {
                    match connection.release(now_ns, |_| departs(now_ns)) {
                        Some(Released::Event(event)) => handle(&mut connection, &mut shelf, event, now_ns),
                        Some(Released::Message(bytes)) => connection.recycle(bytes),
                        None => break,
                    }
                }
                let mut sent = 0;
                loop {
                    while connection.transmit(now_ns).is_some() {
                        sent += 1;
                        assert!(sent <= 1000, "it sends without end");
                    }
                    if !connection.feed(&mut shelf, now_ns) {
                        break;
                    }
                }
            }
        }
        let held = connection.memory_bytes();
        assert!(held <= MEMORY_AT_MOST, "a connection holds {held} bytes");
    }
}
