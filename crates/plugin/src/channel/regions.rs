//! Registered memory of a channel, and put, get and fetch-and-add between the regions of two processes.

use super::ground::Ground;
use super::{Channel, Uses};
use crate::PluginError;
use crate::abi::{self, RawChannel, RawRegion};
use crate::memory::Memory;
use crate::plugin::{OneSided, Registers};
use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};

/// Size of the word of a fetch-and-add, in bytes.
const WORD: usize = 8;
/// Maximum length in bytes of the key of a region.
const KEY_BYTES: usize = 1024;

/// Identifies a registered region of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId(usize);

/// The parameters of a put or a get, which copies between regions of two processes.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    /// Region of this process.
    pub region: RegionId,
    /// Offset in that region, in bytes.
    pub offset: usize,
    /// Rank of the other process.
    pub rank: usize,
    /// Key of the other process's region, as returned by [`Channel::key`] there.
    pub key: &'a [u8],
    /// Offset in the other region, in bytes.
    pub key_offset: usize,
    /// Number of bytes to copy.
    pub bytes: usize,
}

/// All regions of a channel. An empty entry is a region that was deregistered.
#[derive(Default)]
pub(super) struct Regions(Vec<Option<Region>>);

struct Region {
    memory: RegionMemory,
    /// Null after deregistration.
    raw: *mut RawRegion,
}

/// The memory of a region.
enum RegionMemory {
    /// Memory of this process.
    Mapped(Memory),
    /// Memory of the layer, which it frees itself.
    Allocated { start: NonNull<u8>, bytes: usize },
}

impl Region {
    /// Returns the address of `bytes` bytes at `offset`, or an error if they exceed the region.
    #[inline(always)]
    fn place(&self, offset: usize, bytes: usize) -> Result<NonNull<u8>, PluginError> {
        let (start, size) = match &self.memory {
            RegionMemory::Mapped(memory) => (memory.start(), memory.bytes()),
            RegionMemory::Allocated { start, bytes } => (*start, *bytes),
        };
        if offset > size || bytes > size - offset {
            return Err(beyond(size, offset, bytes));
        }
        // SAFETY: `offset` lies inside the memory or at its end.
        Ok(unsafe { start.add(offset) })
    }
}

#[cold]
fn beyond(size: usize, offset: usize, bytes: usize) -> PluginError {
    PluginError(format!("a region of {size} bytes has no {bytes} from {offset} on"))
}

#[cold]
fn unregistered() -> PluginError {
    PluginError::new("the memory is not registered any more")
}

impl Regions {
    #[inline(always)]
    fn find(&self, id: RegionId) -> Result<&Region, PluginError> {
        let region = self.0.get(id.0).and_then(Option::as_ref);
        region.ok_or_else(unregistered)
    }
}

impl Channel {
    /// Returns a region of `bytes` bytes: memory that the layer allocates if the channel was opened so, and else
    /// registered memory of this process. Processes of a layer that allocates call it together, once.
    pub fn make_region(&mut self, bytes: usize) -> Result<RegionId, PluginError> {
        match self.allocate {
            Some(allocate) => self.allocate(allocate, bytes),
            None => self.register(bytes),
        }
    }

    /// Reports whether the layer allocates the memory of put and get.
    pub fn allocates(&self) -> bool {
        self.allocate.is_some()
    }

    fn allocate(&mut self, allocate: abi::Allocate, bytes: usize) -> Result<RegionId, PluginError> {
        let mut start = null_mut();
        // SAFETY: the channel is open, and `start` is a local variable.
        let raw = unsafe { allocate(self.raw, bytes, &mut start) };
        if raw.is_null() {
            return Err(self.failed());
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| self.senseless("allocate_memory"))?;
        Ok(self.add_region(Region { memory: RegionMemory::Allocated { start, bytes }, raw }))
    }

    fn add_region(&mut self, region: Region) -> RegionId {
        let regions = &mut self.held.regions.0;
        regions.push(Some(region));
        RegionId(regions.len() - 1)
    }

