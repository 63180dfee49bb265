//! The library that was built with this test, and C programs that use it.

#![allow(dead_code, reason = "each test and benchmark uses a part")]

use netdyno_job::launching::{self, End};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The headers.
pub const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");

/// `libam.so`, and a folder for compiled programs.
pub struct Library {
    path: PathBuf,
    folder: tempfile::TempDir,
}

/// How a job went.
pub struct Ended {
    pub end: End,
    /// What the ranks wrote, of all together.
    pub output: String,
    pub errors: String,
    pub took: Duration,
}

impl Library {
    /// Returns the library that lies beside this test.
    pub fn built() -> Self {
        let path = std::env::current_exe().unwrap().with_file_name("libam.so");
        assert!(path.exists(), "{} is not built", path.display());
        Self { path, folder: tempfile::tempdir().unwrap() }
    }

    /// Compiles a program as a user would, and links it with the library.
    pub fn compile(&self, name: &str) -> PathBuf {
        self.compile_by("cc", &[], name)
    }

    /// Compiles a program under the names of AMUDP.
    pub fn compile_under_udp_names(&self, name: &str) -> PathBuf {
        self.compile_by("cc", &["-DOVER_UDP_NAMES"], name)
    }

    /// Compiles a program as C++, if there is a compiler.
    pub fn compile_as_cpp(&self, name: &str) -> Option<PathBuf> {
        if Command::new("c++").arg("--version").output().is_err() {
            // The message bypasses the capture of the test harness.
            let _ = writeln!(std::io::stderr(), "SKIPPED: no c++: no program in C++ was linked");
            return None;
        }
        Some(self.compile_by("c++", &["-x", "c++"], name))
    }

    fn compile_by(&self, compiler: &str, options: &[&str], name: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
        let program = self.folder.path().join([&[name], options].concat().concat());
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Werror", "-O2", "-pthread", INCLUDE]).args(options);
        command.args([&source, Path::new("-o"), &program].map(OsString::from));
        command.arg("-L").arg(self.folder()).arg("-lam");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        program
    }

    /// Returns the folder of the library.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap()
    }

    /// Returns the command that runs a program.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.folder());
        command
    }

    /// Runs a job of a program, and waits for its end.
    pub fn run(&self, program: &Path, ranks: usize, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.run_by(&[program], ranks, arguments, variables)
    }

    /// Runs a job of a program that other programs start: the words before it.
    pub fn run_by(
        &self,
        words: &[&Path],
        ranks: usize,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Ended {
        self.run_ranks(ranks, |_| {
            let mut command = self.command(words[0]);
            command.args(&words[1..]).args(arguments).envs(variables.iter().copied());
            command
        })
    }

    /// Runs a job whose ranks have a command each.
    pub fn run_ranks(&self, ranks: usize, command: impl Fn(usize) -> Command) -> Ended {
        let (output, errors) =
            (self.folder.path().join("standard-output"), self.folder.path().join("standard-error"));
        let file =
            |path: &Path| Stdio::from(std::fs::File::options().append(true).create(true).open(path).unwrap());
        for path in [&output, &errors] {
            std::fs::write(path, "").unwrap();
        }
        let rank = |rank| {
            let mut command = command(rank);
            command.stdout(file(&output)).stderr(file(&errors));
            command
        };
        let began = Instant::now();
        // A program that hangs is ended.
        let stop = || (began.elapsed() > Duration::from_secs(240)).then_some(libc::SIGTERM);
        let end = launching::run(ranks, rank, stop).unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        Ended { end, output: read(&output), errors: read(&errors), took: began.elapsed() }
    }

    /// Runs a job, which must end well and say nothing.
    pub fn passes(&self, program: &Path, ranks: usize, variables: &[(&str, &str)]) {
        let what = format!("{} with {ranks} ranks, {variables:?}", program.display());
        self.run(program, ranks, &[], variables).passed(&what);
    }
}

impl Ended {
    /// Panics unless the job ended well and said nothing.
    pub fn passed(&self, what: &str) {
        let Self { end, output, errors, .. } = self;
        assert!(
            *end == End::Done && output.is_empty() && errors.is_empty(),
            "{what}: {end}\n{output}{errors}"
        );
    }
}

/// Reports whether no process of a program is left.
pub fn nobody_runs(program: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    !processes.into_iter().any(|process| {
        std::fs::read_link(process.path().join("exe")).is_ok_and(|running| running == *program)
    })
}
