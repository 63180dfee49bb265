//! One end of a connection: a provider, registered memory, and descriptors in that memory.

use crate::common::process::{from_hex, to_hex};
use crate::common::{Deadline, TIMEOUT, Transport};
use netdyno_host::wait::{Wait, nap_beside_others};
use netdyno_stack::vi::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Room for messages. The descriptors follow.
const DATA_LEN: usize = 4 << 20;
const DESCRIPTORS: usize = 4096;
/// The descriptors of each queue: more than a queue holds. Each queue has its own, so that a fast queue
/// does not overwrite those of a slow one.
const DESCRIPTORS_OF_SIDE: usize = DESCRIPTORS / 2;
/// The bytes reserved for a descriptor.
const DESCRIPTOR_LEN: usize = 128;
const LEN: usize = DATA_LEN + DESCRIPTORS * DESCRIPTOR_LEN;
/// The maximum length of a message or an RDMA operation, in bytes.
pub const LONGEST: u32 = 1 << 20;

static ENDS: AtomicU32 = AtomicU32::new(0);

/// Memory of a program. Bytes are only copied into it and out of it.
struct Arena {
    base: *mut u8,
    /// The provider's memory, if the provider allocated it. Otherwise the memory is from the heap.
    lent: Option<Arc<Loan>>,
}

// SAFETY: plain memory that this value alone owns.
unsafe impl Send for Arena {}

impl Arena {
    fn layout() -> Layout {
        Layout::from_size_align(LEN, 64).unwrap()
    }

    fn new() -> Self {
        // SAFETY: the size of the layout is not 0.
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
        // SAFETY: the range is inside the memory.
        unsafe { self.base.add(offset).copy_to_nonoverlapping(bytes.as_mut_ptr(), len) };
        bytes
    }

    fn completion(&self, offset: usize) -> Completion {
        let view = View::new(self.read(offset, DESCRIPTOR_LEN)).unwrap();
        let status = view.status();
        let immediate = status.has(Status::IMMEDIATE).then(|| view.immediate());
        Completion { status, len: view.length(), immediate }
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= LEN);
        // SAFETY: the range is inside the memory.
        unsafe { self.base.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.lent.is_none() {
            // SAFETY: the memory was allocated with this layout.
            unsafe { dealloc(self.base, Self::layout()) };
        }
    }
}

/// Returns an address as text for another process.
pub fn spell(address: &Address) -> String {
    format!("{}/{}", to_hex(&address.host), to_hex(&address.discriminator))
}

/// Reads an address from its text.
pub fn spelled(text: &str) -> Address {
    let (host, discriminator) = text.split_once('/').unwrap();
    Address { host: from_hex(host), discriminator: from_hex(discriminator) }
}

pub struct End {
    // Declared before the memory, because the provider uses the memory until it is dropped.
    pub provider: Provider,
    arena: Arena,
    pub tag: Ptag,
    /// The handle of all of the memory. Peers may write and read it.
    pub all: MemHandle,
    /// The number of descriptors posted to the send queue and to the receive queue.
    posted: [usize; 2],
    /// The number of this end in its process.
    number: u32,
    pub failures: Vec<Failure>,
}

impl End {
    pub fn open(transport: &Transport) -> Self {
        Self::open_with(transport, NicAttributes::default())
    }

    pub fn open_with(transport: &Transport, attributes: NicAttributes) -> Self {
        Self::of(Config::new(transport.vi_wire()).attributes(attributes), transport.is_lent)
    }

    /// Opens an end with memory of its own over a wire.
    pub fn open_on(wire: WireKind) -> Self {
        Self::of(Config::new(wire), false)
    }

