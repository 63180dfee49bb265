//! What peers must know of a process to reach it: the address of an endpoint, as `fi_getname` returns it.

use netdyno_stack::vi::{encode_host, parse_host};
use std::fmt::{self, Display};
use std::net::SocketAddr;

/// Length of an encoded process in bytes. It fits into a discriminator.
pub const PROCESS_LEN: usize = 54;
/// Length of the address of an endpoint in bytes. MPICH has room for 64 (`FI_NAME_MAX`).
pub const NAME_LEN: usize = PROCESS_LEN + 4;
/// The first bytes of an address.
const MAGIC: [u8; 2] = *b"nd";

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number in its own namespace.
    pub pid: u32,
    /// The address of a copy of `nonce` in its memory. A peer that reads `nonce` there has the right process.
    pub proof: u64,
    /// The host: processes with the same value may share memory.
    pub host: [u8; 8],
    /// A random number.
    pub nonce: [u8; 16],
    /// The address of its UDP socket, as Virtual Interfaces name it, with zeros behind it.
    pub udp: [u8; 18],
}

/// Length of the address of a socket in bytes, with IPv4.
const UDP_V4_LEN: usize = 6;
/// The beginning of the nonce of a process of which only host and port are known.
const SERVICE: [u8; 8] = *b"service\0";

impl Process {
    /// Returns the process that serves a port of a host. Nothing else is known of it.
    pub fn serving(address: SocketAddr, host: [u8; 8]) -> Self {
        let udp = encode_host(address);
        // Processes on two hosts are two, though they serve the same port.
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&SERVICE);
        nonce[8..10].copy_from_slice(&address.port().to_be_bytes());
        udp.iter().zip(0..).for_each(|(byte, at)| nonce[10 + at % 6] ^= *byte);
        Self { pid: 0, proof: 0, host, nonce, udp: Self::udp_of(&udp) }
    }

    /// Returns the port that the process serves, if that is how it is known.
    pub fn service(&self) -> Option<u16> {
        self.udp_address().filter(|_| self.nonce.starts_with(&SERVICE)).map(|address| address.port())
    }

    /// Returns the address of its UDP socket.
    pub fn udp_address(&self) -> Option<SocketAddr> {
        parse_host(&self.udp_host())
    }

    /// Returns the address that the process serves, if it is known by that and has a port.
    pub fn service_address(&self) -> Option<SocketAddr> {
        self.udp_address().filter(|address| self.service().is_some() && address.port() > 0)
    }

    /// Returns the discriminator at which the process waits for requests.
    pub fn discriminator(&self) -> Vec<u8> {
        match self.service() {
            Some(port) => discriminator_of(port),
            None => {
                let digits = self.nonce.iter().flat_map(|byte| format!("{byte:02x}").into_bytes());
                b"fi/".iter().copied().chain(digits).collect()
            }
        }
    }

    /// Returns [`Process::udp`] for the address of a socket.
    pub fn udp_of(host: &[u8]) -> [u8; 18] {
        let mut udp = [0; 18];
        udp.iter_mut().zip(host).for_each(|(to, from)| *to = *from);
        udp
    }

    /// Returns the address of its UDP socket. An address with IPv6 is longer, and ends with a port that is not 0.
    pub fn udp_host(&self) -> Vec<u8> {
        let (short, rest) = self.udp.split_at(UDP_V4_LEN);
        if rest.iter().all(|byte| *byte == 0) { short.to_vec() } else { self.udp.to_vec() }
    }

    /// Returns the bytes of the process.
    pub fn encode(&self) -> [u8; PROCESS_LEN] {
        let mut bytes = [0; PROCESS_LEN];
        bytes[..4].copy_from_slice(&self.pid.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.proof.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.host);
        bytes[20..36].copy_from_slice(&self.nonce);
        bytes[36..].copy_from_slice(&self.udp);
        bytes
    }

    /// Parses the bytes of a process. Returns `None` if their number is wrong.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PROCESS_LEN] = bytes.try_into().ok()?;
        Some(Self {
            pid: u32::from_le_bytes(bytes[..4].try_into().ok()?),
            proof: u64::from_le_bytes(bytes[4..12].try_into().ok()?),
            host: bytes[12..20].try_into().ok()?,
            nonce: bytes[20..36].try_into().ok()?,
            udp: bytes[36..].try_into().ok()?,
        })
    }
}

/// Returns the discriminator at which the process that serves a port waits for requests.
pub fn discriminator_of(port: u16) -> Vec<u8> {
    format!("fi/service/{port}").into_bytes()
}

/// The address of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The process.
    pub process: Process,
    /// The number of the endpoint.
    pub endpoint: u16,
}

impl Name {
    /// Returns the bytes of the address.
    pub fn encode(&self) -> [u8; NAME_LEN] {
        let mut bytes = [0; NAME_LEN];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2..2 + PROCESS_LEN].copy_from_slice(&self.process.encode());
        bytes[2 + PROCESS_LEN..].copy_from_slice(&self.endpoint.to_le_bytes());
        bytes
    }

    /// Parses the bytes of an address. Returns `None` if they are none of this provider's.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (process, endpoint) = rest.split_at_checked(PROCESS_LEN)?;
        Some(Self {
            process: Process::parse(process)?,
            endpoint: u16::from_le_bytes(endpoint.try_into().ok()?),
        })
    }
}

impl Display for Name {
    /// Writes the process, a part of its nonce, and the endpoint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process { pid, nonce: [a, b, c, d, ..], .. } = self.process;
        write!(f, "fi_netdyno://{pid}.{a:02x}{b:02x}{c:02x}{d:02x}/{}", self.endpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_service_is_named_by_host_and_port() {
        for (text, other) in
            [("10.1.2.3:5000", "10.1.2.4:5000"), ("[2001:db8::1]:65535", "[2001:db8::2]:65535")]
        {
            let [address, other] = [text, other].map(|text| text.parse().unwrap());
            let process = Process::serving(address, [3; 8]);
            assert_eq!((process.service(), process.udp_address()), (Some(address.port()), Some(address)));
            assert_eq!(process.discriminator(), discriminator_of(address.port()));
            assert_ne!(process.nonce, Process::serving(other, [3; 8]).nonce);
            let known = Process { nonce: [7; 16], ..process };
            assert_eq!((known.service(), &known.discriminator()[..5]), (None, &b"fi/07"[..]));
        }
    }

    proptest! {
        #[test]
        fn names_are_parsed(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), is_whole: bool) {
            if is_whole {
                bytes.resize(NAME_LEN, 7);
                bytes[..2].copy_from_slice(&MAGIC);
            }
            match Name::parse(&bytes) {
                Some(name) => prop_assert_eq!(&name.encode()[..], &bytes[..]),
                None => prop_assert!(bytes.len() != NAME_LEN || bytes[..2] != MAGIC),
            }
        }
    }
}
