//! The clocks of this process, of its threads, and of the machine.

use netdyno_measure::layer::LayerError;
use nix::time::{ClockId, clock_gettime};
use rustix::process::Pid;

/// The flags of the clock of a thread, in the form that clock_getcpuclockid(3) makes of a process: the clock of
/// one thread, as the scheduler accounts for it.
const CLOCK_OF_THREAD: i32 = 6;

/// Returns the processor time of a thread of this process so far.
pub(super) fn thread_ns(thread: Pid) -> Result<f64, LayerError> {
    read_ns(ClockId::from_raw((!thread.as_raw_nonzero().get() << 3) | CLOCK_OF_THREAD))
}

/// Returns the processor time of this process so far.
pub(super) fn process_ns() -> Result<f64, LayerError> {
    read_ns(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the time since the machine was started.
pub(super) fn now_ns() -> f64 {
    read_ns(ClockId::CLOCK_MONOTONIC).unwrap_or(f64::NAN)
}

fn read_ns(clock: ClockId) -> Result<f64, LayerError> {
    let time = clock_gettime(clock)
        .map_err(|error| LayerError(format!("cannot read a clock of processor time: {error}")))?;
    Ok(time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64)
}
