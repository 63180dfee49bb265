//! The trait of a requester with several peers.

use crate::layer::{LayerError, Time};

/// A requester with several peers. It has its own clock.
pub trait Member: Time {
    /// Issues one request to a peer. Returns false, and does nothing, if the window is full.
    fn issue(&mut self, peer: usize) -> Result<bool, LayerError>;

    /// Handles at most one reply. Returns the peer that sent it.
    fn poll(&mut self) -> Result<Option<usize>, LayerError>;

    /// Passes time after a poll that found nothing, while replies are outstanding. Returns true if the
    /// requester yielded the processor.
    ///
    /// # Errors
    /// Returns an error if no reply arrives within a bounded time.
    fn idle(&mut self) -> Result<bool, LayerError>;

    /// Returns the largest number of requests to one peer that may be without a reply.
    fn max_window(&self) -> usize;

    /// Limits the requests to each peer without a reply to `window`, from 1 to [`Member::max_window`].
    fn set_window(&mut self, window: usize);
}
