//! The MPIs that there are: `NETDYNO_TEST_MPICC` names their compilers (a list like PATH), or
//! there is `mpicc`; each MPI's own `mpiexec` lies beside.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The compilers, or none where there is no MPI.
pub fn compilers() -> Vec<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&folders).map(|folder| folder.join("mpicc")).find(|file| file.is_file());
    let compilers: Vec<PathBuf> = match std::env::var_os("NETDYNO_TEST_MPICC") {
        Some(list) => std::env::split_paths(&list).collect(),
        None => found.into_iter().collect(),
    };
    if compilers.is_empty() {
        println!("SKIPPED: there is no mpicc");
    }
    compilers
}

/// The launcher that belongs to a compiler.
pub fn launcher(compiler: &Path) -> PathBuf {
    compiler.with_file_name("mpiexec")
}

/// What an MPI needs in the environment.
pub fn prepare<'a>(command: &'a mut Command, compiler: &Path) -> &'a mut Command {
    // Open MPI asks for both, of root.
    command
        .env("NETDYNO_MPICC", compiler)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null())
}
