//! Tables, plots and exports of records. Reads records only: what is shown here was
//! measured, extracted and doubted elsewhere.
//!
//! * [`table`]: for the terminal.
//! * [`csv`]: for other programs, one row per layer and parameter.
//! * [`compare`]: two records against each other.
//! * [`export`]: parameters in the forms that simulators read.
//! * [`sweep`]: what a program's run time depends on.
//! * [`html`]: one file with every plot, for people.
#![forbid(unsafe_code)]

mod bulk;
pub mod compare;
mod contention;
pub mod csv;
pub mod export;
pub mod html;
mod launches;
mod lean;
mod lines;
mod notes;
mod overlap;
mod quantity;
mod registration;
mod strata;
pub mod sweep;
pub mod table;
mod transport;
mod validation;
