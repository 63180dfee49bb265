//! What a program makes of a provider: protection tags, registered memory, VIs and completion queues.

use super::Provider;
use crate::vi::error::OpenError;
use netdyno_host::loan::Loan;
use netdyno_protocol::vi::*;
use std::sync::Arc;

impl Provider {
    /// Creates a protection tag.
    ///
    /// # Errors
    /// Returns an error if there are too many.
    pub fn create_tag(&mut self) -> Result<Ptag, MemoryError> {
        self.nic.create_tag()
    }

    /// Destroys a protection tag.
    ///
    /// # Errors
    /// Returns an error if the tag does not exist or is in use.
    pub fn destroy_tag(&mut self, tag: Ptag) -> Result<(), MemoryError> {
        self.nic.destroy_tag(tag)
    }

    /// Allocates at least `len` bytes of memory, which the program may register. If the transport allows
    /// it, a peer on this host copies a message directly out of this memory, when the message is one
    /// segment of it. That saves a copy. The peer of such a message may read all of the memory from then
    /// on.
    ///
    /// # Errors
    /// Returns an error if the system provides no such memory.
    pub fn allocate(&mut self, len: usize) -> Result<Arc<Loan>, OpenError> {
        let memory = Arc::new(Loan::create(len)?);
        self.wire.offer(&memory);
        Ok(memory)
    }

    /// Registers memory of this process for VIs with its protection tag.
    ///
    /// # Errors
    /// Returns an error if the memory or its attributes are not valid.
    ///
    /// # Safety
    /// The memory must be readable and writable until it is deregistered or the provider is dropped. If
    /// the attributes allow it, peers access it as well. Nobody may hold a reference to it while
    /// messages go there.
    pub unsafe fn register(
        &mut self,
        base: *mut u8,
        len: usize,
        attributes: MemAttributes,
    ) -> Result<MemHandle, MemoryError> {
        self.nic.register(base.expose_provenance() as u64, len as u64, attributes)
    }

    /// Deregisters memory. Takes effect at once, also for posted descriptors and arriving messages.
    ///
    /// # Errors
    /// Returns an error if the memory is not registered under this handle.
    pub fn deregister(&mut self, base: *const u8, handle: MemHandle) -> Result<(), MemoryError> {
        self.nic.deregister(base.addr() as u64, handle)?;
        self.wire.withdraw(&mut self.nic);
        self.settle();
        Ok(())
    }

    /// Returns the region that a memory handle stands for.
    ///
    /// # Errors
    /// Returns an error if the memory is not registered under this handle.
    pub fn query_memory(&self, base: *const u8, handle: MemHandle) -> Result<&Region, MemoryError> {
        self.nic.query_memory(base.addr() as u64, handle)
    }

    /// Changes the attributes of registered memory.
    ///
    /// # Errors
    /// Returns an error if the memory is not registered under this handle, or if the attributes are not
    /// valid.
    pub fn set_memory(
        &mut self,
        base: *const u8,
        handle: MemHandle,
        attributes: MemAttributes,
    ) -> Result<(), MemoryError> {
        self.nic.set_memory(base.addr() as u64, handle, attributes)
    }

    /// Creates a VI, whose queues complete on the given completion queues, if any.
    ///
    /// # Errors
    /// Returns an error if an attribute is not valid or not supported, or a resource does not exist.
    pub fn create_vi(
        &mut self,
        attributes: ViAttributes,
        send_cq: Option<CqHandle>,
        receive_cq: Option<CqHandle>,
    ) -> Result<ViHandle, ResourceError> {
        self.nic.create_vi(attributes, send_cq, receive_cq)
    }

    /// Destroys a disconnected VI.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist or is not idle.
    pub fn destroy_vi(&mut self, vi: ViHandle) -> Result<(), ResourceError> {
        self.nic.destroy_vi(vi)?;
        self.stop_asking(vi);
        self.changes += 1;
        Ok(())
    }

    /// Returns state and attributes of a VI.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist.
    pub fn query_vi(&mut self, vi: ViHandle) -> Result<ViQuery, ResourceError> {
        self.progress();
        self.nic.query_vi(vi)
    }

    /// Changes the attributes of an idle VI.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist or is not idle, or if the attributes are not valid.
    pub fn set_vi(&mut self, vi: ViHandle, attributes: ViAttributes) -> Result<(), ResourceError> {
        self.nic.set_vi(vi, attributes)
    }

    /// Returns whether a queue of a VI completes on a completion queue.
    ///
    /// # Errors
    /// Returns an error if the VI does not exist.
    pub fn completes_elsewhere(&self, vi: ViHandle, side: Side) -> Result<bool, ResourceError> {
        self.nic.completes_elsewhere(vi, side)
    }

    /// Creates a completion queue of `entries` entries.
    ///
    /// # Errors
    /// Returns an error if the size is not valid, or if there are too many queues.
    pub fn create_cq(&mut self, entries: u32) -> Result<CqHandle, CqError> {
        self.nic.create_cq(entries)
    }

    /// Destroys a completion queue that no VI uses.
    ///
    /// # Errors
    /// Returns an error if the queue does not exist or is in use.
    pub fn destroy_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        self.nic.destroy_cq(cq)?;
        self.changes += 1;
        Ok(())
    }

    /// Resizes a completion queue to `entries` entries; the entries in it stay.
    ///
    /// # Errors
    /// Returns an error if the queue does not exist, if the size is not valid, or if more entries are in
    /// it.
    pub fn resize_cq(&mut self, cq: CqHandle, entries: u32) -> Result<(), CqError> {
        self.nic.resize_cq(cq, entries)
    }
}
