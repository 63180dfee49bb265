//! A group of processes: each has one channel to all others, with receives from any process.

use super::address::{connect, own_address};
use super::extension::{Extension, Room, Use, check_size};
use super::queues::{LINE, Queues};
use crate::group::links::{Links, RealMember};
use crate::group::{Attendant, Gathering, Place, no_peer_of_itself};
use crate::options::LayerOptions;
use crate::payload::wrong_size;
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::{self, Channel, Uses};
use std::time::Duration;

/// The most memory of the receives of a process, in bytes. One receive for each peer may take more.
const MEMORY: usize = 16 << 20;

/// One process of a group, not yet connected.
pub(crate) struct PluginGathering {
    channel: Channel,
    address: Vec<u8>,
    place: Place,
    window: usize,
    options: LayerOptions,
}

impl PluginGathering {
    /// Opens the layer.
    pub(crate) fn open(
        extension: &Extension,
        place: Place,
        options: LayerOptions,
    ) -> Result<Self, LayerError> {
        let stride = options.size_bytes.next_multiple_of(LINE);
        let peers = place.procs - 1;
        let room = (MEMORY / stride / peers).max(1);
        let window = place.window().min(1 << room.ilog2());
        let slots = window * peers;
        let own = channel::Place { rank: place.rank, ranks: place.procs };
        let room = Room { slots, largest: options.size_bytes, memory: (slots * stride, options.size_bytes) };
        let mut channel = extension.open_among_others(room, own, Use::of(Uses::Messages, options.wait))?;
        check_size(&channel, options.size_bytes)?;
        let address = own_address(&mut channel)?;
        Ok(Self { channel, address, place, window, options })
    }
}

impl Gathering for PluginGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        self.place.same_address(&self.address)
    }

    fn meet(mut self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let peers: Vec<usize> = self.place.peers().collect();
        let given: Vec<&[u8]> = peers.iter().map(|&peer| &addresses[peer][..]).collect();
        let met = connect(&mut self.channel, &given)?;
        let ranks =
            PeerRanks::new(self.place.procs, self.channel.place().ranks, peers.iter().copied().zip(met));
        let LayerOptions { size_bytes, wait, .. } = self.options;
        if self.channel.plugin().requests() {
            let links = OwnLinks { channel: self.channel, ranks, size_bytes };
            return Ok(Box::new(RealMember::new(links, wait, self.place.procs, self.window)));
        }
        let receives = self.channel.slots();
        let mut queues = Queues::new(self.channel, None, wait);
        queues.arrange(receives, size_bytes)?;
        let links = PluginLinks { queues, ranks, size_bytes };
        Ok(Box::new(RealMember::new(links, wait, self.place.procs, self.window)))
    }
}

/// The ranks of processes in the group, and in the layer.
struct PeerRanks {
    /// The rank in the layer, by the rank in the group; `None` for the own rank.
    in_layer: Vec<Option<usize>>,
    /// The rank in the group, by the rank in the layer; `None` for processes outside of the group.
    in_group: Vec<Option<usize>>,
}

impl PeerRanks {
    /// Returns the ranks of a group of `procs`, of which `peers` are pairs of a rank in the group and in the
    /// layer. The layer has `ranks` processes.
    fn new(procs: usize, ranks: usize, peers: impl Iterator<Item = (usize, usize)>) -> Self {
        let (mut in_layer, mut in_group) = (vec![None; procs], vec![None; ranks]);
        for (peer, rank) in peers {
            in_layer[peer] = Some(rank);
            in_group[rank] = Some(peer);
        }
        Self { in_layer, in_group }
    }

    #[inline(always)]
    fn in_layer(&self, peer: usize) -> Result<usize, LayerError> {
        self.in_layer[peer].ok_or_else(no_peer_of_itself)
    }

    /// Returns the process that a `kind` of message came from.
    #[inline(always)]
    fn in_group(&self, rank: usize, kind: &str) -> Result<usize, LayerError> {
        self.in_group[rank]
            .ok_or_else(|| LayerError(format!("a {kind} came from rank {rank}, which has no part in this")))
    }
}

/// One process's ends of the wires, over messages.
struct PluginLinks {
    queues: Queues,
    ranks: PeerRanks,
    size_bytes: usize,
}

impl PluginLinks {
    /// Takes a message, if one has arrived. Returns the sender's rank in the layer.
    #[inline(always)]
    fn receive(&mut self) -> Result<Option<usize>, LayerError> {
        let Some((slot, arrival)) = self.queues.take()? else { return Ok(None) };
        if arrival.bytes != self.size_bytes {
            return Err(wrong_size(arrival.bytes, self.size_bytes));
        }
        self.queues.post(slot)?;
        Ok(Some(arrival.rank))
    }
}

impl Links for PluginLinks {
    /// Does nothing, because receives take the messages of any process.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let rank = self.ranks.in_layer(peer)?;
        self.queues.send(rank, self.size_bytes)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        let Some(rank) = self.receive()? else { return Ok(None) };
        self.ranks.in_group(rank, "message").map(Some)
    }

    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let rank = self.receive()?;
        if let Some(rank) = rank {
            self.queues.send(rank, self.size_bytes)?;
        }
        Ok(rank.is_some())
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.queues.block(timeout)
    }
}

/// One process's ends of the wires, over a layer with requests of its own.
struct OwnLinks {
    channel: Channel,
    ranks: PeerRanks,
    size_bytes: usize,
}

impl Links for OwnLinks {
    /// Does nothing, because the layer takes the replies of any process.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let rank = self.ranks.in_layer(peer)?;
        self.channel.request(rank, self.size_bytes, self.size_bytes).map_err(LayerError::new)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        let Some(rank) = self.channel.take_reply().map_err(LayerError::new)? else { return Ok(None) };
        self.ranks.in_group(rank, "reply").map(Some)
    }

    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        self.channel.answer().map_err(LayerError::new)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.channel.block(timeout).map_err(LayerError::new)
    }
}
