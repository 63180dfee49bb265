//! Files in shared memory that communication libraries create and that remain when a process is killed, such
//! as libfabric's `PID:0:0` and MPICH's `mpich_shm_…`.

use netdyno_host::machine;
use rustix::fs::inotify;
use rustix::process::getuid;
use serde::{Deserialize, Serialize};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// Directory of POSIX shared memory.
const FOLDER: &str = "/dev/shm/";
/// Prefixes of the names of temporary files of communication libraries: MPICH, Open MPI, UCX, PSM. Files of
/// applications are never touched.
const PREFIXES: [&str; 6] =
    ["mpich_shm_", "sm_segment.", "vader_segment.", "ucx_shm_posix_", "psm2_shm.", "psm3_shm."];
/// The most files of a launch.
const MOST_FILES: usize = 1 << 16;
/// Granularity of a file system's clock. A file may appear older than it is by this time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// Shared-memory files of communication libraries that processes of one machine have mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedFiles {
    machine: String,
    files: Vec<SharedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SharedFile {
    path: PathBuf,
    inode: u64,
}

impl SharedFiles {
    /// Returns the library files that a process has mapped and that its user created after `since`. The
    /// result is empty if the process has ended or may not be inspected.
    pub fn of_process(pid: u32, since: SystemTime) -> Self {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mut files: Vec<SharedFile> = mapped(&maps).filter(|file| file.was_made_after(since)).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup();
        Self { machine: machine::name(), files }
    }

    /// Returns the library files that this process has mapped and that were created after `since`.
    pub fn of_this_process(since: SystemTime) -> Self {
        Self::of_process(std::process::id(), since)
    }

    /// Returns the files that libfabric created after `since` for a process that has ended. Their names begin
    /// with the process identifier.
    pub fn of_ended_process(pid: u32, since: SystemTime) -> Self {
        let prefix = format!("{pid}:");
        let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let named =
            entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)));
        let files = named
            .filter_map(|entry| Some(SharedFile { inode: entry.metadata().ok()?.ino(), path: entry.path() }));
        Self { machine: machine::name(), files: files.filter(|file| file.was_made_after(since)).collect() }
    }

    /// Reports whether any of the files is still there.
    pub fn any_is_left(&self) -> bool {
        self.files.iter().any(SharedFile::is_there)
    }

    /// Adds other files. Files of another machine cannot be removed here and are left out, and so is what another process
    /// names and no library makes.
    pub fn add(&mut self, others: Self) {
        let here = machine::name();
        if others.machine == here {
            self.machine = here;
            let room = MOST_FILES.saturating_sub(self.files.len());
            self.files.extend(others.files.into_iter().filter(SharedFile::is_of_library).take(room));
        }
    }

    /// Removes the files. A process that has mapped a file keeps its memory.
    pub fn remove(self) {
        for file in self.files.iter().filter(|file| file.is_there()) {
            // Fails if another process has removed the file meanwhile, which is harmless.
            let _ = fs::remove_file(&file.path);
        }
    }

    /// Removes the files that no process has mapped any more.
    pub fn remove_unused(mut self) {
        self.files.retain(SharedFile::is_there);
        if self.files.is_empty() {
            return;
        }
        for pid in processes() {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let used: Vec<SharedFile> = mapped(&maps).collect();
            self.files.retain(|file| !used.contains(file));
        }
        self.remove();
    }
}

impl SharedFile {
    /// Reports whether the path is that of a library's file.
    fn is_of_library(&self) -> bool {
        let name = self.path.strip_prefix(FOLDER).ok().and_then(Path::to_str);
        name.is_some_and(|name| !name.contains('/') && is_of_library(name))
    }

    /// Reports whether the path still refers to this file, and not to a later one of the same name.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|meta| meta.ino() == self.inode && meta.uid() == getuid().as_raw())
    }

    fn was_made_after(&self, since: SystemTime) -> bool {
        // Some file systems do not record the creation time. The modification time serves then, because a
        // library sets the size of a file when it creates it.
        let born =
            fs::symlink_metadata(&self.path).and_then(|meta| meta.created().or_else(|_| meta.modified()));
        self.is_there() && born.is_ok_and(|born| born + CLOCK_STEP >= since)
    }
}

/// A watch on the directory of shared memory.
#[derive(Debug)]
pub struct Watch(OwnedFd);

impl Watch {
    /// Begins to watch.
    ///
    /// # Errors
    /// Returns an error if the system has no more watches for this user, or no directory of shared memory.
    pub fn begin() -> io::Result<Self> {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        inotify::add_watch(&watch, FOLDER, inotify::WatchFlags::CREATE)?;
        Ok(Self(watch))
    }

    /// Returns the files that libraries, of any process, have created since the last call.
    pub fn new_files(&self) -> SharedFiles {
        let mut events = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut events);
        let mut new = SharedFiles { machine: machine::name(), files: Vec::new() };
        while let Ok(event) = events.next() {
            let name = event.file_name().and_then(|name| name.to_str().ok());
            if let Some(name) = name.filter(|name| is_of_library(name)) {
                let path = Path::new(FOLDER).join(name);
                new.files
                    .extend(fs::symlink_metadata(&path).map(|meta| SharedFile { inode: meta.ino(), path }));
            }
        }
        new
    }
}

