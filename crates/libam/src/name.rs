//! The name of an endpoint, `en_t`: where its process listens, and which endpoint of the process it is.
//!
//! It has the form of `struct sockaddr_in`, as in AMUDP, with the number and a random key of the endpoint in the
//! bytes that this structure leaves unused.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

/// `AF_INET`.
const FAMILY: u16 = 2;

/// The name of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Name {
    family: u16,
    /// In network byte order.
    port: [u8; 2],
    address: [u8; 4],
    number: u32,
    key: u32,
}

impl Name {
    /// The bytes of a name.
    pub const LEN: usize = 16;

    /// Returns the name of an endpoint.
    pub fn new(at: SocketAddrV4, number: u32, key: u32) -> Self {
        let (port, address) = (at.port().to_be_bytes(), at.ip().octets());
        Self { family: FAMILY, port, address, number, key }
    }

    /// Returns where the endpoint's process listens.
    pub fn at(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::from(self.address), u16::from_be_bytes(self.port))
    }

    /// Returns the number of the endpoint in its process, and its key.
    pub fn identity(&self) -> (u32, u32) {
        (self.number, self.key)
    }

    /// Reports whether the bytes are those of a name.
    pub fn is_valid(&self) -> bool {
        self.family == FAMILY && self.port != [0; 2]
    }

    /// Returns the bytes, for a message to a process of another host.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..2].copy_from_slice(&self.family.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.port);
        bytes[4..8].copy_from_slice(&self.address);
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..].copy_from_slice(&self.key.to_le_bytes());
        bytes
    }

    /// Reads a name.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Self {
        let [f0, f1, p0, p1, a0, a1, a2, a3, n0, n1, n2, n3, k0, k1, k2, k3] = *bytes;
        Self {
            family: u16::from_le_bytes([f0, f1]),
            port: [p0, p1],
            address: [a0, a1, a2, a3],
            number: u32::from_le_bytes([n0, n1, n2, n3]),
            key: u32::from_le_bytes([k0, k1, k2, k3]),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.at(), self.number)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_name_comes_back(address: [u8; 4], port: u16, number: u32, key: u32) {
            let at = SocketAddrV4::new(Ipv4Addr::from(address), port);
            let name = Name::new(at, number, key);
            prop_assert_eq!(Name::decode(&name.encode()), name);
            prop_assert_eq!((name.at(), name.identity()), (at, (number, key)));
            prop_assert_eq!(name.is_valid(), port != 0);
        }
    }
}
