//! The installed MPIs. `NETDYNO_TEST_MPICC` names their compilers (a list like PATH); the default is `mpicc`.
//! Each MPI's own `mpiexec` is in the same folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the compilers; empty if there is no MPI.
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

/// Returns the launcher that belongs to a compiler.
pub fn launcher(compiler: &Path) -> PathBuf {
    compiler.with_file_name("mpiexec")
}

/// Sets the environment variables that an MPI needs.
pub fn prepare<'a>(command: &'a mut Command, compiler: &Path) -> &'a mut Command {
    // Open MPI requires both variables when it runs as root.
    command
        .env("NETDYNO_MPICC", compiler)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null())
}