    fn of(config: Config, is_lent: bool) -> Self {
        let mut provider = Provider::open(config).unwrap();
        let arena = if is_lent { Arena::of(&mut provider) } else { Arena::new() };
        let tag = provider.create_tag().unwrap();
        let open = MemAttributes { tag, can_be_written: true, can_be_read: true };
        // SAFETY: the memory outlives the provider, and only copies are made of it.
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

    /// Returns a discriminator of this end alone, because on some wires all processes have one host
    /// address.
    fn own(&self, name: &str) -> Vec<u8> {
        format!("{name}-{}-{}", std::process::id(), self.number).into_bytes()
    }

    /// Returns the address of this end under a name.
    pub fn address(&self, name: &str) -> Address {
        Address { host: self.provider.host(), discriminator: self.own(name) }
    }

    /// Waits for a connection request to that name.
    pub fn wait(&mut self, name: &str, timeout: Duration) -> WaitHandle {
        let discriminator = self.own(name);
        self.provider.wait(&discriminator, Some(timeout)).unwrap()
    }

    /// Requests a connection under that name.
    pub fn ask(&mut self, vi: ViHandle, name: &str, to: Address, is_of_peer: bool, timeout: Duration) {
        let discriminator = self.own(name);
        self.provider.ask(vi, &discriminator, to, is_of_peer, Some(timeout)).unwrap();
    }

    /// Registers a part of the memory a second time.
    pub fn register(&mut self, offset: usize, len: usize, attributes: MemAttributes) -> MemHandle {
        assert!(offset + len <= LEN);
        // SAFETY: the same holds as for the whole memory.
        unsafe { self.provider.register(self.arena.base.add(offset), len, attributes) }.unwrap()
    }

    pub fn deregister(&mut self, offset: usize, handle: MemHandle) {
        self.provider.deregister(self.arena.base.wrapping_add(offset), handle).unwrap();
    }

    pub fn segment(&self, offset: usize, len: usize) -> Segment {
        Segment { address: self.remote(offset).address, handle: self.all.0, len: len as u32 }
    }

    /// Returns an address in the memory, in the form in which the peer uses it.
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
        // SAFETY: the descriptor is in registered memory.
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

    /// Returns the completion that is written in a descriptor.
    pub fn completion(&self, at: DescriptorAt) -> Completion {
        self.arena.completion((at.address - self.remote(0).address) as usize)
    }

    /// Closes the provider. Returns the completion that is then written in a descriptor.
    pub fn close(self, at: DescriptorAt) -> Completion {
        let offset = (at.address - self.remote(0).address) as usize;
        let Self { provider, arena, .. } = self;
        drop(provider);
        arena.completion(offset)
    }

    /// Returns the offset of a descriptor's first segment in the memory.
    pub fn place_of(&self, at: DescriptorAt) -> usize {
        let base = self.remote(0).address;
        let bytes = self.read((at.address - base) as usize, DESCRIPTOR_LEN);
        let work = View::new(bytes).unwrap().work(Side::Receive).unwrap();
        (work.segments.as_slice()[0].address - base) as usize
    }

    /// Returns the next completed descriptor, and checks that its memory holds the same completion.
    pub fn done(&mut self, vi: ViHandle, side: Side) -> Option<Completed> {
        let completed = self.provider.done(vi, side).unwrap()?;
        let Completion { status, len, .. } = self.completion(completed.at);
        assert_eq!((status, len), (completed.completion.status, completed.completion.len));
        Some(completed)
    }

    /// Makes progress. Returns whether anything happened.
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

    /// Sleeps in the kernel until an event, like a program that has nothing else to do.
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

/// Makes progress at both ends. Returns whether anything happened.
pub fn progress(ends: &mut [End; 2]) -> bool {
    ends[0].progress() | ends[1].progress()
}

/// Makes progress at both ends until `is_done` returns true. Calls `is_done` after each step. Where
/// nothing happens, yields the processor.
pub fn drive(ends: &mut [End; 2], what: &str, mut is_done: impl FnMut(&mut [End; 2]) -> bool) {
    let (deadline, mut idle) = (Deadline::after(TIMEOUT), 0);
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

/// Makes progress at both ends until a descriptor of one end has completed.
pub fn wait_for(ends: &mut [End; 2], at: usize, vi: ViHandle, side: Side) -> Completed {
    let mut completed = None;
    drive(ends, "a descriptor", |ends| {
        completed = completed.or_else(|| ends[at].done(vi, side));
        completed.is_some()
    });
    completed.unwrap()
}

/// Returns the error of the single failure that an end is told of.
pub fn failed(ends: &mut [End; 2], at: usize) -> AsyncError {
    drive(ends, "a failure", |ends| !ends[at].failures.is_empty());
    assert_eq!(ends[at].failures.len(), 1, "{:?}", ends[at].failures);
    ends[at].failures.remove(0).error
}

/// Opens two ends on this host, each with a connected VI.
pub fn pair(transport: &Transport, level: Level) -> ([End; 2], [ViHandle; 2]) {
    let mut ends = [(); 2].map(|()| End::open(transport));
    let vis = ends.each_mut().map(|end| end.vi(level));
    connect(&mut ends, vis);
    (ends, vis)
}

/// Connects two VIs by peer requests.
pub fn connect(ends: &mut [End; 2], vis: [ViHandle; 2]) {
    let addresses = ends.each_ref().map(|end| end.address("peer"));
    for at in 0..2 {
        let to = addresses[1 - at].clone();
        ends[at].ask(vis[at], "peer", to, true, TIMEOUT);
    }
    let mut are_connected = [false; 2];
    drive(ends, "two peers", |ends| {
        for at in 0..2 {
            are_connected[at] = are_connected[at] || ends[at].provider.answer(vis[at]).unwrap().is_some();
        }
        are_connected == [true; 2]
    });
}
