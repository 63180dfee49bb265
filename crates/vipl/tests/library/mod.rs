//! The library that was built with this test, and C programs that use it.

#![allow(dead_code, reason = "each test file uses a part")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A device on each wire.
pub const DEVICES: &[&str] = &["shm", "udp:127.0.0.1:0"];

/// Runs a program on each device. It must exit with 0. A program that hangs ends itself.
pub fn run(name: &str, arguments: &[&str]) {
    run_on(DEVICES, name, arguments);
}

/// Runs a program on the given devices.
pub fn run_on(devices: &[&str], name: &str, arguments: &[&str]) {
    let library = Library::built();
    let program = library.compile(name);
    for device in devices {
        let output = library.run(&program).arg(device).args(arguments).output().unwrap();
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success(),
            "{name} {arguments:?} on {device}: {}\n{said}{complained}",
            output.status
        );
        print!("{said}");
    }
}

/// `libvipl.so`, and a folder for compiled programs.
pub struct Library {
    path: PathBuf,
    folder: tempfile::TempDir,
}

impl Library {
    /// Returns the library that lies beside this test.
    pub fn built() -> Self {
        let path = std::env::current_exe().unwrap().with_file_name("libvipl.so");
        assert!(path.exists(), "{} is not built", path.display());
        Self { path, folder: tempfile::tempdir().unwrap() }
    }

    /// Compiles a program as a user would, and links it with the library.
    pub fn compile(&self, name: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
        let program = self.folder.path().join(name);
        let arguments = [&source, Path::new("-o"), &program].map(OsString::from);
        self.cc(&["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O2", "-pthread"], &arguments);
        program
    }

    /// Calls the C compiler with these options, the header and the library.
    fn cc(&self, options: &[&str], arguments: &[OsString]) {
        let mut command = Command::new("cc");
        command.args(options).arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include")).args(arguments);
        command.arg("-L").arg(self.path.parent().unwrap()).args(["-lvipl", "-ldl"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns the command that runs a linked program.
    pub fn run(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.path.parent().unwrap());
        command
    }
}
