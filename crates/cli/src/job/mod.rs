//! The command as a job of its own, as in `mpiexec -n 2 netdyno logp --over mpi`.

pub mod gather;
pub mod meeting;
pub mod rank;
pub mod ranks;
