//! Random programs on three hosts. After each step the providers must have done the same as the
//! reference model.
//!
//! The programs post valid and faulty descriptors. They connect as clients, servers and peers, over
//! signals that are lost, duplicated and reordered. They disconnect, destroy VIs, deregister memory,
//! also in the middle of a message, and lose peers. On unreliable VIs pieces of messages are lost,
//! duplicated and reordered.
//!
//! The reference does not predict connections; the test checks them. No VI is connected without a
//! request, with two peers, or with a VI whose attributes conflict. No request times out early. A
//! request reaches one program, once, and its requester gets that program's answer.

use crate::model::{Interruption, Model, Reply, Told};
use crate::world::{BASE, Host, MEMORY_LEN, Packet, World, address};
use netdyno_protocol::frame::vi_fragment;
use netdyno_protocol::frame::vi_message::Kind;
use netdyno_protocol::frame::vi_signal::{Request, Signal};
use netdyno_protocol::random::Random;
use netdyno_protocol::vi::*;

const HOSTS: usize = 3;
const STEPS: u64 = 600;
/// How many of the first steps are mostly about connections.
const MEETING: u64 = 60;
const DESCRIPTORS: u32 = 12;
/// The discriminators under which VIs request each other.
const NAMES: [&[u8]; 2] = [b"a", b"b"];

/// The generator's objects of a host, in addition to those of the reference.
#[derive(Default)]
struct Kept {
    tags: Vec<Ptag>,
    cqs: Vec<CqHandle>,
    waits: Vec<WaitHandle>,
    conns: Vec<ConnHandle>,
}

struct Run {
    random: Random,
    world: World,
    models: Vec<Model>,
    hosts: Vec<Kept>,
    /// Messages that the wire has taken and not yet reported as accepted.
    unaccepted: Vec<(usize, ViHandle, u64)>,
    /// The numbers of requests and acceptances, with the attributes of their VIs.
    asked: Vec<(u64, Offer)>,
    /// The requests of VIs.
    requests: Vec<Requested>,
    /// The numbers of the requests that reached a program.
    found: Vec<u64>,
    /// The numbers of the requests that a program accepted or rejected.
    answered: Vec<u64>,
    /// Factor by which avoidable faults are rarer.
    calm: u64,
    /// The reliability level of all VIs, if they have the same one.
    level: Option<Level>,
    /// Counts of each kind of step, so that a run without effect is noticed.
    pub counts: Counts,
}

/// The request of a VI.
struct Requested {
    at: usize,
    vi: ViHandle,
    number: u64,
    /// Time limit of the request, ns.
    until_ns: Option<u64>,
}

