//! Time profiles of the dials: those shipped with the command, and files of the user.

use crate::terminal::fault::{Fault, clean};
use netdyno_protocol::dial::profile::{Profile, ProfileError};
use std::fs::File;
use std::io::{self, Read};

/// The profiles shipped with the command.
const SHIPPED: [(&str, &str); 3] = [
    ("interrupt-coalescing", include_str!("../../profiles/interrupt-coalescing.profile")),
    ("slow-start", include_str!("../../profiles/slow-start.profile")),
    ("congested-hour", include_str!("../../profiles/congested-hour.profile")),
];

/// Maximum size of a profile file, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Reads a profile. `named` is a shipped profile, or else a file.
pub fn read(named: &str) -> Result<Profile, Fault> {
    let bad = |text: String| Fault::BadInput(format!("--profile {named}: {text}"));
    let shipped = SHIPPED.iter().find(|(name, _)| *name == named);
    let text = match shipped {
        Some((_, text)) => (*text).to_owned(),
        None => read_file(named).map_err(|error| {
            let names = SHIPPED.map(|(name, _)| name).join(", ");
            bad(format!("{error}; there is a file to be named, or {names}"))
        })?,
    };
    text.parse().map_err(|error: ProfileError| bad(clean(&error.to_string())))
}

fn read_file(path: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == MOST_BYTES {
        return Err(io::Error::other("it is longer than a profile"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::dials::check;
    use netdyno_protocol::dial::parameters::{Dials, Own};

    #[test]
    fn all_that_come_along_can_be_had_on_any_link() {
        for (name, text) in SHIPPED {
            let Ok(profile) = read(name) else { panic!("{name}") };
            assert!(check(&Dials::NONE, Some(&profile), &Own::UNKNOWN).is_ok(), "{name}");
            assert!(text.starts_with("# ") && text.contains("# Source: "), "{name} says what it is");
        }
    }
}
