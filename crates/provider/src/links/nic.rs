//! A provider of Virtual Interfaces with the memory of its VIs: descriptors, and buffers of one message each.

use crate::engine::{LONGEST, Payload, RECEIVES};
use crate::frame::HEADER_LEN;
use netdyno_host::pages::Pages;
use netdyno_stack::vi::{
    Address, Completed, Config, ConnHandle, ConnectError, DescriptorAt, Level, MemAttributes, MemHandle,
    News, NicAttributes, OpenError, Operation, PostError, Provider, Ptag, Segment, Side, ViAttributes,
    ViHandle, View, WaitHandle, WireKind, Work,
};
use rustc_hash::FxHashMap;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;
use std::time::Duration;

/// Number of sends of a VI that may be incomplete.
const SENDS: usize = 8;
/// Number of descriptors of a VI.
const SLOTS: usize = RECEIVES as usize + SENDS;
/// Length of a descriptor in bytes.
const DESCRIPTOR_LEN: usize = 64;
/// Number of requests that may wait at a discriminator until the next look.
const WAITS: usize = 4;
/// Time for a peer to answer a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A received message, which occupies a receive until it is given back.
#[derive(Debug)]
pub struct Buffer {
    vi: ViHandle,
    slot: usize,
    bytes: NonNull<u8>,
    len: usize,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are a buffer of the block of the VI, which is kept until the NIC is dropped. Nobody writes
        // there before the receive is posted again, which takes the buffer away.
        unsafe { slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }
}

impl Buffer {
    /// Returns the VI.
    pub fn vi(&self) -> ViHandle {
        self.vi
    }
}

/// The memory of a VI: the descriptors of its receives and sends, and the buffer of each.
struct Block {
    pages: Pages,
    handle: MemHandle,
    /// Number of sends that were posted, and of those that are complete.
    posted: usize,
    complete: usize,
}

impl Block {
    fn at(&self, offset: usize) -> *mut u8 {
        // SAFETY: callers name a slot of the block.
        unsafe { self.pages.base().as_ptr().add(offset) }
    }

    fn descriptor(&self, slot: usize) -> DescriptorAt {
        let address = self.at(slot * DESCRIPTOR_LEN).expose_provenance() as u64;
        DescriptorAt { address, handle: self.handle.0 }
    }

    fn buffer(&self, slot: usize) -> *mut u8 {
        self.at(SLOTS * DESCRIPTOR_LEN + slot * LONGEST)
    }

    /// Writes the descriptor of a slot, which names its buffer.
    fn describe(&self, slot: usize, operation: Operation, len: usize) {
        let segment = Segment {
            address: self.buffer(slot).expose_provenance() as u64,
            handle: self.handle.0,
            len: len as u32,
        };
        let segments = [segment].into_iter().collect();
        let work = Work { operation, immediate: None, is_fenced: false, segments, len: segment.len };
        let mut bytes = [0; DESCRIPTOR_LEN];
        let laid_out = View::new(&mut bytes[..]).and_then(|mut view| view.set_work(&work));
        debug_assert!(laid_out.is_ok(), "a descriptor has room for a segment");
        // SAFETY: the slot is in the block, and its descriptor is not posted.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(slot * DESCRIPTOR_LEN), DESCRIPTOR_LEN) };
    }
}

/// An event of a NIC.
pub enum NicEvent {
    /// A message has arrived.
    Message(Buffer),
    /// A VI is broken.
    Broken(ViHandle),
}

/// A provider of Virtual Interfaces and the memory of its VIs.
pub struct Nic {
    // Declared before the blocks, so that it is dropped first: it uses their memory until then.
    provider: Provider,
    blocks: FxHashMap<ViHandle, Block>,
    tag: Ptag,
    discriminator: Vec<u8>,
    waits: Vec<WaitHandle>,
    /// The connected VIs, the one that received last first.
    connected: Vec<ViHandle>,
    broken: Vec<ViHandle>,
}

impl Nic {
    /// Opens a provider, and waits for requests at a discriminator.
    ///
    /// # Errors
    /// Returns an error if the system refuses memory, a socket or another resource.
    pub fn open(wire: WireKind, discriminator: &[u8]) -> Result<Self, OpenError> {
        let attributes = NicAttributes { vis: 1 << 16, ..NicAttributes::default() };
        let mut provider = Provider::open(Config::new(wire).attributes(attributes))?;
        let tag = provider.create_tag().unwrap_or(Ptag(0));
        let mut nic = Self {
            provider,
            blocks: FxHashMap::default(),
            tag,
            discriminator: discriminator.to_vec(),
            waits: Vec::new(),
            connected: Vec::new(),
            broken: Vec::new(),
        };
        nic.keep_waiting();
        Ok(nic)
    }

    /// Returns the address of this host.
    pub fn host(&self) -> Vec<u8> {
        self.provider.host()
    }

    fn keep_waiting(&mut self) {
        while self.waits.len() < WAITS
            && let Ok(wait) = self.provider.wait(&self.discriminator, None)
        {
            self.waits.push(wait);
        }
    }

