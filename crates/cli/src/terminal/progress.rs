//! A progress bar on a terminal; nothing in a pipe.

use crate::terminal::voice::{is_quiet, is_verbose};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Steps of the bar, because progress is given as a share.
const STEPS: u64 = 10_000;

/// A progress bar on standard error, if that is a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// Creates an empty bar that estimates the time left from the share that is done.
    pub fn new() -> Self {
        Self::with("{eta} left")
    }

    /// Creates an empty bar for work with a time limit. It shows the maximum time left, because an estimate
    /// could grow.
    pub fn limited() -> Self {
        Self::with("{prefix}")
    }

    fn with(left: &str) -> Self {
        // The lines of `--verbose` would tear a bar apart.
        let is_shown = !is_quiet() && !is_verbose();
        let bar = if is_shown { ProgressBar::new(STEPS) } else { ProgressBar::hidden() };
        // The bar is narrower than a terminal. Otherwise the ^C that a terminal echoes would begin a new
        // line, and the bar would not be cleared. If the template is invalid, the plain bar remains.
        if let Ok(style) =
            ProgressStyle::with_template(&format!("{{msg:20}} {{bar:24}} {{percent:>3}} %  {left}"))
        {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows the maximum time left of a [limited](Self::limited) bar, and the current activity.
    pub fn show_left(&self, share: f64, left: Duration, doing: &str) {
        self.0.set_prefix(format!("at most {} s left", left.as_secs_f64().ceil()));
        self.show(share, doing);
    }

    /// Shows that `share` of the work is done, and the current activity.
    pub fn show(&self, share: f64, doing: &str) {
        self.0.set_message(doing.to_owned());
        self.0.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
