//! SIGINT, SIGTERM and SIGHUP: the handler only notes the signal, and the command checks it where it can stop
//! safely.

use crate::terminal::fault::Fault;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

/// The signals that this process notes, once it does.
static CAUGHT: Mutex<Option<Interrupt>> = Mutex::new(None);
/// Whether the command writes its output, which may wait for a reader for ever.
static IS_WRITING: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The signals that asked the command to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// The number of the last one, or 0.
    last: Arc<AtomicUsize>,
    /// Whether one has come since this was last asked.
    has_more: Arc<AtomicBool>,
}

impl Interrupt {
    /// Notes signals from now on, so that they no longer kill the process. A signal that this process was started to
    /// ignore, as by `nohup`, stays ignored.
    pub fn catch() -> Result<Self, Fault> {
        let mut caught = CAUGHT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(interrupt) = &*caught {
            return Ok(interrupt.clone());
        }
        let interrupt = Self::default();
        let ignored = ignored();
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0)
        {
            interrupt
                .note(signal)
                .map_err(|error| Fault::Failed(format!("cannot catch signals: {error}")))?;
        }
        *caught = Some(interrupt.clone());
        Ok(interrupt)
    }

    fn note(&self, signal: i32) -> io::Result<()> {
        // What is registered first is done first.
        flag::register_conditional_default(signal, Arc::clone(&IS_WRITING))?;
        flag::register_usize(signal, Arc::clone(&self.last), signal as usize)?;
        flag::register(signal, Arc::clone(&self.has_more))?;
        Ok(())
    }

    /// Returns the last signal that has arrived.
    pub fn signal(&self) -> Option<i32> {
        match self.last.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(i32::try_from(signal).unwrap_or(SIGINT)),
        }
    }

    /// Returns `Fault::Interrupted` if a signal has arrived.
    pub fn check(&self) -> Result<(), Fault> {
        self.signal().map_or(Ok(()), |signal| Err(Fault::Interrupted(signal)))
    }

    /// Reports whether a signal has arrived since this was last asked.
    pub fn has_more(&self) -> bool {
        self.has_more.swap(false, Ordering::Relaxed)
    }
}

/// Undoes an inherited decision to ignore the ends of children (`trap '' CHLD`), with which nobody could wait for them.
pub fn wait_for_children() {
    if ignored() >> (SIGCHLD - 1) & 1 == 1 {
        // Without it, waiting fails, and says so.
        let _ = flag::register(SIGCHLD, Arc::default());
    }
}

/// Writes output. A signal that arrives meanwhile ends the process at once.
pub fn while_writing<T>(write: impl FnOnce() -> T) -> T {
    IS_WRITING.store(true, Ordering::Relaxed);
    let written = write();
    IS_WRITING.store(false, Ordering::Relaxed);
    written
}

/// Returns the signals that this process ignores: bit n - 1 stands for signal n.
fn ignored() -> u64 {
    // Without this file, none is known.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
