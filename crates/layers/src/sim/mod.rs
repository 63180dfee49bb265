//! Simulated interfaces with known model parameters, in virtual time. The measuring code sees only the traits
//! of a layer, never the model parameters.
//!
//! * [`SimRequester`]: requests of one size, and of any size.
//! * [`SimMessenger`][]: messages.
//! * [`SimInitiator`][]: one-sided operations.
//! * [`SimRegistrar`][]: registration of memory.
//! * [`SimParts`][]: operations in parts.
//! * [`crowd`][]: many interfaces in one virtual time.
//! * [`launch()`]: one launch of any verb.

pub mod crowd;
mod launch;
mod messages;
mod one_sided;
mod parts;
mod registrar;
mod requests;
mod time;

pub use launch::launch;
pub use messages::SimMessenger;
use netdyno_measure::layer::LayerError;
use netdyno_protocol::sim::Stuck;
pub use one_sided::SimInitiator;
pub use parts::{KnownOperation, SimParts};
pub use registrar::SimRegistrar;
pub use requests::SimRequester;

/// The latest virtual time at which an operation may begin, in ps. It leaves room in 64 bits for all that a
/// message adds.
const LATEST_PS: u64 = 1 << 62;
/// The largest message, in bytes.
pub const LARGEST_MESSAGE: usize = 1 << 30;

/// Checks that more may begin at this virtual time.
fn check_time(now_ps: u64) -> Result<(), LayerError> {
    if now_ps <= LATEST_PS {
        return Ok(());
    }
    Err(LayerError::new(
        "virtual time is over, after 53 days: choose smaller messages or shorter times in --truth",
    ))
}

fn stuck(_: Stuck) -> LayerError {
    LayerError::new("the simulated interface has nothing under way")
}
