//! Waiting for a completion: a thread spins for a while and then sleeps.

use crate::nic::id::NicId;
use crate::nic::{self, Nic};
use crate::settings;
use crate::wakeup::Wakeup;
use netdyno_stack::vi::ReturnCode;
use std::ffi::c_ulong;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeouts from here on are infinite: `VIP_INFINITE`, whichever width a program has given it.
const INFINITE: c_ulong = 0xffff_ffff;

/// Polls between two readings of the clock, so that a spinning thread polls nearly as often as a thread
/// that calls `...Done` in a loop.
const LOOKS_A_READING: u32 = 16;

/// Returns a program's timeout, given in milliseconds; `None` if it is infinite.
pub fn timeout(timeout_ms: c_ulong) -> Option<Duration> {
    (timeout_ms < INFINITE).then(|| Duration::from_millis(timeout_ms))
}

/// Calls `look` until it returns something, for at most `timeout`. `look` runs under the NIC's lock and
/// must return at once.
///
/// # Errors
/// Returns `Timeout` if the time is up, `InvalidParameter` if the NIC is closed, or the error of `look`.
pub fn wait<T>(
    id: NicId,
    timeout: Option<Duration>,
    mut look: impl FnMut(&mut Nic) -> Result<Option<T>, ReturnCode>,
) -> Result<T, ReturnCode> {
    if let Some(found) = nic::call(id, &mut look)? {
        return Ok(found);
    }
    let began = Instant::now();
    let until = timeout.and_then(|timeout| began.checked_add(timeout));
    let spin = timeout.map_or(settings::spin(), |timeout| timeout.min(settings::spin()));
    if let Some(found) = spin_for(id, began, spin, &mut look)? {
        return Ok(found);
    }
    let wakeup = wakeup()?;
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(ReturnCode::Timeout);
        }
        let looked = nic::call(id, |nic| {
            let sleep = nic.prepare_sleep();
            Ok(match look(nic)? {
                Some(found) => Ok(found),
                None => {
                    nic.fall_asleep(&wakeup, &sleep);
                    Err(sleep)
                }
            })
        })?;
        let sleep = match looked {
            Ok(found) => return Ok(found),
            Err(sleep) => sleep,
        };
        let most = left.map_or(sleep.most, |left| left.min(sleep.most));
        wakeup.sleep(Some(sleep.wire.as_fd()), Some(most));
        let looked = nic::visit(id, |nic| {
            nic.wake_up(&wakeup);
            nic.provider.progress();
            look(nic)
        })?;
        if let Some(found) = looked {
            return Ok(found);
        }
    }
}

fn wakeup() -> Result<Arc<Wakeup>, ReturnCode> {
    Wakeup::of_this_thread().map_err(|_| ReturnCode::ErrorResource)
}

/// Prepares this thread for a wait, so that the wait does not fail after something has begun for it.
///
/// # Errors
/// Returns `ErrorResource` if the system has no descriptor for it.
pub fn prepare() -> Result<(), ReturnCode> {
    wakeup().map(drop)
}

/// Calls `look` for the time `spin` without sleeping.
fn spin_for<T>(
    id: NicId,
    began: Instant,
    spin: Duration,
    mut look: impl FnMut(&mut Nic) -> Result<Option<T>, ReturnCode>,
) -> Result<Option<T>, ReturnCode> {
    while began.elapsed() < spin {
        for _ in 0..LOOKS_A_READING {
            if let Some(found) = nic::call(id, &mut look)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_infinite_however_wide_the_program_has_it() {
        assert_eq!(timeout(0), Some(Duration::ZERO));
        assert_eq!(timeout(7), Some(Duration::from_millis(7)));
        assert_eq!(timeout(INFINITE), None);
        assert_eq!(timeout(c_ulong::MAX), None);
    }
}
