//! The journal of a sweep. It records each run as it ends, so that an interrupted sweep can continue.

use crate::terminal::fault::Fault;
use crate::verbs::sweep::identity::Identity;
use netdyno_measure::sweep::Run;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The journal of a sweep: the plan, the identity, and then a line for each run. It is locked as long as it
/// is open.
pub struct Journal {
    path: PathBuf,
    file: Locked,
    runs: Vec<Run>,
    /// Whether the journal was empty before this command.
    is_new: bool,
}

/// The second line: the identity of the sweep. Journals of earlier versions have none.
#[derive(Serialize, Deserialize)]
struct Of {
    of: Identity,
}

impl Journal {
    /// Opens a journal, or creates it. An incomplete last line, from a command that was killed, counts as no
    /// run.
    ///
    /// # Errors
    /// Returns `BadInput` if another command has the journal open, if it belongs to another sweep, or if the
    /// file cannot be used. Returns `Failed` if a new journal cannot be written.
    pub fn open(path: &Path, plan: &str, identity: &Identity) -> Result<Self, Fault> {
        let bad = |error: io::Error| {
            Fault::BadInput(format!("cannot keep the journal {}: {error}", path.display()))
        };
        let mut file = Locked::open(path, &bad)?;
        let mut text = String::new();
        file.0.read_to_string(&mut text).map_err(bad)?;
        // A command that was killed as it began has left a part of the first line, or nothing.
        let is_new = !text.contains('\n') && plan.starts_with(&text);
        let whole = if is_new { "" } else { &text[..] };
        let mut lines = whole.split_inclusive('\n').filter(|line| line.ends_with('\n')).peekable();
        let first = lines.next().unwrap_or_default();
        let noted: Option<Of> = lines.peek().and_then(|line| serde_json::from_str(line).ok());
        let mut good = first.len();
        if noted.is_some() {
            good += lines.next().map_or(0, str::len);
        }
        let is_identified = noted.is_some();
        let changes = noted.map_or(Vec::new(), |noted| noted.of.changes(identity));
        if !is_new && (first.trim_end_matches('\n') != plan || !changes.is_empty()) {
            return Err(of_another(path, &changes));
        }
        let mut runs = Vec::new();
        for line in lines {
            match serde_json::from_str(line) {
                Ok(run) => runs.push(run),
                Err(_) => break,
            }
            good += line.len();
        }
        file.0.set_len(good as u64).and_then(|()| file.0.seek(SeekFrom::End(0))).map_err(bad)?;
        let mut journal = Self { path: path.into(), file, runs, is_new };
        if is_new {
            journal.write(plan)?;
        }
        if !is_identified && journal.runs.is_empty() {
            journal.write_json(&Of { of: identity.clone() })?;
        }
        Ok(journal)
    }

    /// Reports whether this is the file with the journal.
    pub fn is_at(&self, file: &Path) -> bool {
        let place = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let (own, other) = (self.file.0.metadata().map(place), fs::metadata(file).map(place));
        own.ok().is_some_and(|own| other.ok() == Some(own))
    }

    /// Records a run.
    pub fn note(&mut self, run: Run) -> Result<(), Fault> {
        self.write_json(&run)?;
        self.runs.push(run);
        Ok(())
    }

    /// Returns the runs so far.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Removes the journal of a finished sweep.
    pub fn remove(self) {
        // If the file remains, the next command finds all runs in it.
        let _ = fs::remove_file(&self.path);
    }

    fn write_json(&mut self, value: &impl Serialize) -> Result<(), Fault> {
        let line = serde_json::to_string(value)
            .map_err(|error| Fault::Failed(format!("cannot write the journal as JSON: {error}")))?;
        self.write(&line)
    }

    /// Writes a line in one piece: a line without its end counts as none.
    fn write(&mut self, line: &str) -> Result<(), Fault> {
        self.file.0.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.file.0.sync_data()).map_err(
            |error| Fault::Failed(format!("cannot write the journal {}: {error}", self.path.display())),
        )
    }
}

impl Drop for Journal {
    /// Removes a journal without runs.
    fn drop(&mut self) {
        if self.is_new && self.runs.is_empty() {
            // If the file remains, the next command continues from it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A file that is locked against other commands until it is dropped.
struct Locked(File);

impl Locked {
    /// Opens the file and locks it. Repeats that if the previous owner has removed the file meanwhile.
    fn open(path: &Path, bad: &dyn Fn(io::Error) -> Fault) -> Result<Self, Fault> {
        loop {
            let mut options = OpenOptions::new();
            let file = options.create(true).truncate(false).read(true).write(true).open(path).map_err(bad)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Fault::BadInput(format!(
                        "another sweep has the journal {} open: wait for its end, or name another with --journal",
                        path.display()
                    )));
                }
                // Some file systems have no locks.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Self(file));
                }
                Err(TryLockError::Error(error)) => return Err(bad(error)),
            }
            let file = Self(file);
            let inode = file.0.metadata().map_err(bad)?.ino();
            if fs::metadata(path).is_ok_and(|there| there.ino() == inode) {
                return Ok(file);
            }
        }
    }
}

