//! The runs of a sweep, noted as they end, so that a sweep that was stopped goes on.

use crate::fault::Fault;
use netdyno_measure::sweep::Run;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The journal of a sweep: what it is of, and then a line for each run.
pub struct Journal {
    path: PathBuf,
    file: File,
    runs: Vec<Run>,
}

impl Journal {
    /// Opens a journal, or begins it. A line that was cut short by the end of a command is not a run.
    pub fn open(path: &Path, plan: &str) -> Result<Self, Fault> {
        let bad = |error: &dyn std::fmt::Display| {
            Fault::BadInput(format!("cannot keep the journal {}: {error}", path.display()))
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(bad(&error)),
        };
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        if !first.is_empty() && first != plan {
            return Err(Fault::BadInput(format!(
                "the journal {} is of another sweep: remove it, or name another with --journal",
                path.display()
            )));
        }
        let (mut runs, mut good) = (Vec::new(), if first.is_empty() { 0 } else { first.len() + 1 });
        for line in rest.split_inclusive('\n') {
            match serde_json::from_str(line.trim_end()) {
                Ok(run) if line.ends_with('\n') => runs.push(run),
                _ => break,
            }
            good += line.len();
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|error| bad(&error))?;
        let cut = file.set_len(good as u64).and_then(|()| file.seek(SeekFrom::End(0)));
        cut.map_err(|error| bad(&error))?;
        let mut journal = Self { path: path.into(), file, runs };
        if first.is_empty() {
            journal.write(plan)?;
        }
        Ok(journal)
    }

    /// Notes a run.
    pub fn note(&mut self, run: Run) -> Result<(), Fault> {
        let line = serde_json::to_string(&run)
            .map_err(|error| Fault::Failed(format!("cannot write a run as JSON: {error}")))?;
        self.write(&line)?;
        self.runs.push(run);
        Ok(())
    }

    /// The runs so far.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The sweep is over.
    pub fn remove(self) {
        // What cannot be removed is found to be whole by the next command.
        let _ = fs::remove_file(&self.path);
    }

    fn write(&mut self, line: &str) -> Result<(), Fault> {
        writeln!(self.file, "{line}").and_then(|()| self.file.sync_data()).map_err(|error| {
            Fault::Failed(format!("cannot write the journal {}: {error}", self.path.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_goes_on_where_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path, "plan").unwrap();
        for repetition in 0..3 {
            journal.note(Run { repetition, ..Run::default() }).unwrap();
        }
        drop(journal);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let mut journal = Journal::open(&path, "plan").unwrap();
        assert_eq!(journal.runs().len(), 2);
        journal.note(Run { repetition: 2, ..Run::default() }).unwrap();
        drop(journal);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        assert!(matches!(Journal::open(&path, "another"), Err(Fault::BadInput(_))));
        Journal::open(&path, "plan").unwrap().remove();
        assert!(!path.exists());
    }
}
