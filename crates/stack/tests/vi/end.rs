//! One end of a connection: a provider, memory that is registered with it, and descriptors in that.

#![allow(dead_code, reason = "each test file uses its part")]

use crate::common::process::{from_hex, to_hex};
use crate::common::{Deadline, PATIENCE};
use netdyno_host::wait::{Wait, nap_beside_others};
use netdyno_stack::vi::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Room for messages. Descriptors are behind it.
const DATA_LEN: usize = 4 << 20;
const DESCRIPTORS: usize = 4096;
/// Those of one side of the queues: more than a queue holds, however fast the other one is.
const DESCRIPTORS_OF_SIDE: usize = DESCRIPTORS / 2;
/// Room for a descriptor of these tests.
const DESCRIPTOR_LEN: usize = 128;
const LEN: usize = DATA_LEN + DESCRIPTORS * DESCRIPTOR_LEN;
/// Bytes of one message or RDMA, at most.
pub const LONGEST: u32 = 1 << 20;

static ENDS: AtomicU32 = AtomicU32::new(0);

/// Memory of a program, which only copies are made of.
struct Arena {
    base: *mut u8,
    /// The provider's own. Otherwise it is of the heap.
    lent: Option<Arc<Loan>>,
}

// SAFETY: plain memory that nobody else has.
unsafe impl Send for Arena {}

impl Arena {
    fn layout() -> Layout {
        Layout::from_size_align(LEN, 64).unwrap()
    }

    fn new() -> Self {
        // SAFETY: the layout has bytes.
        let base = unsafe { alloc_zeroed(Self::layout()) };
        assert!(!base.is_null());
        Self { base, lent: None }
    }

    fn of(provider: &mut Provider) -> Self {
        let lent = provider.allocate(LEN).unwrap();
        Self { base: lent.base().as_ptr(), lent: Some(lent) }
    }

    fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        assert!(offset + len <= LEN);
        let mut bytes = vec![0; len];
        // SAFETY: inside.
        unsafe { self.base.add(offset).copy_to_nonoverlapping(bytes.as_mut_ptr(), len) };
        bytes
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= LEN);
        // SAFETY: inside.
        unsafe { self.base.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.lent.is_none() {
            // SAFETY: it was allocated so.
            unsafe { dealloc(self.base, Self::layout()) };
        }
    }
}

/// An address, as one process tells it to another.
pub fn spell(address: &Address) -> String {
    format!("{}/{}", to_hex(&address.host), to_hex(&address.discriminator))
}

/// The address that was spelled so.
pub fn spelled(text: &str) -> Address {
    let (host, discriminator) = text.split_once('/').unwrap();
    Address { host: from_hex(host), discriminator: from_hex(discriminator) }
}

pub struct End {
    // Before the memory: it is used until the provider is gone.
    pub provider: Provider,
    arena: Arena,
    pub tag: Ptag,
    /// All of the memory, which peers may write and read.
    pub all: MemHandle,
    /// Descriptors that were posted to each side.
    posted: [usize; 2],
    /// Which end of this process it is.
    number: u32,
    pub failures: Vec<Failure>,
}

impl End {
    pub fn open(wire: WireKind) -> Self {
        Self::open_with(wire, NicAttributes::default())
    }

    pub fn open_with(wire: WireKind, attributes: NicAttributes) -> Self {
        let config = Config { wire, attributes };
        let mut provider = Provider::open(config).unwrap();
        let arena = if crate::IS_LENT { Arena::of(&mut provider) } else { Arena::new() };
        let tag = provider.create_tag().unwrap();
        let open = MemAttributes { tag, can_be_written: true, can_be_read: true };
        // SAFETY: the memory stays for longer than the provider, and only copies are made of it.
        let all = unsafe { provider.register(arena.base, LEN, open) }.unwrap();
        let number = ENDS.fetch_add(1, Ordering::Relaxed);
        Self { provider, arena, tag, all, posted: [0; 2], number, failures: Vec::new() }
    }

    pub fn attributes(&self, level: Level) -> ViAttributes {
        let can_be_read = level.is_reliable();
        ViAttributes {
            level,
            transfer_bytes: LONGEST,
            qos: 0,
            tag: self.tag,
            can_be_written: true,
            can_be_read,
        }
    }

