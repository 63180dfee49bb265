//! One-sided operations of a layer in C: put, flush, get and fetch-and-add between registered memory of two processes.
//!
//! The target answers messages, of which none come. Its tests for them let libraries make progress that do so
//! inside calls only.

use super::extension::Room;
use super::messages;
use crate::payload::FILL;
use crate::peer_wait::PeerWait;
use crate::time::{RealTime, in_real_time};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{Initiator, LayerError};
use netdyno_measure::onesided::data::{Memory, Operation, Synchronisation};
use netdyno_measure::order::Order;
use netdyno_plugin::channel::{Channel, RegionId, Transfer};

/// Most operations in flight.
const WINDOW: usize = 64;
/// Bytes of the first field of an address: the length of the key, which follows it.
const LEN_LEN: usize = 2;

/// The operations of a layer in C. The last is optional.
const OPERATIONS: [Operation; 3] = [Operation::Put, Operation::Get, Operation::FetchAdd];

/// Returns the capacity of a channel for one-sided operations, and for the messages of the target.
pub(super) fn room() -> Room {
    Room { slots: WINDOW, largest: Order::LEN, memory: messages::memory(Order::LEN, WINDOW) }
}

/// The memory of a process, which both ends name.
pub(super) struct Registered {
    region: RegionId,
    bytes: usize,
}

impl Registered {
    /// Registers or allocates `bytes` bytes, and fills them.
    pub(super) fn new(channel: &mut Channel, bytes: usize) -> Result<Self, LayerError> {
        let region = channel.make_region(bytes).map_err(LayerError::new)?;
        channel.write_region(region, 0, &vec![FILL; bytes]).map_err(LayerError::new)?;
        Ok(Self { region, bytes })
    }

    /// Returns an address behind the key of the memory.
    pub(super) fn address(&self, channel: &mut Channel, address: &[u8]) -> Result<Vec<u8>, LayerError> {
        let key = channel.key(self.region).map_err(LayerError::new)?;
        let len = u16::try_from(key.len()).map_err(LayerError::new)?;
        Ok([&len.to_le_bytes()[..], &key, address].concat())
    }
}

/// Returns the key and the address that [`Registered::address`] wrote.
pub(super) fn take_key(bytes: &[u8]) -> Result<(&[u8], &[u8]), LayerError> {
    let too_short = || LayerError::new("the address of the other process is too short");
    let (len, rest) = bytes.split_first_chunk::<LEN_LEN>().ok_or_else(too_short)?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*len))).ok_or_else(too_short)
}

/// The initiator's end: its channel and its memory, the target's memory, and the chosen operation.
pub(super) struct Port {
    pub(super) channel: Channel,
    local: Registered,
    /// The rank of the target, and the key of its memory.
    pub(super) target: usize,
    key: Vec<u8>,
    operation: Operation,
    bytes: usize,
}

impl Port {
    /// Returns the end for operations on the memory with this key at the process of rank `target`.
    pub(super) fn new(channel: Channel, local: Registered, target: usize, key: Vec<u8>) -> Self {
        Self { channel, local, target, key, operation: Operation::Put, bytes: 1 }
    }

    pub(super) fn operations(&self) -> &[Operation] {
        &OPERATIONS[..OPERATIONS.len() - usize::from(!self.channel.has_fetch_add())]
    }

    pub(super) fn largest(&self) -> usize {
        self.local.bytes
    }

    /// Returns whose memory is reached, if the layer has a choice.
    pub(super) fn memory(&self) -> Option<Memory> {
        let memory = if self.channel.allocates() { Memory::Allocated } else { Memory::Registered };
        self.channel.plugin().allocates().then_some(memory)
    }

    pub(super) fn choose(&mut self, operation: Operation, bytes: usize) -> Result<(), LayerError> {
        if !self.operations().contains(&operation) {
            return Err(LayerError(format!("{} has no {}", self.channel.plugin().name(), operation.name())));
        }
        (self.operation, self.bytes) = (operation, bytes);
        Ok(())
    }

    /// Posts the chosen operation in a slot.
    #[inline(always)]
    pub(super) fn post(&mut self, slot: usize) -> Result<(), LayerError> {
        let (region, key, bytes) = (self.local.region, &self.key, self.bytes);
        let transfer = Transfer { region, offset: 0, rank: self.target, key, key_offset: 0, bytes };
        let posted = match self.operation {
            Operation::Get => self.channel.get(slot, &transfer),
            Operation::FetchAdd => self.channel.fetch_add(slot, &transfer, 1),
            _ => self.channel.put(slot, &transfer),
        };
        posted.map_err(LayerError::new)
    }
}

/// The initiator.
pub(super) struct PluginInitiator {
    port: Port,
    wait: Wait,
    time: RealTime,
    started: u64,
    completed: u64,
}

impl PluginInitiator {
    /// Returns the initiator. Calibrates the clock.
    pub(super) fn new(port: Port, wait: Wait) -> Self {
        Self { port, wait, time: RealTime::calibrate(), started: 0, completed: 0 }
    }

    /// Waits until at most `left` operations are in flight. Operations are tested in the order of their start.
    #[inline(always)]
    fn until(&mut self, left: u64) -> Result<(), LayerError> {
        let Port { channel, bytes, .. } = &mut self.port;
        let in_flight = |completed: u64| (self.started - completed) as usize * *bytes;
        let mut wait = PeerWait::new(self.wait).for_bytes(in_flight(self.completed));
        while self.started - self.completed > left {
            let oldest = (self.completed % WINDOW as u64) as usize;
            if channel.test_send(oldest).map_err(LayerError::new)? {
                self.completed += 1;
                // The other process is at work.
                wait = PeerWait::new(self.wait).for_bytes(in_flight(self.completed));
            } else {
                wait.after_empty_poll(|timeout| channel.block(timeout).map_err(LayerError::new))?;
            }
        }
        Ok(())
    }
}

in_real_time!(PluginInitiator);

impl Initiator for PluginInitiator {
    fn operations(&self) -> &[Operation] {
        self.port.operations()
    }

    fn largest(&self) -> usize {
        self.port.largest()
    }

    fn choose(&mut self, operation: Operation, bytes: usize) -> Result<(), LayerError> {
        self.port.choose(operation, bytes)
    }

    fn memory(&self) -> Option<Memory> {
        self.port.memory()
    }

    fn synchronisation(&self) -> Option<Synchronisation> {
        let plugin = self.port.channel.plugin();
        (plugin.fences() || plugin.posts()).then_some(Synchronisation::Lock)
    }

    fn window(&self) -> usize {
        WINDOW
    }

    #[inline(always)]
    fn start(&mut self) -> Result<(), LayerError> {
        self.until(WINDOW as u64 - 1)?;
        self.port.post((self.started % WINDOW as u64) as usize)?;
        self.started += 1;
        Ok(())
    }

    #[inline(always)]
    fn wait_local(&mut self) -> Result<(), LayerError> {
        self.until(0)
    }

    #[inline(always)]
    fn flush(&mut self) -> Result<(), LayerError> {
        self.until(0)?;
        self.port.channel.flush(self.port.target).map_err(LayerError::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok((key, rest)) = take_key(&bytes) {
                prop_assert_eq!([&bytes[..LEN_LEN], key, rest].concat(), bytes);
            }
        }
    }
}
