//! The key of `serve` and `--peer`. It comes from a file or the environment, never from the command line,
//! because every process of the host can read the command line.

use crate::terminal::fault::Fault;
use crate::terminal::voice::say;
use netdyno_job::key::Key;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Environment variable of the key if no file is named.
pub const VARIABLE: &str = "NETDYNO_KEY";

/// Maximum bytes to read from a file; no key is longer.
const MOST: u64 = 8192;
/// Permission bits that let others than the owner read a file.
const SHOWN: u32 = 0o044;

/// Returns the key, if the user gave one.
pub fn given(file: Option<&Path>) -> Result<Option<Key>, Fault> {
    let (text, source) = match file {
        Some(file) => {
            let bad = |error: io::Error| {
                Fault::BadInput(format!("cannot read the key in {}: {error}", file.display()))
            };
            (read(file).map_err(bad)?, file.display().to_string())
        }
        None => match std::env::var(VARIABLE) {
            Ok(text) => (text, VARIABLE.to_owned()),
            Err(std::env::VarError::NotPresent) => return Ok(None),
            // The error itself would show the key.
            Err(std::env::VarError::NotUnicode(_)) => {
                let text = format!("{VARIABLE} is no text: make a key with `openssl rand -hex 16`");
                return Err(Fault::BadInput(text));
            }
        },
    };
    let key = Key::new(&text).map_err(|error| {
        Fault::BadInput(format!("{source}: {error}: make one with `openssl rand -hex 16`"))
    })?;
    Ok(Some(key))
}

fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.permissions().mode() & SHOWN != 0 {
        say(&format!("warning: others can read the key in {0}: chmod 600 {0}", path.display()));
    }
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}
