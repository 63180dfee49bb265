//! A program under a path of its own, in an empty folder. So its processes and its files are found.

use super::shared_memory::{self, Shared};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Installed {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Installed {
    /// Links a built program into a folder beside it.
    pub fn new(built: &Path) -> Self {
        let folder = tempfile::tempdir_in(built.parent().unwrap()).unwrap();
        let program = folder.path().join(built.file_name().unwrap());
        fs::hard_link(built, &program).unwrap();
        Self { folder, program }
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Lets a command leave its files in the folder.
    pub fn prepare(&self, command: &mut Command) {
        command.current_dir(self.folder.path()).env("TMPDIR", self.folder.path()).env("RUST_BACKTRACE", "0");
    }

    /// Returns the processes that run the program.
    pub fn processes(&self) -> Vec<u32> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let runs = |process: &fs::DirEntry| {
            fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe == self.program)
        };
        let number = |process: fs::DirEntry| process.file_name().to_str()?.parse().ok();
        processes.filter(runs).filter_map(number).collect()
    }

    /// Returns the process of a rank, as its launcher has told it by PMI.
    pub fn process_of(&self, rank: usize) -> Option<u32> {
        let variable = format!("PMI_RANK={rank}").into_bytes();
        let is_rank = |process: &u32| {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == variable)
        };
        self.processes().into_iter().find(is_rank)
    }

    /// Returns the files that the program has left in its folder.
    fn files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| *path != self.program).collect()
    }

    /// Asserts that no process, no file and none of this shared memory is left.
    pub fn assert_nothing_is_left(&self, shared: &[Shared]) {
        assert_eq!(self.processes(), Vec::<u32>::new(), "processes are left");
        assert_eq!(self.files(), Vec::<PathBuf>::new(), "files are left");
        let left: Vec<&str> = shared.iter().flat_map(shared_memory::files).collect();
        assert_eq!(left, Vec::<&str>::new(), "shared memory is left");
    }
}
