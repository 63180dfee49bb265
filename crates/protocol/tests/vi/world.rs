//! Hosts with a provider and memory each, and a transport between them. The transport is the simplest
//! one: it moves one packet at a time, and only when a test tells it to.

use netdyno_protocol::frame::vi_fragment::{self, piece_len};
use netdyno_protocol::frame::vi_message::{Head, Kind, Refusal};
use netdyno_protocol::frame::vi_signal::{Address, Signal};
use netdyno_protocol::vi::*;
use std::collections::{BTreeMap, VecDeque};

/// Length of a host's memory, bytes: data in the first half, descriptors in the second.
pub const MEMORY_LEN: u64 = 1 << 15;
pub const BASE: u64 = 1 << 20;
const DESCRIPTORS: u64 = BASE + MEMORY_LEN / 2;
/// Distance of descriptors, bytes: the longest descriptor of these tests.
const DESCRIPTOR_LEN: u64 = 128;

/// Bytes that are placed in one step, on wires that carry messages of any length.
pub const PIECE_LEN: u32 = 100;

#[derive(Clone, Debug)]
pub enum Packet {
    /// A message of a reliable VI, with the bytes of a send or a write.
    Message { number: u64, head: Head, bytes: Vec<u8> },
    /// A piece of a message of an unreliable VI.
    Datagram(Vec<u8>),
    /// The answer to a message: placed or refused.
    Verdict { number: u64, refusal: Option<Refusal> },
    /// The bytes of an RDMA read.
    Fetched { number: u64, bytes: Vec<u8> },
    /// The sender has ended the connection.
    Goodbye,
}

/// A host.
pub struct Host {
    pub nic: Nic,
    pub bytes: Vec<u8>,
    pub tag: Ptag,
    pub all: MemHandle,
    /// The events of the provider.
    pub events: Vec<Event>,
    pub links: BTreeMap<ViHandle, Link>,
    posted: u64,
}

impl Host {
    pub fn new(attributes: NicAttributes) -> Self {
        let mut nic = Nic::new(attributes);
        let tag = nic.create_tag().unwrap();
        let can_be_read = attributes.read_levels.0 != 0;
        let open = MemAttributes { tag, can_be_written: true, can_be_read };
        let all = nic.register(BASE, MEMORY_LEN, open).unwrap();
        let bytes = vec![0; MEMORY_LEN as usize];
        Self { nic, bytes, tag, all, events: Vec::new(), links: BTreeMap::new(), posted: 0 }
    }

    pub fn vi_attributes(&self, level: Level) -> ViAttributes {
        ViAttributes {
            level,
            transfer_bytes: 8000,
            qos: 0,
            tag: self.tag,
            can_be_written: true,
            can_be_read: self.nic.attributes().can_read(level),
        }
    }

    pub fn create_vi(&mut self, level: Level) -> ViHandle {
        self.nic.create_vi(self.vi_attributes(level), None, None).unwrap()
    }

    pub fn memory(&mut self, address: u64, len: u32) -> &mut [u8] {
        let at = (address - BASE) as usize;
        &mut self.bytes[at..at + len as usize]
    }

    /// Returns a segment in the region that covers the whole memory.
    pub fn segment(&self, offset: u64, len: u32) -> Segment {
        Segment { address: BASE + offset, handle: self.all.0, len }
    }

    /// Registers a part of the memory a second time, as a region of its own.
    pub fn memory_of_its_own(&mut self, offset: u64, len: u64) -> MemHandle {
        let attributes = MemAttributes { tag: self.tag, can_be_written: false, can_be_read: false };
        self.nic.register(BASE + offset, len, attributes).unwrap()
    }

    /// Returns the place of the next descriptor.
    pub fn next_descriptor(&self) -> DescriptorAt {
        let slot = self.posted % (MEMORY_LEN / 2 / DESCRIPTOR_LEN);
        DescriptorAt { address: DESCRIPTORS + slot * DESCRIPTOR_LEN, handle: self.all.0 }
    }

