//! Tables, plots and exports of records. Reads records only: what is shown here was
//! measured, extracted and doubted elsewhere.
//!
//! * [`table`]: for the terminal.
//! * [`csv`]: for other programs, one row per layer and parameter.
//! * [`html`]: one file with every plot, for people.
#![forbid(unsafe_code)]

mod bulk;
pub mod csv;
pub mod html;
mod launches;
mod notes;
mod quantity;
pub mod table;
mod transport;
