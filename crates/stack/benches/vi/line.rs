//! A VI with one message under way, and what it needs.

use netdyno_stack::vi::{
    DescriptorAt, Level, MemAttributes, Operation, Provider, Segment, Side, ViAttributes, ViHandle, View,
    Work,
};

/// Bytes of a message.
pub const LEN: usize = 32;
/// Receives that are posted ahead: the next one while the answer is on its way.
const RECEIVES: usize = 4;
const MEMORY_LEN: usize = 1024;

/// Memory of a program: a descriptor for what is sent and for each receive, and bytes for them behind.
#[repr(align(64))]
struct Memory([u8; MEMORY_LEN]);

/// A VI, with what is sent and received.
pub struct Line {
    pub provider: Provider,
    pub vi: ViHandle,
    send: DescriptorAt,
    receives: [DescriptorAt; RECEIVES],
    received: usize,
}

impl Line {
    /// A VI that is not connected. Its memory stays until the process ends.
    pub fn open(mut provider: Provider, level: Level) -> Self {
        let memory = Box::leak(Box::new(Memory([0; MEMORY_LEN])));
        let tag = provider.create_tag().unwrap();
        let closed = MemAttributes { tag, can_be_written: false, can_be_read: false };
        let base: *mut u8 = memory.0.as_mut_ptr();
        // SAFETY: it stays, and nobody holds a reference to it.
        let handle = unsafe { provider.register(base, MEMORY_LEN, closed) }.unwrap();
        let address = base.expose_provenance() as u64;
        let descriptor = |at: usize, operation| {
            let segment = Segment { address: address + 512 + at as u64, handle: handle.0, len: LEN as u32 };
            let mut bytes = [0; 64];
            let segments = [segment].into_iter().collect();
            let work = Work { operation, immediate: None, is_fenced: false, segments, len: LEN as u32 };
            View::new(&mut bytes[..]).unwrap().set_work(&work).unwrap();
            // SAFETY: inside.
            unsafe { base.add(at).copy_from_nonoverlapping(bytes.as_ptr(), 64) };
            DescriptorAt { address: address + at as u64, handle: handle.0 }
        };
        let send = descriptor(0, Operation::Send);
        let receives = std::array::from_fn(|nth| descriptor(64 * (1 + nth), Operation::Receive));
        let attributes = ViAttributes {
            level,
            transfer_bytes: 1 << 20,
            qos: 0,
            tag,
            can_be_written: false,
            can_be_read: false,
        };
        let vi = provider.create_vi(attributes, None, None).unwrap();
        let mut line = Self { provider, vi, send, receives, received: 0 };
        // All but one, which is posted behind the next send.
        (1..RECEIVES).for_each(|_| line.receive());
        line
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
}