    /// Writes a descriptor into memory, as a program does.
    pub fn write_descriptor(&mut self, work: &Work) -> DescriptorAt {
        let at = self.next_descriptor();
        self.posted += 1;
        let bytes = self.memory(at.address, DESCRIPTOR_LEN as u32);
        bytes.fill(0);
        View::new(bytes).unwrap().set_work(work).unwrap();
        at
    }

    /// Posts a descriptor in memory, as a transport that copies it once.
    pub fn post_at(&mut self, vi: ViHandle, side: Side, at: DescriptorAt) -> Result<(), PostError> {
        let copy = self.memory(at.address, DESCRIPTOR_LEN as u32).to_vec();
        let work = View::new(&copy[..]).and_then(|view| view.work(side));
        self.nic.post(vi, side, at, |_| work)
    }

    pub fn post(&mut self, vi: ViHandle, side: Side, work: &Work) -> DescriptorAt {
        let at = self.write_descriptor(work);
        self.post_at(vi, side, at).unwrap();
        at
    }

    /// Returns the completion written into a descriptor.
    pub fn status(&mut self, at: DescriptorAt) -> Completion {
        let view = View::new(&*self.memory(at.address, 64)).unwrap();
        let (status, len) = (view.status(), view.length());
        let immediate = status.has(Status::IMMEDIATE).then(|| view.immediate());
        Completion { status, len, immediate }
    }

    pub fn failures(&self) -> Vec<AsyncError> {
        let errors = self.events.iter().filter_map(|event| match event {
            Event::Failed(failure) => Some(failure.error),
            _ => None,
        });
        errors.collect()
    }
}

/// Returns a descriptor for a send, a receive or an RDMA.
pub fn work(operation: Operation, segments: &[Segment]) -> Work {
    Work {
        operation,
        immediate: None,
        is_fenced: false,
        segments: segments.iter().copied().collect(),
        len: segments.iter().map(|segment| segment.len).sum(),
    }
}

/// All hosts and the network between them.
pub struct World {
    pub hosts: Vec<Host>,
    /// The packets sent by each end of a connection, by host and by that host's number of the
    /// connection.
    pub wires: BTreeMap<(usize, u64), VecDeque<Packet>>,
    pub signals: VecDeque<(usize, usize, Signal)>,
    pub now_ns: u64,
    /// Whether arriving messages try the fast path first, and how many messages it took.
    pub takes_at_once: bool,
    pub taken_at_once: u64,
    numbers: u64,
}

pub fn address(host: usize, discriminator: &[u8]) -> Address {
    Address { host: vec![host as u8], discriminator: discriminator.to_vec() }
}

impl World {
    pub fn new(hosts: usize) -> Self {
        let hosts = (0..hosts).map(|_| Host::new(NicAttributes::default())).collect();
        Self {
            hosts,
            wires: BTreeMap::new(),
            signals: VecDeque::new(),
            now_ns: 0,
            takes_at_once: false,
            taken_at_once: 0,
            numbers: 0,
        }
    }

    /// Returns a new number.
    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Processes the events of the providers and collects their signals. Tells peers of disconnections
    /// as a transport does.
    pub fn attend(&mut self) {
        for at in 0..self.hosts.len() {
            while let Some(event) = self.hosts[at].nic.next_event() {
                self.attend_to(at, event);
            }
            while let Some((host, signal)) = self.hosts[at].nic.next_signal() {
                self.signals.push_back((at, host[0].into(), signal));
            }
        }
    }

    fn attend_to(&mut self, at: usize, event: Event) {
        let host = &mut self.hosts[at];
        match &event {
            Event::Linked { vi, link } => drop(host.links.insert(*vi, link.clone())),
            Event::Unlinked { vi, link, parting } => {
                host.links.remove(vi);
                if *parting == Parting::Ours {
                    self.part(at, link);
                }
            }
            Event::Completed { at, completion, .. } => {
                View::new(host.memory(at.address, 64)).unwrap().set_completion(completion);
            }
            _ => {}
        }
        self.hosts[at].events.push(event);
    }

