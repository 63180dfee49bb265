//! The instrument's own tests: it recovers the known parameters of simulated interfaces.

#![allow(clippy::unwrap_used, reason = "a test")]

mod bisection;
mod breakdown;
mod bulk;
mod completion;
mod contention;
mod logp;
mod memory;
mod onesided_truths;
mod overlap;
mod overlap_truths;
mod registration;
mod registration_truths;
mod simulated;
mod truths;
mod unexplained;
mod utilisation;
