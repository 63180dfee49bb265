//! Tests of tables, pages, comparisons and exports.

#![allow(clippy::unwrap_used, reason = "a test")]

mod breakdown;
mod bulk;
mod checks;
mod comparisons;
mod completion;
mod contention;
mod exports;
mod overlap;
mod papers;
mod registration;
mod reports;
mod strata;
#[path = "../support/mod.rs"]
mod support;
mod validation;
mod verdicts;
