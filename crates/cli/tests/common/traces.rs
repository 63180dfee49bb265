//! The resources of a run while it runs, and those left afterwards. Other programs use the same machine. So
//! only processes with the run's folder in their environment count, and their resources.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout for all resources to disappear after the command's end.
const GONE_WITHIN: Duration = Duration::from_secs(15);
/// Interval between two checks.
const LOOK: Duration = Duration::from_millis(10);

/// The resources of a run.
pub struct Traces {
    /// Folder of its temporary files.
    folder: TempDir,
    /// Files in shared memory that it had mapped, with their inodes.
    shared: BTreeSet<(PathBuf, u64)>,
    /// Inodes of its open sockets.
    sockets: BTreeSet<u64>,
}

impl Traces {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), shared: BTreeSet::new(), sockets: BTreeSet::new() }
    }

    /// Makes a command, and all its descendants, use this folder.
    pub fn of(&self, command: &mut Command) {
        command.env("TMPDIR", self.folder.path());
    }

    /// Notes the current resources of the run. Returns its processes.
    pub fn look(&mut self) -> Vec<u32> {
        let processes = self.processes();
        for pid in &processes {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let files = maps.lines().filter_map(|line| Some(line.split_at(line.find("/dev/shm/")?).1));
            for path in files.map(Path::new) {
                self.shared.extend(fs::metadata(path).map(|meta| (path.to_owned(), meta.ino())));
            }
            let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
            self.sockets.extend(open.filter_map(|target| {
                target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
            }));
        }
        processes
    }

    pub fn has_shared_files(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Returns its processes. A zombie has no environment and does not count.
    pub fn processes(&self) -> Vec<u32> {
        let variable = [b"TMPDIR=", self.folder.path().as_os_str().as_bytes()].concat();
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|entry| entry == variable)
        })
        .collect()
    }

    /// Waits until nothing is left except this many processes.
    pub fn assert_gone_but(&self, processes: usize, of: &str) {
        let until = Instant::now() + GONE_WITHIN;
        while self.processes().len() > processes && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        let left: Vec<String> = self.processes().iter().map(|pid| described(*pid)).collect();
        assert!(left.len() <= processes, "{of}: processes are left: {left:?}");
        // A process loses its environment first. Its sockets and files disappear a moment later.
        let sockets = || if processes == 0 { self.left_sockets() } else { Vec::new() };
        let is_gone = || self.files().is_empty() && self.left_shared().is_empty() && sockets().is_empty();
        while !is_gone() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        assert_eq!(self.files(), Vec::<PathBuf>::new(), "{of}: temporary files are left");
        assert_eq!(self.left_shared(), Vec::<&PathBuf>::new(), "{of}: files are left in shared memory");
        assert_eq!(sockets(), Vec::<u64>::new(), "{of}: sockets are left");
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.folder.path()).unwrap().flatten().map(|entry| entry.path()).collect()
    }

    fn left_shared(&self) -> Vec<&PathBuf> {
        let is_there =
            |(path, inode): &&(PathBuf, u64)| fs::metadata(path).is_ok_and(|meta| meta.ino() == *inode);
        self.shared.iter().filter(is_there).map(|(path, _)| path).collect()
    }

    fn left_sockets(&self) -> Vec<u64> {
        open_sockets().intersection(&self.sockets).copied().collect()
    }
}

fn described(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid} {}", String::from_utf8_lossy(&words).replace('\0', " "))
}

/// Returns the inodes of all open sockets of this machine.
fn open_sockets() -> BTreeSet<u64> {
    // Each protocol has the column of the inode.
    let tables = [("tcp", 9), ("tcp6", 9), ("udp", 9), ("udp6", 9), ("unix", 6)];
    let inodes = tables.iter().flat_map(|(name, column)| {
        let text = fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
        let inode = |line: &str| line.split_whitespace().nth(*column)?.parse().ok();
        text.lines().filter_map(inode).collect::<Vec<u64>>()
    });
    inodes.collect()
}