    pub fn vi(&mut self, level: Level) -> ViHandle {
        self.provider.create_vi(self.attributes(level), None, None).unwrap()
    }

    /// A discriminator of this end alone: on some wires all processes have one host.
    fn own(&self, name: &str) -> Vec<u8> {
        format!("{name}-{}-{}", std::process::id(), self.number).into_bytes()
    }

    /// Where this host is asked for.
    pub fn address(&self, name: &str) -> Address {
        Address { host: self.provider.host(), discriminator: self.own(name) }
    }

    /// Waits for a request for that name.
    pub fn wait(&mut self, name: &str, timeout: Duration) -> WaitHandle {
        let discriminator = self.own(name);
        self.provider.wait(&discriminator, Some(timeout)).unwrap()
    }

    /// Asks for a connection by that name.
    pub fn ask(&mut self, vi: ViHandle, name: &str, to: Address, is_of_peer: bool, timeout: Duration) {
        let discriminator = self.own(name);
        self.provider.ask(vi, &discriminator, to, is_of_peer, Some(timeout)).unwrap();
    }

    /// Registers a part of the memory once more.
    pub fn register(&mut self, offset: usize, len: usize, attributes: MemAttributes) -> MemHandle {
        assert!(offset + len <= LEN);
        // SAFETY: as for all of it.
        unsafe { self.provider.register(self.arena.base.add(offset), len, attributes) }.unwrap()
    }

    pub fn deregister(&mut self, offset: usize, handle: MemHandle) {
        self.provider.deregister(self.arena.base.wrapping_add(offset), handle).unwrap();
    }

    pub fn segment(&self, offset: usize, len: usize) -> Segment {
        Segment { address: self.remote(offset).address, handle: self.all.0, len: len as u32 }
    }

    /// Memory of this side, as the other one names it.
    pub fn remote(&self, offset: usize) -> Remote {
        Remote { address: self.arena.base.expose_provenance() as u64 + offset as u64, handle: self.all.0 }
    }

    pub fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        self.arena.read(offset, len)
    }

    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.arena.write(offset, bytes);
    }

    pub fn try_post(&mut self, vi: ViHandle, side: Side, work: &Work) -> Result<DescriptorAt, PostError> {
        let side_at = usize::from(side == Side::Receive);
        let slot = side_at * DESCRIPTORS_OF_SIDE + self.posted[side_at] % DESCRIPTORS_OF_SIDE;
        let offset = DATA_LEN + slot * DESCRIPTOR_LEN;
        let mut bytes = [0; DESCRIPTOR_LEN];
        View::new(&mut bytes[..]).unwrap().set_work(work).unwrap();
        self.write(offset, &bytes);
        let at = DescriptorAt { address: self.remote(offset).address, handle: self.all.0 };
        // SAFETY: in registered memory.
        unsafe { self.provider.post(vi, side, at) }?;
        self.posted[side_at] += 1;
        Ok(at)
    }

    pub fn post(&mut self, vi: ViHandle, side: Side, work: &Work) -> DescriptorAt {
        self.try_post(vi, side, work).unwrap()
    }

    /// Posts a receive into a part of the memory.
    pub fn receive_into(&mut self, vi: ViHandle, offset: usize, len: usize) -> DescriptorAt {
        let receive = work(Operation::Receive, &[self.segment(offset, len)]);
        self.post(vi, Side::Receive, &receive)
    }

    /// Posts a send from a part of the memory.
    pub fn send_from(&mut self, vi: ViHandle, offset: usize, len: usize) -> DescriptorAt {
        let send = work(Operation::Send, &[self.segment(offset, len)]);
        self.post(vi, Side::Send, &send)
    }

    /// What stands in a descriptor.
    pub fn completion(&self, at: DescriptorAt) -> Completion {
        let offset = (at.address - self.remote(0).address) as usize;
        let view = View::new(self.read(offset, DESCRIPTOR_LEN)).unwrap();
        let status = view.status();
        let immediate = status.has(Status::IMMEDIATE).then(|| view.immediate());
        Completion { status, len: view.length(), immediate }
    }

    /// Where the memory of a descriptor's first segment is.
    pub fn place_of(&self, at: DescriptorAt) -> usize {
        let base = self.remote(0).address;
        let bytes = self.read((at.address - base) as usize, DESCRIPTOR_LEN);
        let work = View::new(bytes).unwrap().work(Side::Receive).unwrap();
        (work.segments.as_slice()[0].address - base) as usize
    }

    /// The next descriptor that is done: it says the same in memory.
    pub fn done(&mut self, vi: ViHandle, side: Side) -> Option<Completed> {
        let completed = self.provider.done(vi, side).unwrap()?;
        let Completion { status, len, .. } = self.completion(completed.at);
        assert_eq!((status, len), (completed.completion.status, completed.completion.len));
        Some(completed)
    }

    /// Makes progress. Whether anything moved.
    pub fn progress(&mut self) -> bool {
        let is_any = self.provider.progress();
        while let Some(news) = self.provider.next_news() {
            if let News::Failed(failure) = news {
                self.failures.push(failure);
            }
        }
        is_any
    }

    pub fn state(&mut self, vi: ViHandle) -> State {
        self.provider.query_vi(vi).unwrap().state
    }

    /// Sleeps in the kernel until something may have come, as a program does that has nothing else to
    /// do.
    pub fn sleep(&mut self, most: Duration) {
        let timeout = self.provider.prepare_sleep().min(most);
        if !self.progress() {
            let timeout = Timespec::try_from(timeout).unwrap();
            poll(&mut [PollFd::new(&self.provider.as_fd(), PollFlags::IN)], Some(&timeout)).unwrap();
        }
        self.progress();
    }
}

