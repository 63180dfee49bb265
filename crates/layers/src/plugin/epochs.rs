//! One-sided operations of a layer in C in epochs: the target takes part in the opening and the closing of each epoch.
//!
//! The initiator announces every epoch. Between epochs the target looks for an announcement, so that it also sees the
//! end of the measurement. Within an epoch it waits inside the layer.

use super::extension::Room;
use super::messages;
use super::one_sided::Port;
use crate::half::Replier;
use crate::idle::Idle;
use crate::peer_wait::BLOCK_AT_MOST;
use crate::time::{RealTime, in_real_time};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{Initiator, LayerError};
use netdyno_measure::onesided::data::{Memory, Operation, Synchronisation};
use netdyno_measure::order::Order;
use netdyno_plugin::channel::Channel;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most operations of an epoch. No row of the pattern is longer.
const WINDOW: usize = 2048;

/// Returns the capacity of a channel for operations in epochs. It carries no messages.
pub(super) fn room() -> Room {
    Room { slots: WINDOW, largest: Order::LEN, memory: messages::memory(Order::LEN, 1) }
}

/// The initiator.
pub(super) struct EpochInitiator {
    port: Port,
    time: RealTime,
    synchronisation: Synchronisation,
    is_open: bool,
    /// Operations of the latest epoch, in slots from 0.
    started: usize,
}

impl EpochInitiator {
    /// Returns the initiator. Calibrates the clock.
    pub(super) fn new(port: Port, synchronisation: Synchronisation) -> Self {
        Self { port, time: RealTime::calibrate(), synchronisation, is_open: false, started: 0 }
    }

    /// Frees the slots of the latest epoch, which is closed.
    fn free_slots(&mut self) -> Result<(), LayerError> {
        for slot in 0..self.started {
            if !self.port.channel.test_send(slot).map_err(LayerError::new)? {
                return Err(LayerError::new("an operation is not complete after its epoch"));
            }
        }
        self.started = 0;
        Ok(())
    }
}

in_real_time!(EpochInitiator);

impl Initiator for EpochInitiator {
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
        Some(self.synchronisation)
    }

    fn open_epoch(&mut self) -> Result<(), LayerError> {
        self.free_slots()?;
        self.port.channel.open_epoch(self.port.target).map_err(LayerError::new)?;
        self.is_open = true;
        Ok(())
    }

    fn window(&self) -> usize {
        WINDOW
    }

    /// Begins another epoch if this one is full.
    #[inline(always)]
    fn start(&mut self) -> Result<(), LayerError> {
        if self.started == WINDOW {
            self.wait_local()?;
            self.open_epoch()?;
        }
        self.port.post(self.started)?;
        self.started += 1;
        Ok(())
    }

    #[inline(always)]
    fn wait_local(&mut self) -> Result<(), LayerError> {
        if self.is_open {
            self.port.channel.close_epoch(self.port.target).map_err(LayerError::new)?;
            self.is_open = false;
        }
        Ok(())
    }

    #[inline(always)]
    fn flush(&mut self) -> Result<(), LayerError> {
        self.wait_local()?;
        self.port.channel.flush(self.port.target).map_err(LayerError::new)
    }
}

/// The target, which takes part in the epochs of the initiator.
pub(super) struct Exposer {
    channel: Channel,
    initiator: usize,
    wait: Wait,
}

impl Exposer {
    /// Returns the target of the process of rank `initiator`.
    pub(super) fn new(channel: Channel, initiator: usize, wait: Wait) -> Self {
        Self { channel, initiator, wait }
    }
}

impl Replier for Exposer {
    fn serve(&mut self, over: &AtomicBool) -> Result<(), LayerError> {
        let mut idle = Idle::new(self.wait);
        loop {
            if self.channel.expose(self.initiator).map_err(LayerError::new)? {
                idle.found();
                continue;
            }
            if over.load(Ordering::Relaxed) {
                return Ok(());
            }
            idle.pass(|| self.channel.block(BLOCK_AT_MOST).map_err(LayerError::new))?;
        }
    }
}
