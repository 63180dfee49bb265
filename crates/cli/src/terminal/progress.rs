//! Progress on a terminal; nothing in a pipe.

use crate::terminal::voice::{is_quiet, is_verbose};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Steps of the bar: progress comes as a share.
const STEPS: u64 = 10_000;

/// A bar on standard error, where that is a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// An empty bar that estimates the time left by the share that is done.
    pub fn new() -> Self {
        Self::with("{eta} left")
    }

    /// An empty bar of work that ends when its time is up, or earlier. It shows no estimate, which
    /// could grow, but the time that is left at most.
    pub fn limited() -> Self {
        Self::with("{prefix}")
    }

    fn with(left: &str) -> Self {
        // Between lines that say what is done, a bar would be torn.
        let is_shown = !is_quiet() && !is_verbose();
        let bar = if is_shown { ProgressBar::new(STEPS) } else { ProgressBar::hidden() };
        // Not as wide as a terminal: the ^C that a terminal echoes must not begin a new line,
        // or the bar is not cleared. Should the template ever be wrong, the plain bar does.
        if let Ok(style) =
            ProgressStyle::with_template(&format!("{{msg:20}} {{bar:24}} {{percent:>3}} %  {left}"))
        {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows what is left at most of the time of a [limited](Self::limited) bar, and what is being done.
    pub fn show_left(&self, share: f64, left: Duration, doing: &str) {
        self.0.set_prefix(format!("at most {} s left", left.as_secs_f64().ceil()));
        self.show(share, doing);
    }

    /// Shows that `share` is done and what is being done.
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
