//! Files in shared memory that an MPI program leaves behind when it fails or is interrupted.

use crate::program::guard::GuardedFolder;
use netdyno_job::shared_files::{SharedFiles, Watch, sees_all_processes};
use std::thread;
use std::time::Duration;

/// Number of looks at the program's processes after a new file. A process maps its file a little later. Each
/// look takes milliseconds of a processor.
const LOOKS: u32 = 3;

/// Time in which a process of another program maps a file that it has created.
const SETTLES_WITHIN: Duration = Duration::from_millis(100);

/// The files of a run, noted while it runs: a program that fails leaves no time to look at its processes.
#[derive(Debug)]
pub struct Leftovers<'a> {
    run: &'a GuardedFolder,
    /// Without a watch, only the files of an interrupted program are known.
    watch: Option<Watch>,
    /// Whether every process that may use a file is visible. Other containers may use the same files, so in a
    /// container only those count that a process of the run has mapped.
    sees_all: bool,
    looks: u32,
    files: SharedFiles,
}

impl<'a> Leftovers<'a> {
    pub fn of(run: &'a GuardedFolder) -> Self {
        let (watch, sees_all) = (Watch::begin().ok(), sees_all_processes());
        Self { run, watch, sees_all, looks: 0, files: SharedFiles::default() }
    }

    /// Notes files that are new since the last call.
    pub fn note(&mut self) {
        let new = self.watch.as_ref().map(Watch::new_files).unwrap_or_default();
        if self.sees_all {
            self.files.add(new);
        } else if new.any_is_left() {
            self.looks = LOOKS;
        }
        if self.looks > 0 {
            self.looks -= 1;
            self.note_mapped();
        }
    }

    /// Notes the files that the processes of the run have mapped.
    pub fn note_mapped(&mut self) {
        self.files.add(self.run.shared_files());
    }

    /// Removes the files that no process uses, after the end of the run's processes.
    pub fn remove(mut self) {
        self.note();
        if self.files.any_is_left() {
            thread::sleep(SETTLES_WITHIN);
            self.files.remove_unused();
        }
    }
}
