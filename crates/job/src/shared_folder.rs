//! The exchange of bytes through a folder that the hosts of a job share, such as a home directory: for processes that
//! their launcher tells their place and nothing more, as `srun --mpi=none` does.
//!
//! The folder belongs to the user alone, because the bytes may have a key. Each process writes a file for each exchange
//! and reads those of all others. A file that has its name is complete.

use crate::place::Place;
use crate::pmi::Pmi;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Environment variable with the folder in which that of a job is made.
pub const PARENT: &str = "NETDYNO_SHARED_FOLDER";
/// Interval at which a process looks for the files of the others.
const LOOK: Duration = Duration::from_millis(20);
/// Interval at which a process changes the folder while it looks. A host with the folder on NFS otherwise remembers for
/// half a minute that a file was not there.
const STIR: Duration = Duration::from_secs(1);
/// Time in which a process must have the bytes of all others, in all exchanges.
const COMING: Duration = Duration::from_secs(60);
/// The longest time that rank 0 waits for the others to leave, before it removes the folder.
const LEAVING: Duration = Duration::from_secs(10);
/// Permissions of others.
const OTHERS: u32 = 0o077;
/// The kind of the file by which a process says that it will read nothing more.
const LEFT: &str = "left";
/// The kind of the file that is written to change the folder.
const STIRRED: &str = "stirred";

/// The reason why bytes cannot be exchanged through a folder.
#[derive(Debug, Error)]
pub enum FolderError {
    /// Neither the user nor the system names a folder.
    #[error("no folder is shared with the other hosts: name one in {PARENT}")]
    Nowhere,
    /// The launcher has not told which job this is.
    #[error("{0} does not name the job: start netdyno by srun")]
    NoJob(&'static str),
    /// A file cannot be written or read.
    #[error("{}: {error}: name a folder that all hosts share in {PARENT}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Another user may read or write the folder.
    #[error("{} is no folder of this user alone: remove it, or name another place in {PARENT}", .0.display())]
    Foreign(PathBuf),
    /// Another process has not written its file in time.
    #[error("process {rank} has written nothing to {} within {COMING:?}: name a folder that all hosts share in {PARENT}", folder.display())]
    Late {
        /// The other process.
        rank: usize,
        /// The folder.
        folder: PathBuf,
    },
}

/// The folder of a job, as one of its processes uses it.
#[derive(Debug)]
pub struct SharedFolder {
    folder: PathBuf,
    place: Place,
    exchanges: usize,
    until: Instant,
    /// Whether a process has not come, so that the folder is of no use to any.
    is_over: bool,
}

impl SharedFolder {
    /// Reports whether Slurm has started this process and offers no exchange of its own.
    pub fn is_needed() -> bool {
        let is_set = |name| std::env::var_os(name).is_some();
        let has_exchange = std::env::var("SLURM_MPI_TYPE").is_ok_and(|kind| kind != "none");
        is_set("SLURM_PROCID") && !has_exchange && !Pmi::is_offered() && !is_set("PMIX_RANK")
    }

    /// Makes the folder of the job step of this process, in that of [`PARENT`] or in the home directory.
    ///
    /// # Errors
    /// Returns `FolderError` if there is no such folder, or if it is not this user's alone.
    pub fn open(place: Place) -> Result<Self, FolderError> {
        let parent =
            [PARENT, "HOME"].into_iter().find_map(|name| std::env::var_os(name).filter(|at| !at.is_empty()));
        // A job that is queued again has the numbers of its steps again, but another port of srun.
        let names = ["SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_LAUNCHER_PORT"].map(|name| {
            let value = std::env::var(name).unwrap_or_default();
            let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then_some(value).ok_or(FolderError::NoJob(name))
        });
        let [job, step, port] = names;
        let name = format!(".netdyno-job-{}.{}-{}", job?, step?, port?);
        Self::at(Path::new(&parent.ok_or(FolderError::Nowhere)?).join(name), place)
    }

    /// Makes this folder, or uses the one that another process of the job has made.
    ///
    /// # Errors
    /// As of [`SharedFolder::open`].
    pub fn at(folder: PathBuf, place: Place) -> Result<Self, FolderError> {
        let is_new = match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(failed(&folder)(error)),
        };
        let found = fs::symlink_metadata(&folder).map_err(failed(&folder))?;
        if !found.is_dir() || !is_own(&found) || found.mode() & OTHERS != 0 {
            // A file system may have no permissions.
            if is_new {
                let _ = fs::remove_dir(&folder);
            }
            return Err(FolderError::Foreign(folder));
        }
        Ok(Self { folder, place, exchanges: 0, until: Instant::now() + COMING, is_over: false })
    }

    /// Returns the place of this process.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Gives `mine` to all processes, and returns the bytes of all processes, by rank.
    ///
    /// # Errors
    /// Returns `FolderError` if a file cannot be written or read, or if a process has not come a minute after this one.
    pub fn gather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, FolderError> {
        self.write(&self.exchanges.to_string(), mine)?;
        let all = (0..self.place.procs).map(|rank| self.of_process(rank)).collect();
        self.exchanges += 1;
        self.is_over = matches!(all, Err(FolderError::Late { .. }));
        all
    }

    /// Waits for the bytes that a process gives in this exchange.
    fn of_process(&self, rank: usize) -> Result<Vec<u8>, FolderError> {
        let path = self.path(&self.exchanges.to_string(), rank);
        if !self.appears(&path, self.until) {
            return Err(FolderError::Late { rank, folder: self.folder.clone() });
        }
        let mut bytes = Vec::new();
        let mut file = File::open(&path).map_err(failed(&path))?;
        if !is_own(&file.metadata().map_err(failed(&path))?) {
            return Err(FolderError::Foreign(path));
        }
        file.read_to_end(&mut bytes).map_err(failed(&path))?;
        Ok(bytes)
    }

