//! How the processes of a job find each other before anything of netdyno's own connects them:
//! through MPI, whose launcher has started them.

use super::{Extension, Room};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::{Channel, Place};

/// MPI, open for as long as this lives.
pub struct Bootstrap {
    channel: Channel,
}

impl Bootstrap {
    /// Opens MPI. Waits until all processes of the job do.
    ///
    /// # Errors
    /// There is no MPI here, or it is not that of the job's launcher.
    pub fn open() -> Result<Self, LayerError> {
        let room = Room { slots: 1, largest: 1, memory: (1, 1) };
        // MPI says who is who.
        let place = Place { rank: 0, ranks: 1 };
        Ok(Self { channel: Extension::mpi()?.open_among_others(room, place, Wait::Spin)? })
    }

    /// Which process this is.
    pub fn place(&self) -> Place {
        self.channel.place()
    }

    /// Gives `mine` to all processes, and gets what each gave, by rank. All give as much, and
    /// wait for each other without end: a launcher ends them all when one is gone.
    ///
    /// # Errors
    /// MPI fails.
    pub fn gather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, LayerError> {
        let all = self.channel.gather(mine).map_err(LayerError::new)?;
        all.ok_or_else(|| LayerError(format!("{} cannot gather", self.channel.plugin().name())))
    }
}
