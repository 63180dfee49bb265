//! The addresses that a host and a service stand for.

use super::guard::Errno;
use crate::abi;
use crate::links::{self, Name};
use core::ffi::{CStr, c_char};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

/// Returns the address of the endpoint that serves a port of a host. No host stands for this one, and no service for
/// no port.
///
/// # Safety
/// The strings must be strings, or null.
pub unsafe fn resolve(node: *const c_char, service: *const c_char) -> Result<Name, Errno> {
    let text = |string: *const c_char| {
        if string.is_null() {
            return None;
        }
        // SAFETY: as the caller has promised.
        Some(unsafe { CStr::from_ptr(string) }.to_string_lossy())
    };
    let port = text(service).map_or(Ok(0), |service| service.parse());
    let port: u16 = port.map_err(|_| Errno(abi::ENODATA))?;
    let address = match text(node) {
        None => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port),
        Some(node) => {
            let all = (&*node, port).to_socket_addrs().map_err(|_| Errno(abi::ENODATA))?;
            // Sockets are of IPv4 unless the host has none.
            all.min_by_key(SocketAddr::is_ipv6).ok_or(Errno(abi::ENODATA))?
        }
    };
    Ok(Name { process: links::service(address), endpoint: 0 })
}
