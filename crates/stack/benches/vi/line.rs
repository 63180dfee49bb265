//! A VI with one message under way, and what it needs.

#![allow(dead_code, reason = "each benchmark uses its part")]

use netdyno_stack::vi::{
    DescriptorAt, Level, MemAttributes, MemHandle, Operation, Provider, Remote, Segment, Side, ViAttributes,
    ViHandle, View, Work,
};

/// Bytes of a message.
pub const LEN: usize = 32;
/// Receives that are posted ahead: the next one while the answer is on its way.
const RECEIVES: usize = 4;
/// Writes at once, one behind the other.
const WINDOW: usize = 8;
/// Room for descriptors, and behind it for what is sent, and behind that for what comes.
const DESCRIPTORS_LEN: usize = 1024;

/// How the two ends of a line speak.
#[derive(Clone, Copy)]
pub struct Plan {
    pub level: Level,
    pub len: usize,
    /// RDMA writes, each with immediate data, instead of sends.
    pub is_write: bool,
    /// The memory is the provider's.
    pub is_lent: bool,
}

/// Where a peer writes to: address and handle.
pub type Place = (u64, u32);

/// A VI, with what is sent and received.
pub struct Line {
    pub provider: Provider,
    pub vi: ViHandle,
    base: *mut u8,
    handle: MemHandle,
    plan: Plan,
    send: DescriptorAt,
    /// Writes of which the peer learns nothing.
    silent: [DescriptorAt; WINDOW],
    receives: [DescriptorAt; RECEIVES],
    received: usize,
}

impl Line {
    /// A VI that is not connected, and sends. Its memory stays until the process ends.
    pub fn open(provider: Provider, level: Level) -> Self {
        Self::planned(provider, Plan { level, len: LEN, is_write: false, is_lent: false })
    }

    /// A VI that is not connected.
    pub fn planned(mut provider: Provider, plan: Plan) -> Self {
        let memory_len = DESCRIPTORS_LEN + 2 * plan.len;
        let base = if plan.is_lent {
            let memory = provider.allocate(memory_len).unwrap();
            let base = memory.base().as_ptr();
            std::mem::forget(memory);
            base
        } else {
            // Whole pages, as the other kind.
            Vec::leak(vec![0_u8; memory_len + 4096]).as_mut_ptr().map_addr(|at| at.next_multiple_of(4096))
        };
        let tag = provider.create_tag().unwrap();
        let open = MemAttributes { tag, can_be_written: true, can_be_read: false };
        // SAFETY: it stays, and nobody holds a reference to it.
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

    /// Writes a descriptor for the bytes at `bytes`.
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
        // SAFETY: inside.
        unsafe { self.base.add(at).copy_from_nonoverlapping(descriptor.as_ptr(), 64) };
        DescriptorAt { address: address + at as u64, handle: self.handle.0 }
    }

    /// Where the peer is to write.
    pub fn place(&self) -> Place {
        let at = DESCRIPTORS_LEN + self.plan.len;
        (self.base.expose_provenance() as u64 + at as u64, self.handle.0)
    }

    /// Where to write.
    pub fn aim(&mut self, (address, handle): Place) {
        if self.plan.is_write {
            let write = Operation::Write(Remote { address, handle });
            self.send = self.describe(0, write, DESCRIPTORS_LEN, Some(7));
            let at = |nth| 64 * (1 + RECEIVES + nth);
            self.silent = std::array::from_fn(|nth| self.describe(at(nth), write, DESCRIPTORS_LEN, None));
        }
    }

    fn send(&mut self) {
        // SAFETY: it is in registered memory.
        unsafe { self.provider.post(self.vi, Side::Send, self.send) }.unwrap();
    }

    /// Posts the receive that was done first.
    fn receive(&mut self) {
        let at = self.receives[self.received % RECEIVES];
        self.received += 1;
        // SAFETY: it is in registered memory.
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

    /// A message there and back.
    pub fn trip(&mut self) {
        self.send();
        self.receive();
        while !self.is_done(Side::Receive) {}
        while !self.is_done(Side::Send) {}
    }

    /// Sends back as much as has come, if anything has.
    pub fn echo(&mut self) -> bool {
        let has_come = self.is_done(Side::Receive);
        if has_come {
            self.send();
            self.receive();
            while !self.is_done(Side::Send) {}
        }
        has_come
    }

    /// So many writes one behind the other, until all are complete. The peer learns of the last.
    pub fn push(&mut self, count: usize) {
        let mut done = 0;
        for nth in 0..count {
            while nth - done >= WINDOW {
                done += usize::from(self.is_done(Side::Send));
            }
            let at = if nth + 1 == count { self.send } else { self.silent[nth % WINDOW] };
            // SAFETY: it is in registered memory.
            unsafe { self.provider.post(self.vi, Side::Send, at) }.unwrap();
        }
        while done < count {
            done += usize::from(self.is_done(Side::Send));
        }
    }

    /// Takes a message, if one has come.
    pub fn pull(&mut self) -> bool {
        let has_come = self.is_done(Side::Receive);
        if has_come {
            self.receive();
        }
        has_come
    }
}
