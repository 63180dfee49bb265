//! Tables, plots and exports of records. The crate only reads records: all measurements, figures and
//! warnings come from other crates.
//!
//! * [`table`]: a record for the terminal.
//! * [`csv`]: a record for other programs, one row per layer and parameter.
//! * [`compare`]: the comparison of two records.
//! * [`export`]: parameters in the formats of simulators.
//! * [`sweep`]: the dependence of a program's run time on its link.
//! * [`html`]: one HTML file with every plot.
//!
//! The module of each verb yields the figures of a result once. CSV, comparisons and exports are written over
//! them.
#![forbid(unsafe_code)]

mod breakdown;
mod bulk;
mod cell;
pub mod compare;
mod completion;
mod contention;
pub mod csv;
pub mod export;
mod figure;
mod figures;
pub mod html;
mod lean;
mod lines;
mod logp;
mod memory;
mod notes;
mod onesided;
mod overlap;
mod paper;
mod registration;
mod strata;
pub mod sweep;
pub mod table;
mod transport;
mod utilisation;
mod validation;
mod ways;
