//! Tests of UDP alone.

mod bottleneck;
mod connecting;
mod fairness;
mod hostile;
mod network;
mod relay;
