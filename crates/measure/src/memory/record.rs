//! The record of the verb `memory`.

use crate::onesided::data::Operation;
use crate::onesided::record::{Onesided, OperationFigures, TransferTimes};
use crate::record::parameter::Parameter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};

/// Accesses to the memory of another process: one-sided operations at the sizes of the verb. There is no G.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RemoteMemory(pub Onesided);

impl Deref for RemoteMemory {
    type Target = Onesided;

    fn deref(&self) -> &Onesided {
        &self.0
    }
}

impl DerefMut for RemoteMemory {
    fn deref_mut(&mut self) -> &mut Onesided {
        &mut self.0
    }
}

/// How an access is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// One at a time, from a quiet layer, until it is complete everywhere.
    Blocking,
    /// One after the other: the time for each of a stream.
    Pipelined,
}

/// A row of the table of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The operation.
    pub operation: Operation,
    /// Bytes that it moves.
    pub size_bytes: usize,
    /// How it is made.
    pub pace: Pace,
}

/// The accesses of a table, by operation.
const ORDER: [Operation; 4] = [Operation::Get, Operation::Put, Operation::PutNotify, Operation::FetchAdd];

impl Access {
    /// Returns the name in the record: `read.blocking` or `write.pipelined`.
    pub fn name(self) -> &'static str {
        match (self.operation, self.pace) {
            (Operation::Get, Pace::Blocking) => "read.blocking",
            (Operation::Get, Pace::Pipelined) => "read.pipelined",
            (Operation::FetchAdd, Pace::Blocking) => "fetch_add.blocking",
            (Operation::FetchAdd, Pace::Pipelined) => "fetch_add.pipelined",
            (Operation::Put, Pace::Blocking) => "write.blocking",
            (Operation::Put, Pace::Pipelined) => "write.pipelined",
            (Operation::PutNotify, Pace::Blocking) => "write_notify.blocking",
            (Operation::PutNotify, Pace::Pipelined) => "write_notify.pipelined",
        }
    }

    /// Returns the first part of the name.
    pub fn operation_name(self) -> &'static str {
        operation_name(self.operation)
    }

    /// Returns the order of rows: by operation, then by size, then by pace.
    fn place(self) -> (Option<usize>, usize, Pace) {
        (ORDER.iter().position(|&operation| operation == self.operation), self.size_bytes, self.pace)
    }
}

/// Returns the name of an operation in this verb: `read` or `write`.
pub fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Get => "read",
        Operation::FetchAdd => "fetch_add",
        Operation::Put => "write",
        Operation::PutNotify => "write_notify",
    }
}

impl RemoteMemory {
    /// Returns the accesses that the layer has, in the order of the table, each with its time.
    pub fn rows(&self) -> Vec<(Access, &Parameter)> {
        let mut rows: Vec<_> = self.operations.iter().flat_map(of_operation).collect();
        rows.sort_by_key(|(access, _)| access.place());
        rows
    }

    /// Returns the time of an access, if the layer has it.
    pub fn time(&self, wanted: Access) -> Option<&Parameter> {
        self.rows().into_iter().find(|(access, _)| *access == wanted).map(|(_, time)| time)
    }
}

fn of_operation(figures: &OperationFigures) -> impl Iterator<Item = (Access, &Parameter)> {
    let operation = figures.operation;
    let of_size = move |times: &TransferTimes| {
        let access = |pace| Access { operation, size_bytes: times.size_bytes, pace };
        [access(Pace::Blocking), access(Pace::Pipelined)]
    };
    figures.sizes.iter().flat_map(move |times| of_size(times).into_iter().zip([times.complete(), &times.gap]))
}

/// Returns all accesses that a result among `found` has, in the order of the table.
pub fn accesses<'a>(found: impl IntoIterator<Item = &'a RemoteMemory>) -> Vec<Access> {
    let mut all: Vec<Access> = Vec::new();
    for (access, _) in found.into_iter().flat_map(RemoteMemory::rows) {
        if !all.contains(&access) {
            all.push(access);
        }
    }
    all.sort_by_key(|access| access.place());
    all
}
