//! The network interfaces of this host: the addresses at which other hosts may reach it, and their speed.

use nix::ifaddrs::InterfaceAddress;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

/// Returns the addresses of all interfaces that are up, IPv4 first. Loopback interfaces and link-local IPv6
/// addresses are left out.
///
/// # Errors
/// Returns an I/O error if the system does not list its interfaces.
pub fn addresses() -> io::Result<Vec<IpAddr>> {
    let leads_out = |flags: InterfaceFlags| {
        flags.contains(InterfaceFlags::IFF_UP) && !flags.contains(InterfaceFlags::IFF_LOOPBACK)
    };
    let mut addresses: Vec<IpAddr> = getifaddrs()?
        .filter(|interface| leads_out(interface.flags))
        .filter_map(|interface| ip_of(&interface))
        .filter(|address| !matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local()))
        .collect();
    // One interface may be listed several times.
    addresses.sort_by_key(|address| (address.is_ipv6(), *address));
    addresses.dedup();
    Ok(addresses)
}

/// Returns the IPv4 address from which this host sends to hosts outside of its networks; `None` without such a route.
pub fn of_default_route() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // This sends nothing: it chooses the route. The address is one of those for documentation (RFC 5737).
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(at) if !at.ip().is_unspecified() && !at.ip().is_loopback() => Some(*at.ip()),
        _ => None,
    }
}

fn ip_of(interface: &InterfaceAddress) -> Option<IpAddr> {
    let address = interface.address?;
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// Returns the name of the interface with this address.
pub fn name_of(address: IpAddr) -> Option<String> {
    let mut interfaces = getifaddrs().ok()?;
    interfaces.find(|interface| ip_of(interface) == Some(address)).map(|interface| interface.interface_name)
}

/// Returns the speed of an interface in bits per second, as its driver reports it.
pub fn speed(name: &str) -> Option<f64> {
    let text = fs::read_to_string(folder(name)?.join("speed")).ok()?;
    // Drivers report -1, or no number, if they do not know the speed.
    let megabits: f64 = text.trim().parse().ok()?;
    (megabits > 0.0).then_some(megabits * 1e6)
}

/// Returns whether no device is behind the interface, so that its speed says nothing about its traffic.
pub fn is_virtual(name: &str) -> bool {
    let device = folder(name).and_then(|folder| fs::canonicalize(folder).ok());
    device.is_some_and(|device| device.starts_with("/sys/devices/virtual"))
}

/// Returns the folder of an interface in sysfs. It may be mounted for another network namespace, in which an
/// interface of that name has another index.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new("/sys/class/net").join(name);
    let index: u32 = fs::read_to_string(folder.join("ifindex")).ok()?.trim().parse().ok()?;
    (if_nametoindex(name) == Ok(index)).then_some(folder)
}

/// Returns whether an address is one of this host's, by which it reaches itself.
pub fn is_own(address: IpAddr) -> bool {
    address.is_loopback() || addresses().is_ok_and(|own| own.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_this_hosts_own_affair() {
        let addresses = addresses().unwrap();
        for address in &addresses {
            assert!(!address.is_loopback() && !address.is_unspecified(), "{address}");
        }
        assert!(addresses.is_sorted_by_key(IpAddr::is_ipv6));
    }

    #[test]
    fn the_loopback_interface_has_a_name_and_no_speed() {
        let name = name_of(IpAddr::from([127, 0, 0, 1])).unwrap();
        assert_eq!((&*name, speed(&name)), ("lo", None));
        assert_eq!((name_of(IpAddr::from([192, 0, 2, 1])), speed("nosuch")), (None, None));
        assert!(!is_virtual("nosuch"));
    }
}