/// How often each kind of event happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub connected: u64,
    pub delivered: u64,
    pub refused: u64,
    pub pieces: u64,
    pub completed: u64,
    pub failed: u64,
    pub interrupted: u64,
    pub sent_at_once: u64,
    pub taken_at_once: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let attributes = NicAttributes { descriptors: DESCRIPTORS, ..NicAttributes::default() };
        let mut world = World::new(HOSTS);
        world.hosts = (0..HOSTS).map(|_| Host::new(attributes)).collect();
        let mut run = Self {
            models: Vec::new(),
            hosts: Vec::new(),
            unaccepted: Vec::new(),
            asked: Vec::new(),
            requests: Vec::new(),
            found: Vec::new(),
            answered: Vec::new(),
            calm: [1, 10, 1000][random.below(3) as usize],
            level: None,
            counts: Counts::default(),
            random: Random::new(random.bits()),
            world,
        };
        // Most runs have one level, so that VIs can be connected.
        run.level = (random.below(4) > 0).then(|| Level::ALL[random.below(3) as usize]);
        (0..HOSTS).for_each(|at| run.set_up(at));
        run
    }

    fn set_up(&mut self, at: usize) {
        let random = &mut self.random;
        let host = &mut self.world.hosts[at];
        host.bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
        let mut model = Model::new(host.bytes.clone(), DESCRIPTORS);
        model.regions.push((host.all, *host.nic.query_memory(BASE, host.all).unwrap()));
        let tags = vec![host.tag, host.nic.create_tag().unwrap()];
        let mut cqs = Vec::new();
        for _ in 0..random.below(3) {
            let most = if random.below(6) == 0 { 1 + random.below(10) as u32 } else { 64 };
            let cq = host.nic.create_cq(most).unwrap();
            model.add_cq(cq, most);
            cqs.push(cq);
        }
        let vis = 1 + random.below(3);
        self.models.push(model);
        self.hosts.push(Kept { tags, cqs, ..Kept::default() });
        (0..vis).for_each(|_| self.add_vi(at));
    }

    fn add_vi(&mut self, at: usize) {
        let Self { random, world, hosts, models, level, .. } = self;
        let Kept { tags, cqs, .. } = &hosts[at];
        let level = level.unwrap_or(Level::ALL[random.below(3) as usize]);
        let attributes = ViAttributes {
            // With the other tag a VI may use little memory.
            tag: tags[usize::from(random.below(12) == 0)],
            transfer_bytes: if random.below(8) == 0 { 300 } else { 2000 },
            can_be_written: random.below(8) > 0,
            can_be_read: level != Level::Unreliable && random.below(8) > 0,
            ..world.hosts[at].vi_attributes(level)
        };
        let chosen = [(); 2].map(|()| cqs.get(random.below(4) as usize).copied());
        let vi = world.hosts[at].nic.create_vi(attributes, chosen[0], chosen[1]).unwrap();
        models[at].add_vi(vi, attributes, chosen);
    }

    /// Destroys an idle VI, with everything in its queues, and creates another.
    fn replace_vi(&mut self, at: usize) {
        let vi = self.some_vi(at);
        let gone = self.world.hosts[at].nic.destroy_vi(vi);
        if self.models[at].vi(vi).state != State::Idle {
            return assert_eq!(gone, Err(ResourceError::State));
        }
        assert_eq!(gone, Ok(()));
        self.models[at].remove_vi(vi);
        self.unaccepted.retain(|(host, other, _)| (*host, *other) != (at, vi));
        self.add_vi(at);
        assert_eq!(self.world.hosts[at].nic.query_vi(vi), Err(ResourceError::NoSuchVi));
    }

    fn pick<T: Copy>(&mut self, things: &[T]) -> Option<T> {
        things.get(self.random.below(things.len() as u64) as usize).copied()
    }

    fn some_vi(&mut self, at: usize) -> ViHandle {
        let vis: Vec<ViHandle> = self.models[at].vis.iter().map(|vi| vi.handle).collect();
        self.pick(&vis).unwrap()
    }

    /// Returns a VI, mostly a connected one if there is any.
    fn some_busy_vi(&mut self, at: usize) -> ViHandle {
        let connected = self.models[at].vis.iter().filter(|vi| vi.state == State::Connected);
        let connected: Vec<ViHandle> = connected.map(|vi| vi.handle).collect();
        let is_any = self.random.below(8) == 0;
        self.pick(&connected).filter(|_| !is_any).unwrap_or_else(|| self.some_vi(at))
    }

    fn some_side(&mut self) -> Side {
        [Side::Send, Side::Receive][self.random.below(2) as usize]
    }

    fn some_name(&mut self) -> &'static [u8] {
        NAMES[self.random.below(6) as usize / 5]
    }

    /// Reports whether a fault happens now: once in `times` cases, or less often.
    fn goes_wrong(&mut self, times: u64) -> bool {
        self.random.below(times * self.calm) == 0
    }

    fn step(&mut self, step: u64) {
        let at = self.random.below(HOSTS as u64) as usize;
        if step < MEETING || self.random.below(5) == 0 {
            return match self.random.below(20) {
                0..5 => self.ask(at),
                5..7 => self.wait(at),
                7..14 => {
                    for _ in 0..self.random.below(12) {
                        self.signal();
                        self.look();
                    }
                }
                14 => self.pass_time(),
                15 => self.give_back(at),
                16 => self.replace_vi(at),
                _ => self.post(at, Side::Receive),
            };
        }
        match self.random.below(100) {
            0..16 => self.post(at, Side::Send),
            16..32 => self.post(at, Side::Receive),
            32..52 => self.send(at),
            52..80 => self.deliver(),
            80..85 => self.accepted(),
            85..92 => self.done(at),
            92..94 => self.register(at),
            94 => self.change_memory(at),
            95 => self.notify(at),
            96 => self.resize(at),
            97 if self.random.below(4) == 0 => self.disconnect(at),
            98 if self.goes_wrong(3) => self.lose(at),
            99 if self.goes_wrong(40) => self.fail(at),
            _ => {}
        }
    }

    /// Returns a segment that is mostly valid, anywhere in registered memory of a host.
    fn segment(&mut self, at: usize, [shortest, longest]: [u64; 2]) -> Segment {
        let mut regions: Vec<(MemHandle, Region)> = self.models[at].regions.clone();
        regions.retain(|(_, region)| region.len >= shortest);
        // The first region always exists and has the right tag.
        let first = regions[0];
        let (handle, region) = if self.random.below(2) == 0 { first } else { self.pick(&regions).unwrap() };
        let len = shortest + self.random.below(longest.min(region.len) - shortest + 1);
        let last = region.address + region.len - len;
        let is_at_end = self.random.below(6) == 0;
        let mut address =
            if is_at_end { last } else { region.address + self.random.below(region.len - len + 1) };
        let mut handle = handle.0;
        match self.random.below(60 * self.calm) {
            0 => handle ^= 1 << self.random.below(32),
            1 => address = address.wrapping_add(self.random.below(2 * MEMORY_LEN)),
            2 => address = address.wrapping_sub(1 + self.random.below(8)),
            3 => address = last + 1,
            _ => {}
        }
        Segment { address, handle, len: len as u32 }
    }

    fn post(&mut self, at: usize, side: Side) {
        let vi = self.some_busy_vi(at);
        let (count, lens) = match (side, self.goes_wrong(6)) {
            // Some messages have more than one piece.
            (Side::Send, false) if self.random.below(4) == 0 => (3, [300, 640]),
            (Side::Send, false) => (self.random.below(4), [0, 300]),
            (Side::Receive, false) => (1 + self.random.below(2), [900, 1800]),
            _ => (self.random.below(4), [0, 1800]),
        };
        let segments: Vec<Segment> = (0..count).map(|_| self.segment(at, lens)).collect();
        let link = self.models[at].vi(vi).link.clone();
        let peer = link.map_or(0, |link| usize::from(link.host[0]));
        let Segment { address, handle, .. } = self.segment(peer, [900, 1800]);
        let remote = Remote { address, handle };
        let operation = match (side, self.random.below(6)) {
            (Side::Receive, _) => Operation::Receive,
            (_, 0) => Operation::Write(remote),
            (_, 1) => Operation::Read(remote),
            _ => Operation::Send,
        };
        let may_tell = matches!(operation, Operation::Send | Operation::Write(_));
        let work = Work {
            operation,
            immediate: (may_tell && self.random.below(3) == 0).then(|| self.random.bits() as u32),
            is_fenced: side == Side::Send && self.random.below(10) == 0,
            len: segments.iter().map(|segment| segment.len).sum(),
            segments: segments.into_iter().collect(),
        };
        let (at_memory, is_sound) = self.write_descriptor(at, &work);
        let is_short = side == Side::Send && self.random.below(3) > 0;
        if is_short && self.send_at_once(at, vi, at_memory, &work) {
            return;
        }
        let ours = self.world.hosts[at].post_at(vi, side, at_memory);
        let theirs = self.models[at].post(vi, side, at_memory, is_sound.then_some(work));
        assert_eq!(ours, theirs);
    }

    /// Writes a descriptor. It is mostly well-formed and mostly in a valid place. Returns the place,
    /// and whether it is well-formed.
    fn write_descriptor(&mut self, at: usize, work: &Work) -> (DescriptorAt, bool) {
        let mut place = self.world.hosts[at].write_descriptor(work);
        let offset = (place.address - BASE) as usize;
        let is_sound = !self.goes_wrong(40);
        if !is_sound {
            self.world.hosts[at].bytes[offset + 14] |= 0x10;
        }
        let bytes = self.world.hosts[at].bytes[offset..offset + 128].to_vec();
        self.models[at].bytes[offset..offset + 128].copy_from_slice(&bytes);
        match self.random.below(80 * self.calm) {
            0 => place.address += 32,
            1 => place.handle ^= 1,
            // A region of its own, which may be deregistered before the descriptor completes.
            2 => {
                let tag = self.world.hosts[at].tag;
                let attributes = MemAttributes { tag, can_be_written: false, can_be_read: false };
                place.handle = self.register_at(at, place.address, 128, attributes).0;
            }
            _ => {}
        }
        (place, is_sound)
    }

    fn register_at(&mut self, at: usize, address: u64, len: u64, attributes: MemAttributes) -> MemHandle {
        let handle = self.world.hosts[at].nic.register(address, len, attributes).unwrap();
        self.models[at].regions.push((handle, Region { address, len, attributes }));
        handle
    }

    fn some_attributes(&mut self, at: usize) -> MemAttributes {
        let tags = self.hosts[at].tags.clone();
        // Mostly the tag of the VIs.
        let tag = if self.random.below(4) == 0 { self.pick(&tags).unwrap() } else { tags[0] };
        let [can_be_written, can_be_read] = [(); 2].map(|()| self.random.below(4) > 0);
        MemAttributes { tag, can_be_written, can_be_read }
    }

    fn register(&mut self, at: usize) {
        let attributes = self.some_attributes(at);
        let len = 1 + self.random.below(3000);
        let address = BASE + self.random.below(MEMORY_LEN - len);
        self.register_at(at, address, len, attributes);
    }

    /// Returns a region that may be deregistered: any but the first.
    fn some_region(&mut self, at: usize) -> Option<(u64, MemHandle)> {
        let regions: Vec<_> = self.models[at].regions.iter().skip(1).copied().collect();
        self.pick(&regions).map(|(handle, region)| (region.address, handle))
    }

    fn change_memory(&mut self, at: usize) {
        let Some((address, handle)) = self.some_region(at) else { return };
        if self.random.below(2) == 0 {
            self.world.hosts[at].nic.deregister(address, handle).unwrap();
            assert!(self.models[at].deregister(address, handle));
            let again = self.world.hosts[at].nic.deregister(address, handle);
            assert_eq!(again, Err(MemoryError::NoSuchRegion));
        } else {
            let attributes = self.some_attributes(at);
            self.world.hosts[at].nic.set_memory(address, handle, attributes).unwrap();
            for (other, region) in &mut self.models[at].regions {
                if *other == handle {
                    region.attributes = attributes;
                }
            }
        }
    }

    /// Puts the next message of a VI on its wire.
    fn send(&mut self, at: usize) {
        let vi = self.some_busy_vi(at);
        let link = self.models[at].vi(vi).link.clone();
        let before = link.as_ref().map_or(0, |link| self.world.wire(at, link.local).len());
        let ours = self.world.send(at, vi);
        let theirs = self.models[at].next(vi);
        let (Some(link), Some(number)) = (link, theirs) else {
            return assert_eq!((ours, theirs), (None, None));
        };
        if self.compare_sent(at, vi, (&link, before), number, ours) {
            self.unaccepted.push((at, vi, number as u64));
        }
    }

    /// Posts a send by the fast path, if possible, and compares the effect with the regular steps of
    /// the reference. Returns whether the fast path took the send.
    fn send_at_once(&mut self, at: usize, vi: ViHandle, descriptor: DescriptorAt, work: &Work) -> bool {
        let Some(link) = self.models[at].vi(vi).link.clone() else { return false };
        let before = self.world.wire(at, link.local).len();
        let is_taken = self.random.below(4) > 0;
        let Some(ours) = self.world.send_at_once(at, vi, descriptor, is_taken) else { return false };
        self.counts.sent_at_once += 1;
        assert_eq!(self.models[at].post(vi, Side::Send, descriptor, Some(work.clone())), Ok(()));
        let number = self.models[at].next(vi).unwrap();
        assert!(self.compare_sent(at, vi, (&link, before), number, Some(ours)));
        self.models[at].progress(vi, number, Progress::Accepted);
        true
    }

    /// Compares the packets on the wire after the first `before` with the message of the reference.
    /// Returns whether the message was sent.
    fn compare_sent(
        &mut self,
        at: usize,
        vi: ViHandle,
        (link, before): (&Link, usize),
        number: usize,
        ours: Option<Outgoing>,
    ) -> bool {
        let work = self.models[at].work(vi, number).clone();
        let bytes = match work.operation {
            Operation::Read(_) => Some(Vec::new()),
            _ => self.models[at].gather(vi, number),
        };
        let Some(bytes) = bytes else {
            assert_eq!(ours, None);
            return false;
        };
        let Some(Outgoing { number: ours, head }) = ours else { panic!("{work:?} is not sent") };
        assert_eq!((ours, head.number, head.len), (number as u64, number as u32, work.len));
        match (head.kind, work.operation) {
            (Kind::Send { immediate }, Operation::Send) => assert_eq!(immediate, work.immediate),
            (Kind::Write { remote, immediate }, Operation::Write(to)) => {
                assert_eq!((remote, immediate), (to, work.immediate));
            }
            (Kind::Read { remote }, Operation::Read(from)) => assert_eq!(remote, from),
            other => panic!("{other:?}"),
        }
        let mut carried = Vec::new();
        for packet in self.world.wire(at, link.local).iter().skip(before) {
            match packet {
                Packet::Message { bytes, .. } => carried.extend_from_slice(bytes),
                Packet::Datagram(piece) => {
                    carried.extend_from_slice(vi_fragment::parse(piece).unwrap().payload);
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(carried == bytes, "{work:?} carries something else");
        true
    }

    fn accepted(&mut self) {
        if self.unaccepted.is_empty() {
            return;
        }
        let which = self.random.below(self.unaccepted.len() as u64) as usize;
        let (at, vi, number) = self.unaccepted.remove(which);
        self.world.progress(at, vi, number, Progress::Accepted);
        self.models[at].progress(vi, number as usize, Progress::Accepted);
    }

    /// Delivers a packet. Pieces on unreliable VIs may be reordered, duplicated or lost.
    fn deliver(&mut self) {
        let ends: Vec<(usize, u64)> =
            self.world.wires.iter().filter(|(_, wire)| !wire.is_empty()).map(|(end, _)| *end).collect();
        let Some((at, local)) = self.pick(&ends) else { return };
        let fault = self.random.below(12);
        let wire = self.world.wires.get_mut(&(at, local)).unwrap();
        let mut nth = 0;
        if let Packet::Datagram(piece) = &wire[0] {
            match fault {
                0 => return drop(wire.pop_front()),
                1 => {
                    let twin = piece.clone();
                    wire.push_back(Packet::Datagram(twin));
                }
                2 => nth = self.random.below(wire.len() as u64) as usize,
                _ => {}
            }
        }
        let packet = wire.remove(nth).unwrap();
        match self.world.other_end(at, local) {
            Some((to, vi)) => self.arrive(at, local, to, vi, packet),
            None => self.world.take(at, local, packet, &mut |_| panic!("nobody is there")),
        }
    }

    fn arrive(&mut self, at: usize, local: u64, to: usize, vi: ViHandle, packet: Packet) {
        let interruption = self.interruption(to, vi, &packet);
        let answers = self.world.hosts[to].links[&vi].local;
        let before = self.world.wire(to, answers).len();
        self.world.takes_at_once = interruption.is_none() && self.random.below(2) == 0;
        self.world.take(at, local, packet.clone(), &mut |world| {
            match interruption {
                Some(Interruption::Deregistered(address, handle)) => {
                    world.hosts[to].nic.deregister(address, handle).unwrap();
                }
                Some(Interruption::Lost(vi)) => world.hosts[to].nic.lost(vi),
                None => {}
            }
            world.attend();
        });
        let replies: Vec<Reply> =
            self.world.wire(to, answers).iter().skip(before).filter_map(reply).collect();
        let model = &mut self.models[to];
        let mut expected = None;
        match packet {
            Packet::Message { head, bytes, .. } => {
                expected = model.deliver(vi, &head, &bytes, interruption);
                self.counts.delivered += u64::from(expected.is_some());
                self.counts.refused += u64::from(matches!(expected, Some(Reply::Refused(_))));
                let is_interrupted = interruption.is_some() && head.len > 0;
                self.counts.interrupted += u64::from(is_interrupted);
            }
            Packet::Datagram(piece) => {
                let piece = vi_fragment::parse(&piece).unwrap();
                model.deliver_piece(vi, &piece.head, piece.at, piece.payload);
                self.counts.pieces += 1;
            }
            Packet::Verdict { number, refusal } => {
                let progress = refusal.map_or(Progress::Received, Progress::Refused);
                model.progress(vi, number as usize, progress);
            }
            Packet::Fetched { number, bytes } => model.fetched(vi, number as usize, &bytes),
            Packet::Goodbye => model.left(vi),
        }
        assert_eq!(replies, expected.into_iter().collect::<Vec<_>>());
    }

    fn interruption(&mut self, to: usize, vi: ViHandle, packet: &Packet) -> Option<Interruption> {
        match self.random.below(10 * self.calm) {
            0 | 1 => {
                let used = self.region_in_use(to, vi, packet).filter(|_| self.random.below(4) > 0);
                let region = used.or_else(|| self.some_region(to));
                region.map(|(address, handle)| Interruption::Deregistered(address, handle))
            }
            2 => Some(Interruption::Lost(vi)),
            _ => None,
        }
    }

    /// Returns the region that a message goes to or comes from, if it may be deregistered.
    fn region_in_use(&self, to: usize, vi: ViHandle, packet: &Packet) -> Option<(u64, MemHandle)> {
        let Packet::Message { head, .. } = packet else { return None };
        let handle = match head.kind {
            Kind::Write { remote, .. } | Kind::Read { remote } => remote.handle,
            Kind::Send { .. } => self.models[to].next_place(vi)?.handle,
        };
        let region = self.models[to].regions.iter().skip(1).find(|(other, _)| other.0 == handle);
        region.map(|(handle, region)| (region.address, *handle))
    }

    fn done(&mut self, at: usize) {
        let vi = self.some_busy_vi(at);
        let cqs = self.hosts[at].cqs.clone();
        if let Some(cq) = self.pick(&cqs) {
            for _ in 0..self.random.below(64) {
                let ours = self.world.hosts[at].nic.cq_done(cq).unwrap();
                let theirs = self.models[at].cq_done(cq);
                assert_eq!(ours, theirs.map(|(vi, side)| Done { vi, side }));
            }
        }
        for side in [Side::Send, Side::Receive] {
            for _ in 0..self.random.below(u64::from(2 * DESCRIPTORS)) {
                let ours = self.world.hosts[at].nic.done(vi, side).unwrap();
                assert_eq!(ours.map(|done| done.at), self.models[at].done(vi, side));
            }
        }
    }

    fn notify(&mut self, at: usize) {
        let (vi, side) = (self.some_vi(at), self.some_side());
        let cqs = self.hosts[at].cqs.clone();
        match self.pick(&cqs).filter(|_| self.random.below(2) == 0) {
            Some(cq) => {
                self.world.hosts[at].nic.notify_cq(cq).unwrap();
                self.models[at].notify_cq(cq);
            }
            None => {
                self.world.hosts[at].nic.notify(vi, side).unwrap();
                self.models[at].notify(vi, side);
            }
        }
    }

    fn resize(&mut self, at: usize) {
        let cqs = self.hosts[at].cqs.clone();
        let Some(cq) = self.pick(&cqs) else { return };
        let most = 1 + self.random.below(30) as u32;
        let is_done = self.world.hosts[at].nic.resize_cq(cq, most).is_ok();
        assert_eq!(is_done, self.models[at].resize_cq(cq, most));
    }

    /// Requests a connection with a VI of another host, as a client or as a peer.
    fn ask(&mut self, at: usize) {
        let idle = self.models[at].vis.iter().filter(|vi| vi.state == State::Idle);
        let idle: Vec<ViHandle> = idle.map(|vi| vi.handle).collect();
        let is_any = self.random.below(10) == 0;
        let vi = self.pick(&idle).filter(|_| !is_any).unwrap_or_else(|| self.some_vi(at));
        // Hosts 0 and 1 request each other more often than others.
        let others = [[1, 1, 1, 2], [0, 0, 0, 2], [0, 0, 1, 1]][at];
        let to = others[self.random.below(4) as usize];
        let is_of_peer = self.random.below(3) > 0;
        let name = self.some_name();
        let number = self.world.number();
        let now_ns = self.world.now_ns;
        let until_ns = (self.random.below(2) == 0).then(|| now_ns + self.random.below(200_000_000));
        let names = [address(at, name), address(to, name)];
        let asked = self.world.hosts[at].nic.ask(vi, names, is_of_peer, number, until_ns, now_ns);
        let model = self.models[at].vi_mut(vi);
        match asked {
            Ok(()) => {
                assert_eq!(model.state, State::Idle);
                model.state = State::ConnectPending;
                let attributes = model.attributes;
                self.asked.push((number, self.world.hosts[at].nic.attributes().offer(&attributes)));
                self.requests.push(Requested { at, vi, number, until_ns });
            }
            Err(ConnectError::State) => assert_ne!(model.state, State::Idle),
            Err(error) => assert_eq!(error, ConnectError::Taken),
        }
    }

    /// Runs a server's step: it waits, checks for a request, and accepts or rejects it.
    fn wait(&mut self, at: usize) {
        let now_ns = self.world.now_ns;
        if self.hosts[at].waits.len() < 2 {
            let until_ns = (self.random.below(2) == 0).then(|| now_ns + self.random.below(400_000_000));
            let name = self.some_name();
            let wait = self.world.hosts[at].nic.wait(address(at, name), until_ns).unwrap();
            self.hosts[at].waits.push(wait);
        }
        let nic = &mut self.world.hosts[at].nic;
        let Kept { waits, conns, .. } = &mut self.hosts[at];
        let found = &mut self.found;
        waits.retain(|wait| match nic.waited(*wait, now_ns) {
            Ok(None) => true,
            Ok(Some(conn)) => {
                let number = nic.request(conn).unwrap().number;
                assert!(!found.contains(&number), "request {number} comes a second time");
                found.push(number);
                conns.push(conn);
                false
            }
            Err(error) => {
                assert_eq!(error, ConnectError::Timeout);
                false
            }
        });
        let Some(conn) = self.hosts[at].conns.pop() else { return };
        if self.random.below(6) == 0 {
            return self.reject(at, conn);
        }
        self.accept(at, conn);
    }

    fn reject(&mut self, at: usize, conn: ConnHandle) {
        self.answered.push(self.world.hosts[at].nic.request(conn).unwrap().number);
        self.world.hosts[at].nic.reject(conn).unwrap();
    }

    fn accept(&mut self, at: usize, conn: ConnHandle) {
        let (vi, number) = (self.some_vi(at), self.world.number());
        let model = self.models[at].vi(vi);
        let offer = self.world.hosts[at].nic.attributes().offer(&model.attributes);
        let Request { offer: theirs, number: request, .. } = *self.world.hosts[at].nic.request(conn).unwrap();
        match self.world.hosts[at].nic.accept(conn, vi, number) {
            Ok(()) => {
                assert_eq!((model.state, offer.conflict(&theirs)), (State::Idle, None));
                self.asked.push((number, offer));
                self.answered.push(request);
            }
            Err(ConnectError::State) => {
                assert_ne!(model.state, State::Idle);
                self.hosts[at].conns.push(conn);
            }
            Err(ConnectError::Conflict(conflict)) => {
                assert_eq!(offer.conflict(&theirs), Some(conflict));
                self.reject(at, conn);
            }
            Err(error) => assert_eq!(error, ConnectError::Timeout),
        }
    }

    /// Delivers a signal. It may be lost, duplicated or reordered.
    fn signal(&mut self) {
        if self.world.signals.is_empty() {
            return;
        }
        match self.random.below(10) {
            0 => return drop(self.world.signals.pop_front()),
            1 => {
                let twin = self.world.signals[0].clone();
                self.world.signals.push_back(twin);
            }
            2 => self.world.signals.rotate_left(1),
            _ => {}
        }
        let (from, to, signal) = self.world.signals[0].clone();
        if let Signal::Disconnect { to: local, number } = signal {
            let is_it = |link: &Link| {
                link.remote == number && (local == 0 || link.local == local) && link.host == [from as u8]
            };
            let parted = self.models[to].vis.iter().find(|vi| vi.link.as_ref().is_some_and(is_it));
            if let Some(vi) = parted.map(|vi| vi.handle) {
                self.models[to].left(vi);
            }
        }
        self.world.signal();
    }

    fn pass_time(&mut self) {
        let deadlines = self.world.hosts.iter().filter_map(|host| host.nic.deadline());
        let next_ns = deadlines.min().unwrap_or(self.world.now_ns);
        self.world.now_ns = self.world.now_ns.max(next_ns) + self.random.below(10_000_000);
        for host in &mut self.world.hosts {
            host.nic.on_time(self.world.now_ns);
            assert!(host.nic.deadline().is_none_or(|at_ns| at_ns > 0));
        }
    }

    /// Makes a broken VI usable again.
    fn give_back(&mut self, at: usize) {
        let vi = self.some_vi(at);
        if self.models[at].vi(vi).state == State::Error {
            self.world.hosts[at].nic.disconnect(vi).unwrap();
            self.models[at].disconnect(vi);
        }
    }

    fn disconnect(&mut self, at: usize) {
        let vi = self.some_vi(at);
        self.world.hosts[at].nic.disconnect(vi).unwrap();
        self.models[at].disconnect(vi);
    }

    fn lose(&mut self, at: usize) {
        let vi = self.some_vi(at);
        self.world.hosts[at].nic.lost(vi);
        // On an unreliable VI the pieces of a write may be arriving.
        let is_written = self.models[at].is_being_written(vi);
        self.models[at].lost(vi, is_written);
    }

    fn fail(&mut self, at: usize) {
        self.world.hosts[at].nic.fail();
        self.models[at].fail();
    }

    /// Compares the events and the states of all hosts with the reference.
    fn look(&mut self) {
        self.world.attend();
        for at in 0..HOSTS {
            let events: Vec<Event> = self.world.hosts[at].events.drain(..).collect();
            let told: Vec<Told> = events.iter().filter_map(told).collect();
            let completed = told.iter().filter(|told| matches!(told, Told::Completed(..))).count();
            let failed = told.iter().filter(|told| matches!(told, Told::Failed(..))).count();
            self.counts.completed += completed as u64;
            self.counts.failed += failed as u64;
            assert_eq!(told, self.models[at].told, "host {at}");
            self.models[at].told.clear();
            for event in events {
                if let Event::Linked { vi, link } = event {
                    self.linked(at, vi, link);
                }
            }
            self.look_at_states(at);
        }
    }

    fn linked(&mut self, at: usize, vi: ViHandle, link: Link) {
        self.counts.connected += 1;
        let find = |number| self.asked.iter().find(|(asked, _)| *asked == number).unwrap().1;
        assert_eq!(find(link.local).conflict(&find(link.remote)), None);
        assert_eq!(find(link.remote), link.offer);
        let all = self.models.iter().flat_map(|model| model.vis.iter().filter_map(|vi| vi.link.as_ref()));
        for other in all {
            assert!(
                other.local != link.local && other.remote != link.remote,
                "connected with two: {other:?}, {link:?}"
            );
        }
        let model = self.models[at].vi_mut(vi);
        assert!(matches!(model.state, State::Idle | State::ConnectPending));
        model.state = State::Connected;
        // The connection may have ended in the same step.
        model.link = self.world.hosts[at].links.get(&vi).cloned();
    }

    fn look_at_states(&mut self, at: usize) {
        for vi in self.models[at].vis.iter().map(|vi| vi.handle).collect::<Vec<_>>() {
            let query = self.world.hosts[at].nic.query_vi(vi).unwrap();
            let answer = self.world.hosts[at].nic.answer(vi);
            if self.models[at].vi(vi).state == State::ConnectPending && query.state == State::Idle {
                let mut requests = self.requests.iter().rev();
                let asked = requests.find(|asked| (asked.at, asked.vi) == (at, vi)).unwrap();
                let (is_found, is_answered) =
                    (self.found.contains(&asked.number), self.answered.contains(&asked.number));
                match answer {
                    Err(ConnectError::Timeout) => {
                        assert!(asked.until_ns.unwrap() <= self.world.now_ns, "its time is not up");
                    }
                    Err(ConnectError::NoMatch) => assert!(!is_found, "a program has seen the request"),
                    Err(ConnectError::Rejected) => assert!(is_answered, "no program has answered"),
                    Err(ConnectError::State) => panic!("nothing is said of why"),
                    Err(_) => {}
                    Ok(_) => panic!("{answer:?}"),
                }
                self.models[at].vi_mut(vi).state = State::Idle;
            }
            let model = self.models[at].vi(vi);
            assert_eq!(query.state, model.state, "host {at}, {vi:?}");
            assert_eq!(query.attributes, model.attributes);
            assert_eq!(query.is_send_empty, self.models[at].is_empty(vi, Side::Send));
            assert_eq!(query.is_receive_empty, self.models[at].is_empty(vi, Side::Receive));
            assert_eq!(self.world.hosts[at].links.get(&vi), model.link.as_ref());
        }
    }

    fn look_at_memory(&self) {
        for (host, model) in self.world.hosts.iter().zip(&self.models) {
            let differ = host.bytes.iter().zip(&model.bytes).position(|(ours, theirs)| ours != theirs);
            assert_eq!(differ, None, "this byte is another one");
        }
    }

    fn run(mut self) -> Counts {
        for step in 0..STEPS {
            self.step(step);
            self.look();
            if step % 16 == 0 || step + 1 == STEPS {
                self.look_at_memory();
            }
        }
        self.counts.taken_at_once = self.world.taken_at_once;
        self.counts
    }
}

fn told(event: &Event) -> Option<Told> {
    Some(match *event {
        Event::Completed { vi, side, at, completion } => Told::Completed(vi, side, at, completion),
        Event::Failed(Failure { error, vi, .. }) => Told::Failed(error, vi),
        Event::Callback { vi, side, at } => Told::Callback(vi, side, at),
        Event::CqCallback { cq, done: Done { vi, side } } => Told::CqCallback(cq, vi, side),
        Event::Linked { .. } | Event::Unlinked { .. } => return None,
    })
}

fn reply(packet: &Packet) -> Option<Reply> {
    match packet {
        Packet::Verdict { refusal: None, .. } => Some(Reply::InPlace),
        Packet::Verdict { refusal: Some(refusal), .. } => Some(Reply::Refused(*refusal)),
        Packet::Fetched { bytes, .. } => Some(Reply::Fetched(bytes.clone())),
        _ => None,
    }
}

/// Prints the seed of a failed run.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("NETDYNO_SEED={} NETDYNO_RUNS=1 shows it again", self.0);
        }
    }
}

