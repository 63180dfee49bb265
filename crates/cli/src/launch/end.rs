//! The ends of a launch without data, and the timeouts of a launch.

use crate::hosts::peer::LaunchError;
use crate::terminal::fault::Fault;
use netdyno_job::workers::WorkersError;
use netdyno_measure::layer::LayerError;
use std::fmt;
use std::time::Duration;

/// Interval between two checks for a signal while a launch runs.
pub const LOOK: Duration = Duration::from_millis(100);

/// Timeout for a launch that sends no messages.
pub const SILENCE: Duration = Duration::from_secs(60);

/// Timeout for the other process's report after one process has failed.
pub const AFTERMATH: Duration = Duration::from_secs(1);

/// Why a process has failed. The text form follows the name of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Its own report, a sentence.
    Said(String),
    /// How it ended, without its name: `was killed by signal 9`.
    Ended(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(text) => write!(f, ": {text}"),
            Self::Ended(text) => write!(f, " {text}"),
        }
    }
}

/// The reason why a launch has no data.
pub enum End {
    /// The whole run ends.
    Fault(Fault),
    /// The processes of the launch failed.
    Failed(String),
}

impl From<WorkersError> for End {
    fn from(error: WorkersError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<LaunchError> for End {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Fault(fault) => Self::Fault(fault),
            LaunchError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<LayerError> for End {
    fn from(error: LayerError) -> Self {
        Self::Failed(error.0)
    }
}
