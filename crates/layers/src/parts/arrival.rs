//! The wait for a message of this thread's other end.

use netdyno_measure::layer::LayerError;
use std::time::{Duration, Instant};

/// Polls between two looks at the clock.
const LOOKS: u32 = 1024;
/// Longest time until a message has arrived. Nobody sends a lost one again, because its sender is not polled.
const ARRIVED_AFTER: Duration = Duration::from_secs(1);

/// Polls until `is_there` returns true.
#[inline(always)]
pub(super) fn arrives(mut is_there: impl FnMut() -> Result<bool, LayerError>) -> Result<(), LayerError> {
    let (mut polls, mut until) = (0u32, None);
    while !is_there()? {
        polls = polls.wrapping_add(1);
        if polls.is_multiple_of(LOOKS) {
            check(&mut until)?;
        }
    }
    Ok(())
}

#[cold]
fn check(until: &mut Option<Instant>) -> Result<(), LayerError> {
    let until = *until.get_or_insert_with(|| Instant::now() + ARRIVED_AFTER);
    if Instant::now() < until {
        return Ok(());
    }
    Err(LayerError(format!("a message did not arrive within {ARRIVED_AFTER:?}: it was lost on its way")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_lost_ends_the_wait() {
        let error = arrives(|| Ok(false)).unwrap_err();
        assert!(error.0.contains("lost on its way"), "{error:?}");
        let mut polls = 0;
        let late = || {
            polls += 1;
            Ok(polls > 3 * LOOKS)
        };
        arrives(late).unwrap();
    }
}