    /// Returns a new VI with its receives posted.
    fn create_vi(&mut self) -> Option<ViHandle> {
        let attributes = ViAttributes {
            level: Level::Delivery,
            transfer_bytes: LONGEST as u32,
            qos: 0,
            tag: self.tag,
            can_be_written: false,
            can_be_read: false,
        };
        let pages = Pages::untouched(SLOTS * (DESCRIPTOR_LEN + LONGEST)).ok()?;
        let attributes_of_memory = MemAttributes { tag: self.tag, can_be_written: false, can_be_read: false };
        let (base, bytes) = (pages.base().as_ptr(), pages.bytes());
        // SAFETY: the pages are kept in the block until the provider is dropped.
        let handle = unsafe { self.provider.register(base, bytes, attributes_of_memory) }.ok()?;
        let Ok(vi) = self.provider.create_vi(attributes, None, None) else {
            let _ = self.provider.deregister(base, handle);
            return None;
        };
        self.blocks.insert(vi, Block { pages, handle, posted: 0, complete: 0 });
        (0..RECEIVES.into()).try_for_each(|slot| self.post_receive(vi, slot)).ok()?;
        Some(vi)
    }

    fn post_receive(&mut self, vi: ViHandle, slot: usize) -> Result<(), PostError> {
        let Some(block) = self.blocks.get(&vi) else { return Ok(()) };
        block.describe(slot, Operation::Receive, LONGEST);
        // SAFETY: the block is registered, and kept until the provider is dropped.
        unsafe { self.provider.post(vi, Side::Receive, block.descriptor(slot)) }
    }

    /// Asks a process for a connection. Returns the VI; `None` if the system has no room.
    pub fn ask(&mut self, from: &[u8], to: Address) -> Option<ViHandle> {
        let vi = self.create_vi()?;
        self.provider.ask(vi, from, to, false, Some(ANSWER_TIMEOUT)).ok().map(|()| vi)
    }

    /// Returns whether a request was answered.
    ///
    /// # Errors
    /// Returns an error if it was refused.
    pub fn is_answered(&mut self, vi: ViHandle) -> Result<bool, ConnectError> {
        let is_answered = self.provider.answer(vi)?.is_some();
        if is_answered {
            self.connected.push(vi);
        }
        Ok(is_answered)
    }

    /// Accepts the requests that have arrived. Returns the VI and the name of each requester.
    pub fn accept(&mut self) -> Vec<(ViHandle, Vec<u8>)> {
        let waits = std::mem::take(&mut self.waits);
        let mut accepted = Vec::new();
        for wait in waits {
            match self.provider.waited(wait) {
                Ok(None) => self.waits.push(wait),
                Ok(Some(conn)) => accepted.extend(self.accept_one(conn)),
                Err(_) => {}
            }
        }
        self.keep_waiting();
        accepted
    }

    fn accept_one(&mut self, conn: ConnHandle) -> Option<(ViHandle, Vec<u8>)> {
        let name = self.provider.request(conn).ok()?.from.discriminator.clone();
        let vi = self.create_vi();
        let accepted = vi.filter(|vi| self.provider.accept(conn, *vi).is_ok());
        match accepted {
            Some(vi) => self.connected.push(vi),
            // The requester asks again.
            None => drop(self.provider.reject(conn)),
        }
        accepted.map(|vi| (vi, name))
    }

    /// Sends a message, if the VI has a free send.
    pub fn try_send(&mut self, vi: ViHandle, header: &[u8; HEADER_LEN], payload: Payload<'_>) -> bool {
        let Some(block) = self.blocks.get_mut(&vi) else { return false };
        while block.complete < block.posted {
            match self.provider.done(vi, Side::Send) {
                Ok(Some(Completed { completion, .. })) => {
                    block.complete += 1;
                    if completion.status.is_error() {
                        self.broken.push(vi);
                        return false;
                    }
                }
                Ok(None) => break,
                Err(_) => return false,
            }
        }
        if block.posted - block.complete == SENDS {
            return false;
        }
        let slot = usize::from(RECEIVES) + block.posted % SENDS;
        // SAFETY: the slot is in the block, its buffer has this length, and no send of it is posted.
        let room = unsafe { slice::from_raw_parts_mut(block.buffer(slot), LONGEST) };
        let len = payload.write_behind(header, room);
        block.describe(slot, Operation::Send, len);
        // SAFETY: the block is registered, and kept until the provider is dropped.
        let posted = unsafe { self.provider.post(vi, Side::Send, block.descriptor(slot)) };
        block.posted += usize::from(posted.is_ok());
        posted.is_ok()
    }

    /// Returns the next event of the connected VIs.
    pub fn next(&mut self) -> Option<NicEvent> {
        if let Some(vi) = self.broken.pop() {
            self.connected.retain(|connected| *connected != vi);
            return Some(NicEvent::Broken(vi));
        }
        for place in 0..self.connected.len() {
            let vi = self.connected[place];
            let Ok(Some(Completed { at, completion })) = self.provider.done(vi, Side::Receive) else {
                continue;
            };
            if completion.status.is_error() {
                self.connected.swap_remove(place);
                return Some(NicEvent::Broken(vi));
            }
            let block = self.blocks.get(&vi)?;
            let slot = (at.address - block.descriptor(0).address) as usize / DESCRIPTOR_LEN;
            let bytes = NonNull::new(block.buffer(slot))?;
            // The next message is likely of the same peer.
            self.connected.swap(0, place);
            return Some(NicEvent::Message(Buffer { vi, slot, bytes, len: completion.len as usize }));
        }
        None
    }

    /// Posts the receive of a message again.
    pub fn give_back(&mut self, buffer: Buffer) {
        let Buffer { vi, slot, .. } = buffer;
        if self.post_receive(vi, slot).is_err() {
            self.broken.push(vi);
        }
    }

    /// Checks for the end of peers, and for timers.
    pub fn maintain(&mut self) {
        self.provider.progress();
        while let Some(news) = self.provider.next_news() {
            if let News::Failed(failure) = news
                && let Some(vi) = failure.vi
            {
                self.broken.push(vi);
            }
        }
    }
}
