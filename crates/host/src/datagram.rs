//! The wires that carry the datagrams of an endpoint. A wire may lose, duplicate, reorder or damage datagrams.
//!
//! [`DatagramSocket`] is a UDP socket, and [`XdpWire`] has the AF_XDP sockets of an interface. [`Carrier`] is either of
//! them. [`FaultyWire`] injects faults into the datagrams of another wire.

mod carrier;
mod faulty;
mod gro;
mod gso;
mod socket;
mod xdp;

pub use carrier::Carrier;
pub use faulty::FaultyWire;
pub use gro::{Datagrams, ROOM};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
pub use socket::{DatagramSocket, SocketError};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;
pub use xdp::{XdpError, XdpWire, try_permission};

/// A nonblocking wire for datagrams up to [`LONGEST`](netdyno_protocol::frame::datagram::LONGEST). Its descriptor
/// becomes readable when a datagram arrives. Times are those of the caller's clock, in nanoseconds.
pub trait DatagramWire: AsFd {
    /// Returns the local address.
    fn local(&self) -> SocketAddr;

    /// Returns the number of datagrams that the system refused to send.
    fn refused(&self) -> u64;

    /// Returns the number of datagrams that were sent by the kernel's protocols, on a wire that passes them by.
    fn by_kernel(&self) -> u64 {
        0
    }

    /// Describes a wire that depends on the interface and its driver.
    fn description(&self) -> Option<String> {
        None
    }

    /// Announces that all datagrams go to one peer and that only its datagrams are expected; `None` ends that.
    /// The wire may deliver datagrams of other senders all the same.
    fn set_only_peer(&mut self, peer: Option<SocketAddr>);

    /// Sends a datagram at once, behind those that wait in the batch.
    fn send(&mut self, to: SocketAddr, datagram: &[u8], now_ns: u64) {
        self.join(to, datagram, now_ns);
        self.flush();
    }

    /// Appends a datagram to the batch. It may wait there until [`DatagramWire::flush`].
    fn join(&mut self, to: SocketAddr, datagram: &[u8], now_ns: u64);

    /// Sends the datagrams that wait in the batch.
    fn flush(&mut self);

    /// Receives a datagram or a batch into `room`, if one has arrived. A datagram longer than `room` is truncated.
    /// Batches are received only if `room` has at least [`ROOM`] bytes.
    fn receive(&mut self, room: &mut [u8]) -> Option<Datagrams>;

    /// Returns the time at which [`DatagramWire::on_time`] is due, if it is.
    #[inline]
    fn deadline(&self) -> Option<u64> {
        None
    }

    /// Does the work that is due at `now_ns`.
    fn on_time(&mut self, _now_ns: u64) {}

    /// Blocks until a datagram may have arrived, at most for `timeout`.
    fn block(&self, timeout: Duration) {
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)], timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // Returning early costs time and is still correct.
            Err(_) => rustix::thread::sched_yield(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    pub const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    pub fn wait_for(wire: &mut impl DatagramWire) -> Option<Vec<u8>> {
        let mut room = [0; 100];
        wire.block(Duration::from_secs(10));
        wire.receive(&mut room).map(|Datagrams { len, .. }| room[..len].to_vec())
    }

    /// Returns all datagrams that arrive, one by one, until the wire is empty.
    pub fn all_that_comes(wire: &mut impl DatagramWire) -> Vec<Vec<u8>> {
        let mut room = vec![0; ROOM];
        let mut all = Vec::new();
        wire.block(Duration::from_secs(10));
        while let Some(Datagrams { len, each, .. }) = wire.receive(&mut room) {
            all.extend(room[..len].chunks(each.max(1)).map(<[u8]>::to_vec));
        }
        all
    }
}
