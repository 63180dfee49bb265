//! The library as this test was built with it, and C programs that use it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `libvipl.so`, and a folder for programs.
pub struct Library {
    pub path: PathBuf,
    folder: tempfile::TempDir,
}

impl Library {
    /// The one that lies beside this test.
    pub fn built() -> Self {
        let path = std::env::current_exe().unwrap().with_file_name("libvipl.so");
        assert!(path.exists(), "{} is not built", path.display());
        Self { path, folder: tempfile::tempdir().unwrap() }
    }

    /// Compiles one of the programs and links it.
    pub fn compile(&self, name: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
        let program = self.folder.path().join(name);
        let arguments = [&source, Path::new("-o"), &program].map(OsString::from);
        self.cc(&["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O2", "-pthread"], &arguments);
        program
    }

    /// Calls the C compiler so, with the header and the library at hand.
    pub fn cc(&self, options: &[&str], arguments: &[OsString]) {
        let mut command = Command::new("cc");
        command.args(options).arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include")).args(arguments);
        command.arg("-L").arg(self.path.parent().unwrap()).arg("-lvipl");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// How to run a program that was linked with it.
    pub fn run(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.path.parent().unwrap());
        command
    }
}
