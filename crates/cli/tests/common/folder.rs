//! A folder with the records of a test.

use super::stdout_of;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// A folder with records of a simulated layer.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Measures `truth` and writes a record.
    pub fn measured(&self, name: &str, truth: &str, more: &[&str]) -> String {
        let file = self.path(name);
        let args = ["logp", "--over", "sim", "--truth", truth, "--out", &file];
        stdout_of(&[&args[..], more].concat());
        file
    }

    /// Writes a changed copy of a record.
    pub fn edited(&self, from: &str, name: &str, edit: impl Fn(&mut Value)) -> String {
        let mut record: Value = serde_json::from_str(&fs::read_to_string(from).unwrap()).unwrap();
        edit(&mut record);
        let file = self.path(name);
        fs::write(&file, record.to_string()).unwrap();
        file
    }
}