    fn part(&mut self, at: usize, link: &Link) {
        if link.offer.level.is_reliable() {
            self.wire(at, link.local).push_back(Packet::Goodbye);
        } else {
            let signal = Signal::Disconnect { to: link.remote, number: link.local };
            self.signals.push_back((at, link.host[0].into(), signal));
        }
    }

    pub fn wire(&mut self, at: usize, local: u64) -> &mut VecDeque<Packet> {
        self.wires.entry((at, local)).or_default()
    }

    /// Delivers the first signal in flight.
    pub fn signal(&mut self) -> bool {
        let Some((from, to, signal)) = self.signals.pop_front() else { return false };
        let signal = Signal::parse(&signal.encode()).unwrap();
        self.hosts[to].nic.signal(&[from as u8], signal);
        self.attend();
        true
    }

    /// Returns the VI at the other end of a connection, with its host.
    pub fn other_end(&self, at: usize, local: u64) -> Option<(usize, ViHandle)> {
        let ends = self.hosts.iter().enumerate();
        ends.flat_map(|(to, host)| host.links.iter().map(move |(vi, link)| (to, *vi, link)))
            .find(|(_, _, link)| link.remote == local && link.host == [at as u8])
            .map(|(to, vi, _)| (to, vi))
    }

    /// Puts the next message of a VI on its wire.
    pub fn send(&mut self, at: usize, vi: ViHandle) -> Option<Outgoing> {
        let outgoing = self.hosts[at].nic.next(vi);
        self.attend();
        let Outgoing { number, head } = outgoing?;
        let link = self.hosts[at].links[&vi].clone();
        let bytes = match head.kind {
            Kind::Read { .. } => Some(Vec::new()),
            _ => self.gather(at, vi, number, head.len),
        };
        self.carry(at, &link, Outgoing { number, head }, bytes?);
        outgoing
    }

    fn carry(&mut self, at: usize, link: &Link, Outgoing { number, head }: Outgoing, bytes: Vec<u8>) {
        if link.offer.level.is_reliable() {
            self.wire(at, link.local).push_back(Packet::Message { number, head, bytes });
        } else {
            let pieces = fragments(link.remote, &head, &bytes);
            self.wire(at, link.local).extend(pieces.into_iter().map(Packet::Datagram));
        }
    }

    /// Posts a send by the fast path, if possible. `is_taken` says whether the wire takes the message.
    pub fn send_at_once(
        &mut self,
        at: usize,
        vi: ViHandle,
        descriptor: DescriptorAt,
        is_taken: bool,
    ) -> Option<Outgoing> {
        let link = self.hosts[at].links.get(&vi)?.clone();
        let Host { nic, bytes, .. } = &mut self.hosts[at];
        let memory = |address: u64, len: u64| &bytes[(address - BASE) as usize..][..len as usize];
        let read = |room: u64| {
            let bytes = memory(descriptor.address, room.min(DESCRIPTOR_LEN)).first_chunk()?;
            View::new(bytes).ok()?.short()
        };
        let mut sent = None;
        let completed = nic.send_at_once(vi, descriptor, read, |number, head, segment| {
            let bytes = if segment.len == 0 { &[] } else { memory(segment.address, segment.len.into()) };
            sent = Some((Outgoing { number, head: *head }, bytes.to_vec()));
            is_taken
        });
        let (outgoing, bytes) = sent?;
        self.carry(at, &link, outgoing, completed.is_some().then_some(bytes)?);
        self.complete(at, vi, Side::Send, completed?);
        Some(outgoing)
    }

    /// Writes the completion of a fast-path descriptor, which no event reports.
    fn complete(&mut self, host: usize, vi: ViHandle, side: Side, Completed { at, completion }: Completed) {
        self.attend_to(host, Event::Completed { vi, side, at, completion });
    }

