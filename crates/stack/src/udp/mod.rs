//! The driver of connections over UDP, for Active Messages and for Virtual Interfaces.
//!
//! ```text
//!   am::udp: peers   vi::udp: links     Connections: decide about each datagram
//!          └──────┬──────┘
//!              Driver                  empties the socket, runs the timers, lingers
//!              Socket                  may inject faults
//! ```

mod clock;
mod connections;
mod driver;
mod lookup;

pub(crate) use connections::{Connections, Taken};
pub(crate) use driver::Driver;
pub(crate) use lookup::Lookup;

use netdyno_host::datagram::{Carrier, DatagramWire, FaultyWire};
use netdyno_protocol::reliability::Connection;
use std::net::SocketAddr;
use std::time::Duration;

/// The socket of a driver.
pub(crate) type Socket = FaultyWire<Carrier>;

/// How long a closed endpoint or provider continues to send what is not acknowledged yet.
pub const LINGER: Duration = Duration::from_secs(1);
/// [`LINGER`] in nanoseconds.
pub(crate) const LINGER_NS: u64 = LINGER.as_nanos() as u64;
/// Number of goodbyes that are sent, because no goodbye is acknowledged. A peer that hears none of them waits for its
/// timeout. Of three, all are lost once in 8000 times where one in twenty is lost, and of five once in three million.
const GOODBYES: usize = 5;

/// Appends all datagrams that a connection has ready to the batch of the socket. The caller flushes the socket.
#[inline]
pub(crate) fn transmit(socket: &mut Socket, to: SocketAddr, connection: &mut Connection, now_ns: u64) {
    // The only message leaves at once, without the copy into a batch.
    if connection.has_one_message()
        && let Some(datagram) = connection.transmit(now_ns)
    {
        return socket.send(to, datagram, now_ns);
    }
    while let Some(datagram) = connection.transmit(now_ns) {
        socket.join(to, datagram, now_ns);
    }
}

/// Sends a goodbye, several times.
pub(crate) fn send_goodbyes(socket: &mut Socket, to: SocketAddr, goodbye: &[u8], now_ns: u64) {
    (0..GOODBYES).for_each(|_| socket.send(to, goodbye, now_ns));
}

/// Returns a peer timeout in nanoseconds.
pub(crate) fn timeout_ns(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX / 2)
}
