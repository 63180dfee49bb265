//! Requests and replies over messages, of a fixed size or of any size.

use super::queues::{LINE, Queues};
use crate::payload::wrong_size;
use crate::requests::Wire;
use crate::sized::{ANNOUNCEMENT_LEN, SizedEnd, SizedWire, Sizes, is_announcement};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::Channel;
use std::time::Duration;

/// Most requests in flight.
pub(super) const SLOTS: usize = 64;
/// The memory that posted receives share, in bytes. It is small enough for a processor's cache, so that
/// messages land in the cache, as they do in layers where all messages land in one place.
const MEMORY: usize = 1 << 20;
/// The least number of posted receives, even if they take more memory than [`MEMORY`].
const AT_LEAST: usize = 4;
/// The most memory of posted receives, in bytes. It limits [`AT_LEAST`].
const MEMORY_AT_MOST: usize = 256 << 20;

/// Returns the most requests in flight for messages of `bytes`, a power of two.
pub(super) fn window(bytes: usize) -> usize {
    let fit = |memory: usize| memory / bytes.max(1);
    let window = fit(MEMORY).max(AT_LEAST).min(fit(MEMORY_AT_MOST)).clamp(1, SLOTS);
    1 << window.ilog2()
}

/// Returns the memory that receives of up to `largest` bytes need, and the memory that all sends share, in
/// bytes.
pub(super) fn memory(largest: usize) -> (usize, usize) {
    let receives = MEMORY.max(largest.saturating_mul(AT_LEAST).min(MEMORY_AT_MOST)).max(largest);
    (receives + SLOTS * LINE, largest.max(ANNOUNCEMENT_LEN))
}

/// Either end of the wire.
pub(super) struct PluginWire {
    queues: Queues,
    peer: usize,
    end: SizedEnd,
}

impl PluginWire {
    /// Returns the wire to the process `peer`. Until sizes are announced, all messages have `size_bytes`, or
    /// one byte.
    pub(super) fn new(
        channel: Channel,
        peer: usize,
        wait: Wait,
        is_requester: bool,
        size_bytes: Option<usize>,
    ) -> Result<Self, LayerError> {
        let mut end = SizedEnd::new(is_requester);
        if let Some(bytes) = size_bytes {
            end.announce(Sizes::new(bytes, bytes)?);
        }
        let mut wire = Self { queues: Queues::new(channel, Some(peer), wait), peer, end };
        wire.arrange()?;
        Ok(wire)
    }

    /// Posts receives for messages of the current sizes, which are long enough for an announcement too.
    fn arrange(&mut self) -> Result<(), LayerError> {
        self.queues.arrange(self.window(), self.end.incoming().max(ANNOUNCEMENT_LEN))
    }

    #[cold]
    fn take_announcement(&mut self, slot: usize) -> Result<(), LayerError> {
        let announced = self.queues.received(slot, ANNOUNCEMENT_LEN)?;
        let sizes = Sizes::parse(announced, self.queues.largest());
        match self.end.take(sizes)? {
            Some(confirmation) => {
                self.arrange()?;
                self.queues.send_bytes(self.peer, &confirmation)
            }
            None => self.queues.post(slot),
        }
    }
}

impl Wire for PluginWire {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        self.queues.send(self.peer, self.end.outgoing())
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        let Some((slot, arrival)) = self.queues.take()? else { return Ok(false) };
        if arrival.bytes == ANNOUNCEMENT_LEN && is_announcement(self.queues.received(slot, 1)?[0]) {
            return self.take_announcement(slot).map(|()| false);
        }
        if arrival.bytes != self.end.incoming() {
            return Err(wrong_size(arrival.bytes, self.end.incoming()));
        }
        self.queues.post(slot)?;
        Ok(true)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.queues.block(timeout)
    }

    #[inline(always)]
    fn unheard_bytes(&self) -> usize {
        self.queues.unheard_bytes()
    }
}

impl SizedWire for PluginWire {
    fn largest(&self) -> usize {
        self.queues.largest()
    }

    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError> {
        self.end.announce(sizes);
        self.arrange()?;
        self.queues.send_bytes(self.peer, &sizes.announcement())
    }

    fn is_confirmed(&self) -> bool {
        self.end.is_confirmed()
    }

    fn window(&self) -> usize {
        window(self.end.outgoing().max(self.end.incoming()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_fits_into_the_memory() {
        for largest in [1, 9, 63, 64, 65, 16 << 10, (16 << 10) + 1, 100_000, 4 << 20, 100 << 20, 300 << 20] {
            let (receives, _) = memory(largest);
            for bytes in [1, 9, 65, 1000, 16 << 10, (16 << 10) + 1, 70_000, largest / 2 + 1, largest] {
                let stride = bytes.max(ANNOUNCEMENT_LEN).next_multiple_of(LINE);
                let fits = bytes > largest || window(bytes) * stride <= receives;
                assert!(fits && window(bytes).is_power_of_two(), "{bytes} of {largest}");
            }
        }
        assert_eq!((window(1), window(16 << 10), window(64 << 10), window(4 << 20)), (64, 64, 16, 4));
        assert_eq!(window(1 << 30), 1);
    }
}
