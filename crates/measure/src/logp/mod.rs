//! The LogP signature (Culler et al. 1996, "Small-message performance").
//!
//! * [`data`]: what one launch measured, batch by batch.
//! * [`pattern`]: what one launch runs.
//! * [`extract`]: the parameters read off several launches.
//! * [`doubts`]: why not to take them at their word.
//! * [`ratio`]: layers against each other, paired by launch.

pub mod data;
pub mod doubts;
pub mod extract;
pub mod pattern;
pub mod ratio;

use crate::layer::{LayerError, Requester};
use data::LaunchData;
use pattern::Plan;

/// Anything that the pattern can be run on, whatever its type: the pattern itself is
/// compiled for each requester, so that no call through a table is timed.
pub trait Subject {
    /// Runs one launch. `progress` is told the share that is done.
    fn logp(&mut self, plan: &Plan, progress: &mut dyn FnMut(f64)) -> Result<LaunchData, LayerError>;
}

impl<R: Requester> Subject for R {
    fn logp(&mut self, plan: &Plan, progress: &mut dyn FnMut(f64)) -> Result<LaunchData, LayerError> {
        let data = pattern::run(self, plan, progress)?;
        Ok(LaunchData { transport: self.transport(), ..data })
    }
}
