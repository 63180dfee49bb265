//! Layers with messages whose peer closes, is silent or violates the protocol.

#![allow(clippy::unwrap_used, reason = "a test")]

mod closing;
mod common;
mod hostile;
