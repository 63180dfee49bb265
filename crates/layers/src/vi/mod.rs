//! Virtual Interfaces over shared memory, and over UDP: reliable delivery, one VI to each peer.
//!
//! Receives are posted in advance, and posted again when their message is taken, which belongs to o_r. A
//! send is complete when the wire has it, which belongs to o_s. A VI breaks where a message finds no receive:
//! the window limits requests and replies, and the receives that the peer has announced limit messages.
//!
//! * [`half`]: two processes. * [`group`]: many processes. * [`memory`]: registration of memory, and the
//!   costs of VIs.
//!
//! `rendezvous` connects VIs, `descriptors` lays out posted work, `requests` has requests and replies
//! of one size and of any size, `messages` has messages into the memory of posted receives,
//! `one_sided` has RDMA. `pair` has two VIs in one process. `key` says where a peer may write.

mod descriptors;
pub(crate) mod group;
pub(crate) mod half;
mod key;
pub(crate) mod memory;
mod messages;
mod one_sided;
pub(crate) mod pair;
mod rendezvous;
mod requests;

use crate::options::LayerOptions;
use crate::peer_wait::PEER_TIMEOUT;
use crate::xdp;
use netdyno_stack::vi::{UdpOptions, WireKind};
use std::net::SocketAddr;

/// The largest message of a fixed size, in bytes.
pub(crate) const MAX_SIZE: usize = 1 << 20;
/// Most requests in flight to one peer: half of the slots that a message ring in shared memory has, and as
/// many datagrams as may be on the wire at once.
const WINDOW: usize = 64;

/// Returns the wire over UDP, without faults, from a socket at `bind`.
pub(crate) fn at(bind: SocketAddr) -> UdpOptions {
    // The timeout is longer than that of this crate, whose error says more.
    let peer_timeout = 2 * PEER_TIMEOUT;
    UdpOptions::new().bind(bind).peer_timeout(peer_timeout)
}

/// Returns the wire over AF_XDP that the options ask for.
pub(crate) fn over_xdp(options: &LayerOptions) -> WireKind {
    let LayerOptions { bind, faults, seed, .. } = xdp::at_an_interface(options.clone());
    WireKind::Udp(at(bind).faults(faults).seed(seed).over_xdp())
}

/// Returns the wire over UDP that the options ask for.
pub(crate) fn over_udp(&LayerOptions { bind, faults, seed, .. }: &LayerOptions) -> WireKind {
    WireKind::Udp(at(bind).faults(faults).seed(seed))
}
