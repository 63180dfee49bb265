//! Many processes over a layer in C: a channel with all others at once, receives from any.

use super::lanes::{LINE, Lanes};
use super::requests::OwnLinks;
use super::wire::unexpected;
use super::{Extension, Room, check_size, connect, own_address};
use crate::group::member::{Links, RealMember};
use crate::group::{Attendant, Gathering, Place};
use crate::half::LayerOptions;
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::{self, Channel};
use std::time::Duration;

/// Memory of the receives of a process at most, unless each needs more.
const MEMORY: usize = 16 << 20;

/// One process of several, not yet connected.
pub struct PluginGathering {
    channel: Channel,
    address: Vec<u8>,
    place: Place,
    window: usize,
    options: LayerOptions,
}

impl PluginGathering {
    /// Opens the layer.
    pub fn open(extension: &Extension, place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        let stride = options.size_bytes.next_multiple_of(LINE);
        let peers = place.procs - 1;
        let room = (MEMORY / stride / peers).max(1);
        let window = place.window().min(1 << room.ilog2());
        let slots = window * peers;
        let own = channel::Place { rank: place.rank, ranks: place.procs };
        let room = Room { slots, largest: options.size_bytes, memory: (slots * stride, options.size_bytes) };
        let mut channel = extension.open_among_others(room, own, options.wait)?;
        check_size(&channel, options.size_bytes)?;
        let address = own_address(&mut channel)?;
        Ok(Self { channel, address, place, window, options })
    }
}

impl Gathering for PluginGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        let address = |rank| if rank == self.place.rank { Vec::new() } else { self.address.clone() };
        (0..self.place.procs).map(address).collect()
    }

    fn meet(mut self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let peers: Vec<usize> = self.place.peers().collect();
        let given: Vec<&[u8]> = peers.iter().map(|&peer| &addresses[peer][..]).collect();
        let met = connect(&mut self.channel, &given)?;
        let (mut ranks, mut peer_of) = (vec![None; self.place.procs], vec![None; self.channel.place().ranks]);
        for (&peer, rank) in peers.iter().zip(met) {
            ranks[peer] = Some(rank);
            peer_of[rank] = Some(peer);
        }
        let LayerOptions { size_bytes, wait, .. } = self.options;
        if self.channel.plugin().requests() {
            let links = OwnLinks { channel: self.channel, ranks, peer_of, size_bytes };
            return Ok(Box::new(RealMember::new(links, wait, self.place.procs, self.window)));
        }
        let receives = self.channel.slots();
        let mut lanes = Lanes::new(self.channel, None, wait);
        lanes.arrange(receives, size_bytes)?;
        let links = PluginLinks { lanes, ranks, peer_of, size_bytes };
        Ok(Box::new(RealMember::new(links, wait, self.place.procs, self.window)))
    }
}

struct PluginLinks {
    lanes: Lanes,
    /// Ranks that the layer knows processes by; none for the own.
    ranks: Vec<Option<usize>>,
    /// Which process has a rank of the layer.
    peer_of: Vec<Option<usize>>,
    size_bytes: usize,
}

impl PluginLinks {
    /// Takes a message, if one is there: the sender's rank in the layer.
    #[inline(always)]
    fn receive(&mut self) -> Result<Option<usize>, LayerError> {
        let Some((slot, arrival)) = self.lanes.take()? else { return Ok(None) };
        if arrival.bytes != self.size_bytes {
            return Err(unexpected(arrival.bytes, self.size_bytes));
        }
        self.lanes.post(slot)?;
        Ok(Some(arrival.rank))
    }
}

impl Links for PluginLinks {
    /// Messages come from all together.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let Some(rank) = self.ranks[peer] else {
            return Err(LayerError::new("a process is no peer of itself"));
        };
        self.lanes.send(rank, self.size_bytes)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        let Some(rank) = self.receive()? else { return Ok(None) };
        let peer = self.peer_of[rank];
        peer.map(Some)
            .ok_or_else(|| LayerError(format!("a message came from rank {rank}, which has no part in this")))
    }

    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let rank = self.receive()?;
        if let Some(rank) = rank {
            self.lanes.send(rank, self.size_bytes)?;
        }
        Ok(rank.is_some())
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.lanes.block(timeout)
    }
}