#[test]
fn random_programs_do_what_the_reference_does() {
    let first: u64 = std::env::var("NETDYNO_SEED").map_or(1, |seed| seed.parse().unwrap());
    let runs: u64 = std::env::var("NETDYNO_RUNS").map_or(2_000, |runs| runs.parse().unwrap());
    let mut all = Counts::default();
    for seed in first..first + runs {
        let named = Named(seed);
        let counts = Run::new(seed).run();
        drop(named);
        all.connected += counts.connected;
        all.delivered += counts.delivered;
        all.refused += counts.refused;
        all.pieces += counts.pieces;
        all.completed += counts.completed;
        all.failed += counts.failed;
        all.interrupted += counts.interrupted;
        all.sent_at_once += counts.sent_at_once;
        all.taken_at_once += counts.taken_at_once;
    }
    println!("{runs} programs from seed {first}: {all:?}");
    // The counts must show that the programs did something.
    if runs >= 1_000 {
        let each = [all.connected, all.delivered, all.pieces, all.completed, all.failed];
        assert!(each.iter().all(|count| *count >= runs), "{all:?}");
        assert!(all.sent_at_once >= runs / 4 && all.taken_at_once >= runs / 4, "{all:?}");
        assert!(all.refused >= runs / 20 && all.interrupted >= runs / 20, "{all:?}");
    }
}
