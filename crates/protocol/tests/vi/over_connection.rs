//! Reliable VIs over a [`Connection`], on a network that loses, duplicates, reorders and damages
//! datagrams. The transport is the one that the documentation of [`netdyno_protocol::vi`] describes, in
//! its shortest form. Messages of any length arrive once, complete and in order. A refusal breaks both
//! ends, and the descriptors report it.

use crate::world::{BASE, Host, address, work};
use netdyno_protocol::faults::Faults;
use netdyno_protocol::frame::datagram::{self, Datagram, LONGEST_PAYLOAD};
use netdyno_protocol::frame::transfer::Range;
use netdyno_protocol::frame::vi_message::{Head, Kind, Refusal, Verdict, number_of};
use netdyno_protocol::random::Random;
use netdyno_protocol::reliability::{Config, Connection, Delivery, Event as Moved, Memories};
use netdyno_protocol::sim::network::Network;
use netdyno_protocol::vi::*;
use std::collections::{BTreeMap, VecDeque};

/// Handlers: for a message with its bytes, and for one whose bytes follow in a store.
const WHOLE: u8 = 0;
const ANNOUNCED: u8 = 1;
/// The window leaves room for a message that takes two requests.
const WINDOW: u32 = 32;
const MESSAGES: usize = 60;
/// Offsets of the memory for receives, for writes and for reads. The source of sends never changes.
const RECEIVED: u64 = 0;
const WRITTEN: u64 = 6000;
const READ: u64 = 12_000;
const LONGEST: u64 = 4000;
const END_NS: u64 = 20_000_000_000;

struct End {
    lent: Lent,
    connection: Connection,
    /// The completions in order, each with the bytes that had arrived by then.
    completed: Vec<(Side, Completion, Vec<u8>)>,
}

/// The part of an end that its connection needs to move bytes.
struct Lent {
    host: Host,
    vi: ViHandle,
    /// The number of the last message sent. The peer knows only the low 32 bits of such numbers.
    last_sent: u64,
    /// The descriptors of this side's stores and gets.
    works: BTreeMap<u32, u64>,
}

impl Lent {
    fn place(&mut self, segments: &[Segment], mut bytes: &[u8]) {
        for segment in segments {
            let (now, rest) = bytes.split_at(segment.len as usize);
            self.host.memory(segment.address, segment.len).copy_from_slice(now);
            bytes = rest;
        }
    }

    fn append(&mut self, segments: &[Segment], out: &mut Vec<u8>) {
        for segment in segments {
            out.extend_from_slice(self.host.memory(segment.address, segment.len));
        }
    }

    /// Places a piece of the arriving message.
    fn take(&mut self, at: u32, bytes: &[u8]) -> Result<(), Refusal> {
        let mut segments = Vec::new();
        self.host.nic.places(self.vi, at, bytes.len() as u32, &mut segments)?;
        self.place(&segments, bytes);
        Ok(())
    }
}

impl Memories for Lent {
    fn source(&mut self, number: u32, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        let mut segments = Vec::new();
        let work = self.works[&number];
        let is_there = self.host.nic.bytes_of(self.vi, work, at as u32, len as u32, &mut segments).is_ok();
        self.append(&segments, out);
        is_there
    }

    fn has(&mut self, _: &[u8]) -> bool {
        false
    }

    fn read(&mut self, range: &Range, at: u64, len: usize, out: &mut Vec<u8>) -> bool {
        let remote = Remote { address: range.offset, handle: range.memory as u32 };
        let head = Head { number: range.number, len: range.len as u32, kind: Kind::Read { remote } };
        if at == 0 && self.host.nic.arrive(self.vi, &head) != Arrival::Serve {
            return false;
        }
        let served = self.host.nic.serves(self.vi, &head, at as u32, len as u32);
        served.map(|segment| self.append(&[segment], out)).is_ok()
    }

    fn write(&mut self, _: &Range, at: u64, bytes: &[u8]) -> bool {
        self.take(at as u32, bytes).is_ok()
    }

    fn fetched(&mut self, number: u32, at: u64, bytes: &[u8]) {
        let (mut segments, work) = (Vec::new(), self.works[&number]);
        let len = bytes.len() as u32;
        if self.host.nic.bytes_of(self.vi, work, at as u32, len, &mut segments).is_ok() {
            self.place(&segments, bytes);
        }
    }
}

