//! The longest packet on the way to a peer, as the kernel knows it: by its table of routes, and from routers that refused
//! longer ones.

use rustix::io::Errno;
use rustix::net::sockopt::ip_mtu;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

/// A socket that sends nothing. The kernel tells it of ways from one address over one interface.
#[derive(Debug)]
pub struct PathProbe(OwnedFd);

impl PathProbe {
    /// Opens the socket.
    ///
    /// # Errors
    /// Returns an error if the system opens no socket there.
    pub fn open(here: Ipv4Addr, interface: &str) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::BindToDevice, &interface.into())
            .map_err(|error| Errno::from_raw_os_error(error as i32))?;
        bind(&socket, &SocketAddrV4::new(here, 0))?;
        Ok(Self(socket))
    }

    /// Returns the length of the longest packet to a peer; `None` if no way leads there.
    pub fn longest_packet(&self, to: SocketAddrV4) -> Option<usize> {
        // A datagram socket that connects sends nothing, and looks for the way again.
        connect(&self.0, &to).ok()?;
        ip_mtu(&self.0).ok().map(|bytes| bytes as usize)
    }
}