    /// Allocates and registers `bytes` bytes of memory.
    pub fn register(&mut self, bytes: usize) -> Result<RegionId, PluginError> {
        let Registers { register, .. } = self.registers()?;
        let memory = Memory::new(bytes)?;
        // SAFETY: the channel is open. The memory stays valid until it is deregistered or the channel is
        // closed.
        let raw = unsafe { register(self.raw, memory.start().as_ptr().cast(), bytes) };
        if raw.is_null() {
            // Despite the failure the layer may still use the memory, so it is never freed.
            std::mem::forget(memory);
            return Err(self.failed());
        }
        Ok(self.add_region(Region { memory: RegionMemory::Mapped(memory), raw }))
    }

    /// Deregisters a region and frees its memory. No send, put or get may be posted.
    pub fn deregister(&mut self, id: RegionId) -> Result<(), PluginError> {
        let Registers { deregister, .. } = self.registers()?;
        self.check_quiet()?;
        let raw = self.held.regions.find(id)?.raw;
        // SAFETY: the channel is open and the region registered. This process has no operation posted. The
        // other processes must no longer access the region, which their code ensures.
        let returned = unsafe { deregister(self.raw, raw) };
        let region = self.held.regions.0[id.0].take();
        if returned != 0 {
            std::mem::forget(region);
        }
        self.truth(returned, "deregister_memory").map(drop)
    }

    /// Returns the key by which other processes access the region.
    pub fn key(&mut self, id: RegionId) -> Result<Vec<u8>, PluginError> {
        let OneSided { key, .. } = self.one_sided()?;
        let raw = self.held.regions.find(id)?.raw;
        let mut bytes = vec![0u8; KEY_BYTES];
        // SAFETY: the channel is open, the region registered, and the buffer has the given length.
        let length = unsafe { key(self.raw, raw, bytes.as_mut_ptr().cast(), bytes.len()) };
        if length < 0 {
            return Err(self.failed());
        }
        if length as usize > bytes.len() {
            return Err(self.senseless("key"));
        }
        bytes.truncate(length as usize);
        Ok(bytes)
    }

    /// Posts a put in a send slot. After completion ([`Channel::test_send`]) the local memory may be changed.
    /// The data is visible at the other process only after [`Channel::flush`].
    #[inline(always)]
    pub fn put(&mut self, slot: usize, transfer: &Transfer<'_>) -> Result<(), PluginError> {
        let OneSided { put, .. } = self.one_sided()?;
        // SAFETY: the channel is open, and `post` passes a valid transfer.
        self.post(slot, transfer, "put", |raw, slot, transfer| unsafe { put(raw, slot, transfer) })
    }

    /// Posts a get in a send slot. After completion the data is in the local region.
    #[inline(always)]
    pub fn get(&mut self, slot: usize, transfer: &Transfer<'_>) -> Result<(), PluginError> {
        let OneSided { get, .. } = self.one_sided()?;
        // SAFETY: the channel is open, and `post` passes a valid transfer.
        self.post(slot, transfer, "get", |raw, slot, transfer| unsafe { get(raw, slot, transfer) })
    }

    /// Reports whether the channel has an atomic fetch-and-add.
    pub fn has_fetch_add(&self) -> bool {
        self.fetch_add.is_some()
    }

    /// Posts a fetch-and-add of `operand` in a send slot: the other process's word becomes the sum, and after
    /// completion its previous value is in the local region. Both words are of 8 bytes and aligned.
    pub fn fetch_add(
        &mut self,
        slot: usize,
        transfer: &Transfer<'_>,
        operand: u64,
    ) -> Result<(), PluginError> {
        let call = self.fetch_add.ok_or_else(|| self.cannot("fetch and add"))?;
        if transfer.bytes != WORD
            || !transfer.offset.is_multiple_of(WORD)
            || !transfer.key_offset.is_multiple_of(WORD)
        {
            return Err(PluginError::new("fetch_add needs aligned words of 8 bytes"));
        }
        // SAFETY: the channel is open, and `post` passes a valid transfer.
        self.post(slot, transfer, "fetch_add", |raw, slot, transfer| unsafe {
            call(raw, slot, transfer, operand)
        })
    }

