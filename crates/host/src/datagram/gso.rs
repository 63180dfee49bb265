//! Batches of equal-length datagrams, passed to and from the system in one call by UDP segmentation offload
//! (`UDP_SEGMENT`, Linux 4.18, and `UDP_GRO`, Linux 5.0). The network still carries single datagrams. On
//! loopback, or with an adapter that segments in hardware, no processor spends time on splitting them.

use netdyno_protocol::frame::datagram::LONGEST;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Buffer size in bytes that holds any received batch.
pub const ROOM: usize = 1 << 16;
/// Maximum datagrams in a batch. The kernel treats a batch as one IP datagram until it is segmented.
const LONGEST_TRAIN: usize = (u16::MAX as usize - 64) / LONGEST;

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

/// A batch of full-length datagrams to one peer. The last datagram may be shorter.
#[derive(Debug)]
pub struct GsoBatch {
    to: SocketAddr,
    bytes: Vec<u8>,
    /// The system, or the adapter on some route, does not support GSO.
    is_refused: bool,
}

impl Default for GsoBatch {
    fn default() -> Self {
        let nobody = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Self { to: nobody, bytes: Vec::new(), is_refused: false }
    }
}

impl GsoBatch {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Reports whether the batch is empty, or can take the datagram as its next.
    pub fn takes(&self, to: SocketAddr, datagram: &[u8]) -> bool {
        let is_next = self.to == to
            && self.bytes.len().is_multiple_of(LONGEST)
            && self.bytes.len() < LONGEST_TRAIN * LONGEST
            && datagram.len() <= LONGEST;
        self.is_empty() || is_next
    }

    pub fn push(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.to = to;
        self.bytes.extend_from_slice(datagram);
    }

    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(LONGEST)
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Sends the whole batch in one call. Returns `false` if the caller must send the datagrams one by one.
    pub fn send(&mut self, socket: &UdpSocket, is_connected: bool) -> bool {
        if self.is_refused || self.bytes.len() <= LONGEST {
            return false;
        }
        let to = (!is_connected).then(|| SockaddrStorage::from(self.to));
        let slice = [IoSlice::new(&self.bytes)];
        let segments = [ControlMessage::UdpGsoSegments(&(LONGEST as u16))];
        match sendmsg(socket.as_raw_fd(), &slice, &segments, MsgFlags::empty(), to.as_ref()) {
            Ok(_) => true,
            // An error of an earlier datagram, or a full send buffer.
            Err(Errno::ECONNREFUSED | Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => false,
            // The adapter has no checksum offload, the route has a smaller MTU, or the kernel is too old.
            Err(_) => {
                self.is_refused = true;
                false
            }
        }
    }
}

#[cfg(test)]
impl GsoBatch {
    pub fn refused() -> Self {
        Self { is_refused: true, ..Self::default() }
    }

    pub fn is_refused(&self) -> bool {
        self.is_refused
    }
}

/// Space for the control message that reports the segment size of a batch.
#[derive(Debug)]
pub struct Gathering(Vec<u8>);

/// Enables GRO on the socket. Returns `None` if the system refuses.
pub fn gather(socket: &UdpSocket) -> Option<Gathering> {
    setsockopt(socket, sockopt::UdpGroSegment, &true).ok()?;
    Some(Gathering(nix::cmsg_space!(i32)))
}

/// Receives a datagram or a batch. The sender is `only_peer` if the system reports no address.
pub fn receive(
    socket: &UdpSocket,
    room: &mut [u8],
    Gathering(control): &mut Gathering,
    only_peer: Option<SocketAddr>,
) -> io::Result<Datagrams> {
    let mut slice = [IoSliceMut::new(room)];
    let message =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slice, Some(control), MsgFlags::empty())?;
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

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into())))
}
