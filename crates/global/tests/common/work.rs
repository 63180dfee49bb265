//! The work of a process.

use std::fs;

/// The processor time of a rank that has joined its job for certain, in hundredths of a second. Joining takes a tenth
/// of it.
const WORK: u64 = 20;

/// Reports whether a process has worked for a while.
pub fn is_done(process: u32) -> bool {
    processor_time(process).is_some_and(|time| time >= WORK)
}

/// Returns the processor time of a process, in ticks of a hundredth of a second (proc(5), `stat`).
fn processor_time(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses, and may have spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(|time| time.parse::<u64>().ok());
    Some(times.next()?? + times.next()??)
}
