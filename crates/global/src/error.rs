//! The errors of global memory.

use netdyno_job::place::NoPlace;
use netdyno_job::pmi::PmiError;
use netdyno_protocol::global::initiator::Failure;
use netdyno_protocol::global::{GlobalPointer, Refusal};
use netdyno_stack::am::{ConnectError, MemoryError, OpenError, PeerLost};
use thiserror::Error;

/// Reasons why an operation failed. After `PeerLost`, `Misbehaved` and `Mismatch` every later call of the world that needs
/// another rank fails in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The range is not inside of the segment.
    #[error(
        "{len} bytes at {} of segment {} of rank {} are not inside of its {segment_len} bytes: check the pointer",
        .at.offset, .at.segment, .at.rank
    )]
    OutOfBounds {
        /// The place.
        at: GlobalPointer,
        /// The number of bytes.
        len: u64,
        /// The length of the segment, in bytes.
        segment_len: u64,
    },
    /// The rank has no such segment, or has freed it.
    #[error("rank {} has no segment {}: use a pointer into a segment that it has allocated and not freed", .0.rank, .0.segment)]
    NoSuchSegment(GlobalPointer),
    /// There is no such rank.
    #[error("there is no rank {rank} among {ranks}: use ranks below {ranks}")]
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// The number of ranks.
        ranks: u32,
    },
    /// An atomic operation at an offset that is no multiple of eight.
    #[error("offset {} is no multiple of 8: align words of atomic operations", .0.offset)]
    Misaligned(GlobalPointer),
    /// A rank is lost, so that the job cannot go on.
    #[error("{}; end the job and start it again", .lost.named(&format!("rank {rank}")))]
    PeerLost {
        /// The rank.
        rank: u32,
        /// The loss, as its connection reports it, or as another rank tells of it.
        lost: PeerLost,
    },
    /// A rank sent a message that no rank of this version sends.
    #[error("rank {0} broke the protocol of global memory: start the same program at all ranks")]
    Misbehaved(u32),
    /// A rank called another collective operation.
    #[error(
        "rank {rank} called another collective operation, or with another length, as number {sequence}: \
         call the same ones in the same order at all ranks"
    )]
    Mismatch {
        /// The rank.
        rank: u32,
        /// The number of the operation.
        sequence: u64,
    },
    /// The system provides no memory.
    #[error("the segment cannot be had: {0}")]
    Memory(String),
    /// The memory of a rank cannot be mapped, or a transfer cannot be begun.
    #[error("the memory of rank {rank} cannot be reached: {reason}")]
    Unreachable {
        /// The rank.
        rank: u32,
        /// The reason.
        reason: String,
    },
}

impl Error {
    /// Returns the error of a refused operation.
    pub(crate) fn refused(Failure { at, len, refusal }: Failure) -> Self {
        match refusal {
            Refusal::OutOfBounds { segment_len } => Self::OutOfBounds { at, len, segment_len },
            Refusal::NoSuchSegment => Self::NoSuchSegment(at),
            Refusal::Misaligned => Self::Misaligned(at),
            Refusal::Malformed => Self::Misbehaved(at.rank),
        }
    }

    /// Returns the error of memory that cannot be reached for a reason that no program causes.
    pub(crate) fn unreachable(rank: u32, error: &impl std::error::Error) -> Self {
        Self::Unreachable { rank, reason: error.to_string() }
    }
}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error.to_string())
    }
}

/// Reasons why a rank cannot join its job.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The variables of the launcher contradict each other.
    #[error(transparent)]
    NoPlace(#[from] NoPlace),
    /// A launcher has started this process, and offers no PMI version 1.
    #[error(
        "rank {0} was started by a launcher without PMI version 1: use netdyno launch, mpiexec of MPICH or Intel MPI, \
         srun --mpi=pmi2, or flux run"
    )]
    NoPmi(usize),
    /// The launcher fails.
    #[error("the launcher cannot be talked to: {0}")]
    Pmi(#[from] PmiError),
    /// The ranks' addresses cannot be exchanged.
    #[error("the addresses of the ranks cannot be exchanged: {0}")]
    Exchange(Box<dyn std::error::Error + Send + Sync>),
    /// The other ranks' bytes are not those of this version.
    #[error("rank {0} has passed on no addresses of this version: start the same program at all ranks")]
    Addresses(usize),
    /// A rank or number of ranks that cannot be.
    #[error(
        "there cannot be a rank {rank} among {ranks}: use 1 to 65536 ranks, and ranks below their number"
    )]
    Place {
        /// The rank.
        rank: u32,
        /// The number of ranks.
        ranks: u32,
    },
    /// An endpoint or port cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A rank cannot be connected to.
    #[error("rank {rank} cannot be connected to: {error}")]
    Connect {
        /// The rank.
        rank: u32,
        /// The reason.
        #[source]
        error: ConnectError,
    },
}
