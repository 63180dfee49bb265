//! Waiting for sockets, their addresses, and their errors.

use netdyno_measure::layer::LayerError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

/// Returns why there are no sockets on the loopback interface here, if there are none.
pub(crate) fn is_missing() -> Option<String> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    socket.err().map(|error| format!("no socket on the loopback interface: {error}"))
}

/// Sleeps until `fd` can be read, at most for `timeout`.
pub(crate) fn block_on(fd: impl AsFd, timeout: Duration) -> Result<(), LayerError> {
    block_on_events(fd, PollFlags::IN, timeout)
}

/// Sleeps until `fd` can be read or written, at most for `timeout`.
pub(crate) fn block_on_either(fd: impl AsFd, timeout: Duration) -> Result<(), LayerError> {
    block_on_events(fd, PollFlags::IN | PollFlags::OUT, timeout)
}

/// Sleeps until `fd` has one of `events`, at most for `timeout`.
pub(crate) fn block_on_events(fd: impl AsFd, events: PollFlags, timeout: Duration) -> Result<(), LayerError> {
    wait_for(&mut [PollFd::new(&fd, events)], timeout)
}

/// Sleeps until any of `fds` can be read, at most for `timeout`.
pub(crate) fn block_on_any(fds: &[impl AsFd], timeout: Duration) -> Result<(), LayerError> {
    let mut fds: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    wait_for(&mut fds, timeout)
}

/// Sleeps until any of `fds` has one of its events, at most for `timeout`.
pub(crate) fn wait_for(fds: &mut [PollFd<'_>], timeout: Duration) -> Result<(), LayerError> {
    let timeout = Timespec::try_from(timeout).map_err(LayerError::new)?;
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(LayerError::new(error)),
    }
}

/// Returns the bytes in which a process hands out the address of its socket.
pub(crate) fn write_address(address: SocketAddr) -> Vec<u8> {
    address.to_string().into_bytes()
}

/// Stands behind the address of a server that netdyno has not started.
const OF_OTHERS: &str = " of others";

/// Returns the bytes of the address of a server that netdyno has not started.
pub(crate) fn write_server_of_others(address: SocketAddr) -> Vec<u8> {
    format!("{address}{OF_OTHERS}").into_bytes()
}

/// Reports whether the address is that of a server that netdyno has not started.
pub(crate) fn is_of_others(bytes: &[u8]) -> bool {
    bytes.ends_with(OF_OTHERS.as_bytes())
}

/// Returns the address in `bytes`, as [`write_address`] or [`write_server_of_others`] wrote it.
pub(crate) fn parse_address(bytes: &[u8]) -> Result<SocketAddr, LayerError> {
    let text = std::str::from_utf8(bytes).map_err(LayerError::new)?;
    let text = text.strip_suffix(OF_OTHERS).unwrap_or(text);
    text.parse().map_err(|_| LayerError(format!("'{text}' is not the address of a socket")))
}

/// Returns whether the call may be repeated later: it would have blocked, or was interrupted.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
