//! The addresses at which other hosts may reach this host.

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::io;
use std::net::IpAddr;

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
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
        })
        .filter(|address| !matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local()))
        .collect();
    // One interface may be listed several times.
    addresses.sort_by_key(|address| (address.is_ipv6(), *address));
    addresses.dedup();
    Ok(addresses)
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
}