impl Drop for Locked {
    /// Unlocks the file. To close it is not enough: a process that another thread starts has a copy of the
    /// descriptor until it runs its program.
    fn drop(&mut self) {
        // Without locks there is nothing to unlock.
        let _ = self.0.unlock();
    }
}

fn of_another(path: &Path, changes: &[String]) -> Fault {
    let path = path.display();
    Fault::BadInput(if changes.is_empty() {
        format!("the journal {path} is of another sweep: remove it, or name another with --journal")
    } else {
        format!(
            "the journal {path} is of another sweep: {}; undo that to go on with it, remove it to begin again, \
or name another with --journal",
            changes.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_goes_on_where_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let open = |plan| Journal::open(&path, plan, &Identity::default());
        let mut journal = open("plan").unwrap();
        for repetition in 0..3 {
            journal.note(Run { repetition, ..Run::default() }).unwrap();
        }
        drop(journal);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let mut journal = open("plan").unwrap();
        assert_eq!(journal.runs().len(), 2);
        journal.note(Run { repetition: 2, ..Run::default() }).unwrap();
        drop(journal);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        assert!(matches!(open("another"), Err(Fault::BadInput(_))));
        open("plan").unwrap().remove();
        assert!(!path.exists());
    }

    #[test]
    fn a_journal_without_what_it_is_of_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let run = serde_json::to_string(&Run::default()).unwrap();
        fs::write(&path, format!("plan\n{run}\n{run}\n")).unwrap();
        assert_eq!(Journal::open(&path, "plan", &of("1")).unwrap().runs().len(), 2);
    }

    /// Wherever the first two lines are cut, they are written again; a run without its end counts as none.
    #[test]
    fn a_journal_cut_anywhere_is_of_the_same_sweep() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path, "plan", &of("1")).unwrap();
        journal.note(Run::default()).unwrap();
        drop(journal);
        let whole = fs::read_to_string(&path).unwrap();
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&path, "plan", &of("1")).unwrap();
            assert_eq!(journal.runs().len(), usize::from(cut == whole.len()), "{cut}");
            if journal.runs().is_empty() {
                journal.note(Run::default()).unwrap();
            }
            drop(journal);
            assert_eq!(fs::read_to_string(&path).unwrap(), whole, "{cut}");
        }
    }

    #[test]
    fn a_file_that_is_no_journal_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        for text in ["\n", "\nbuy milk\n", "plane", "pl\n", "{}"] {
            fs::write(&path, text).unwrap();
            assert!(refusal(&path, "plan", &of("1")).contains("is of another sweep"), "{text:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    /// The values of dials are compared after they have been read.
    #[test]
    fn a_value_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path, "plan", &of("1")).unwrap();
        let values = [
            1_900.000_000_000_000_2,
            3_800.000_000_000_000_5,
            1.400_000_000_000_000_1,
            92_399.999_999_999_99,
        ];
        values.iter().for_each(|&value| journal.note(Run { value, ..Run::default() }).unwrap());
        drop(journal);
        let journal = Journal::open(&path, "plan", &of("1")).unwrap();
        assert!(journal.runs().iter().map(|run| run.value).eq(values));
    }

    fn of(seed: &str) -> Identity {
        Identity::new(&[("--seed", seed.into())], &[])
    }

    /// Returns the error message of a journal that cannot be opened.
    fn refusal(path: &Path, plan: &str, identity: &Identity) -> String {
        match Journal::open(path, plan, identity) {
            Err(Fault::BadInput(text)) => text,
            _ => panic!("it was opened"),
        }
    }

    #[test]
    fn a_change_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path, "plan", &of("1")).unwrap();
        journal.note(Run::default()).unwrap();
        drop(journal);
        for plan in ["plan", "another"] {
            let text = refusal(&path, plan, &of("2"));
            assert!(text.contains("another sweep: --seed was 1 and is 2; undo that"), "{text}");
        }
        assert_eq!(Journal::open(&path, "plan", &of("1")).unwrap().runs().len(), 1);
    }

    #[test]
    fn a_journal_is_of_one_command_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let first = Journal::open(&path, "plan", &of("1")).unwrap();
        let text = refusal(&path, "plan", &of("1"));
        assert!(text.starts_with("another sweep has the journal"), "{text}");
        drop(first);
        assert!(!path.exists(), "no run was noted");
        Journal::open(&path, "plan", &of("1")).unwrap();
    }

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut first = Journal::open(&path, "plan", &of("1")).unwrap();
        first.note(Run::default()).unwrap();
        let _copy = first.file.0.try_clone().unwrap();
        drop(first);
        Journal::open(&path, "plan", &of("1")).unwrap();
    }
}
