//! Shared by all tests: transports, a seed, a deadline, other processes.

pub mod asking;
pub mod bulk;
pub mod cables;
pub mod killing;
mod linking;
pub mod process;
pub mod timeout;
pub mod traffic;
pub mod transport;

pub use linking::{connect, connect_all};
pub use timeout::{Deadline, Idler, TIMEOUT, seed, until};
pub use transport::Transport;
