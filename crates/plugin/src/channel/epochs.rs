//! Epochs of one-sided operations: the target takes part in them.

use super::Channel;
use crate::PluginError;
use crate::plugin::Epochs;

impl Channel {
    /// Opens an epoch of operations on the memory of `rank`, and waits until that process takes part.
    pub fn open_epoch(&mut self, rank: usize) -> Result<(), PluginError> {
        let (Epochs { open, .. }, rank) = (self.epochs()?, self.rank(rank)?);
        // SAFETY: the channel is open.
        let returned = unsafe { open(self.raw, rank) };
        self.truth(returned, "open_epoch").map(drop)
    }

    /// Closes the epoch. Its operations are then complete here, which [`Channel::test_send`] reports.
    pub fn close_epoch(&mut self, rank: usize) -> Result<(), PluginError> {
        let (Epochs { close, .. }, rank) = (self.epochs()?, self.rank(rank)?);
        // SAFETY: the channel is open.
        let returned = unsafe { close(self.raw, rank) };
        self.truth(returned, "close_epoch").map(drop)
    }

    /// Takes part in an epoch of `rank`, if that process has begun to open one. Returns `false` if it has not.
    /// Otherwise all operations of the epoch are complete in the memory here.
    pub fn expose(&mut self, rank: usize) -> Result<bool, PluginError> {
        let (Epochs { expose, .. }, rank) = (self.epochs()?, self.rank(rank)?);
        // SAFETY: the channel is open.
        let returned = unsafe { expose(self.raw, rank) };
        self.truth(returned, "expose")
    }

    fn epochs(&self) -> Result<Epochs, PluginError> {
        let epochs = self.plugin.epochs.filter(|_| self.uses.has_epochs());
        epochs.ok_or_else(|| self.cannot("open epochs"))
    }
}
