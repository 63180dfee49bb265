//! Measured parameters in the forms that simulators read. What a simulator asks for and the
//! record does not have is never made up: it is left out, bounded or refused, and a note
//! says so.
//!
//! * [`curve`]: the parameters of one layer over the message's size, from any records.
//! * [`loggopsim`]: the command line of LogGOPSim.
//! * [`simgrid`]: a platform for SimGrid's SMPI.
//! * [`csv`]: sizes by parameters.

pub mod csv;
pub mod curve;
pub mod loggopsim;
pub mod simgrid;

use thiserror::Error;

/// More time than a simulation of messages lasts, and less than its arithmetic loses: 11 days.
const MOST_NS: f64 = 1e15;
/// More than a message has: a TiB.
const MOST_BYTES: usize = 1 << 40;

/// A file for a simulator, and what its reader has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The text of the file.
    pub text: String,
    /// One sentence each: what falls back on what.
    pub notes: Vec<String>,
}

/// Why there is nothing sensible to write.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ExportError {
    /// A simulator knows one layer.
    #[error("a simulator knows one layer, and here are {0}: name one, as in FILE:LAYER")]
    SeveralLayers(String),
    /// There is no result at all.
    #[error("there is no result to export")]
    Nothing,
    /// One size twice.
    #[error("{layer} was measured with {size_bytes} B more than once: export one of these records")]
    Twice {
        /// The layer.
        layer: String,
        /// The size.
        size_bytes: usize,
    },
    /// A parameter that no simulator can do without.
    #[error("{parameter} of {layer} has no figure at {size_bytes} B, and the simulator cannot do without")]
    Missing {
        /// The parameter.
        parameter: &'static str,
        /// The layer.
        layer: String,
        /// The size.
        size_bytes: usize,
    },
    /// A message that nobody sends.
    #[error("{layer} has a message of {size_bytes} B, and a simulator takes at most {MOST_BYTES}")]
    Endless {
        /// The layer.
        layer: String,
        /// The size.
        size_bytes: usize,
    },
    /// A time that cannot be spent.
    #[error(
        "{parameter} of {layer} is {value_ns:?} ns at {size_bytes} B, and a simulator takes 0 to {MOST_NS:e} ns"
    )]
    Impossible {
        /// The parameter.
        parameter: &'static str,
        /// The layer.
        layer: String,
        /// The size.
        size_bytes: usize,
        /// Its value.
        value_ns: f64,
    },
    /// A parameter that the simulator has no room for.
    #[error("{parameter} is {value} in {unit}, and the simulator reads 32 bits: use a longer --time-unit")]
    TooLarge {
        /// The simulator's name for it.
        parameter: &'static str,
        /// Its value.
        value: String,
        /// The unit.
        unit: &'static str,
    },
}
