//! Requests and replies of a layer's own: one with another process, or with many.

use super::wire::{SLOTS, window};
use crate::group::member::Links;
use crate::real::Wire;
use crate::sized::{SizedWire, Sizes};
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::Channel;
use std::time::Duration;

/// Either end of the wire between two. A request says how long its reply is to be: nothing has to
/// be announced.
pub(super) struct OwnWire {
    channel: Channel,
    peer: usize,
    sizes: Sizes,
}

impl OwnWire {
    /// To the process `peer`. Until sizes are set, all messages have `size_bytes`, or one byte.
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
}

impl SizedWire for OwnWire {
    fn largest(&self) -> usize {
        self.channel.largest()
    }

    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError> {
        self.sizes = sizes;
        Ok(())
    }

    fn is_confirmed(&mut self) -> Result<bool, LayerError> {
        Ok(true)
    }

    fn window(&self) -> usize {
        window(self.sizes.request.max(self.sizes.reply) as usize).min(SLOTS)
    }
}

/// One process's end of the wires to all others.
pub(super) struct OwnLinks {
    pub(super) channel: Channel,
    /// Ranks that the layer knows processes by; none for the own.
    pub(super) ranks: Vec<Option<usize>>,
    /// Which process has a rank of the layer.
    pub(super) peer_of: Vec<Option<usize>>,
    pub(super) size_bytes: usize,
}

impl Links for OwnLinks {
    /// Replies come from all together.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let rank = self.ranks[peer].ok_or_else(|| LayerError::new("a process is no peer of itself"))?;
        self.channel.request(rank, self.size_bytes, self.size_bytes).map_err(LayerError::new)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        let Some(rank) = self.channel.take_reply().map_err(LayerError::new)? else { return Ok(None) };
        let peer = self.peer_of[rank];
        peer.map(Some)
            .ok_or_else(|| LayerError(format!("a reply came from rank {rank}, which has no part in this")))
    }

    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        self.channel.answer().map_err(LayerError::new)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.channel.block(timeout).map_err(LayerError::new)
    }
}
