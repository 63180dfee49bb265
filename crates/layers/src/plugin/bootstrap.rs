//! Exchange of bytes between the processes of a job before netdyno connects them: through MPI, whose launcher
//! has started them.

use super::extension::{ALONE, Extension, Room, Use};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::{Channel, Place, Uses};

/// MPI, which is open for as long as this value lives.
pub struct Bootstrap {
    channel: Channel,
}

impl Bootstrap {
    /// Opens MPI. Waits until all processes of the job do.
    ///
    /// # Errors
    /// There is no MPI here, or the job's launcher is that of another MPI library.
    pub fn open() -> Result<Self, LayerError> {
        let usage = Use::of(Uses::Messages, Wait::Spin);
        // MPI assigns the ranks.
        Ok(Self { channel: Extension::mpi()?.open_among_others(Room::SMALLEST, ALONE, usage)? })
    }

    /// Returns this process's rank, and the number of processes.
    pub fn place(&self) -> Place {
        self.channel.place()
    }

    /// Gives `mine` to all processes, and returns the bytes of all processes, by rank. All processes give the
    /// same number of bytes. They wait for each other without a timeout, because the launcher ends all of
    /// them when one has ended.
    ///
    /// # Errors
    /// MPI fails.
    pub fn gather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, LayerError> {
        let all = self.channel.gather(mine).map_err(LayerError::new)?;
        all.ok_or_else(|| LayerError(format!("{} cannot gather", self.channel.plugin().name())))
    }
}
