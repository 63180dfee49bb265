//! The command as an MPI job, as in `mpiexec -n 2 netdyno logp --over mpi`.

pub mod gather;
pub mod meeting;
pub mod rank;
pub mod ranks;
