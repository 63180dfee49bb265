//! MPI programs of the tests, compiled with each installed MPI.

use super::mpi::{compilers, prepare};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// An MPI, and a test program compiled with it.
pub struct Bench {
    pub compiler: PathBuf,
    /// The folder with the program, which has the name of its source.
    pub folder: TempDir,
}

impl Bench {
    /// Compiles the program with each MPI; `source` is a file of this package.
    pub fn all(source: &str) -> Vec<Self> {
        compilers().into_iter().map(|compiler| Self::of(compiler, source)).collect()
    }

    fn of(compiler: PathBuf, source: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let mut build = Command::new(&compiler);
        build.arg("-O2").arg("-o").arg(folder.path().join(source.file_stem().unwrap())).arg(source);
        let built = prepare(&mut build, &compiler).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Self { compiler, folder }
    }

    pub fn is_open_mpi(&self) -> bool {
        self.compiler.with_file_name("ompi_info").exists()
    }

    /// Returns the report that `run --report report.json` wrote into the folder.
    pub fn report(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.folder.path().join("report.json")).unwrap()).unwrap()
    }
}
