//! Launches workers and keeps a control connection to each. A worker is a child process, a process on a
//! served host, or a process started by a launcher such as mpiexec.
//!
//! * [`frame`]: messages on a control connection.
//! * [`crew`]: the launching side, with all its workers.
//! * [`member`]: the launched side.
//! * [`launcher`]: external launchers such as mpiexec and srun.
//! * [`lobby`]: the rendezvous port to which processes started by a launcher connect.
//! * [`place`]: the rank and the job size that launchers report in the environment.
//! * [`key`], [`greeting`], [`handshake`], [`remote`]: authenticated control connections between hosts.
//! * [`shared_files`]: files that communication libraries leave in shared memory.
//!
//! No worker outlives the launching side. When that process ends, its connections close and the kernel
//! signals its children.
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
