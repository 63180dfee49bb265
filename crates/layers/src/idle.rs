//! What a process that serves others does after an empty poll.

use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use std::time::Instant;

/// The empty polls of a process since it last found something.
pub(crate) struct Idle {
    wait: Wait,
    /// The first of them, if the time to spin depends on it.
    since: Option<Instant>,
}

impl Idle {
    pub(crate) fn new(wait: Wait) -> Self {
        Self { wait, since: None }
    }

    /// Notes that a poll has found something.
    #[inline(always)]
    pub(crate) fn found(&mut self) {
        self.since = None;
    }

    /// Passes time after an empty poll. Returns whether the process gave its processor away.
    ///
    /// # Errors
    /// `block`, which sleeps for a bounded time, has failed.
    #[inline(always)]
    pub(crate) fn pass(
        &mut self,
        block: impl FnOnce() -> Result<(), LayerError>,
    ) -> Result<bool, LayerError> {
        match self.wait {
            Wait::Spin => return Ok(false),
            Wait::Yield => self.wait.idle(),
            Wait::SpinFor(time) if self.since.get_or_insert_with(Instant::now).elapsed() < time => {
                return Ok(false);
            }
            Wait::Block | Wait::SpinFor(_) => block()?,
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn who_spins_for_a_time_sleeps_after_it_until_something_comes() {
        let mut idle = Idle::new(Wait::SpinFor(Duration::from_secs(1)));
        assert!(!idle.pass(|| panic!("it sleeps at once")).unwrap());
        idle.since = idle.since.map(|since| since - Duration::from_secs(2));
        assert!(idle.pass(|| Ok(())).unwrap());
        assert_eq!(idle.pass(|| Err(LayerError::new("asleep"))).unwrap_err().0, "asleep");
        idle.found();
        assert!(!idle.pass(|| panic!("it sleeps at once")).unwrap());
    }
}
