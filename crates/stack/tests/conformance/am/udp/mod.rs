//! Tests of UDP alone.

mod connecting;
mod hostile;
mod network;
mod relay;
