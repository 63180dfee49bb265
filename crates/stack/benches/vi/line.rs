//! A VI with one message under way, and its resources.

#![allow(dead_code, reason = "each benchmark uses its part")]

use netdyno_stack::vi::{
    DescriptorAt, Level, MemAttributes, MemHandle, Operation, Provider, Remote, Segment, Side, ViAttributes,
    ViHandle, View, Work,
};

/// Length of a message, in bytes.
pub const LEN: usize = 32;
/// Number of posted receives: the next one is posted while the answer is on its way.
const RECEIVES: usize = 4;
/// Maximum number of unfinished writes.
const WINDOW: usize = 8;
/// Length of the descriptors at the start of the memory. The send buffer follows, then the receive
/// buffer.
const DESCRIPTORS_LEN: usize = 1024;

/// The configuration of both ends of a line.
#[derive(Clone, Copy)]
pub struct Plan {
    pub level: Level,
    pub len: usize,
    /// Whether the messages are RDMA writes with immediate data instead of sends.
    pub is_write: bool,
    /// Whether the provider has allocated the memory.
    pub is_lent: bool,
}

/// The destination of a peer's writes: address and handle.
pub type Place = (u64, u32);

/// A VI, with its send and receive buffers.
pub struct Line {
    pub provider: Provider,
    pub vi: ViHandle,
    base: *mut u8,
    handle: MemHandle,
    plan: Plan,
    send: DescriptorAt,
    /// Writes without immediate data, of which the peer is not notified.
    silent: [DescriptorAt; WINDOW],
    receives: [DescriptorAt; RECEIVES],
    received: usize,
}

impl Line {
    /// Returns an unconnected VI for sends. Its memory stays until the process ends.
    pub fn open(provider: Provider, level: Level) -> Self {
        Self::planned(provider, Plan { level, len: LEN, is_write: false, is_lent: false })
    }

    /// Returns an unconnected VI.
    pub fn planned(mut provider: Provider, plan: Plan) -> Self {
        let memory_len = DESCRIPTORS_LEN + 2 * plan.len;
        let base = if plan.is_lent {
            let memory = provider.allocate(memory_len).unwrap();
            let base = memory.base().as_ptr();
            std::mem::forget(memory);
            base
        } else {
            // Page-aligned, like memory that the provider allocates.
            Vec::leak(vec![0_u8; memory_len + 4096]).as_mut_ptr().map_addr(|at| at.next_multiple_of(4096))
        };
        let tag = provider.create_tag().unwrap();
        let open = MemAttributes { tag, can_be_written: true, can_be_read: false };
        // SAFETY: the memory stays until the process ends, and nobody holds a reference to it.
        let handle = unsafe { provider.register(base, memory_len, open) }.unwrap();
        let attributes = ViAttributes {
            level: plan.level,
            transfer_bytes: plan.len.max(1 << 20) as u32,
            qos: 0,
            tag,
            can_be_written: true,
            can_be_read: false,
        };
        let vi = provider.create_vi(attributes, None, None).unwrap();
        let nowhere = DescriptorAt { address: 0, handle: 0 };
        let mut line = Self {
            provider,
            vi,
            base,
            handle,
            plan,
            send: nowhere,
            silent: [nowhere; WINDOW],
            receives: [nowhere; RECEIVES],
            received: 0,
        };
        line.send = line.describe(0, Operation::Send, DESCRIPTORS_LEN, None);
        let received = DESCRIPTORS_LEN + plan.len;
        line.receives =
            std::array::from_fn(|nth| line.describe(64 * (1 + nth), Operation::Receive, received, None));
        // All but one, which is posted behind the next send.
        (1..RECEIVES).for_each(|_| line.receive());
        line
    }

    /// Writes a descriptor for the bytes at offset `bytes`.
    fn describe(
        &self,
        at: usize,
        operation: Operation,
        bytes: usize,
        immediate: Option<u32>,
    ) -> DescriptorAt {
        let address = self.base.expose_provenance() as u64;
        let segment =
            Segment { address: address + bytes as u64, handle: self.handle.0, len: self.plan.len as u32 };
        let segments = [segment].into_iter().collect();
        let work = Work { operation, immediate, is_fenced: false, segments, len: segment.len };
        let mut descriptor = [0; 64];
        View::new(&mut descriptor[..]).unwrap().set_work(&work).unwrap();
        // SAFETY: the descriptor is inside of the memory.
        unsafe { self.base.add(at).copy_from_nonoverlapping(descriptor.as_ptr(), 64) };
        DescriptorAt { address: address + at as u64, handle: self.handle.0 }
    }

    /// Returns the place that the peer writes to.
    pub fn place(&self) -> Place {
        let at = DESCRIPTORS_LEN + self.plan.len;
        (self.base.expose_provenance() as u64 + at as u64, self.handle.0)
    }

    /// Sets the place to write to.
    pub fn aim(&mut self, (address, handle): Place) {
        if self.plan.is_write {
            let write = Operation::Write(Remote { address, handle });
            self.send = self.describe(0, write, DESCRIPTORS_LEN, Some(7));
            let at = |nth| 64 * (1 + RECEIVES + nth);
            self.silent = std::array::from_fn(|nth| self.describe(at(nth), write, DESCRIPTORS_LEN, None));
        }
    }

    fn send(&mut self) {
        // SAFETY: the descriptor is in registered memory.
        unsafe { self.provider.post(self.vi, Side::Send, self.send) }.unwrap();
    }

    /// Posts the receive that was completed first.
    fn receive(&mut self) {
        let at = self.receives[self.received % RECEIVES];
        self.received += 1;
        // SAFETY: the descriptor is in registered memory.
        unsafe { self.provider.post(self.vi, Side::Receive, at) }.unwrap();
    }

    fn is_done(&mut self, side: Side) -> bool {
        match self.provider.done(self.vi, side).unwrap() {
            None => false,
            Some(completed) => {
                assert!(!completed.completion.status.is_error(), "{completed:?}");
                true
            }
        }
    }

    /// Sends a message and waits for the answer.
    pub fn trip(&mut self) {
        self.send();
        self.receive();
        while !self.is_done(Side::Receive) {}
        while !self.is_done(Side::Send) {}
    }

    /// Sends a message back, if one has arrived. Returns whether one has.
    pub fn echo(&mut self) -> bool {
        let has_come = self.is_done(Side::Receive);
        if has_come {
            self.send();
            self.receive();
            while !self.is_done(Side::Send) {}
        }
        has_come
    }

    /// Posts `count` writes and waits until all are complete. Only the last one notifies the peer.
    pub fn push(&mut self, count: usize) {
        let mut done = 0;
        for nth in 0..count {
            while nth - done >= WINDOW {
                done += usize::from(self.is_done(Side::Send));
            }
            let at = if nth + 1 == count { self.send } else { self.silent[nth % WINDOW] };
            // SAFETY: the descriptor is in registered memory.
            unsafe { self.provider.post(self.vi, Side::Send, at) }.unwrap();
        }
        while done < count {
            done += usize::from(self.is_done(Side::Send));
        }
    }

    /// Takes a message, if one has arrived. Returns whether one has.
    pub fn pull(&mut self) -> bool {
        let has_come = self.is_done(Side::Receive);
        if has_come {
            self.receive();
        }
        has_come
    }
}
