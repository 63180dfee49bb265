//! The identity of a sweep: its options, and the hashes of its programs and libraries. Sweeps of different
//! identities share no runs.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Name prefixes of the libraries that carry a program's messages.
const LIBRARIES: [&str; 2] = ["libmpi", "libfabric"];
/// Number of bytes of a hash that are kept.
const HASH_BYTES: usize = 16;
/// First bytes of an executable for this system.
const ELF: &[u8] = b"\x7fELF";

/// The identity of a sweep: names for the user, each with a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The options.
    asked: BTreeMap<String, String>,
    /// The hashes of programs and libraries.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

impl Identity {
    /// Creates the identity of named options and of the programs in `command`.
    pub fn new(asked: &[(&str, String)], command: &[OsString]) -> Self {
        let asked = asked.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Self { asked, files: files_of(command) }
    }

    /// Describes the differences between `self`, from the journal, and `now`. Entries that the journal lacks
    /// are not compared.
    pub fn changes(&self, now: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        for (name, was) in &self.asked {
            match now.asked.get(name) {
                Some(is) if is == was => {}
                Some(is) => changes.push(format!("{name} was {was} and is {is}")),
                None => changes.push(format!("{name} was {was} and is not given")),
            }
        }
        for (name, was) in &self.files {
            match now.files.get(name) {
                Some(is) if is == was => {}
                Some(_) => changes.push(format!("{name} has changed")),
                None => changes.push(format!("{name} is not used any more")),
            }
        }
        changes
    }
}

/// Returns the hash of each program among the words of a command, and of the libraries that carry its
/// messages.
fn files_of(command: &[OsString]) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for program in command.iter().filter_map(|word| program_of(word)) {
        let Ok((hash, is_native)) = hash_of(&program) else { continue };
        files.insert(format!("the program {}", program.display()), hash);
        for library in is_native.then(|| libraries_of(&program)).into_iter().flatten() {
            if let Ok((hash, _)) = hash_of(&library) {
                files.insert(format!("the library {}", library.display()), hash);
            }
        }
    }
    files
}

/// Returns the program that a word names: a path, or a file in `PATH` if the word has no slash. The current
/// folder comes first, as in launchers.
fn program_of(word: &OsStr) -> Option<PathBuf> {
    let is_option = word.as_encoded_bytes().starts_with(b"-");
    let here = Some(PathBuf::from(word)).filter(|path| is_program(path));
    let in_path = || {
        let has_slash = word.as_encoded_bytes().contains(&b'/');
        let folders = env::var_os("PATH").filter(|_| !has_slash && !word.is_empty())?;
        env::split_paths(&folders).map(|folder| folder.join(word)).find(|path| is_program(path))
    };
    if is_option { None } else { here.or_else(in_path) }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Returns the hash of a file, and whether it is an executable for this system.
fn hash_of(path: &Path) -> io::Result<(String, bool)> {
    let mut file = File::open(path)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    let (mut is_first, mut is_native) = (true, false);
    loop {
        let length = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        is_native |= is_first && buffer[..length].starts_with(ELF);
        is_first = false;
        hash.update(&buffer[..length]);
    }
    let text = hash.finalize().iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect();
    Ok((text, is_native))
}

/// Returns the libraries of a program that carry its messages, as `ldd` finds them; empty if `ldd` does not
/// list them.
fn libraries_of(program: &Path) -> Vec<PathBuf> {
    let path = std::path::absolute(program).unwrap_or_else(|_| program.into());
    let output = Command::new("ldd").arg(path).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    said.lines().filter_map(library_in).collect()
}

/// Returns the file in a line such as `libmpi.so.12 => /opt/lib/libmpi.so.12 (0x7f…)`.
fn library_in(line: &str) -> Option<PathBuf> {
    let (name, rest) = line.trim().split_once(" => ")?;
    let path = rest.rsplit_once(" (").map_or(rest, |(path, _)| path);
    LIBRARIES.iter().any(|library| name.starts_with(library)).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a program into a folder; `says` is its output.
    fn program(folder: &Path, says: &str) -> OsString {
        let path = folder.join("app");
        fs::write(&path, format!("#!/bin/sh\necho {says}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.into()
    }

    #[test]
    fn a_rebuilt_program_and_other_arguments_are_changes() {
        let folder = tempfile::tempdir().unwrap();
        let command = ["sh".into(), "-n".into(), "2".into(), program(folder.path(), "once")];
        let of = |seed: &str| Identity::new(&[("--seed", seed.into())], &command);
        let noted = of("1");
        assert_eq!(noted.changes(&of("1")), Vec::<String>::new());
        assert_eq!(noted.changes(&of("2")), ["--seed was 1 and is 2"]);
        program(folder.path(), "again");
        assert_eq!(noted.changes(&of("1")), [format!("the program {} has changed", command[3].display())]);
    }

    /// Journals of other versions have fewer or more entries.
    #[test]
    fn what_was_not_noted_is_not_compared() {
        let now = Identity::new(&[("--seed", "1".into()), ("--new", "x".into())], &["sh".into()]);
        let old: Identity = serde_json::from_str(r#"{"asked":{"--seed":"1"},"more":1}"#).unwrap();
        assert_eq!(old.changes(&now), Vec::<String>::new());
    }

    #[test]
    fn the_libraries_that_carry_messages_are_found() {
        let line = "\tlibmpi.so.12 => /opt/mpi lib/libmpi.so.12 (0x00007f0000000000)";
        assert_eq!(library_in(line), Some("/opt/mpi lib/libmpi.so.12".into()));
        for line in
            ["\tlibc.so.6 => /lib/libc.so.6 (0x0)", "\tlinux-vdso.so.1 (0x0)", "\tstatically linked", ""]
        {
            assert_eq!(library_in(line), None, "{line}");
        }
    }
}
