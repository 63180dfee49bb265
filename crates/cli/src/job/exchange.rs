//! The exchange of bytes between the processes of a job before they are connected: through their launcher if it
//! offers PMI, through a folder that their hosts share if Slurm offers nothing, otherwise through MPI. MPI must not be
//! measured if the processes use PMI, because it would have to use the same connection to the launcher.

use netdyno_job::place::Place;
use netdyno_job::pmi::Pmi;
use netdyno_job::shared_folder::SharedFolder;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::plugin::bootstrap::Bootstrap;
use netdyno_measure::layer::LayerError;

/// A way to exchange bytes, which is open for as long as this value lives.
pub enum Exchange {
    Pmi(Pmi),
    Folder(SharedFolder),
    Mpi(Box<Bootstrap>),
}

/// The kind of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Pmi,
    Folder,
    Mpi,
}

impl Kind {
    /// Returns the kind for the processes of a job that measures these layers.
    pub fn of(over: &[Layer]) -> Self {
        if over.iter().any(|layer| layer.has_launcher()) {
            Self::Mpi
        } else if Pmi::is_offered() {
            Self::Pmi
        } else if SharedFolder::is_needed() {
            Self::Folder
        } else {
            Self::Mpi
        }
    }

    /// Returns the name of what the exchange goes through.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pmi => "their launcher (PMI)",
            Self::Folder => "a folder that all hosts share",
            Self::Mpi => "MPI",
        }
    }

    /// Says why this host cannot exchange bytes in this way, if it cannot.
    pub fn unavailable(self) -> Option<String> {
        match self {
            Self::Pmi | Self::Folder => None,
            Self::Mpi => Layer::Mpi.unavailable().map(|why| {
                format!("{why}; a launcher with PMI needs no MPI for other layers, as in srun --mpi=pmi2")
            }),
        }
    }
}

impl Exchange {
    /// Opens the exchange for the process at `place`. Waits until all processes of the job do.
    pub fn open(kind: Kind, place: Place) -> Result<Self, LayerError> {
        match kind {
            Kind::Pmi => Pmi::open(place).map(Self::Pmi).map_err(LayerError::new),
            Kind::Folder => SharedFolder::open(place).map(Self::Folder).map_err(LayerError::new),
            Kind::Mpi => Bootstrap::open().map(|mpi| Self::Mpi(Box::new(mpi))),
        }
    }

    /// Keeps what must stay open until the end: a launcher and MPI are told of it. A folder is left now, because an
    /// interrupted process could not.
    pub fn kept(self) -> Option<Self> {
        match self {
            Self::Folder(_) => None,
            other => Some(other),
        }
    }

    /// Returns the place of this process.
    pub fn place(&self) -> Place {
        match self {
            Self::Pmi(pmi) => pmi.place(),
            Self::Folder(folder) => folder.place(),
            Self::Mpi(mpi) => Place { rank: mpi.place().rank, procs: mpi.place().ranks },
        }
    }

    /// Gives `mine` to all processes, and returns the bytes of all processes, by rank. All give the same number of
    /// bytes. Blanks at the end do not travel through PMI.
    pub fn gather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, LayerError> {
        match self {
            Self::Mpi(mpi) => mpi.gather(mine),
            Self::Folder(folder) => folder.gather(mine).map_err(LayerError::new),
            Self::Pmi(pmi) => {
                // Other white space may be a number.
                let len = mine.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
                let mut all = pmi.gather(&mine[..len]).map_err(LayerError::new)?;
                all.iter_mut().for_each(|given| given.resize(mine.len(), b' '));
                Ok(all)
            }
        }
    }
}
