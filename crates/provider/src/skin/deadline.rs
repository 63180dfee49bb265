//! The timeouts of waiting functions.

use core::ffi::c_int;
use std::time::{Duration, Instant};

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Returns the end of a wait of `timeout` milliseconds, which is never if that is negative.
    pub fn after(timeout: c_int) -> Self {
        Self(u64::try_from(timeout).ok().map(|timeout| Instant::now() + Duration::from_millis(timeout)))
    }

    /// Returns whether the time is up.
    pub fn is_past(self) -> bool {
        self.0.is_some_and(|until| Instant::now() >= until)
    }
}
