//! What can be measured: each layer behind the faces of `netdyno_measure::layer`.
#![forbid(unsafe_code)]

pub mod sim;
