//! The memory of a VI: the descriptors of its receives and sends, and a buffer of one message for each.

use super::acks::{Acks, PREFIX};
use crate::engine::{LONGEST, RECEIVES};
use netdyno_host::pages::Pages;
use netdyno_stack::vi::{
    Completed, DescriptorAt, MemAttributes, MemHandle, Operation, PostError, Provider, Ptag, Remote, Segment,
    Side, ViHandle, View, Work,
};
use std::collections::VecDeque;
use std::ptr;
use std::slice;
use std::time::Instant;

/// Number of sends of a VI that may be incomplete.
const SENDS: usize = 16;
/// Number of receives of a VI where the message layer acknowledges: an acknowledgement may come for each message.
const RECEIVES_WITH_ACKS: usize = 2 * RECEIVES as usize;
/// Number of descriptors of a VI.
const SLOTS: usize = RECEIVES_WITH_ACKS + SENDS;
/// Length of a descriptor in bytes.
const DESCRIPTOR_LEN: usize = 64;
/// Length of a buffer in bytes.
pub const BUFFER_LEN: usize = PREFIX + LONGEST;
/// Distance of two buffers in bytes. With a power of two, the beginnings of all would share a few lines of the cache.
const STRIDE: usize = LONGEST + 64;

/// The memory of a VI: the descriptors of its receives and sends, and the buffer of each.
pub struct Block {
    pages: Pages,
    handle: MemHandle,
    /// Number of its receives.
    receives: usize,
    /// The descriptors of its sends, and the length of the last message of each: many messages have the same.
    sends: Vec<([u8; DESCRIPTOR_LEN], usize)>,
    /// Number of sends that were posted, and of those that are complete.
    posted: usize,
    complete: usize,
    /// Number of messages that the caller has not given back.
    pub taken: usize,
    /// The acknowledgements of the message layer, if it acknowledges.
    pub acks: Option<Acks>,
    /// Memory that RDMA writes read, in order: the number of the send that ends with each.
    written: VecDeque<(usize, Segment)>,
}

impl Block {
    /// Makes and registers the memory of a VI. Returns `None` if the system has no room.
    pub fn new(provider: &mut Provider, tag: Ptag, has_acks: bool) -> Option<Self> {
        let pages = Pages::untouched(SLOTS * (DESCRIPTOR_LEN + STRIDE)).ok()?;
        let attributes = MemAttributes { tag, can_be_written: false, can_be_read: false };
        // SAFETY: the pages are kept in the block until the VI is destroyed or the provider is dropped.
        let handle = unsafe { provider.register(pages.base().as_ptr(), pages.bytes(), attributes) }.ok()?;
        let mut block = Self {
            pages,
            handle,
            receives: if has_acks { RECEIVES_WITH_ACKS } else { RECEIVES.into() },
            sends: Vec::new(),
            posted: 0,
            complete: 0,
            taken: 0,
            acks: has_acks.then(|| Acks::new(Instant::now())),
            written: VecDeque::new(),
        };
        for slot in 0..block.receives {
            block.write(slot, &block.describe(slot, Operation::Receive, BUFFER_LEN));
        }
        let sends = RECEIVES_WITH_ACKS..SLOTS;
        block.sends = sends.map(|slot| (block.describe(slot, Operation::Send, 0), 0)).collect();
        Some(block)
    }

    /// Deregisters the memory of a VI that was destroyed or could not be created.
    pub fn end(mut self, provider: &mut Provider) {
        self.end_writes(provider);
        let _ = provider.deregister(self.pages.base().as_ptr(), self.handle);
    }

    /// Returns the number of receives.
    pub fn receives(&self) -> usize {
        self.receives
    }

    /// Posts a receive. Its descriptor stays as it is: a completion changes nothing that counts when it is posted.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist, or is in a state without receives.
    pub fn post_receive(&self, provider: &mut Provider, vi: ViHandle, slot: usize) -> Result<(), PostError> {
        // SAFETY: the block is registered, and kept as long as the VI.
        unsafe { provider.post(vi, Side::Receive, self.descriptor(slot)) }
    }

    /// Returns the slot of a descriptor, and its buffer.
    pub fn slot_of(&self, at: DescriptorAt) -> (usize, *mut u8) {
        let slot = (at.address - self.descriptor(0).address) as usize / DESCRIPTOR_LEN;
        (slot, self.buffer(slot))
    }

    /// Returns whether all sends are complete.
    pub fn is_complete(&self) -> bool {
        self.complete == self.posted
    }

    /// Returns whether RDMA writes read memory of the program.
    pub fn is_writing(&self) -> bool {
        !self.written.is_empty()
    }

    /// Deregisters the memory that RDMA writes read. Those that are not complete break the VI.
    pub fn end_writes(&mut self, provider: &mut Provider) {
        for (_, segment) in std::mem::take(&mut self.written) {
            release(provider, segment.address, segment.handle);
        }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        // SAFETY: callers name a slot of the block.
        unsafe { self.pages.base().as_ptr().add(offset) }
    }

    fn descriptor(&self, slot: usize) -> DescriptorAt {
        let address = self.at(slot * DESCRIPTOR_LEN).expose_provenance() as u64;
        DescriptorAt { address, handle: self.handle.0 }
    }

    fn buffer(&self, slot: usize) -> *mut u8 {
        self.at(SLOTS * DESCRIPTOR_LEN + slot * STRIDE)
    }