impl End {
    /// Puts the VI's messages on the connection, as long as there is room.
    fn send(&mut self, now_ns: u64) {
        let Self { lent, connection, .. } = self;
        while connection.in_flight() + 2 <= WINDOW && connection.has_room() {
            let Some(Outgoing { number, head }) = lent.host.nic.next(lent.vi) else { break };
            let len = u64::from(head.len);
            lent.last_sent = number;
            if let Kind::Read { remote } = head.kind {
                let get = connection.get([remote.handle.into(), remote.address, len], now_ns).unwrap();
                lent.works.insert(get, number);
            } else if head.len as usize <= LONGEST_PAYLOAD {
                let (mut segments, mut bytes) = (Vec::new(), Vec::new());
                lent.host.nic.bytes_of(lent.vi, number, 0, head.len, &mut segments).unwrap();
                lent.append(&segments, &mut bytes);
                connection.request(WHOLE, &head.pack(), &bytes, now_ns).unwrap();
                lent.host.nic.progress(lent.vi, number, Progress::Accepted);
            } else {
                connection.request(ANNOUNCED, &head.pack(), &[], now_ns).unwrap();
                let store = connection.store(0, &head.pack(), [0, 0, len], now_ns).unwrap();
                lent.works.insert(store, number);
            }
        }
    }

    fn transmit(&mut self, side: usize, network: &mut Network, now_ns: u64) {
        loop {
            while let Some(bytes) = self.connection.transmit(now_ns) {
                network.send(side, bytes, now_ns);
            }
            if !self.connection.feed(&mut self.lent, now_ns) {
                break;
            }
        }
    }

    fn arrive(&mut self, bytes: &[u8], now_ns: u64) {
        let Ok(datagram) = datagram::parse(bytes) else { return };
        if self.connection.receive(&datagram, now_ns) == Delivery::Now {
            self.handle(&datagram, now_ns);
            while let Some(bytes) = self.connection.buffered() {
                self.handle(&datagram::parse(&bytes).unwrap(), now_ns);
                self.connection.recycle(bytes);
            }
        }
    }

    fn handle(&mut self, datagram: &Datagram<'_>, now_ns: u64) {
        self.take(datagram, now_ns);
        self.attend();
    }

    fn take(&mut self, datagram: &Datagram<'_>, now_ns: u64) {
        let Self { lent, connection, .. } = self;
        let nic = &mut lent.host.nic;
        match datagram.header.kind {
            datagram::Kind::Request => {
                let head = Head::parse(datagram.words).unwrap();
                let is_announced = datagram.header.handler == ANNOUNCED;
                let refusal = match nic.arrive(lent.vi, &head) {
                    Arrival::Refuse(refusal) => Some(refusal),
                    // Its bytes follow in a store, and the answer comes after them.
                    Arrival::Place if is_announced => return,
                    Arrival::Place => lent.take(0, datagram.payload).err(),
                    other => panic!("{other:?}"),
                };
                if refusal.is_none() {
                    lent.host.nic.arrived(lent.vi);
                }
                let verdict = Verdict { number: head.number, refusal };
                connection.reply(0, &[verdict.pack()], &[], now_ns);
            }
            datagram::Kind::Reply => {
                let Verdict { number, refusal } = Verdict::parse(datagram.words[0]).unwrap();
                let progress = refusal.map_or(Progress::Received, Progress::Refused);
                nic.progress(lent.vi, number_of(lent.last_sent, number).unwrap(), progress);
            }
            _ => match connection.transfer(datagram, lent) {
                Moved::Nothing => {}
                Moved::Stored(stored) => {
                    lent.host.nic.arrived(lent.vi);
                    let number = Head::parse(stored.words).unwrap().number;
                    connection.reply(0, &[Verdict { number, refusal: None }.pack()], &[], now_ns);
                }
                Moved::Fetched(get) => lent.host.nic.progress(lent.vi, lent.works[&get], Progress::Fetched),
                Moved::StoreRefused(store) => {
                    let Head { number, kind, .. } = Head::parse(store.words).unwrap();
                    let is_write = matches!(kind, Kind::Write { .. });
                    let refusal = if is_write { Refusal::WriteDenied } else { Refusal::BadReceive };
                    let number = number_of(lent.last_sent, number).unwrap();
                    lent.host.nic.progress(lent.vi, number, Progress::Refused(refusal));
                }
                Moved::GetRefused(range) => {
                    let refused = Progress::Refused(Refusal::ReadDenied);
                    lent.host.nic.progress(lent.vi, lent.works[&range.number], refused);
                }
            },
        }
    }

