//! Names of hosts, by the system's resolver.

use netdyno_host::interface;
use netdyno_stack::vi::{UDP_PORT, WireKind};
use std::net::{IpAddr, ToSocketAddrs};

/// The hosts of a name as the wire spells them, the best first. Over shared memory every name of this
/// host is this host, and there is no other one. Over UDP a name may have a port behind it; without,
/// it is the port that a NIC takes which is not told another one.
pub fn hosts_of(name: &str, own: &[u8], wire: WireKind) -> Vec<Vec<u8>> {
    match wire {
        WireKind::Shm if is_here(name) => vec![own.to_vec()],
        WireKind::Shm => Vec::new(),
        WireKind::Udp(_) => {
            let parts = name.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
            // An address of IPv6 has colons of its own.
            let (host, port) = parts.filter(|(host, _)| !host.contains(':')).unwrap_or((name, UDP_PORT));
            let addresses = if own_name() == host { own_addresses(own) } else { addresses_of(host) };
            let spelled = addresses.into_iter().map(|ip| spell(ip, port));
            spelled.filter(|host| host.len() == own.len()).collect()
        }
    }
}

/// The name of a host: of another one than this its address, which is as good.
pub fn name_of(host: &[u8], own: &[u8], wire: WireKind) -> Option<String> {
    match wire {
        WireKind::Shm => (host == own).then(own_name),
        WireKind::Udp(_) => {
            let ip = ip_of(host)?;
            let is_own = ip_of(own) == Some(ip) || is_own_address(ip);
            Some(if is_own { own_name() } else { ip.to_string() })
        }
    }
}

/// An address and a port as the wire over UDP spells them: in network order.
fn spell(ip: IpAddr, port: u16) -> Vec<u8> {
    let port = port.to_be_bytes();
    match ip {
        IpAddr::V4(ip) => [&ip.octets()[..], &port].concat(),
        IpAddr::V6(ip) => [&ip.octets()[..], &port].concat(),
    }
}

fn ip_of(host: &[u8]) -> Option<IpAddr> {
    let (ip, _) = host.split_last_chunk::<2>()?;
    let v4 = <[u8; 4]>::try_from(ip).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(ip).map(IpAddr::from)).ok()
}

/// Where this host is reached: first where this NIC is.
fn own_addresses(own: &[u8]) -> Vec<IpAddr> {
    ip_of(own).into_iter().chain(interface::addresses().unwrap_or_default()).collect()
}

fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether a name is one of this host.
fn is_here(name: &str) -> bool {
    let own = own_name();
    let is_own = own == name || own.split('.').next() == Some(name);
    // Where no resolver knows it, it is still this host's.
    is_own || addresses_of(name).into_iter().any(is_own_address)
}

fn addresses_of(name: &str) -> Vec<IpAddr> {
    (name, 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect()).unwrap_or_default()
}

fn is_own_address(address: IpAddr) -> bool {
    address.is_loopback() || interface::addresses().is_ok_and(|own| own.contains(&address))
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
        // An address of no host, by its definition.
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
        // With IPv4 alone nobody of IPv6 is reached.
        assert!(hosts_of("::1", &own, wire).is_empty());
        assert_eq!(name_of(&[192, 0, 2, 1, 1, 2], &own, wire).as_deref(), Some("192.0.2.1"));
        assert_eq!(name_of(&own, &own, wire), Some(own_name()));
        assert_eq!(name_of(&[1, 2, 3], &own, wire), None);
    }
}
