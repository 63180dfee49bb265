//! The record of the verb `onesided`.

use super::data::{Level, Memory, OnesidedLaunch, Operation, Synchronisation};
use crate::record::parameter::{Parameter, PerByte};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One-sided operations on the memory of another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Onesided {
    /// The reliability level; null if the layer has no levels.
    #[serde(default)]
    pub level: Option<Level>,
    /// The synchronisation; null if the layer has one alone.
    #[serde(default)]
    pub synchronisation: Option<Synchronisation>,
    /// Whose memory is reached; null if the layer has no choice.
    #[serde(default)]
    pub memory: Option<Memory>,
    /// The operations that the layer has.
    pub operations: Vec<OperationFigures>,
    /// The data of every launch.
    pub launches: Vec<OnesidedLaunch>,
}

/// The figures of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(non_snake_case, reason = "the notation of the LogP papers")]
pub struct OperationFigures {
    /// The operation.
    pub operation: Operation,
    /// Gap per byte between the largest size and the next one of at most a quarter of it: measured if it is the same
    /// from another quarter on.
    pub G: PerByte,
    /// Ascending by size.
    pub sizes: Vec<TransferTimes>,
}

/// The times of one operation at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferTimes {
    /// Bytes that the operation moves.
    pub size_bytes: usize,
    /// Duration of the call that starts it.
    pub start: Parameter,
    /// Time until the initiator's memory is free again, or has the bytes; unobservable of a put between fences.
    pub local: Parameter,
    /// Time until the bytes are known to be in the target's memory; unobservable if the operation fetches
    /// bytes, because it is then complete as soon as they are there.
    pub remote: Parameter,
    /// Time for each operation of a stream; an upper bound if the layer allows too few in flight.
    pub gap: Parameter,
}

/// The names of the times, in the order of tables.
pub const TIMES: [&str; 4] = ["start", "local", "remote", "gap"];

impl Onesided {
    /// Returns the number of operations in the row behind a gap; 1 if it is not known.
    pub(crate) fn row(&self, operation: Operation, size_bytes: usize) -> f64 {
        let mut transfers = self.launches.iter().flat_map(|launch| &launch.shape.transfers);
        let of_gap = transfers.find(|one| one.operation == operation && one.size_bytes == size_bytes);
        of_gap.map_or(1.0, |transfer| transfer.row as f64)
    }
}

/// The gap per byte is that between sizes of which one is at least this many times the other.
const FAR: usize = 4;

impl TransferTimes {
    /// Returns the times by name, in the order of [`TIMES`].
    pub fn times(&self) -> [(&'static str, &Parameter); TIMES.len()] {
        let times = [&self.start, &self.local, &self.remote, &self.gap];
        std::array::from_fn(|nth| (TIMES[nth], times[nth]))
    }

    /// Returns the bytes per second of a stream.
    pub fn bandwidth(&self) -> Option<f64> {
        self.gap.value_ns.filter(|&gap_ns| gap_ns > 0.0).map(|gap_ns| self.size_bytes as f64 / gap_ns * 1e9)
    }

    /// Returns the time until the operation is complete everywhere.
    pub fn complete(&self) -> &Parameter {
        if self.remote.value_ns.is_some() { &self.remote } else { &self.local }
    }
}

/// Returns the places of three sizes, of which each is at least [`FAR`] times the one before. The last one is
/// the largest of all.
pub(super) fn far_apart(sizes: &[TransferTimes]) -> Option<[usize; 3]> {
    let below = |at: usize| sizes.iter().rposition(|size| size.size_bytes <= sizes[at].size_bytes / FAR);
    let large = sizes.len().checked_sub(1)?;
    let middle = below(large)?;
    Some([below(middle)?, middle, large])
}
