//! Exports measured parameters in the formats of simulators. The exporters never invent a missing
//! parameter: they omit it, bound it or refuse to export, and a note says so.
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

/// The longest time that is exported: 11 days. It exceeds any simulation of messages, and still fits the
/// simulators' arithmetic.
const MOST_NS: f64 = 1e15;
/// The largest message that is exported: 1 TiB.
const MOST_BYTES: usize = 1 << 40;

/// A file for a simulator, with notes for its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The text of the file.
    pub text: String,
    /// One sentence for each parameter that was replaced or bounded.
    pub notes: Vec<String>,
}

/// The reason why nothing can be exported.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ExportError {
    /// The results are of several layers, and a simulator knows one.
    #[error("a simulator knows one layer, and here are {0}: name one, as in FILE:LAYER")]
    SeveralLayers(String),
    /// There is no result.
    #[error("there is no result to export")]
    Nothing,
    /// The verb has no parameters of the LogP model.
    #[error(
        "a record of {0} has no parameters of the LogP model to export: netdyno report FILE --format csv has its figures"
    )]
    OtherFigures(String),
    /// A layer has several results of one size.
    #[error("{layer} was measured with {size_bytes} B more than once: export one of these records")]
    Twice {
        /// The layer.
        layer: String,
        /// The size.
        size_bytes: usize,
    },
    /// Results of one layer are of links or programs that differ.
    #[error("results of {layer} differ in {what}, and a simulator knows one network: export one of them")]
    Settings {
        /// The layer.
        layer: String,
        /// What differs.
        what: &'static str,
    },
    /// Gets do not show what it takes to send.
    #[error(
        "{layer} was measured by gets, which do not show what it takes to send: export bulk --direction store"
    )]
    Gets {
        /// The layer.
        layer: String,
    },
    /// A parameter that every simulator needs is missing.
    #[error("{parameter} of {layer} has no figure at {size_bytes} B, and the simulator cannot do without")]
    Missing {
        /// The parameter.
        parameter: &'static str,
        /// The layer.
        layer: String,
        /// The size.
        size_bytes: usize,
    },
    /// A message exceeds the largest size that is exported.
    #[error("{layer} has a message of {size_bytes} B, and a simulator takes at most {MOST_BYTES}")]
    Endless {
        /// The layer.
        layer: String,
        /// The size.
        size_bytes: usize,
    },
    /// A time is negative, or longer than the longest time that is exported.
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
    /// A parameter exceeds the range of the simulator's integers.
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
