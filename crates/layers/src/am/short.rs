//! Short messages: up to four words, which travel in the slot of a request.

/// The largest short message, in bytes.
const MAX_SIZE: usize = 32;
const WORD: usize = 8;

/// Returns the number of words of a message of `bytes`, if it is a short one.
pub(crate) fn words(bytes: usize) -> Option<usize> {
    (bytes <= MAX_SIZE).then(|| bytes.div_ceil(WORD))
}

/// Calls `$send` with an array of `$words` words.
macro_rules! with_words {
    ($words:expr, $send:expr) => {
        match $words {
            4 => ($send)([1, 2, 3, 4]),
            3 => ($send)([1, 2, 3]),
            2 => ($send)([1, 2]),
            1 => ($send)([1]),
            _ => ($send)([]),
        }
    };
}
pub(super) use with_words;
