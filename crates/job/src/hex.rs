//! Bytes as hexadecimal digits.

use std::fmt::Write;

/// Returns the digits.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A write to memory does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads digits, two for each byte.
pub(crate) fn bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}