    /// Gathers the bytes of a message, piece by piece.
    fn gather(&mut self, at: usize, vi: ViHandle, number: u64, len: u32) -> Option<Vec<u8>> {
        let host = &mut self.hosts[at];
        let mut bytes = Vec::new();
        for begin in (0..len).step_by(PIECE_LEN as usize) {
            let mut segments = Vec::new();
            let piece_len = PIECE_LEN.min(len - begin);
            if host.nic.bytes_of(vi, number, begin, piece_len, &mut segments).is_err() {
                self.attend();
                return None;
            }
            for segment in segments {
                bytes.extend_from_slice(host.memory(segment.address, segment.len));
            }
        }
        Some(bytes)
    }

    pub fn progress(&mut self, at: usize, vi: ViHandle, number: u64, progress: Progress) {
        self.hosts[at].nic.progress(vi, number, progress);
        self.attend();
    }

    /// Delivers the first packet on the wire of an end. Calls `interrupt` after the first piece of a
    /// message.
    pub fn deliver(&mut self, at: usize, local: u64, interrupt: &mut dyn FnMut(&mut Self)) -> bool {
        let Some(packet) = self.wire(at, local).pop_front() else { return false };
        self.take(at, local, packet, interrupt);
        true
    }

    pub fn take(&mut self, at: usize, local: u64, packet: Packet, interrupt: &mut dyn FnMut(&mut Self)) {
        let Some((to, vi)) = self.other_end(at, local) else { return };
        let answer = self.hosts[to].links[&vi].local;
        match packet {
            Packet::Message { number, head, bytes } => {
                let reply = self.take_message(to, vi, number, &head, &bytes, interrupt);
                self.wire(to, answer).extend(reply);
            }
            Packet::Datagram(bytes) => self.take_datagram(to, vi, &bytes),
            Packet::Verdict { number, refusal } => {
                let progress = refusal.map_or(Progress::Received, Progress::Refused);
                self.progress(to, vi, number, progress);
            }
            Packet::Fetched { number, bytes } => self.take_fetched(to, vi, number, &bytes),
            Packet::Goodbye => self.hosts[to].nic.left(vi),
        }
        self.attend();
    }

    fn take_message(
        &mut self,
        to: usize,
        vi: ViHandle,
        number: u64,
        head: &Head,
        bytes: &[u8],
        interrupt: &mut dyn FnMut(&mut Self),
    ) -> Option<Packet> {
        if self.takes_at_once && self.take_at_once(to, vi, head, bytes) {
            return Some(Packet::Verdict { number, refusal: None });
        }
        let refused = |refusal| Some(Packet::Verdict { number, refusal: Some(refusal) });
        let arrival = self.hosts[to].nic.arrive(vi, head);
        let mut fetched = Vec::new();
        if matches!(arrival, Arrival::Place | Arrival::Serve) {
            for begin in (0..head.len).step_by(PIECE_LEN as usize) {
                let len = PIECE_LEN.min(head.len - begin);
                let host = &mut self.hosts[to];
                if arrival == Arrival::Serve {
                    match host.nic.serves(vi, head, begin, len) {
                        Ok(segment) => fetched.extend_from_slice(host.memory(segment.address, segment.len)),
                        Err(refusal) => return refused(refusal),
                    }
                } else {
                    let mut segments = Vec::new();
                    match host.nic.places(vi, begin, len, &mut segments) {
                        Ok(()) => host.place(&segments, &bytes[begin as usize..]),
                        Err(refusal) => return refused(refusal),
                    }
                }
                if begin == 0 {
                    interrupt(self);
                    // The interruption may have ended the connection.
                    self.hosts[to].links.get(&vi)?;
                }
            }
        }
        match arrival {
            Arrival::Place => {
                self.hosts[to].nic.arrived(vi);
                Some(Packet::Verdict { number, refusal: None })
            }
            Arrival::Serve => Some(Packet::Fetched { number, bytes: fetched }),
            Arrival::Refuse(refusal) => refused(refusal),
            Arrival::Drop => None,
        }
    }

