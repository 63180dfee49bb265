//! Functions that wait, and the descriptors at which programs wait themselves.

use super::guard::Errno;
use super::state::{Shared, State};
use crate::abi::{self, Opaque};
use core::ffi::{c_int, c_uint};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Looks before a sleep, each of up to 250 ns. A sleep takes longer than most messages.
const POLLS: u32 = 64;

/// A wait of a function with a timeout.
#[derive(Debug)]
pub struct Wait {
    until: Option<Instant>,
    polls: u32,
}

impl Wait {
    /// Begins a wait of `timeout` milliseconds, which has no end if that is negative.
    pub fn new(timeout: c_int) -> Self {
        Self { until: timeout_of(timeout).map(|timeout| Instant::now() + timeout), polls: 0 }
    }

    /// Waits for what the caller looks for. Returns false if the time is up. `is_nothing` says whether there is nothing
    /// yet.
    pub fn go_on(&mut self, shared: &Shared, is_nothing: impl FnOnce(&State) -> bool) -> bool {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return false;
        }
        self.polls += 1;
        if self.polls < POLLS {
            return true;
        }
        self.polls = 0;
        let mut state = shared.lock();
        let Ok(descriptor) = state.engine.links.descriptor() else { return true };
        let descriptor = descriptor.as_raw_fd();
        if state.prepare_sleep() && is_nothing(&state) {
            state.sleepers += 1;
            drop(state);
            // SAFETY: the descriptor is open as long as the domain, which the program must not close while it waits.
            sleep(unsafe { BorrowedFd::borrow_raw(descriptor) }, left);
            shared.lock().sleepers -= 1;
        }
        true
    }
}

/// Returns an error if objects cannot be waited for in such a way.
pub fn check_wait(wanted: c_uint) -> Result<(), Errno> {
    let known = [abi::WAIT_NONE, abi::WAIT_UNSPEC, abi::WAIT_YIELD, abi::WAIT_FD];
    if known.contains(&wanted) { Ok(()) } else { Err(Errno(abi::ENOSYS)) }
}

/// Returns a timeout of libfabric in milliseconds; `None` for one that is negative, which never ends.
pub fn timeout_of(timeout: c_int) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

/// Sleeps until the descriptor is readable, or for this time at most. Whatever ends the sleep, the caller looks again.
pub fn sleep(descriptor: BorrowedFd<'_>, left: Option<Duration>) {
    let limit = left.and_then(|left| Timespec::try_from(left).ok());
    let _ = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], limit.as_ref());
}

/// Carries out a command of fi_control(3) for an object that is waited for.
///
/// # Safety
/// The argument must be as the manual of the command prescribes.
pub unsafe fn control_wait(shared: &Shared, command: c_int, arg: Opaque) -> Result<c_int, Errno> {
    if command != abi::GETWAIT {
        return Err(Errno(abi::ENOSYS));
    }
    let mut state = shared.lock();
    let descriptor = state.engine.links.descriptor().map_err(|_| Errno(abi::EMFILE))?;
    // SAFETY: as the caller has promised.
    unsafe { arg.cast::<c_int>().write(descriptor.as_raw_fd()) };
    Ok(0)
}
