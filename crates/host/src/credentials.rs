//! Who is at the other end of a Unix socket, as the kernel says.

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use std::io;
use std::os::fd::AsFd;

/// A process as it was when it connected, or began to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Its number here: 0 where it has none, in another namespace of processes.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
}

/// Who is at the other end.
///
/// # Errors
/// The system does not say.
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
