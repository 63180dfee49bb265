//! The address of a UDP port, which processes exchange.
//!
//! ```text
//! 0   magic "NDU1"
//! 4   window               u32, little endian: most requests without an answer
//! 8   medium bytes         u32, most payload bytes of a message
//! 12  connection           u64, random: datagrams for the port carry it
//! 20  socket port          u16
//! 22  address family       u8, 4 or 6, and a zero
//! 24  socket address       16 bytes; for IPv4 the first four, the others 0
//! ```

use super::datagram::LONGEST_PAYLOAD;
use super::port::window_is_valid;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Length of an encoded address, in bytes.
pub const LEN: usize = 40;

const MAGIC: [u8; 4] = *b"NDU1";

/// The address of a port's socket, and the connection number that the port requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPortAddress {
    /// The most requests without an answer.
    pub window: u32,
    /// The most payload bytes of a medium message.
    pub medium_bytes: u32,
    /// The connection number that datagrams for the port carry. Any sender that knows it can send to the
    /// port.
    pub connection: u64,
    /// The address of the port's socket.
    pub socket: SocketAddr,
}

/// The reason why bytes are not a port's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The length is not [`LEN`] bytes.
    Length(usize),
    /// Another format, another transport, or another version.
    Magic,
    /// The window is not a power of two, or is too large.
    Window(u32),
    /// The payload is larger than a datagram carries.
    Medium(u32),
    /// The socket address is not one that can be reached.
    Socket,
}

impl UdpPortAddress {
    /// Encodes the address for the peer.
    pub fn encode(&self) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[0..4].copy_from_slice(&MAGIC);
        out[4..8].copy_from_slice(&self.window.to_le_bytes());
        out[8..12].copy_from_slice(&self.medium_bytes.to_le_bytes());
        out[12..20].copy_from_slice(&self.connection.to_le_bytes());
        out[20..22].copy_from_slice(&self.socket.port().to_le_bytes());
        match self.socket.ip() {
            IpAddr::V4(ip) => {
                out[22] = 4;
                out[24..28].copy_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                out[22] = 6;
                out[24..40].copy_from_slice(&ip.octets());
            }
        }
        out
    }

    /// Decodes and checks an address.
    ///
    /// # Errors
    /// Returns the [`Malformed`] of the first field that is not valid.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; LEN] = bytes.try_into().map_err(|_| Malformed::Length(bytes.len()))?;
        if bytes[0..4] != MAGIC {
            return Err(Malformed::Magic);
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (window, medium_bytes) = (word(4), word(8));
        if !window_is_valid(window) {
            return Err(Malformed::Window(window));
        }
        if medium_bytes as usize > LONGEST_PAYLOAD {
            return Err(Malformed::Medium(medium_bytes));
        }
        let connection = u64::from(word(12)) | u64::from(word(16)) << 32;
        let port = u16::from_le_bytes([bytes[20], bytes[21]]);
        let mut ip = [0; 16];
        ip.copy_from_slice(&bytes[24..40]);
        let ip: IpAddr = match bytes[22] {
            4 if ip[4..] == [0; 12] => Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3]).into(),
            6 => Ipv6Addr::from(ip).into(),
            _ => return Err(Malformed::Socket),
        };
        if port == 0 || bytes[23] != 0 || ip.is_unspecified() || ip.is_multicast() {
            return Err(Malformed::Socket);
        }
        Ok(Self { window, medium_bytes, connection, socket: SocketAddr::new(ip, port) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            log in 0u32..=15, medium_bytes in 0..=LONGEST_PAYLOAD as u32,
            connection: u64, ip: IpAddr, port in 1u16..,
        ) {
            prop_assume!(!ip.is_unspecified() && !ip.is_multicast());
            let socket = SocketAddr::new(ip, port);
            let address = UdpPortAddress { window: 1 << log, medium_bytes, connection, socket };
            prop_assert_eq!(UdpPortAddress::parse(&address.encode()), Ok(address));
        }

        #[test]
        fn whatever_parses_encodes_to_the_same_bytes(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..48),
            plausible: bool, window in 0u32..10, family in 0u8..8,
        ) {
            if plausible {
                bytes.resize(LEN, 0);
                bytes[0..4].copy_from_slice(b"NDU1");
                bytes[4..8].copy_from_slice(&window.to_le_bytes());
                bytes[8..12].copy_from_slice(&64u32.to_le_bytes());
                bytes[22] = family;
            }
            if let Ok(address) = UdpPortAddress::parse(&bytes) {
                prop_assert_eq!(&address.encode()[..], &bytes[..]);
            }
        }
    }
}