    /// Posts an operation by `call`, which gets a transfer whose range lies inside a region. The region stays
    /// valid, and this process does not touch it, until the operation completes or the channel is closed.
    #[inline(always)]
    fn post(
        &mut self,
        slot: usize,
        transfer: &Transfer<'_>,
        name: &str,
        call: impl FnOnce(*mut RawChannel, u32, &abi::Transfer) -> c_int,
    ) -> Result<(), PluginError> {
        let rank = self.rank(transfer.rank)?;
        let region = self.held.regions.find(transfer.region)?;
        region.place(transfer.offset, transfer.bytes)?;
        let transfer = abi::Transfer {
            region: region.raw,
            offset: transfer.offset as u64,
            key: abi::Address { bytes: transfer.key.as_ptr().cast(), length: transfer.key.len() },
            key_offset: transfer.key_offset as u64,
            bytes: transfer.bytes,
            rank,
            reserved: 0,
        };
        // The operation only occupies the slot and does not use the slot's own buffer.
        self.held.sends.post(slot, 0)?;
        let returned = call(self.raw, slot as u32, &transfer);
        self.truth(returned, name).map(drop)
    }

    /// Waits until all completed puts to a process are visible there.
    #[inline(always)]
    pub fn flush(&mut self, rank: usize) -> Result<(), PluginError> {
        let OneSided { flush, .. } = self.one_sided()?;
        let rank = self.rank(rank)?;
        // SAFETY: the channel is open.
        let returned = unsafe { flush(self.raw, rank) };
        self.truth(returned, "flush").map(drop)
    }

    /// Writes to a region. No send, put or get may be posted.
    pub fn write_region(&mut self, id: RegionId, offset: usize, bytes: &[u8]) -> Result<(), PluginError> {
        self.check_quiet()?;
        let place = self.held.regions.find(id)?.place(offset, bytes.len())?;
        // SAFETY: inside the region. Other processes may write to it at the same time. No reference to it
        // exists, and any value of its bytes is valid.
        unsafe { place.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Reads from a region. No send, put or get may be posted.
    pub fn read_region(&self, id: RegionId, offset: usize, bytes: usize) -> Result<Vec<u8>, PluginError> {
        self.check_quiet()?;
        let place = self.held.regions.find(id)?.place(offset, bytes)?;
        let mut read = vec![0u8; bytes];
        // SAFETY: inside the region. Other processes may write to it at the same time. No reference to it
        // exists, and any value of its bytes is valid.
        unsafe { place.as_ptr().copy_to_nonoverlapping(read.as_mut_ptr(), bytes) };
        Ok(read)
    }

    /// Deregisters all remaining regions before the channel is closed. Does nothing if operations are still
    /// posted.
    pub(super) fn deregister_all(&mut self) {
        let Some(Registers { deregister, .. }) = self.plugin.registers else { return };
        if self.held.sends.posted() > 0 {
            return;
        }
        for raw in self.held.grounds.iter_mut().flatten().flat_map(Ground::take_registrations) {
            // SAFETY: the channel is open, the region registered, and no other process has its key.
            unsafe { deregister(self.raw, raw) };
        }
        for region in self.held.regions.0.iter_mut().flatten() {
            // SAFETY: the channel is open, the region registered, and this process has no operation posted. A
            // late access of another process still finds the memory, because mapped memory is freed only with
            // `held`, and allocated memory is the layer's affair.
            unsafe { deregister(self.raw, region.raw) };
            region.raw = null_mut();
        }
    }

    fn check_quiet(&self) -> Result<(), PluginError> {
        if self.held.sends.posted() > 0 {
            return Err(PluginError::new("transfers are under way"));
        }
        Ok(())
    }

    pub(super) fn registers(&self) -> Result<Registers, PluginError> {
        let registers = self.plugin.registers.filter(|_| self.uses != Uses::Messages);
        registers.ok_or_else(|| self.cannot("register memory"))
    }

    #[inline(always)]
    fn one_sided(&self) -> Result<OneSided, PluginError> {
        let one_sided = self.plugin.one_sided.filter(|_| self.uses.is_one_sided());
        one_sided.ok_or_else(|| self.cannot("put and get"))
    }

    #[cold]
    pub(super) fn cannot(&self, what: &str) -> PluginError {
        let name = &self.plugin.name;
        PluginError(if self.uses.is_one_sided() {
            format!("the layer {name} cannot {what}")
        } else {
            format!("{name} was not opened to {what}")
        })
    }
}
