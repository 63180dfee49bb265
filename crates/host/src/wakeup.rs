//! A wake-up that one process owns and that other processes of the host ring. It is a pipe: the owner sleeps
//! on its reading end, and each ring writes one byte. A process that may open the owner's shared memory may
//! open the pipe as well, through `/proc/PID/fd/N`. An eventfd cannot be opened in this way.

use rustix::fs::{Mode, OFlags, fstatfs, open};
use rustix::io::{read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use thiserror::Error;

/// The type of the kernel's file system of pipes (`PIPEFS_MAGIC` of linux/magic.h).
const PIPEFS_MAGIC: u64 = 0x5049_5045;
/// Rings that one drain forgets at most. The peers ring at most once for each sleep, so there are few. More
/// rings only end the next sleep.
const DRAINED_AT_ONCE: usize = 256;

/// Reports why a wake-up could not be made or opened.
#[derive(Debug, Error)]
pub enum WakeupError {
    /// The system has no pipe left.
    #[error("the system refused to make a pipe: {0}")]
    System(#[source] io::Error),
    /// This process can open no pipe at that descriptor.
    #[error("process {pid} has no wake-up that this process may open: {error}")]
    NotThere {
        /// The process identifier.
        pid: u32,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The opened file is not a pipe. The value is the process identifier.
    #[error("the file that process {0} names as its wake-up is not a pipe")]
    Foreign(u32),
}

/// The wake-up of this process.
#[derive(Debug)]
pub struct Wakeup {
    reader: OwnedFd,
    /// Kept open, because a pipe without a writer is always readable.
    _writer: OwnedFd,
}

impl Wakeup {
    /// Makes a wake-up.
    ///
    /// # Errors
    /// Returns `WakeupError` if the system has no pipe left.
    pub fn new() -> Result<Self, WakeupError> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(|error| WakeupError::System(error.into()))?;
        Ok(Self { reader, _writer: writer })
    }

    /// Returns the descriptor number through which another process opens the wake-up.
    pub fn descriptor(&self) -> u32 {
        // Descriptors are not negative.
        self.reader.as_raw_fd().unsigned_abs()
    }

    /// Forgets the rings so far. Call it before the announcement of a sleep, never between the announcement
    /// and the sleep.
    pub fn drain(&self) {
        // An error means that there is nothing to read.
        let _ = read(&self.reader, &mut [0; DRAINED_AT_ONCE][..]);
    }
}

impl AsFd for Wakeup {
    /// Returns the descriptor that is readable after a ring.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// The wake-up of another process, or of another thread, as the side that rings it holds it.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// Opens the wake-up that process `pid` has at descriptor `fd`. It refuses every file but a pipe.
    ///
    /// # Errors
    /// Returns `WakeupError` if there is no such pipe, or if this process may not open it.
    pub fn open(pid: u32, fd: u32) -> Result<Self, WakeupError> {
        // Opened for reading as well, so that a ring after the owner's end raises no SIGPIPE. NONBLOCK keeps
        // a ring from waiting in a full pipe. NOCTTY is for the case that the file is a terminal.
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = open(format!("/proc/{pid}/fd/{fd}"), flags, Mode::empty())
            .map_err(|error| WakeupError::NotThere { pid, error: error.into() })?;
        let is_pipe = fstatfs(&fd).is_ok_and(|stat| stat.f_type as u64 == PIPEFS_MAGIC);
        if is_pipe { Ok(Self(fd)) } else { Err(WakeupError::Foreign(pid)) }
    }

    /// Ends the sleep of the owner, or its next sleep.
    pub fn ring(&self) {
        // An error means that the pipe is full. The owner is then woken anyway.
        let _ = write(&self.0, &[1]);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn is_rung(wakeup: &Wakeup) -> bool {
        let mut fds = [PollFd::new(wakeup, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    #[test]
    fn rings_last_until_they_are_drained() {
        let wakeup = Wakeup::new().unwrap();
        let waker = Waker::open(std::process::id(), wakeup.descriptor()).unwrap();
        assert!(!is_rung(&wakeup));
        (0..DRAINED_AT_ONCE).for_each(|_| waker.ring());
        assert!(is_rung(&wakeup));
        wakeup.drain();
        assert!(!is_rung(&wakeup));
        wakeup.drain();
        // More rings than a pipe has room for: none waits.
        (0..100_000).for_each(|_| waker.ring());
        drop(wakeup);
        waker.ring();
    }

    #[test]
    fn a_file_that_is_no_pipe_is_refused() {
        let pid = std::process::id();
        let file = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        let fd = file.as_raw_fd().unsigned_abs();
        assert!(matches!(Waker::open(pid, fd), Err(WakeupError::Foreign(named)) if named == pid));
        assert!(matches!(Waker::open(pid, u32::MAX), Err(WakeupError::NotThere { .. })));
    }
}
