//! Progress on a terminal; nothing in a pipe.

use indicatif::{ProgressBar, ProgressStyle};

/// Steps of the bar: progress comes as a share.
const STEPS: u64 = 10_000;

/// A bar on standard error, where that is a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// An empty bar.
    pub fn new() -> Self {
        let bar = ProgressBar::new(STEPS);
        // Not as wide as a terminal: the ^C that a terminal echoes must not begin a new line,
        // or the bar is not cleared. Should the template ever be wrong, the plain bar does.
        if let Ok(style) = ProgressStyle::with_template("{msg:20} {bar:36} {percent:>3} %  {eta} left") {
            bar.set_style(style);
        }
        Self(bar)
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
