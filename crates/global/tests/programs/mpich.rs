//! The installed MPICH, whose ranks speak PMI version 1.

use std::path::PathBuf;

/// Returns the compiler of MPICH among those of `NETDYNO_TEST_MPICC` (a list like PATH). Its launcher `mpiexec.hydra` lies
/// beside it.
pub fn compiler() -> Option<PathBuf> {
    let compilers = std::env::var_os("NETDYNO_TEST_MPICC").unwrap_or_default();
    let found =
        std::env::split_paths(&compilers).find(|compiler| compiler.with_file_name("mpiexec.hydra").is_file());
    if found.is_none() {
        println!("SKIPPED: NETDYNO_TEST_MPICC names no compiler of MPICH");
    }
    found
}