    /// Reports stores whose bytes are all on the connection as accepted, and records completions.
    fn attend(&mut self) {
        let Self { lent, connection, completed } = self;
        for (transfer, work) in &lent.works {
            if !connection.needs_source(*transfer) {
                lent.host.nic.progress(lent.vi, *work, Progress::Accepted);
            }
        }
        while let Some(event) = lent.host.nic.next_event() {
            if let Event::Completed { side, completion, .. } = event {
                let operation = Status(completion.status.0 & 7 << 16);
                let place = match operation {
                    Status::OP_READ => READ,
                    Status::OP_REMOTE_WRITE => WRITTEN,
                    _ => RECEIVED,
                };
                let bytes = lent.host.memory(BASE + place, completion.len).to_vec();
                completed.push((side, completion, bytes));
            }
        }
    }
}

/// Creates two connected VIs, with a connection each.
fn ends(level: Level, seed: u64) -> [End; 2] {
    let mut hosts = [(); 2].map(|()| Host::new(NicAttributes::default()));
    let mut random = Random::new(seed);
    for byte in hosts.iter_mut().flat_map(|host| &mut host.bytes) {
        *byte = random.bits() as u8;
    }
    let vis = hosts.each_mut().map(|host| host.create_vi(level));
    for at in 0..2 {
        let names = [address(at, b"peer"), address(1 - at, b"peer")];
        hosts[at].nic.ask(vis[at], names, true, 11 * (at as u64 + 1), None, 0).unwrap();
    }
    while let Some((from, to, signal)) = (0..2)
        .find_map(|at| hosts[at].nic.next_signal().map(|(host, signal)| (at, usize::from(host[0]), signal)))
    {
        hosts[to].nic.signal(&[from as u8], signal);
    }
    let config = Config { window: WINDOW, ..Config::default() };
    let [first, second] = hosts;
    [(first, vis[0], 11, 22), (second, vis[1], 22, 11)].map(|(mut host, vi, local, remote)| {
        while host.nic.next_event().is_some() {}
        let connection = Connection::new(config, local, remote, 0);
        End {
            lent: Lent { host, vi, last_sent: 0, works: BTreeMap::new() },
            connection,
            completed: Vec::new(),
        }
    })
}

fn network(seed: u64) -> Network {
    let faults = Faults { loss: 0.1, duplicate: 0.05, reorder: 0.1, corrupt: 0.02, burst: 0.0 };
    Network::new(seed, [faults; 2], Vec::new(), END_NS / 2)
}

/// Drives both ends until nothing is left to do.
fn run(ends: &mut [End; 2], network: &mut Network) {
    let mut now_ns = 0;
    loop {
        for (side, end) in ends.iter_mut().enumerate() {
            end.connection.on_time(now_ns);
            end.send(now_ns);
            end.transmit(side, network, now_ns);
            end.attend();
            // A completion may allow the next descriptor to start.
            end.send(now_ns);
            end.transmit(side, network, now_ns);
        }
        let deadlines = ends.iter().filter_map(|end| end.connection.deadline());
        let Some(next_ns) = deadlines.chain(network.next_arrival_ns()).min() else { break };
        now_ns = next_ns.max(now_ns);
        assert!(now_ns < END_NS, "no end");
        while let Some((to, bytes)) = network.arrive(now_ns) {
            ends[to].arrive(&bytes, now_ns);
        }
    }
}

