//! Launching processes and talking to them: a crew of own children, of workers on served
//! hosts, and of processes that mpiexec or the like starts, each with a control connection.
//!
//! * [`frame`]: messages on a control connection.
//! * [`crew`]: the side that launches.
//! * [`member`]: the side that is launched.
//! * [`launcher`]: mpiexec and the like. * [`lobby`]: where what they start comes to.
//! * [`place`]: what they say of a process's place.
//! * [`key`], [`greeting`], [`handshake`], [`remote`]: control connections between hosts.
//!
//! * [`shared_files`]: what libraries leave in shared memory.
//!
//! Nothing outlives the side that launches: its end closes the connections, and the
//! kernel tells its children.
#![forbid(unsafe_code)]

pub mod crew;
pub mod frame;
pub mod greeting;
pub mod handshake;
pub mod key;
pub mod launcher;
pub mod lobby;
pub mod member;
pub mod place;
pub mod remote;
pub mod shared_files;
