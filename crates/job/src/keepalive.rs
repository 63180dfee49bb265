//! How long a connection to another host outlives that host.

use rustix::net::sockopt;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// The times of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepAlive {
    /// Idle time before the first probe.
    pub after: Duration,
    /// Interval between probes.
    pub each: Duration,
    /// Time without an acknowledgement after which the connection is closed: of a probe, or of bytes that were sent.
    pub given_up_after: Duration,
}

impl KeepAlive {
    /// Lets the kernel send each message at once, and detect that the other host has disappeared.
    ///
    /// # Errors
    /// Returns an I/O error if the system refuses an option.
    pub fn set(self, connection: impl AsFd) -> io::Result<()> {
        sockopt::set_tcp_nodelay(&connection, true)?;
        sockopt::set_socket_keepalive(&connection, true)?;
        sockopt::set_tcp_keepidle(&connection, self.after)?;
        sockopt::set_tcp_keepintvl(&connection, self.each)?;
        sockopt::set_tcp_user_timeout(&connection, self.given_up_after.as_millis() as u32)?;
        Ok(())
    }
}
