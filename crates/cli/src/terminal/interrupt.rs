//! SIGINT, SIGTERM and SIGHUP: the handler only notes the signal, and the command checks it where it can stop
//! safely.

use crate::terminal::fault::Fault;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The last signal that asked the command to end.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Notes signals from now on, so that they no longer kill the process.
    pub fn catch() -> Result<Self, Fault> {
        let caught = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, Arc::clone(&caught), signal as usize)
                .map_err(|error| Fault::Failed(format!("cannot catch signals: {error}")))?;
        }
        Ok(Self(caught))
    }

    /// Returns the last signal that has arrived.
    pub fn signal(&self) -> Option<i32> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(i32::try_from(signal).unwrap_or(SIGINT)),
        }
    }

    /// Returns `Fault::Interrupted` if a signal has arrived.
    pub fn check(&self) -> Result<(), Fault> {
        self.signal().map_or(Ok(()), |signal| Err(Fault::Interrupted(signal)))
    }
}
