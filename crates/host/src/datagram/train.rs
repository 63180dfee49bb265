//! Datagrams of one length that go to the system, and come from it, in one call: segmentation
//! offload (`UDP_SEGMENT`, `UDP_GRO`; Linux 4.18 and 5.0). The network sees them one by one; on
//! loopback, or with an adapter that can do it, no processor does.

use netdyno_protocol::frame::datagram::LONGEST;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// What a train may take at the receiver.
pub const ROOM: usize = 1 << 16;
/// Datagrams in a train at most: together they are one of IP until they are taken apart.
const LONGEST_TRAIN: usize = (u16::MAX as usize - 64) / LONGEST;

/// Datagrams that have come, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// Length of all of them.
    pub len: usize,
    /// Length of each but the last, which may be shorter.
    pub each: usize,
    /// Who sent them.
    pub from: SocketAddr,
}

impl From<(usize, SocketAddr)> for Datagrams {
    fn from((len, from): (usize, SocketAddr)) -> Self {
        // Not 0: rooms are cut into pieces of that length.
        Self { len, each: len.max(1), from }
    }
}

/// Datagrams of full length, the last of them perhaps shorter, that are to be sent to one peer.
#[derive(Debug)]
pub struct Train {
    to: SocketAddr,
    bytes: Vec<u8>,
    /// The system, or the adapter on some way, cannot do it.
    is_refused: bool,
}

impl Default for Train {
    fn default() -> Self {
        let nobody = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Self { to: nobody, bytes: Vec::new(), is_refused: false }
    }
}

impl Train {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Whether it is empty, or the datagram may be its next.
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

    /// Hands all of it to the system. False where they are to be sent one by one.
    pub fn send(&mut self, socket: &UdpSocket, is_connected: bool) -> bool {
        if self.is_refused || self.bytes.len() <= LONGEST {
            return false;
        }
        let to = (!is_connected).then(|| SockaddrStorage::from(self.to));
        let slice = [IoSlice::new(&self.bytes)];
        let segments = [ControlMessage::UdpGsoSegments(&(LONGEST as u16))];
        match sendmsg(socket.as_raw_fd(), &slice, &segments, MsgFlags::empty(), to.as_ref()) {
            Ok(_) => true,
            // Tells of an earlier datagram, or that there is no room now.
            Err(Errno::ECONNREFUSED | Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => false,
            // An adapter without checksums of its own, a way with a smaller unit, an old kernel.
            Err(_) => {
                self.is_refused = true;
                false
            }
        }
    }
}

#[cfg(test)]
impl Train {
    pub fn refused() -> Self {
        Self { is_refused: true, ..Self::default() }
    }

    pub fn is_refused(&self) -> bool {
        self.is_refused
    }
}

/// Room for what the system says of a train.
#[derive(Debug)]
pub struct Gathering(Vec<u8>);

/// Lets the system hand over trains, if it will.
pub fn gather(socket: &UdpSocket) -> Option<Gathering> {
    setsockopt(socket, sockopt::UdpGroSegment, &true).ok()?;
    Some(Gathering(nix::cmsg_space!(i32)))
}

/// Takes a datagram or a train of them, from `only_peer` where nobody else is heard.
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
