//! Requests and replies of a layer with requests of its own, between two processes.

use super::requests::{SLOTS, window};
use crate::requests::Wire;
use crate::sized::{SizedWire, Sizes};
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::Channel;
use std::time::Duration;

/// Either end of the wire. A request states the size of its reply, so sizes need no announcement.
pub(super) struct OwnWire {
    channel: Channel,
    peer: usize,
    sizes: Sizes,
}

impl OwnWire {
    /// Returns the wire to the process `peer`. Until sizes are set, all messages have `size_bytes`, or one
    /// byte.
    pub(super) fn new(channel: Channel, peer: usize, size_bytes: Option<usize>) -> Result<Self, LayerError> {
        let sizes = size_bytes.map_or(Ok(Sizes::SMALLEST), |bytes| Sizes::new(bytes, bytes))?;
        Ok(Self { channel, peer, sizes })
    }
}

impl Wire for OwnWire {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        let Sizes { request, reply } = self.sizes;
        self.channel.request(self.peer, request as usize, reply as usize).map_err(LayerError::new)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        Ok(self.channel.take_reply().map_err(LayerError::new)?.is_some())
    }

    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        self.channel.answer().map_err(LayerError::new)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.channel.block(timeout).map_err(LayerError::new)
    }

    #[inline(always)]
    fn unheard_bytes(&self) -> usize {
        SLOTS * (self.sizes.request as usize + self.sizes.reply as usize)
    }
}

impl SizedWire for OwnWire {
    fn largest(&self) -> usize {
        self.channel.largest()
    }

    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError> {
        self.sizes = sizes;
        Ok(())
    }

    /// Does nothing: the library knows the sizes with each request.
    fn take_confirmation(&mut self) -> Result<(), LayerError> {
        Ok(())
    }

    fn is_confirmed(&self) -> bool {
        true
    }

    fn window(&self) -> usize {
        window(self.sizes.request.max(self.sizes.reply) as usize).min(SLOTS)
    }
}
