//! Tables, plots and exports of records. Reads records only: what is shown here was
//! measured, extracted and doubted elsewhere.
//!
//! * [`table`]: for the terminal.
//! * [`csv`]: for other programs, one row per layer and parameter.
//! * [`compare`]: two records against each other.
//! * [`quantity`]: figures as people read them.
//! * [`html`]: one file with every plot, for people.
#![forbid(unsafe_code)]

pub mod compare;
pub mod csv;
pub mod html;
mod launches;
mod lines;
mod notes;
pub mod quantity;
pub mod table;
mod transport;
