//! Hosts as programs name them: an IPv4 address (4 bytes) or an IPv6 address (16 bytes), then a port (2
//! bytes), in network byte order.

use netdyno_host::interface;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Encodes an address. An IPv4-mapped IPv6 address is encoded as IPv4.
pub fn encode(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => [&ip.octets()[..], &port].concat(),
        IpAddr::V6(ip) => [&ip.octets()[..], &port].concat(),
    }
}

/// Parses an address; returns `None` if the length is wrong.
pub fn parse(bytes: &[u8]) -> Option<SocketAddr> {
    let (ip, port) = bytes.split_last_chunk()?;
    let ip = match ip.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(ip).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(ip).ok()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

/// Converts an address to the form that a socket bound to `local` needs. Returns `None` for an IPv6
/// address and an IPv4 socket, which cannot reach it.
pub fn reached_from(local: SocketAddr, address: SocketAddr) -> Option<SocketAddr> {
    match (local, address.ip()) {
        (SocketAddr::V6(_), IpAddr::V4(ip)) => {
            Some(SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()))
        }
        (SocketAddr::V4(_), IpAddr::V6(_)) => None,
        _ => Some(address),
    }
}

/// Returns the address at which others reach a socket bound to `local`. If `local` means all addresses
/// of this host, that is the first one that other hosts reach, or else the loopback address.
pub fn reachable(local: SocketAddr) -> SocketAddr {
    if !local.ip().is_unspecified() {
        return local;
    }
    let (is_ipv6, loopback) = match local {
        SocketAddr::V4(_) => (false, IpAddr::from(Ipv4Addr::LOCALHOST)),
        SocketAddr::V6(_) => (true, IpAddr::from(Ipv6Addr::LOCALHOST)),
    };
    // If the system does not list the addresses, processes of this host can still connect.
    let addresses = interface::addresses().unwrap_or_default();
    let leading_out = addresses.into_iter().find(|ip| ip.is_ipv6() == is_ipv6);
    SocketAddr::new(leading_out.unwrap_or(loopback), local.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn what_goes_in_comes_out() {
        for (text, len) in [("10.1.2.3:4567", 6), ("[2001:db8::1]:65535", 18), ("127.0.0.1:0", 6)] {
            let bytes = encode(address(text));
            assert_eq!((bytes.len(), parse(&bytes)), (len, Some(address(text))));
        }
        assert_eq!(encode(address("10.1.2.3:4567")), [10, 1, 2, 3, 0x11, 0xd7]);
    }

    #[test]
    fn other_lengths_are_no_hosts() {
        for len in (0..30).filter(|len| ![6, 18].contains(len)) {
            assert_eq!(parse(&vec![1; len]), None);
        }
    }

    #[test]
    fn a_host_of_ipv4_is_the_same_over_a_socket_of_ipv6() {
        let (v4, v6) = (address("10.1.2.3:4567"), address("[::1]:1"));
        let mapped = reached_from(v6, v4).unwrap();
        assert!(mapped.is_ipv6());
        assert_eq!(parse(&encode(mapped)), Some(v4));
        assert_eq!(reached_from(v4, v6), None);
        assert_eq!((reached_from(v4, v4), reached_from(v6, v6)), (Some(v4), Some(v6)));
    }

    #[test]
    fn nobody_is_told_an_address_that_stands_for_many() {
        for local in ["0.0.0.0:7", "[::]:7", "127.0.0.1:7"].map(address) {
            let reachable = reachable(local);
            assert!(!reachable.ip().is_unspecified());
            assert_eq!((reachable.port(), reachable.is_ipv4()), (7, local.is_ipv4()));
        }
    }
}
