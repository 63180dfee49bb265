//! The interface between a driver and its user.

use super::Socket;
use std::net::SocketAddr;

/// The connections that a driver serves.
pub(crate) trait Connections {
    /// The loss of a peer, which ends a poll early.
    type Lost;

    /// Takes a datagram.
    fn on_datagram(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        socket: &mut Socket,
        now_ns: u64,
    ) -> Result<Taken, Self::Lost>;

    /// Sends what a connection has ready. Returns the time of its next timer.
    fn pump(&mut self, index: usize, socket: &mut Socket, now_ns: u64) -> u64;

    /// Runs the timers of all connections that are due. Returns the time of the next one.
    fn on_time(&mut self, socket: &mut Socket, now_ns: u64) -> Result<u64, Self::Lost>;

    /// Returns whether a peer must still receive something.
    fn is_owed(&self) -> bool;

    /// Sends signals after a poll of a closed endpoint.
    fn send_signals(&mut self, _socket: &mut Socket, _now_ns: u64) {}
}

/// What became of a datagram.
pub(crate) enum Taken {
    /// It belongs to no connection.
    Foreign,
    /// Its format, checksum or content is wrong.
    Malformed,
    /// It was handled, and no connection has to answer it.
    Signal,
    /// The connection at this index took it, and handled this number of messages.
    By(usize, usize),
}