#[test]
fn messages_of_any_length_come_once_whole_and_in_their_order() {
    for seed in 1..=40 {
        for level in [Level::Delivery, Level::Reception] {
            let mut ends = ends(level, seed);
            let mut random = Random::new(seed);
            let mut expected = VecDeque::new();
            let source = ends[0].lent.host.bytes.clone();
            let readable = ends[1].lent.host.bytes.clone();
            let [ours, theirs] = ends.each_ref().map(|end| end.lent.vi);
            for _ in 0..MESSAGES {
                let (len, offset) = (random.below(LONGEST) as u32, random.below(8000));
                let immediate = (random.below(2) == 0).then(|| random.bits() as u32);
                let at = [WRITTEN, READ][usize::from(random.below(3) == 0)];
                let remote = Remote { address: BASE + at, handle: ends[1].lent.host.all.0 };
                let mut sent = match random.below(3) {
                    0 => work(Operation::Read(Remote { address: BASE + READ, ..remote }), &[]),
                    1 => work(Operation::Write(Remote { address: BASE + WRITTEN, ..remote }), &[]),
                    _ => work(Operation::Send, &[]),
                };
                let is_read = matches!(sent.operation, Operation::Read(_));
                // Reads are placed outside of the memory that sends use.
                let segment = ends[0].lent.host.segment(if is_read { READ } else { offset }, len);
                sent.segments = [segment].into_iter().collect();
                sent.len = len;
                sent.immediate = immediate.filter(|_| !is_read);
                let is_seen = sent.operation == Operation::Send || sent.immediate.is_some();
                if is_seen {
                    let segment = ends[1].lent.host.segment(RECEIVED, LONGEST as u32);
                    ends[1].lent.host.post(theirs, Side::Receive, &work(Operation::Receive, &[segment]));
                    expected.push_back((offset, len, sent.immediate));
                }
                ends[0].lent.host.post(ours, Side::Send, &sent);
            }
            run(&mut ends, &mut network(seed));
            for (_, completion, bytes) in ends.iter().flat_map(|end| &end.completed) {
                assert!(!completion.status.is_error(), "seed {seed}: {completion:?}");
                let read = &readable[READ as usize..READ as usize + completion.len as usize];
                let is_read = completion.status.has(Status::OP_READ);
                assert!(!is_read || bytes == read, "seed {seed}: something else was read");
            }
            for (_, completion, bytes) in &ends[1].completed {
                let (offset, len, immediate) = expected.pop_front().unwrap();
                assert_eq!((completion.len, completion.immediate), (len, immediate), "seed {seed}");
                let sent = &source[offset as usize..offset as usize + len as usize];
                assert!(bytes == sent, "seed {seed}: something else came");
            }
            assert_eq!(ends[0].completed.len(), MESSAGES, "seed {seed}");
            assert!(expected.is_empty(), "seed {seed}: {} did not come", expected.len());
        }
    }
}

#[test]
fn a_refusal_breaks_both_ends_and_is_told_on_the_message() {
    for (len, seed) in [100_u32, 3000].into_iter().flat_map(|len| (1..=20).map(move |seed| (len, seed))) {
        let mut ends = ends(Level::Reception, seed);
        let [ours, theirs] = ends.each_ref().map(|end| end.lent.vi);
        let host = &mut ends[1].lent.host;
        for len in [4000, 50] {
            let receive = work(Operation::Receive, &[host.segment(0, len)]);
            host.post(theirs, Side::Receive, &receive);
        }
        for _ in 0..3 {
            let host = &mut ends[0].lent.host;
            let segment = host.segment(0, len);
            host.post(ours, Side::Send, &work(Operation::Send, &[segment]));
        }
        run(&mut ends, &mut network(seed));
        let statuses = |end: &End| -> Vec<Status> {
            end.completed.iter().map(|(_, completion, _)| completion.status).collect()
        };
        let send = Status::DONE;
        let receive = Status::DONE.with(Status::OP_RECEIVE);
        let told = [send, send.with(Status::REMOTE_DESC_ERROR), send.with(Status::FLUSHED)];
        assert_eq!(statuses(&ends[0]), told, "seed {seed}, {len} bytes");
        assert_eq!(
            statuses(&ends[1]),
            [receive, receive.with(Status::LENGTH_ERROR)],
            "seed {seed}, {len} bytes"
        );
        for End { lent, .. } in &ends {
            assert_eq!(lent.host.nic.query_vi(lent.vi).unwrap().state, State::Error);
        }
    }
}
