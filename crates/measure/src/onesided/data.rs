//! The one-sided measurements of one launch: the data behind every figure.
//!
//! Every time is in nanoseconds, without the cost of reading the clock. The value of a batch is the mean of
//! the middle 80 % of its samples.

use crate::logp::data::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A one-sided operation on the memory of another process, the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Writes bytes into the target's memory. The target's process does not see it.
    #[default]
    Put,
    /// Writes bytes into the target's memory and notifies the target's process, which sends a small reply.
    PutNotify,
    /// Reads bytes from the target's memory.
    Get,
    /// Reads a word of the target's memory and adds to it, as one step.
    FetchAdd,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 4] = [Self::Put, Self::PutNotify, Self::Get, Self::FetchAdd];

    /// Returns the name, as in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::PutNotify => "put_notify",
            Self::Get => "get",
            Self::FetchAdd => "fetch_add",
        }
    }

    /// Reports that the operation brings bytes of the target. It is then complete everywhere as soon as they
    /// are there.
    pub fn fetches(self) -> bool {
        matches!(self, Self::Get | Self::FetchAdd)
    }

    /// Reports that the initiator learns when its memory is free again, or has the bytes. After a put between fences
    /// it does not: it then learns with the closing fence that the operation is complete everywhere.
    pub fn shows_local(self, synchronisation: Option<Synchronisation>) -> bool {
        self.fetches() || synchronisation != Some(Synchronisation::Fence)
    }
}

/// The reliability level of a Virtual Interface: what the completion of a put says (Virtual Interface
/// Architecture Specification 1.0, section 2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The wire has the bytes. They may be lost. There are no gets.
    Unreliable,
    /// The wire has the bytes, and delivers them once.
    #[default]
    Delivery,
    /// The bytes are in the target's memory.
    Reception,
}

/// The synchronisation of one-sided operations of MPI (MPI 4.1, section 12.5): whether and how the target takes part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Synchronisation {
    /// The target takes no part, because its memory is locked once for all processes.
    #[default]
    Lock,
    /// The operations are in epochs between two fences of all processes.
    Fence,
    /// The operations are in epochs for which the target posts its memory.
    Post,
}

/// The memory that one-sided operations reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Memory of the program, registered with the library.
    #[default]
    Registered,
    /// Memory that the library allocates. Within a host it may reach it without the kernel.
    Allocated,
}

/// How operations reach the target's memory. A layer that has no choice ignores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The reliability level of Virtual Interfaces.
    pub level: Level,
    /// Whether and how the target takes part.
    pub synchronisation: Synchronisation,
    /// Whose memory it is.
    pub memory: Memory,
}

/// The steps of the measurement, the same in all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnesidedShape {
    /// By operation, then ascending by size.
    pub transfers: Vec<TransferShape>,
}

/// The measurement of one operation at one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferShape {
    /// The operation.
    pub operation: Operation,
    /// Bytes that it moves.
    pub size_bytes: usize,
    /// Single operations in a batch.
    pub singles: u64,
    /// Operations in the shorter of two rows; the longer one has twice as many.
    pub row: u64,
    /// Operations that the layer has in flight at most.
    pub window: u64,
    /// Time after an operation until the layer is quiet; 0 if it is quiet at once.
    pub rest_ns: f64,
}

/// All measurements of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnesidedLaunch {
    /// The index of the launch in the order of launches.
    pub launch: usize,
    /// The reliability level; null if the layer has no levels.
    #[serde(default)]
    pub level: Option<Level>,
    /// The synchronisation; null if the layer has one alone.
    #[serde(default)]
    pub synchronisation: Option<Synchronisation>,
    /// Whose memory is reached; null if the layer has no choice.
    #[serde(default)]
    pub memory: Option<Memory>,
    /// The steps of the measurement.
    pub shape: OnesidedShape,
    /// Cost of one reading of the clock.
    pub timer_ns: f64,
    /// One entry for each of [`OnesidedShape::transfers`].
    pub transfers: Vec<TransferData>,
    /// Duration of the measurement.
    pub took_ns: f64,
    /// Number of times that the system took the processor from the process, or that other processes kept it
    /// when the process yielded it. Naps for that reason count.
    pub preemptions: Option<u64>,
    /// Counters of the initiator's end of the connection; null if the layer counts nothing.
    #[serde(default)]
    pub transport: Option<Transport>,
}

/// The values of batches of one operation at one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferData {
    /// Duration of the call that starts a single operation.
    pub start_ns: Vec<f64>,
    /// Time from the start of a single operation until its local memory is free again, or has the bytes; empty if
    /// the initiator does not learn that of a put.
    pub local_ns: Vec<f64>,
    /// Time from its start until the bytes are known to be in the target's memory; empty if the operation
    /// fetches bytes.
    pub remote_ns: Vec<f64>,
    /// Time for each operation of a stream: the rise from the shorter row to the longer one.
    pub gap_ns: Vec<f64>,
}

impl TransferData {
    /// Returns the times until an operation is complete everywhere.
    pub(crate) fn complete_ns(&self) -> &Vec<f64> {
        if self.remote_ns.is_empty() { &self.local_ns } else { &self.remote_ns }
    }
}
