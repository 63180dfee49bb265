//! Names of hosts, by the system's resolver.

use netdyno_host::interface;
use std::net::{IpAddr, ToSocketAddrs};

/// The hosts of a name as the wire spells them, the best first. Over shared memory every name of this
/// host is this host, and there is no other one.
pub fn hosts_of(name: &str, own: &[u8]) -> Vec<Vec<u8>> {
    if is_here(name) { vec![own.to_vec()] } else { Vec::new() }
}

/// The name of a host.
pub fn name_of(host: &[u8], own: &[u8]) -> Option<String> {
    (host == own).then(own_name)
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

    #[test]
    fn every_name_of_this_host_is_this_host() {
        let own = [7; 4];
        for name in ["localhost", "127.0.0.1", "::1", &own_name()] {
            assert_eq!(hosts_of(name, &own), [own], "{name}");
        }
        for address in interface::addresses().unwrap() {
            assert_eq!(hosts_of(&address.to_string(), &own), [own], "{address}");
        }
        // An address of no host, by its definition.
        assert!(hosts_of("192.0.2.1", &own).is_empty() && hosts_of("", &own).is_empty());
        assert_eq!(name_of(&own, &own), Some(own_name()));
        assert_eq!(name_of(&[8; 4], &own), None);
    }
}