/// Reports whether a name is one of a library's file. libfabric's names begin with a process identifier and a
/// colon.
fn is_of_library(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.split_once(':').is_some_and(|(pid, _)| is_number(pid))
}

/// Parses `/proc/PID/maps` and returns the library files among the mappings. A removed file is left out,
/// because it appears there under another name.
fn mapped(maps: &str) -> impl Iterator<Item = SharedFile> {
    maps.lines().filter_map(|line| {
        let (fields, name) = line.split_once(FOLDER)?;
        let name = Some(name).filter(|name| is_of_library(name))?;
        let inode = fields.split_whitespace().nth(4)?.parse().ok()?;
        Some(SharedFile { path: Path::new(FOLDER).join(name), inode })
    })
}

/// Reports whether this process sees all processes of the machine, as outside a container.
pub fn sees_all_processes() -> bool {
    // The identifier of the first process namespace is the same on every Linux.
    const FIRST: u64 = 0xEFFF_FFFC;
    fs::metadata("/proc/self/ns/pid").is_ok_and(|meta| meta.ino() == FIRST)
}

/// Returns the identifiers of all visible processes of this machine.
pub fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_host::shared_word::SharedWord;
    use std::process::Command;

    /// Creates a file in shared memory with a name like MPICH's that only this test uses.
    fn made(name: &str) -> PathBuf {
        let path = PathBuf::from(format!("{FOLDER}mpich_shm_netdyno-{name}-{}", std::process::id()));
        fs::write(&path, [0; 4096]).unwrap();
        path
    }

    #[test]
    fn a_file_is_removed_once_nothing_has_it_mapped() {
        let since = SystemTime::now();
        let path = made("unused");
        assert_eq!(SharedFiles::of_this_process(since).files, []);
        let word = SharedWord::map(&path, 0).unwrap();
        let mut found = SharedFiles::default();
        found.add(SharedFiles::of_this_process(since));
        assert_eq!(found.files.iter().map(|file| &file.path).collect::<Vec<_>>(), [&path]);
        found.clone().remove_unused();
        assert!(path.exists(), "it is mapped");
        drop(word);
        found.clone().remove_unused();
        assert!(!path.exists(), "it is not mapped any more");
        // A later file of that name belongs to another process.
        fs::write(&path, [0; 4096]).unwrap();
        found.remove_unused();
        assert!(path.exists());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn files_from_before_and_of_other_machines_are_left() {
        let path = made("before");
        let _word = SharedWord::map(&path, 0).unwrap();
        let later = SystemTime::now() + 2 * CLOCK_STEP;
        assert_eq!(SharedFiles::of_this_process(later).files, []);
        let mut elsewhere = SharedFiles::of_this_process(SystemTime::UNIX_EPOCH);
        elsewhere.machine = "another".into();
        let mut found = SharedFiles::default();
        found.add(elsewhere);
        assert_eq!(found.files, []);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_process_names_no_other_file() {
        let path = std::env::temp_dir().join(format!("mpich_shm_netdyno-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        for named in
            [path.clone(), Path::new("/dev/shm/mpich_shm_1/../..").join(path.strip_prefix("/").unwrap())]
        {
            let mut found = SharedFiles::default();
            found.add(SharedFiles {
                machine: machine::name(),
                files: vec![SharedFile { path: named, inode }],
            });
            assert_eq!(found.files, []);
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_new_file_of_a_library_is_noticed() {
        let watch = Watch::begin().unwrap();
        let path = made("noticed");
        let new = watch.new_files();
        assert!(new.files.iter().any(|file| file.path == path));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn only_libraries_files_are_known() {
        for name in ["123:0:0", "mpich_shm_1f_0", "sm_segment.host.0.1.0", "ucx_shm_posix_4f"] {
            assert!(is_of_library(name), "{name}");
        }
        for name in ["checkpoint", "results:1", ":0:0", "mpich"] {
            assert!(!is_of_library(name), "{name}");
        }
        let maps = "7f00-7f10 rw-s 00000000 00:1b 7 /dev/shm/mpich_shm_1_0\n7f20-7f30 rw-s 00000000 00:1b 8 /dev/shm/own\n";
        let found: Vec<SharedFile> = mapped(maps).collect();
        assert_eq!(found, [SharedFile { path: "/dev/shm/mpich_shm_1_0".into(), inode: 7 }]);
    }

    #[test]
    fn a_process_that_has_ended_has_only_what_bears_its_number() {
        let since = SystemTime::now();
        let mut child = Command::new("true").spawn().unwrap();
        let path = PathBuf::from(format!("{FOLDER}{}:0:0", child.id()));
        fs::write(&path, "").unwrap();
        child.wait().unwrap();
        assert_eq!(SharedFiles::of_process(child.id(), since).files, []);
        assert_eq!(SharedFiles::of_ended_process(child.id(), since + 2 * CLOCK_STEP).files, []);
        SharedFiles::of_ended_process(child.id(), since).remove();
        assert!(!path.exists());
    }
}