    fn take_at_once(&mut self, to: usize, vi: ViHandle, head: &Head, bytes: &[u8]) -> bool {
        let Host { nic, bytes: memory, .. } = &mut self.hosts[to];
        let taken = nic.take_at_once(vi, head, |place| {
            if place.len > 0 {
                memory[(place.address - BASE) as usize..][..place.len as usize].copy_from_slice(bytes);
            }
        });
        self.taken_at_once += u64::from(taken.is_some());
        if let Some(completed) = taken.and_then(|taken| taken.receive) {
            self.hosts[to].nic.keep(vi, completed);
            self.complete(to, vi, Side::Receive, completed);
        }
        taken.is_some()
    }

    fn take_datagram(&mut self, to: usize, vi: ViHandle, bytes: &[u8]) {
        let piece = vi_fragment::parse(bytes).unwrap();
        let host = &mut self.hosts[to];
        let mut segments = Vec::new();
        if let Some(is_whole) = host.nic.arrive_in_pieces(vi, &piece, &mut segments) {
            host.place(&segments, piece.payload);
            if is_whole {
                host.nic.arrived(vi);
            }
        }
    }

    fn take_fetched(&mut self, to: usize, vi: ViHandle, number: u64, bytes: &[u8]) {
        let host = &mut self.hosts[to];
        let mut segments = Vec::new();
        if host.nic.bytes_of(vi, number, 0, bytes.len() as u32, &mut segments).is_ok() {
            host.place(&segments, bytes);
            host.nic.progress(vi, number, Progress::Fetched);
        }
    }

    /// Delivers everything until nothing is left to do. Wires take every message.
    pub fn run(&mut self) {
        self.attend();
        loop {
            let mut is_busy = self.signal();
            for at in 0..self.hosts.len() {
                let linked: Vec<(ViHandle, u64)> =
                    self.hosts[at].links.iter().map(|(vi, link)| (*vi, link.local)).collect();
                for (vi, _) in linked {
                    while let Some(Outgoing { number, .. }) = self.send(at, vi) {
                        self.progress(at, vi, number, Progress::Accepted);
                        is_busy = true;
                    }
                }
            }
            for (at, local) in self.wires.keys().copied().collect::<Vec<_>>() {
                is_busy |= self.deliver(at, local, &mut |_| {});
            }
            if !is_busy {
                break;
            }
        }
    }

    /// Connects two new VIs of a level, on the first two hosts.
    pub fn connect(&mut self, level: Level) -> [ViHandle; 2] {
        let ends = [0, 1].map(|at| self.hosts[at].create_vi(level));
        self.connect_as_peers(ends);
        ends
    }

    pub fn connect_as_peers(&mut self, ends: [ViHandle; 2]) {
        self.ask_as_peers(ends);
        self.run();
        for (at, vi) in ends.into_iter().enumerate() {
            assert!(self.hosts[at].nic.answer(vi).unwrap().is_some());
        }
    }

    /// Lets two VIs on the first two hosts request each other as peers.
    pub fn ask_as_peers(&mut self, ends: [ViHandle; 2]) {
        for (at, vi) in ends.into_iter().enumerate() {
            let (number, now_ns) = (self.number(), self.now_ns);
            let names = [address(at, b"peer"), address(1 - at, b"peer")];
            self.hosts[at].nic.ask(vi, names, true, number, None, now_ns).unwrap();
        }
        self.attend();
    }
}

impl Host {
    fn place(&mut self, segments: &[Segment], mut bytes: &[u8]) {
        for segment in segments {
            let (now, rest) = bytes.split_at(segment.len as usize);
            self.memory(segment.address, segment.len).copy_from_slice(now);
            bytes = rest;
        }
    }
}

/// Returns the datagrams of a message.
pub fn fragments(connection: u64, head: &Head, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    loop {
        let len = piece_len(head, at);
        let mut piece = Vec::new();
        vi_fragment::write(connection, head, at, &mut piece);
        piece.extend_from_slice(&bytes[at as usize..at as usize + len]);
        vi_fragment::seal(&mut piece);
        pieces.push(piece);
        at += len as u32;
        if at >= head.len {
            return pieces;
        }
    }
}
