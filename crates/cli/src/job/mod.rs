//! The command as a job of several processes, as in `mpiexec -n 2 netdyno logp --over mpi`.

pub mod exchange;
pub mod gather;
pub mod lobby;
pub mod meeting;
pub mod rank;
pub mod ranks;
