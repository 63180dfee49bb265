//! Host names, looked up with the system's resolver.

use netdyno_host::interface;
use netdyno_stack::vi::{UDP_PORT, WireKind, parse_host};
use std::net::{IpAddr, ToSocketAddrs};

/// Returns the addresses of a name in the wire's format, the best first. Over shared memory every name of
/// this host has this host's address, and no other host exists. Over UDP a name may end in `:port`; the
/// default is the port that a NIC takes if its device names none.
pub fn hosts_of(name: &str, own: &[u8], wire: WireKind) -> Vec<Vec<u8>> {
    match wire {
        WireKind::Shm if is_here(name) => vec![own.to_vec()],
        WireKind::Shm => Vec::new(),
        WireKind::Udp(_) => {
            let parts = name.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
            // An IPv6 address contains colons itself.
            let (host, port) = parts.filter(|(host, _)| !host.contains(':')).unwrap_or((name, UDP_PORT));
            let addresses = if own_name() == host { own_addresses(own) } else { addresses_of(host) };
            let spelled = addresses.into_iter().map(|ip| spell(ip, port));
            spelled.filter(|host| host.len() == own.len()).collect()
        }
    }
}

/// Returns the name of a host. Over UDP the name of another host is its IP address as text.
pub fn name_of(host: &[u8], own: &[u8], wire: WireKind) -> Option<String> {
    match wire {
        WireKind::Shm => (host == own).then(own_name),
        WireKind::Udp(_) => {
            let ip = ip_of(host)?;
            let is_own = ip_of(own) == Some(ip) || interface::is_own(ip);
            Some(if is_own { own_name() } else { ip.to_string() })
        }
    }
}

/// Returns an address and a port in the format of UDP addresses: in network byte order.
fn spell(ip: IpAddr, port: u16) -> Vec<u8> {
    let port = port.to_be_bytes();
    match ip {
        IpAddr::V4(ip) => [&ip.octets()[..], &port].concat(),
        IpAddr::V6(ip) => [&ip.octets()[..], &port].concat(),
    }
}

fn ip_of(host: &[u8]) -> Option<IpAddr> {
    parse_host(host).map(|address| address.ip())
}

/// Returns the addresses of this host. That of the NIC is the first.
fn own_addresses(own: &[u8]) -> Vec<IpAddr> {
    ip_of(own).into_iter().chain(interface::addresses().unwrap_or_default()).collect()
}

fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns whether a name is one of this host's.
fn is_here(name: &str) -> bool {
    let own = own_name();
    let is_own = own == name || own.split('.').next() == Some(name);
    // The host's own name counts even where no resolver knows it.
    is_own || addresses_of(name).into_iter().any(interface::is_own)
}

fn addresses_of(name: &str) -> Vec<IpAddr> {
    (name, 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_stack::vi::UdpOptions;

    #[test]
    fn every_name_of_this_host_is_this_host() {
        let own = [7; 4];
        let wire = WireKind::Shm;
        for name in ["localhost", "127.0.0.1", "::1", &own_name()] {
            assert_eq!(hosts_of(name, &own, wire), [own], "{name}");
        }
        for address in interface::addresses().unwrap() {
            assert_eq!(hosts_of(&address.to_string(), &own, wire), [own], "{address}");
        }
        // 192.0.2.1 is reserved for documentation, so it is no host's address.
        assert!(hosts_of("192.0.2.1", &own, wire).is_empty() && hosts_of("", &own, wire).is_empty());
        assert_eq!(name_of(&own, &own, wire), Some(own_name()));
        assert_eq!(name_of(&[8; 4], &own, wire), None);
    }

    #[test]
    fn a_host_over_udp_has_a_port() {
        let wire = WireKind::Udp(UdpOptions::default());
        let own = [127, 0, 0, 1, 0x11, 0xd7];
        let [high, low] = UDP_PORT.to_be_bytes();
        assert_eq!(hosts_of("192.0.2.1", &own, wire), [[192, 0, 2, 1, high, low]]);
        assert_eq!(hosts_of("192.0.2.1:258", &own, wire), [[192, 0, 2, 1, 1, 2]]);
        assert_eq!(hosts_of(&own_name(), &own, wire)[0], [127, 0, 0, 1, high, low]);
        // A NIC with an IPv4 address reaches no IPv6 address.
        assert!(hosts_of("::1", &own, wire).is_empty());
        assert_eq!(name_of(&[192, 0, 2, 1, 1, 2], &own, wire).as_deref(), Some("192.0.2.1"));
        assert_eq!(name_of(&own, &own, wire), Some(own_name()));
        assert_eq!(name_of(&[1, 2, 3], &own, wire), None);
    }
}
