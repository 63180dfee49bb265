//! The end of a run before its time, and the final status of the command.

use super::doubts::{failed_doubt, interrupted_doubt};
use crate::terminal::fault::Fault;
use netdyno_measure::record::{Doubt, LayerResult, Record};

/// Why a run ended before its time.
pub enum Early {
    /// The number of a signal.
    Signal(i32),
    /// The error of a launch.
    Failed(String),
}

impl Early {
    /// Returns the reason that a fault of a launch gives, after which the launches before are a result.
    ///
    /// # Errors
    /// Returns the fault if it leaves no result.
    pub fn of(fault: Fault) -> Result<Self, Fault> {
        match fault {
            Fault::Interrupted(signal) => Ok(Self::Signal(signal)),
            // A launcher that could be started before is no bad input.
            Fault::Failed(error) | Fault::BadInput(error) => Ok(Self::Failed(error)),
            other => Err(other),
        }
    }

    /// Returns the doubt for the record, in which each layer has so many launches.
    pub fn doubt(&self, launches: usize) -> Doubt {
        match self {
            Self::Signal(signal) => interrupted_doubt(*signal, launches),
            Self::Failed(error) => failed_doubt(error, launches),
        }
    }

    /// Returns the number of the signal, if it was one.
    pub fn signal(&self) -> Option<i32> {
        match self {
            Self::Signal(signal) => Some(*signal),
            Self::Failed(_) => None,
        }
    }

    /// Returns the error, if it was one.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Signal(_) => None,
            Self::Failed(error) => Some(error),
        }
    }
}

/// Returns the final status after a record was `written`: `Fault::CutShort` if a signal ended the run early,
/// `Fault::Failed` with the error of a launch if one failed.
pub fn conclude(record: &Record, written: Result<(), Fault>) -> Result<(), Fault> {
    let launches = record.results.iter().map(LayerResult::launches_in_all).min().unwrap_or(0);
    match (record.interrupted, &record.failed, written) {
        (None, Some(error), Ok(())) => {
            Err(Fault::Failed(format!("{error}; wrote the result of the {launches} launches before")))
        }
        (None, Some(error), Err(_)) => {
            Err(Fault::Failed(format!("{error}; the result could not be written")))
        }
        (Some(_), _, Ok(())) => Err(Fault::CutShort { launches }),
        (_, _, written) => written,
    }
}
