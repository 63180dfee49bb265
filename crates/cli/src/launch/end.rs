//! How a launch ends without data, and how long it is waited for.

use crate::hosts::peer::LaunchError;
use crate::terminal::fault::Fault;
use netdyno_job::crew::CrewError;
use netdyno_measure::layer::LayerError;
use std::time::Duration;

/// How often a signal is looked for while a launch runs.
pub const LOOK: Duration = Duration::from_millis(100);

/// A launch that says nothing for this long has hung.
pub const SILENCE: Duration = Duration::from_secs(60);

/// When one process fails, the other has this long to say what it saw.
pub const AFTERMATH: Duration = Duration::from_secs(1);

/// Why a launch did not measure.
pub enum End {
    /// The run ends, whatever the launch says.
    Fault(Fault),
    /// Processes failed.
    Failed(String),
}

impl From<CrewError> for End {
    fn from(error: CrewError) -> Self {
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
