//! Detects the end of another process.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A handle of a process. It does not refer to the process identifier, which the system may reuse.
#[derive(Debug)]
pub struct Life(OwnedFd);

impl Life {
    /// Opens a handle of the process that has identifier `pid` now.
    pub fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Reports whether the process has ended. A zombie counts as ended.
    pub fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(n) if n > 0)
    }
}

/// The descriptor is readable once the process has ended.
impl AsFd for Life {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let life = Life::of(child.id()).unwrap();
        assert!(!life.has_ended());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(life.has_ended());
    }

    #[test]
    fn there_is_no_process_0_and_none_beyond_the_largest_number() {
        assert!(Life::of(0).is_err());
        assert!(Life::of(u32::MAX).is_err());
    }
}
