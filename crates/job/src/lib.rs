//! Launches workers and keeps a control connection to each. A worker is a child process, a process on a
//! served host, or a process started by a launcher such as mpiexec.
//!
//! * [`frame`]: messages on a control connection.
//! * [`workers`]: the launching side, with all its workers.
//! * [`member`]: the launched side.
//! * [`launcher`]: external launchers such as mpiexec and srun.
//! * [`launching`]: netdyno's own launcher of the ranks of a program.
//! * [`rendezvous`]: the rendezvous port to which processes started by a launcher connect.
//! * [`place`]: the rank and the job size that launchers report in the environment.
//! * [`pmi`]: the exchange of bytes through the launcher of a job.
//! * [`shared_folder`]: the exchange of bytes through a folder that the hosts of a job share.
//! * [`connection`]: a control connection, encrypted if it is between hosts.
//! * [`key`], [`greeting`], [`handshake`], [`remote`]: how two hosts authenticate each other and agree on keys.
//! * [`shared_files`]: files that communication libraries leave in shared memory.
//!
//! No worker outlives the launching side. When that process ends, its connections close and the kernel
//! signals its children.
#![forbid(unsafe_code)]

pub mod connection;
pub mod frame;
pub mod greeting;
pub mod handshake;
mod hex;
mod keepalive;
pub mod key;
pub mod launcher;
pub mod launching;
pub mod member;
pub mod place;
pub mod pmi;
pub mod remote;
pub mod rendezvous;
pub mod shared_files;
pub mod shared_folder;
pub mod workers;
