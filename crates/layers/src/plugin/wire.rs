//! Two processes that send each other requests and replies, of a fixed size or of any.

use super::lanes::{LINE, Lanes};
use crate::real::Wire;
use crate::sized::{ANNOUNCEMENT_LEN, End, SizedWire, Sizes, is_announcement};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::Channel;
use std::time::Duration;

/// Messages without a reply at most.
pub(super) const SLOTS: usize = 64;
/// Receives that are posted share this much memory, so that messages of a size that a processor's
/// cache can hold find it there, as they do where all messages land in one place;
const MEMORY: usize = 1 << 20;
/// but there are as many at least,
const AT_LEAST: usize = 4;
/// unless they would take more than this.
const MEMORY_AT_MOST: usize = 256 << 20;

/// How many messages of so many bytes may be without a reply. A power of two.
pub(super) fn window(bytes: usize) -> usize {
    let fit = |memory: usize| memory / bytes.max(1);
    let window = fit(MEMORY).max(AT_LEAST).min(fit(MEMORY_AT_MOST)).clamp(1, SLOTS);
    1 << window.ilog2()
}

/// The memory that receives of up to `largest` bytes need, and that which all sends share.
pub(super) fn memory(largest: usize) -> (usize, usize) {
    let receives = MEMORY.max(largest.saturating_mul(AT_LEAST).min(MEMORY_AT_MOST)).max(largest);
    (receives + SLOTS * LINE, largest.max(ANNOUNCEMENT_LEN))
}

/// Either end of the wire.
pub(super) struct PluginWire {
    lanes: Lanes,
    peer: usize,
    end: End,
}

impl PluginWire {
    /// To the process `peer`. Until sizes are announced, all messages have `size_bytes`, or one
    /// byte.
    pub(super) fn new(
        channel: Channel,
        peer: usize,
        wait: Wait,
        is_requester: bool,
        size_bytes: Option<usize>,
    ) -> Result<Self, LayerError> {
        let mut end = End::new(is_requester);
        if let Some(bytes) = size_bytes {
            end.announce(Sizes::new(bytes, bytes)?);
        }
        let mut wire = Self { lanes: Lanes::new(channel, Some(peer), wait), peer, end };
        wire.arrange()?;
        Ok(wire)
    }

    /// Receives for messages of the sizes that hold, and for an announcement.
    fn arrange(&mut self) -> Result<(), LayerError> {
        self.lanes.arrange(self.window(), self.end.incoming().max(ANNOUNCEMENT_LEN))
    }

    #[cold]
    fn take_announcement(&mut self, slot: usize) -> Result<(), LayerError> {
        let announced = self.lanes.received(slot, ANNOUNCEMENT_LEN)?;
        let sizes = Sizes::parse(announced, self.lanes.largest());
        match self.end.take(sizes)? {
            Some(confirmation) => {
                self.arrange()?;
                self.lanes.send_bytes(self.peer, &confirmation)
            }
            None => self.lanes.post(slot),
        }
    }
}

impl Wire for PluginWire {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        self.lanes.send(self.peer, self.end.outgoing())
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        let Some((slot, arrival)) = self.lanes.take()? else { return Ok(false) };
        if arrival.bytes == ANNOUNCEMENT_LEN && is_announcement(self.lanes.received(slot, 1)?[0]) {
            return self.take_announcement(slot).map(|()| false);
        }
        if arrival.bytes != self.end.incoming() {
            return Err(unexpected(arrival.bytes, self.end.incoming()));
        }
        self.lanes.post(slot)?;
        Ok(true)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.lanes.block(timeout)
    }
}

#[cold]
pub(super) fn unexpected(bytes: usize, expected: usize) -> LayerError {
    LayerError(format!("a message of {bytes} bytes came, {expected} were expected"))
}

impl SizedWire for PluginWire {
    fn largest(&self) -> usize {
        self.lanes.largest()
    }

    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError> {
        self.end.announce(sizes);
        self.arrange()?;
        self.lanes.send_bytes(self.peer, &sizes.announcement())
    }

    fn is_confirmed(&mut self) -> Result<bool, LayerError> {
        if self.take()? {
            return Err(LayerError::new("a reply came that nothing was asked for"));
        }
        Ok(self.end.is_confirmed())
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
