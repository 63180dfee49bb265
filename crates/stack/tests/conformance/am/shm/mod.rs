//! Tests of shared memory alone.

mod connecting;
mod hostile;
mod hostile_bulk;
