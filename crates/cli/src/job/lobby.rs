//! Where processes that may run on other hosts come together: a rendezvous at all addresses of this host.

use netdyno_host::interface;
use netdyno_job::rendezvous::Rendezvous;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Maximum number of addresses to try.
const ADDRESSES_AT_MOST: usize = 32;

/// Opens a rendezvous at `ip`, or at all addresses of this host.
///
/// # Errors
/// Returns an I/O error if the system refuses it.
pub fn open(ip: Option<IpAddr>) -> io::Result<Rendezvous> {
    match ip {
        Some(ip) => Rendezvous::open(ip),
        // IPv4 is the fallback on a host without IPv6.
        None => Rendezvous::open(Ipv6Addr::UNSPECIFIED.into())
            .or_else(|_| Rendezvous::open(Ipv4Addr::UNSPECIFIED.into())),
    }
}

/// Returns the addresses at which processes of other hosts may reach a rendezvous.
///
/// # Errors
/// Returns an I/O error if the system does not list its interfaces.
pub fn addresses(rendezvous: &Rendezvous) -> io::Result<Vec<SocketAddr>> {
    let own = rendezvous.address();
    let mut ips = if own.ip().is_unspecified() { interface::addresses()? } else { vec![own.ip()] };
    // The address towards other networks is the likeliest one.
    let likeliest = interface::of_default_route().map(IpAddr::V4);
    ips.sort_by_key(|ip| Some(*ip) != likeliest);
    ips.truncate(ADDRESSES_AT_MOST);
    Ok(ips.into_iter().map(|ip| SocketAddr::new(ip, own.port())).collect())
}
