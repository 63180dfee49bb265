//! Tests of UDP alone.

mod connecting;
mod fairness;
mod hostile;
mod network;
mod relay;
