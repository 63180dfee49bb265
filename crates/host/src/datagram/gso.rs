//! Batches of equally long datagrams, passed to the system in one call by UDP segmentation offload (`UDP_SEGMENT`,
//! Linux 4.18). The network still carries single datagrams. On loopback, or with an adapter that segments in hardware,
//! no processor spends time on splitting them.

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Maximum datagrams in a batch (`UDP_MAX_SEGMENTS` of the kernel).
const DATAGRAMS: usize = 64;
/// Maximum bytes in a batch. The kernel treats a batch as one IP datagram until it is segmented.
const BYTES: usize = u16::MAX as usize - 64;

/// A batch of equally long datagrams to one peer. The last datagram may be shorter.
#[derive(Debug)]
pub struct GsoBatch {
    to: SocketAddr,
    /// Length in bytes of each datagram but the last.
    each: usize,
    bytes: Vec<u8>,
    /// The system, or the adapter on some route, does not support GSO.
    is_refused: bool,
}

impl Default for GsoBatch {
    fn default() -> Self {
        let nobody = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Self { to: nobody, each: 1, bytes: Vec::new(), is_refused: false }
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
        let len = self.bytes.len();
        let is_next = self.to == to
            && datagram.len() <= self.each
            && len.is_multiple_of(self.each)
            && len < DATAGRAMS * self.each
            && len + datagram.len() <= BYTES;
        self.is_empty() || is_next
    }

    #[inline]
    pub fn push(&mut self, to: SocketAddr, datagram: &[u8]) {
        if self.is_empty() {
            // At least 1, because the batch is split into chunks of this length.
            (self.to, self.each) = (to, datagram.len().max(1));
        }
        self.bytes.extend_from_slice(datagram);
    }

    /// Returns the only datagram of the batch, if it has one alone.
    #[inline]
    pub fn alone(&self) -> Option<&[u8]> {
        (self.bytes.len() <= self.each).then_some(&self.bytes)
    }

    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(self.each)
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Sends the whole batch in one call. Returns `false` if the caller must send the datagrams one by one.
    pub fn send(&mut self, socket: &UdpSocket, is_connected: bool) -> bool {
        if self.is_refused {
            return false;
        }
        let to = (!is_connected).then(|| SockaddrStorage::from(self.to));
        let slice = [IoSlice::new(&self.bytes)];
        let segments = [ControlMessage::UdpGsoSegments(&(self.each as u16))];
        match sendmsg(socket.as_raw_fd(), &slice, &segments, MsgFlags::empty(), to.as_ref()) {
            Ok(_) => true,
            // The adapter has no checksum offload, the route has a smaller MTU, or the kernel is too old.
            Err(Errno::EINVAL | Errno::EIO | Errno::EMSGSIZE | Errno::EOPNOTSUPP | Errno::ENOPROTOOPT) => {
                self.is_refused = true;
                false
            }
            // An error of an earlier datagram, a full send buffer, or a link that is down for now.
            Err(_) => false,
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
