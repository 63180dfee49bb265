//! The addresses of processes, and the connection of a channel to them.

use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::Channel;

/// Bytes of the first field of an address: the rank of its process. The layer's own address follows.
const RANK_LEN: usize = 4;

/// Returns the bytes to hand to other processes: this process's rank, and the layer's own address.
pub(super) fn own_address(channel: &mut Channel) -> Result<Vec<u8>, LayerError> {
    let rank = u32::try_from(channel.place().rank).map_err(LayerError::new)?;
    let rest = channel.address().map_err(LayerError::new)?;
    Ok([&rank.to_le_bytes()[..], &rest].concat())
}

/// Connects to the processes that gave these addresses. Returns their ranks, in the same order.
///
/// # Errors
/// An address is malformed, two addresses have the same rank, or the layer cannot connect.
pub(super) fn connect(channel: &mut Channel, addresses: &[&[u8]]) -> Result<Vec<usize>, LayerError> {
    let mut by_rank = vec![Vec::new(); channel.place().ranks];
    let mut ranks = Vec::with_capacity(addresses.len());
    for address in addresses {
        let (rank, rest) = address
            .split_first_chunk::<RANK_LEN>()
            .ok_or_else(|| LayerError::new("the address of a process is too short"))?;
        let rank = u32::from_le_bytes(*rank) as usize;
        let is_own = rank == channel.place().rank;
        let place = by_rank.get_mut(rank).filter(|_| !is_own && !ranks.contains(&rank));
        *place.ok_or_else(|| {
            LayerError(format!("two processes say that they have rank {rank}, or it is none"))
        })? = rest.to_vec();
        ranks.push(rank);
    }
    channel.connect(&by_rank).map_err(LayerError::new)?;
    Ok(ranks)
}
