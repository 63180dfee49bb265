//! Accounts of processor time of the two processes of a connection, as the operating system keeps them.
//!
//! * `process`: this process. `machine`: its machine. `counters`: the counters of a thread. `clocks`: all clocks.
//! * `service`: the replier's process tells its accounts to the requester's, over a connection of its own.
//! * `half`: a half of any layer, with accounts.

mod clocks;
mod counters;
mod half;
pub(crate) mod machine;
mod process;
mod service;

pub use half::with_accounts;