    /// Returns the descriptor of a slot, which names its buffer.
    fn describe(&self, slot: usize, operation: Operation, len: usize) -> [u8; DESCRIPTOR_LEN] {
        let segment = Segment {
            address: self.buffer(slot).expose_provenance() as u64,
            handle: self.handle.0,
            len: len as u32,
        };
        let segments = [segment].into_iter().collect();
        laid_out(&Work { operation, immediate: None, is_fenced: false, segments, len: segment.len })
    }

    /// Counts the sends that are complete. Returns whether none has failed. The receives of the VI tell of a failure as
    /// well, behind the last message of the peer.
    pub fn take_complete_sends(&mut self, provider: &mut Provider, vi: ViHandle) -> bool {
        let mut is_sound = true;
        while self.complete < self.posted
            && let Ok(Some(Completed { completion, .. })) = provider.done(vi, Side::Send)
        {
            self.complete += 1;
            is_sound &= !completion.status.is_error();
        }
        while let Some((number, segment)) = self.written.front()
            && *number <= self.complete
        {
            release(provider, segment.address, segment.handle);
            self.written.pop_front();
        }
        is_sound
    }

    /// Returns whether a send is free.
    fn has_room(&mut self, provider: &mut Provider, vi: ViHandle) -> bool {
        // One look in many finds that many sends are complete.
        let is_sound = self.posted - self.complete < SENDS || self.take_complete_sends(provider, vi);
        is_sound && self.posted - self.complete < SENDS
    }

    /// Sends a message, which `write` puts into a buffer. Returns its bytes; `None` if that is impossible now.
    pub fn send(
        &mut self,
        provider: &mut Provider,
        vi: ViHandle,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> Option<&[u8]> {
        if !self.has_room(provider, vi) {
            return None;
        }
        let nth = self.posted % SENDS;
        let slot = RECEIVES_WITH_ACKS + nth;
        // SAFETY: the slot is in the block, its buffer has this length, and no send of it is posted.
        let room = unsafe { slice::from_raw_parts_mut(self.buffer(slot), BUFFER_LEN) };
        let len = write(room);
        if self.sends[nth].1 != len {
            self.sends[nth] = (self.describe(slot, Operation::Send, len), len);
        }
        let descriptor = self.sends[nth].0;
        self.post_send(provider, vi, slot, &descriptor).then_some(&room[..len])
    }

    /// Writes memory of this process into that of the peer. Returns false if that is impossible now.
    pub fn write_to(&mut self, provider: &mut Provider, vi: ViHandle, from: Segment, to: Remote) -> bool {
        if !self.has_room(provider, vi) {
            return false;
        }
        let slot = RECEIVES_WITH_ACKS + self.posted % SENDS;
        let segments = [from].into_iter().collect();
        let work = Work {
            operation: Operation::Write(to),
            immediate: None,
            is_fenced: false,
            segments,
            len: from.len,
        };
        let is_posted = self.post_send(provider, vi, slot, &laid_out(&work));
        self.written.extend(is_posted.then_some((self.posted, from)));
        is_posted
    }

    /// Posts a send in a free slot. Returns whether that was possible.
    fn post_send(
        &mut self,
        provider: &mut Provider,
        vi: ViHandle,
        slot: usize,
        descriptor: &[u8; DESCRIPTOR_LEN],
    ) -> bool {
        self.write(slot, descriptor);
        // SAFETY: the block is registered, and kept as long as the VI. Memory that an RDMA write names is kept until the
        // send is complete.
        let posted = unsafe { provider.post(vi, Side::Send, self.descriptor(slot)) };
        self.posted += usize::from(posted.is_ok());
        posted.is_ok()
    }

    /// Acknowledges what has come, now or later.
    pub fn acknowledge(&mut self, provider: &mut Provider, vi: ViHandle) {
        let Some(acks) = &self.acks else { return };
        let bytes = acks.acknowledgement();
        let is_sent = self.send(provider, vi, |room| put(room, &bytes)).is_some();
        self.acks.iter_mut().for_each(|acks| acks.is_owed = !is_sent);
    }

    /// Sends messages again that nobody acknowledges, and acknowledgements that could not be sent.
    pub fn retry(&mut self, provider: &mut Provider, vi: ViHandle) {
        if self.acks.as_ref().is_some_and(|acks| acks.is_owed) {
            self.acknowledge(provider, vi);
        }
        let now = Instant::now();
        while let Some(bytes) = self.acks.as_mut().and_then(|acks| acks.next_again(now)).map(<[u8]>::to_vec)
            && self.send(provider, vi, |room| put(room, &bytes)).is_some()
        {
            self.acks.iter_mut().for_each(Acks::sent_again);
        }
    }

    /// Writes the descriptor of a slot.
    fn write(&self, slot: usize, descriptor: &[u8; DESCRIPTOR_LEN]) {
        // SAFETY: the slot is in the block, and its descriptor is not posted.
        unsafe {
            ptr::copy_nonoverlapping(descriptor.as_ptr(), self.at(slot * DESCRIPTOR_LEN), DESCRIPTOR_LEN)
        };
    }
}

/// Returns a descriptor.
fn laid_out(work: &Work) -> [u8; DESCRIPTOR_LEN] {
    let mut bytes = [0; DESCRIPTOR_LEN];
    let laid_out = View::new(&mut bytes[..]).and_then(|mut view| view.set_work(work));
    debug_assert!(laid_out.is_ok(), "a descriptor has room for a segment");
    bytes
}

/// Deregisters memory of the program.
pub fn release(provider: &mut Provider, address: u64, handle: u32) {
    // An error would say that it is not registered.
    let _ = provider.deregister(ptr::with_exposed_provenance(address as usize), MemHandle(handle));
}

/// Puts bytes into a buffer. Returns their number.
fn put(room: &mut [u8], bytes: &[u8]) -> usize {
    room[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}
