//! Batches of datagrams of one sender, received from the system in one call by UDP receive offload (`UDP_GRO`, Linux
//! 5.0): a GSO batch of loopback or of a virtual cable as it was sent, or datagrams that the adapter's driver put
//! together.
//!
//! A call that can receive a batch takes longer than a plain `recv`. So a socket gathers only while batches come.

use netdyno_protocol::frame::datagram::LONGEST;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Buffer size in bytes that holds any received batch.
pub const ROOM: usize = 1 << 16;
/// Datagrams in a row, without finding the socket empty, from which on it gathers.
const BEGIN_AT: u32 = 8;
/// The same after many vain attempts.
const BEGIN_AT_MOST: u32 = 1 << 20;
/// Receives in a row without a batch after which the socket stops to gather: more than a batch has that arrived singly
/// before the socket gathered.
const END_AT: u32 = 64;

/// A received batch of datagrams, which lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// Total length in bytes.
    pub len: usize,
    /// Length in bytes of each datagram but the last, which may be shorter.
    pub each: usize,
    /// Address of the sender.
    pub from: SocketAddr,
}

impl From<(usize, SocketAddr)> for Datagrams {
    fn from((len, from): (usize, SocketAddr)) -> Self {
        // At least 1, because callers split buffers into chunks of this length.
        Self { len, each: len.max(1), from }
    }
}

/// Whether a socket gathers, and the counts that decide about it.
#[derive(Debug)]
pub struct Gathering {
    /// Space for the control message that reports the segment size of a batch. Present while a batch may arrive.
    control: Option<Vec<u8>>,
    /// Receives since the socket was last empty.
    in_a_row: u32,
    /// Receives in a row that brought no batch.
    without_batch: u32,
    /// Receives in a row from which on the socket gathers. It doubles with each vain attempt.
    begin_at: u32,
}

impl Default for Gathering {
    fn default() -> Self {
        Self { control: None, in_a_row: 0, without_batch: 0, begin_at: BEGIN_AT }
    }
}

impl Gathering {
    /// Reports whether a batch may arrive.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.control.is_some()
    }

    /// Receives a datagram or a batch. The sender is `only_peer` if the system reports no address.
    pub fn receive(
        &mut self,
        socket: &UdpSocket,
        room: &mut [u8],
        only_peer: Option<SocketAddr>,
    ) -> io::Result<Datagrams> {
        let mut slice = [IoSliceMut::new(room)];
        let control = self.control.as_deref_mut();
        let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slice, control, MsgFlags::empty())?;
        let each = message.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::UdpGroSegments(len) => usize::try_from(len).ok(),
            _ => None,
        });
        let from = match (message.address, only_peer) {
            (Some(address), _) => socket_address(&address),
            (None, peer) => peer,
        };
        let from = from.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Datagrams { len: message.bytes, each: each.unwrap_or(message.bytes).max(1), from })
    }

    /// Notes what was received into a buffer of `room` bytes. Begins to gather if more datagrams seem to wait.
    #[inline]
    pub fn note(&mut self, socket: &UdpSocket, datagrams: &Datagrams, room: usize) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        if datagrams.each < datagrams.len {
            (self.without_batch, self.begin_at) = (0, BEGIN_AT);
            return;
        }
        self.without_batch = self.without_batch.saturating_add(1);
        // A datagram of full length is probably part of a transfer.
        let seem_to_wait = datagrams.len == LONGEST || self.in_a_row >= self.begin_at;
        if seem_to_wait && !self.is_active() && room >= ROOM {
            self.begin(socket);
        }
    }

    /// Notes that the socket is empty. Stops to gather if no batches come.
    #[inline]
    pub fn note_empty(&mut self, socket: &UdpSocket) {
        self.in_a_row = 0;
        if self.is_active() && self.without_batch >= END_AT {
            self.end(socket);
        }
    }

    #[cold]
    fn begin(&mut self, socket: &UdpSocket) {
        if setsockopt(socket, sockopt::UdpGroSegment, &true).is_ok() {
            self.without_batch = 0;
            self.control = Some(nix::cmsg_space!(i32));
        } else {
            self.begin_at = BEGIN_AT_MOST;
        }
    }

    /// Stops to gather, if no batch has arrived since the socket was found empty: the system reports the segment size of a
    /// batch only while it gathers.
    #[cold]
    fn end(&mut self, socket: &UdpSocket) {
        if setsockopt(socket, sockopt::UdpGroSegment, &false).is_err() {
            return;
        }
        let is_empty = socket.peek(&mut []).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        if is_empty || setsockopt(socket, sockopt::UdpGroSegment, &true).is_err() {
            self.control = None;
            self.begin_at = (2 * self.begin_at).min(BEGIN_AT_MOST);
        }
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_came_after_the_socket_was_found_empty_keeps_its_segments() {
        let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        b.set_nonblocking(true).unwrap();
        setsockopt(&a, sockopt::UdpGsoSegment, &100).unwrap();
        let mut gathering = Gathering::default();
        gathering.begin(&b);
        gathering.without_batch = END_AT;
        a.send_to(&[7; 250], b.local_addr().unwrap()).unwrap();
        gathering.note_empty(&b);
        let batch = gathering.receive(&b, &mut vec![0; ROOM], None).unwrap();
        assert_eq!((batch.len, batch.each), (250, 100));
        gathering.note_empty(&b);
        assert!(!gathering.is_active());
        a.send_to(&[7; 250], b.local_addr().unwrap()).unwrap();
        assert_eq!(b.recv(&mut vec![0; ROOM]).unwrap(), 100);
    }
}
