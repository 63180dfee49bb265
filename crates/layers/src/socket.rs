//! What the layers on sockets have in common.

use netdyno_measure::layer::LayerError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

/// Sleeps until `fd` can be read, at most for `timeout`.
pub(crate) fn block_on(fd: impl AsFd, timeout: Duration) -> Result<(), LayerError> {
    block_on_events(fd, PollFlags::IN, timeout)
}

/// Sleeps until `fd` can be read or written, at most for `timeout`.
pub(crate) fn block_on_either(fd: impl AsFd, timeout: Duration) -> Result<(), LayerError> {
    block_on_events(fd, PollFlags::IN | PollFlags::OUT, timeout)
}

/// Sleeps until one of `events` has happened to `fd`, at most for `timeout`.
pub(crate) fn block_on_events(fd: impl AsFd, events: PollFlags, timeout: Duration) -> Result<(), LayerError> {
    wait_for(&mut [PollFd::new(&fd, events)], timeout)
}

/// Sleeps until any of `fds` can be read, at most for `timeout`.
pub(crate) fn block_on_any(fds: &[impl AsFd], timeout: Duration) -> Result<(), LayerError> {
    let mut fds: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    wait_for(&mut fds, timeout)
}

fn wait_for(fds: &mut [PollFd<'_>], timeout: Duration) -> Result<(), LayerError> {
    let timeout = Timespec::try_from(timeout).map_err(LayerError::new)?;
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(LayerError::new(error)),
    }
}

/// The address in `bytes`, as a half wrote it.
pub(crate) fn parse_address(bytes: &[u8]) -> Result<SocketAddr, LayerError> {
    let text = std::str::from_utf8(bytes).map_err(LayerError::new)?;
    text.parse().map_err(|_| LayerError(format!("'{text}' is not the address of a socket")))
}

/// Whether an error says no more than that it is not the time.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