    /// Waits until there is such a file, or until a time. Returns whether there is.
    fn appears(&self, path: &Path, until: Instant) -> bool {
        let mut stirred = Instant::now();
        while !path.exists() {
            if Instant::now() > until {
                return false;
            }
            if stirred.elapsed() > STIR {
                // What cannot be written now makes no difference to the files of others.
                let _ = self.write(STIRRED, b"");
                stirred = Instant::now();
            }
            thread::sleep(LOOK);
        }
        true
    }

    /// Writes a file that only this user can read, wherever the folder may be by now.
    fn write(&self, kind: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let path = self.path(kind, self.place.rank);
        let unfinished = path.with_extension("unfinished");
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)
            .map_err(failed(&unfinished))?;
        file.write_all(bytes).map_err(failed(&unfinished))?;
        // A folder of another host tells at the end that it is full. A file that has its name is complete.
        file.sync_all().map_err(failed(&unfinished))?;
        drop(file);
        fs::rename(&unfinished, &path).map_err(failed(&path))
    }

    fn path(&self, kind: &str, rank: usize) -> PathBuf {
        self.folder.join(format!("{rank}-{kind}"))
    }
}

impl Drop for SharedFolder {
    /// Leaves the folder. Rank 0 removes it once all others have left, or after a while.
    fn drop(&mut self) {
        if self.is_over {
            let _ = fs::remove_dir_all(&self.folder);
            return;
        }
        // A process that cannot say so lets rank 0 wait in vain, which has an end.
        let _ = self.write(LEFT, b"");
        let until = Instant::now() + LEAVING;
        let has_left = |rank| self.appears(&self.path(LEFT, rank), until);
        if self.place.rank == 0 {
            let _ = (0..self.place.procs).all(has_left);
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Reports whether a file is of this user.
fn is_own(found: &fs::Metadata) -> bool {
    found.uid() == geteuid().as_raw()
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FolderError + '_ {
    |error| FolderError::Io { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A new path in a folder of this test.
    fn scratch(name: &str) -> PathBuf {
        let number = u64::from_le_bytes(netdyno_host::random::bytes().unwrap());
        std::env::temp_dir().join(format!("netdyno-{name}-{number}"))
    }

    #[test]
    fn all_processes_get_the_bytes_of_all_and_nothing_is_left() {
        let (folder, procs) = (scratch("folder"), 5);
        let given = |rank: usize, nth: usize| vec![rank as u8 + 1; [10, 100_000 * rank, 0][nth]];
        thread::scope(|scope| {
            for rank in 0..procs {
                let folder = folder.clone();
                scope.spawn(move || {
                    let mut shared = SharedFolder::at(folder.clone(), Place { rank, procs }).unwrap();
                    for nth in 0..3 {
                        let all: Vec<Vec<u8>> = (0..procs).map(|rank| given(rank, nth)).collect();
                        assert_eq!(shared.gather(&given(rank, nth)).unwrap(), all);
                    }
                    let mode = fs::metadata(folder).unwrap().mode();
                    assert_eq!(mode & OTHERS, 0);
                });
            }
        });
        assert!(!folder.exists());
    }

    /// What a process has given last must be there for one that comes late.
    #[test]
    fn a_process_that_leaves_is_heard_by_one_that_is_late() {
        let folder = scratch("late");
        let [first, second] = [0, 1].map(|rank| Place { rank, procs: 2 });
        let mut early = SharedFolder::at(folder.clone(), first).unwrap();
        early.write("0", b"early").unwrap();
        let late = thread::spawn({
            let folder = folder.clone();
            move || {
                thread::sleep(10 * LOOK);
                SharedFolder::at(folder, second).unwrap().gather(b"late").unwrap()
            }
        });
        assert_eq!(early.gather(b"early").unwrap(), [&b"early"[..], b"late"]);
        drop(early);
        assert_eq!(late.join().unwrap(), [&b"early"[..], b"late"]);
        assert!(!folder.exists());
    }

    #[test]
    fn a_process_that_does_not_come_is_named_and_nothing_is_left() {
        for rank in 0..2 {
            let folder = scratch("missing");
            let mut shared = SharedFolder::at(folder.clone(), Place { rank, procs: 2 }).unwrap();
            shared.until = Instant::now() + 3 * LOOK;
            let error = shared.gather(b"here").unwrap_err().to_string();
            assert!(error.starts_with(&format!("process {} has written nothing", 1 - rank)), "{error}");
            drop(shared);
            assert!(!folder.exists());
        }
    }

    #[test]
    fn a_folder_of_others_is_refused() {
        let (open, link, file) = (scratch("open"), scratch("link"), scratch("file"));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o750)).unwrap();
        symlink("/", &link).unwrap();
        fs::write(&file, "").unwrap();
        for path in [&open, &link, &file] {
            let refused = SharedFolder::at(path.clone(), Place { rank: 0, procs: 2 });
            assert!(matches!(refused, Err(FolderError::Foreign(_))), "{refused:?}");
        }
        let nowhere =
            SharedFolder::at(open.join("a/b"), Place { rank: 0, procs: 2 }).unwrap_err().to_string();
        assert!(nowhere.contains("a/b: ") && nowhere.contains(PARENT), "{nowhere}");
        fs::remove_dir(&open).unwrap();
        fs::remove_file(&link).unwrap();
        fs::remove_file(&file).unwrap();
    }
}
