//! Registered memory, and copies between that of two processes: put and get.

use super::ground::Ground;
use super::{Channel, Uses};
use crate::PluginError;
use crate::abi::{self, RawRegion};
use crate::memory::Memory;
use crate::plugin::{OneSided, Registers};
use std::ptr::NonNull;

/// The longest key of a region.
const KEY_BYTES: usize = 1024;

/// Memory of this process that the layer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId(usize);

/// What put and get copy: from one process's region to the other's.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    /// Of this process.
    pub region: RegionId,
    /// Where in it.
    pub offset: usize,
    /// The other process.
    pub rank: usize,
    /// How that one's region is named: [`Channel::key`] there.
    pub key: &'a [u8],
    /// Where in it.
    pub key_offset: usize,
    /// How much.
    pub bytes: usize,
}

/// All regions of a channel; a place that is empty has been deregistered.
#[derive(Default)]
pub(super) struct Regions(Vec<Option<Region>>);

struct Region {
    memory: Memory,
    /// Null once it has been deregistered.
    raw: *mut RawRegion,
}

impl Region {
    /// Where `bytes` bytes begin.
    fn place(&self, offset: usize, bytes: usize) -> Result<NonNull<u8>, PluginError> {
        if offset > self.memory.bytes() || bytes > self.memory.bytes() - offset {
            let size = self.memory.bytes();
            return Err(PluginError(format!("a region of {size} bytes has no {bytes} from {offset} on")));
        }
        // SAFETY: `offset` lies within the memory, or at its end.
        Ok(unsafe { self.memory.start().add(offset) })
    }
}

impl Regions {
    fn find(&self, id: RegionId) -> Result<&Region, PluginError> {
        let region = self.0.get(id.0).and_then(Option::as_ref);
        region.ok_or_else(|| PluginError::new("the memory is not registered any more"))
    }
}

impl Channel {
    /// Registers `bytes` bytes of memory.
    pub fn register(&mut self, bytes: usize) -> Result<RegionId, PluginError> {
        let Registers { register, .. } = self.registers()?;
        let memory = Memory::new(bytes)?;
        // SAFETY: the channel is open; the memory stays until it is deregistered, or the channel
        // is closed.
        let raw = unsafe { register(self.raw, memory.start().as_ptr().cast(), bytes) };
        if raw.is_null() {
            // Whatever came of it, the layer may have a hold on the memory.
            std::mem::forget(memory);
            return Err(self.failed());
        }
        let regions = &mut self.held.regions.0;
        regions.push(Some(Region { memory, raw }));
        Ok(RegionId(regions.len() - 1))
    }

    /// Deregisters memory and gives it back. Nothing may be under way.
    pub fn deregister(&mut self, id: RegionId) -> Result<(), PluginError> {
        let Registers { deregister, .. } = self.registers()?;
        self.check_quiet()?;
        let raw = self.held.regions.find(id)?.raw;
        // SAFETY: the channel is open, and the region registered; nothing of this process is
        // under way. That others reach for it no more is theirs to see to.
        let returned = unsafe { deregister(self.raw, raw) };
        let region = self.held.regions.0[id.0].take();
        if returned != 0 {
            std::mem::forget(region);
        }
        self.truth(returned, "deregister_memory").map(drop)
    }

    /// How other processes name the region.
    pub fn key(&mut self, id: RegionId) -> Result<Vec<u8>, PluginError> {
        let OneSided { key, .. } = self.one_sided()?;
        let raw = self.held.regions.find(id)?.raw;
        let mut bytes = vec![0u8; KEY_BYTES];
        // SAFETY: the channel is open, the region registered, the room as long as is said.
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

    /// Posts a copy to the other process, in a slot of sends. Once complete ([`Channel::test_send`])
    /// the memory here may be changed; it lies there after [`Channel::flush`].
    pub fn put(&mut self, slot: usize, transfer: &Transfer<'_>) -> Result<(), PluginError> {
        let OneSided { put, .. } = self.one_sided()?;
        self.copy(slot, transfer, put, "put")
    }

    /// Posts a copy from the other process, in a slot of sends. Once complete it is here.
    pub fn get(&mut self, slot: usize, transfer: &Transfer<'_>) -> Result<(), PluginError> {
        let OneSided { get, .. } = self.one_sided()?;
        self.copy(slot, transfer, get, "get")
    }

    fn copy(
        &mut self,
        slot: usize,
        transfer: &Transfer<'_>,
        call: abi::OfTransfer,
        name: &str,
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
        // The slot is what is posted; its own memory has nothing to do with it.
        self.held.sends.post(slot, 0)?;
        // SAFETY: the channel is open; the place lies within the region, which stays, untouched
        // by this process, until the slot is complete or the channel is closed.
        let returned = unsafe { call(self.raw, slot as u32, &transfer) };
        self.truth(returned, name).map(drop)
    }

    /// Waits until all that was put to a process, and is complete, lies there.
    pub fn flush(&mut self, rank: usize) -> Result<(), PluginError> {
        let OneSided { flush, .. } = self.one_sided()?;
        let rank = self.rank(rank)?;
        // SAFETY: the channel is open.
        let returned = unsafe { flush(self.raw, rank) };
        self.truth(returned, "flush").map(drop)
    }

    /// Writes to a region. Nothing may be under way.
    pub fn write_region(&mut self, id: RegionId, offset: usize, bytes: &[u8]) -> Result<(), PluginError> {
        self.check_quiet()?;
        let place = self.held.regions.find(id)?.place(offset, bytes.len())?;
        // SAFETY: within the region. Others may write to it at the same time: nothing refers to
        // it, and what they make of it are bytes.
        unsafe { place.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// What lies in a region. Nothing may be under way.
    pub fn read_region(&self, id: RegionId, offset: usize, bytes: usize) -> Result<Vec<u8>, PluginError> {
        self.check_quiet()?;
        let place = self.held.regions.find(id)?.place(offset, bytes)?;
        let mut read = vec![0u8; bytes];
        // SAFETY: the place lies within the region. Others may write to it at the same time: nothing refers to
        // it, and what they make of it are bytes.
        unsafe { place.as_ptr().copy_to_nonoverlapping(read.as_mut_ptr(), bytes) };
        Ok(read)
    }

    /// Deregisters whatever is still registered, before the channel is closed.
    pub(super) fn deregister_all(&mut self) {
        let Some(Registers { deregister, .. }) = self.plugin.registers else { return };
        if self.held.sends.posted() > 0 {
            return;
        }
        for raw in self.held.grounds.iter_mut().flatten().flat_map(Ground::take_registrations) {
            // SAFETY: the channel is open, the region registered, and nobody else has heard of it.
            unsafe { deregister(self.raw, raw) };
        }
        for region in self.held.regions.0.iter_mut().flatten() {
            // SAFETY: the channel is open, the region registered, nothing of this process under
            // way. What comes late from others finds the memory still there: it goes with all
            // that the layer may have a hold on.
            unsafe { deregister(self.raw, region.raw) };
            region.raw = std::ptr::null_mut();
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

    fn one_sided(&self) -> Result<OneSided, PluginError> {
        let one_sided = self.plugin.one_sided.filter(|_| self.uses == Uses::OneSided);
        one_sided.ok_or_else(|| self.cannot("put and get"))
    }

    fn cannot(&self, what: &str) -> PluginError {
        let name = &self.plugin.name;
        PluginError(if self.uses == Uses::OneSided {
            format!("the layer {name} cannot {what}")
        } else {
            format!("{name} was not opened to {what}")
        })
    }
}
