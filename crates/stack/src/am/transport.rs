//! The interface between an endpoint and its transports other than shared memory.

use super::bulk::{Destination, Memories, Shared, Target};
use super::call::Call;
use super::error::{ConnectError, OpenError, PeerLost, RequestError};
use super::handlers::Offer;
use super::peer_id::PeerId;
use crate::statistics::{PeerStatistics, Strays};
use netdyno_protocol::frame::memory_key::MemoryKey;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The number of a store and its bytes, borrowed while the caller of `store` waits.
pub(super) type Lent<'a> = Option<(u32, &'a [u8])>;

/// A transport of an endpoint, with all peers that the endpoint reaches by it. No call waits. Shared
/// memory is not behind this trait, because its calls are inlined into the program.
///
/// The endpoint passes only identifiers of peers that it has connected here.
pub(super) trait Transport<S>: Send + Sync {
    /// Opens a port for one peer. Returns its address.
    fn open_port(&mut self) -> Result<Vec<u8>, OpenError>;

    /// Describes the wire, if it depends on the machine.
    fn description(&self) -> Option<String> {
        None
    }

    /// Connects a port of this side to the peer's port, by their addresses. The identifier is that of
    /// the next peer of the transport.
    fn connect(&mut self, peer: PeerId, ours: &[u8], theirs: &[u8]) -> Result<(), ConnectError>;

    /// Ends the connection of a peer, if it has not ended.
    fn disconnect(&mut self, peer: PeerId);

    /// Returns the loss of a peer that is lost.
    fn check_connected(&self, peer: PeerId) -> Result<(), PeerLost>;

    /// Returns the number of unanswered requests.
    fn in_flight(&self, peer: PeerId) -> u32;

    /// Returns a number that changes with everything that makes room for requests and bytes of transfers.
    fn progress(&self) -> u64;

    /// Returns the longest payload that the peer accepts, in bytes.
    fn medium_bytes(&self, peer: PeerId) -> usize;

    /// Returns the statistics of the connection, if the transport counts them.
    fn statistics(&self, _peer: PeerId) -> Option<PeerStatistics> {
        None
    }

    /// Returns the counts of datagrams that belong to no peer.
    fn strays(&self) -> Strays {
        Strays::default()
    }

    /// Sends a request, if there is room in the window. The payload fits.
    fn try_send(&mut self, peer: PeerId, call: &Call, payload: &[u8]) -> Result<(), RequestError>;

    /// Sets whether requests wait for the next poll, a flush, or a full batch.
    fn set_corked(&mut self, is_corked: bool);

    /// Sends the requests that wait.
    fn flush(&mut self);

    /// Handles messages that have arrived, and runs the timers. Returns the number of messages handled.
    fn poll(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost>;

    /// Runs the timers that are due, of an endpoint that its program does not poll. Handles no message. The next poll
    /// reports a loss.
    fn tend(&mut self, offer: &Offer<S>);

    /// Returns the time until the next timer is due.
    fn until_due(&mut self) -> Duration;

    /// Returns the descriptor that becomes readable when a message arrives.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Asks the peer whether it has some memory, if there is room in the window. Returns the question's
    /// number.
    fn try_attach(&mut self, peer: PeerId, key: &MemoryKey) -> Result<u32, RequestError>;

    /// Returns the number of the last answered question of [`Transport::try_attach`], and the answer.
    fn attached(&self, peer: PeerId) -> Option<(u32, bool)>;

    /// Begins a store of `len` bytes, if there is room in the window. Returns its number.
    fn try_store(&mut self, target: Target, len: usize, call: &Call) -> Result<u32, RequestError>;

    /// Returns whether bytes of that store have not been copied yet.
    fn needs_source(&self, peer: PeerId, number: u32) -> bool;

    /// Keeps the bytes of a store until they are copied.
    fn keep(&mut self, peer: PeerId, number: u32, bytes: Shared);

    /// Begins a get, if there is room in the window.
    fn try_get(&mut self, target: Target, to: &Destination, call: &Call) -> Result<(), RequestError>;

    /// Sends what can be sent now of the transfers with a peer.
    fn push(&mut self, peer: PeerId, memories: &Memories, lent: Lent<'_>);
}
