//! An Ethernet interface, as the kernel describes it to a socket. Files in /sys may be of another network namespace.

use crate::interface;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

/// The longest packet that Ethernet usually carries, in bytes.
const USUAL_MTU: usize = 1500;
/// The command that asks a driver for its channels. A channel is a queue with its interrupt.
const GET_CHANNELS: u32 = 0x3c;

/// An Ethernet interface.
#[derive(Clone, Debug)]
pub struct Ethernet {
    /// The name.
    pub name: String,
    /// The number by which the kernel knows it.
    pub index: u32,
    /// The hardware address.
    pub hardware: [u8; 6],
    /// The longest packet, without the Ethernet header, in bytes.
    pub mtu: usize,
    /// The queues for received frames, at least 1.
    pub queues: u32,
}

impl Ethernet {
    /// Returns the interface with this address.
    pub fn at(address: Ipv4Addr) -> Option<Self> {
        let name = interface::name_of(address.into())?;
        let is_it = |interface: &InterfaceAddress| {
            interface.interface_name == name && !interface.flags.contains(InterfaceFlags::IFF_LOOPBACK)
        };
        let mut addresses = getifaddrs().ok()?.filter(is_it).filter_map(|interface| interface.address);
        // Other kinds of interface have addresses of other lengths.
        let hardware = addresses.find_map(|address| {
            let link = address.as_link_addr()?;
            link.addr().filter(|_| link.hatype() == libc::ARPHRD_ETHER && link.halen() == 6)
        })?;
        let index = if_nametoindex(&*name).ok()?;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
        let mtu = mtu(socket.as_fd(), &name).unwrap_or(USUAL_MTU);
        let queues = receive_queues(socket.as_fd(), &name).unwrap_or(0).max(1);
        Some(Self { name, index, hardware, mtu, queues })
    }
}

/// A question about an interface (`struct ifreq`).
#[repr(C)]
struct Question<T> {
    name: [u8; libc::IFNAMSIZ],
    /// The answer, or where it is to be written.
    answer: T,
    padding: [u64; 2],
}

impl<T> Question<T> {
    /// Returns `None` if no interface has a name of that length.
    fn about(interface: &str, answer: T) -> Option<Self> {
        let mut name = [0; libc::IFNAMSIZ];
        name.get_mut(..interface.len())
            .filter(|room| room.len() < libc::IFNAMSIZ)?
            .copy_from_slice(interface.as_bytes());
        Some(Self { name, answer, padding: [0; 2] })
    }

    /// Asks the kernel. Returns `None` if it does not answer.
    ///
    /// # Safety
    /// The kernel writes the answer of this request as a `T`, or to where it points.
    unsafe fn ask(mut self, socket: BorrowedFd<'_>, request: libc::c_ulong) -> Option<T> {
        // SAFETY: the question is as long as the kernel's structure, and the caller's promise.
        let status = unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw mut self) };
        (status == 0).then_some(self.answer)
    }
}

/// Returns the longest packet of an interface, in bytes.
fn mtu(socket: BorrowedFd<'_>, interface: &str) -> Option<usize> {
    let question = Question::about(interface, [0_i32; 2])?;
    // SAFETY: the kernel writes one `int`.
    let [mtu, _] = unsafe { question.ask(socket, libc::SIOCGIFMTU as libc::c_ulong) }?;
    usize::try_from(mtu).ok()
}

/// The channels of an interface (`struct ethtool_channels`).
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
}

/// Returns the number of queues for received frames, if the driver says so.
fn receive_queues(socket: BorrowedFd<'_>, interface: &str) -> Option<u32> {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    let question = Question::about(interface, ptr::from_mut(&mut channels))?;
    // SAFETY: the kernel writes to the channels, which outlive the call.
    unsafe { question.ask(socket, libc::SIOCETHTOOL as libc::c_ulong) }?;
    Some(channels.receive + channels.combined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_none() {
        assert!(Ethernet::at(Ipv4Addr::LOCALHOST).is_none());
        assert!(Ethernet::at([192, 0, 2, 1].into()).is_none());
    }

    #[test]
    fn an_interface_tells_what_it_carries() {
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).unwrap();
        assert!(mtu(socket.as_fd(), "lo").is_some_and(|mtu| mtu >= USUAL_MTU));
        for name in ["nosuch", "a-name-that-is-far-too-long", ""] {
            assert_eq!(
                (mtu(socket.as_fd(), name), receive_queues(socket.as_fd(), name)),
                (None, None),
                "{name}"
            );
        }
        assert_eq!(size_of::<Question<[i32; 2]>>(), size_of::<libc::ifreq>());
    }
}