pub fn work(operation: Operation, segments: &[Segment]) -> Work {
    Work {
        operation,
        immediate: None,
        is_fenced: false,
        segments: segments.iter().copied().collect(),
        len: segments.iter().map(|segment| segment.len).sum(),
    }
}

/// Lets both ends make progress. Whether anything moved.
pub fn progress(ends: &mut [End; 2]) -> bool {
    ends[0].progress() | ends[1].progress()
}

/// Lets both ends make progress until `is_done` finds what it waits for. It looks at both after each
/// step; where nothing moves, the processor goes to others.
pub fn drive(ends: &mut [End; 2], what: &str, mut is_done: impl FnMut(&mut [End; 2]) -> bool) {
    let (deadline, mut idle) = (Deadline::after(PATIENCE), 0);
    while !is_done(ends) {
        deadline.check(what);
        idle = if progress(ends) { 0 } else { idle + 1 };
        if idle > 200 {
            std::thread::sleep(Duration::from_micros(100));
        } else if idle > 0 {
            nap_beside_others();
            Wait::Yield.idle();
        }
    }
}

/// Drives both ends until a descriptor of that end is done.
pub fn wait_for(ends: &mut [End; 2], at: usize, vi: ViHandle, side: Side) -> Completed {
    let mut completed = None;
    drive(ends, "a descriptor", |ends| {
        completed = completed.or_else(|| ends[at].done(vi, side));
        completed.is_some()
    });
    completed.unwrap()
}

/// The error of the one failure that an end is told.
pub fn failed(ends: &mut [End; 2], at: usize) -> AsyncError {
    drive(ends, "a failure", |ends| !ends[at].failures.is_empty());
    assert_eq!(ends[at].failures.len(), 1, "{:?}", ends[at].failures);
    ends[at].failures.remove(0).error
}

/// Two ends on this host, with a connected VI each.
pub fn pair(level: Level) -> ([End; 2], [ViHandle; 2]) {
    let mut ends = [(); 2].map(|()| End::open(crate::wire()));
    let vis = ends.each_mut().map(|end| end.vi(level));
    connect(&mut ends, vis);
    (ends, vis)
}

/// Connects two VIs as peers.
pub fn connect(ends: &mut [End; 2], vis: [ViHandle; 2]) {
    let addresses = ends.each_ref().map(|end| end.address("peer"));
    for at in 0..2 {
        let to = addresses[1 - at].clone();
        ends[at].ask(vis[at], "peer", to, true, PATIENCE);
    }
    let mut are_connected = [false; 2];
    drive(ends, "two peers", |ends| {
        for at in 0..2 {
            are_connected[at] = are_connected[at] || ends[at].provider.answer(vis[at]).unwrap().is_some();
        }
        are_connected == [true; 2]
    });
}
