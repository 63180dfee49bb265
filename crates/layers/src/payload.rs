//! The content of messages, which is the same in all layers, and the error for a message of a wrong size.

use netdyno_measure::layer::LayerError;

/// The value of every byte of a message.
pub(crate) const FILL: u8 = 0x5a;

/// Returns the error for a message of `bytes` bytes where `expected` bytes were expected.
#[cold]
pub(crate) fn wrong_size(bytes: usize, expected: usize) -> LayerError {
    LayerError(format!("a message of {bytes} bytes came, {expected} were expected"))
}
