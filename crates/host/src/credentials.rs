//! The process and user at the other end of a Unix socket, as reported by the kernel.

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use std::io;
use std::os::fd::AsFd;

/// The credentials of a process at the time when it connected or began to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Its process identifier in this PID namespace, or 0 if it has none there.
    pub pid: u32,
    /// Its user identifier.
    pub uid: u32,
}

/// Returns the credentials of the peer of a Unix socket.
///
/// # Errors
/// Returns an I/O error if the system does not report them.
pub fn of_peer(socket: impl AsFd) -> io::Result<Credentials> {
    let credentials = getsockopt(&socket, PeerCredentials)?;
    Ok(Credentials { pid: credentials.pid().unsigned_abs(), uid: credentials.uid() })
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn both_ends_of_a_pair_are_this_process() {
        let (one, other) = UnixStream::pair().unwrap();
        for socket in [one, other] {
            let uid = rustix::process::geteuid().as_raw();
            assert_eq!(of_peer(&socket).unwrap(), Credentials { pid: std::process::id(), uid });
        }
    }
}
