//! An Ethernet frame with one UDP datagram over IPv4 (RFC 894, RFC 791, RFC 768).
//!
//! ```text
//! 0   destination    6 bytes, hardware address
//! 6   source         6 bytes, hardware address
//! 12  type           u16, 0x0800
//! 14  version        u8, 0x45: version 4, a header of 20 bytes
//! 15  service        u8, 0
//! 16  length         u16, of this header and all that follows
//! 18  identification u16, 0
//! 20  fragment       u16, 0x4000: never fragmented
//! 22  time to live   u8, 64
//! 23  protocol       u8, 17
//! 24  checksum       u16, of this header
//! 26  source         4 bytes, address
//! 30  destination    4 bytes, address
//! 34  source         u16, port
//! 36  destination    u16, port
//! 38  length         u16, of this header and the payload
//! 40  checksum       u16, 0: none
//! 42  payload        the rest
//! ```
//!
//! All numbers are big endian. Short frames may have padding behind the payload.
//!
//! The UDP checksum is neither computed nor checked. IPv4 allows its absence, virtual devices leave it unfinished, and
//! datagrams of this project carry a checksum of their own.

use core::net::{Ipv4Addr, SocketAddrV4};

/// Length of all headers, in bytes.
pub const HEADERS_LEN: usize = ETHERNET_LEN + IP_LEN + UDP_LEN;

const ETHERNET_LEN: usize = 14;
const IP_LEN: usize = 20;
const UDP_LEN: usize = 8;
const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// Version 4, and a header without options.
const PLAIN_HEADER: u8 = 0x45;
const NEVER_FRAGMENTED: [u8; 2] = [0x40, 0];
/// The bit that says that more fragments follow, and the offset of a fragment.
const FRAGMENT_MASK: u16 = 0x3fff;
const TIME_TO_LIVE: u8 = 64;
const PROTOCOL_UDP: u8 = 17;

/// A hardware address.
pub type HardwareAddress = [u8; 6];

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkEnd {
    /// The hardware address of the interface, or of the next hop towards it.
    pub hardware: HardwareAddress,
    /// The address of the socket.
    pub socket: SocketAddrV4,
}

/// The headers of all datagrams from one end to another. Only the lengths and the checksum of IP differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    bytes: [u8; HEADERS_LEN],
    /// The sum of the IP header without its length.
    sum: u32,
}

impl Headers {
    /// Returns the headers of datagrams.
    pub fn new(from: LinkEnd, to: LinkEnd) -> Self {
        let mut bytes = [0; HEADERS_LEN];
        bytes[0..6].copy_from_slice(&to.hardware);
        bytes[6..12].copy_from_slice(&from.hardware);
        bytes[12..14].copy_from_slice(&TYPE_IPV4);
        bytes[14] = PLAIN_HEADER;
        bytes[20..22].copy_from_slice(&NEVER_FRAGMENTED);
        bytes[22] = TIME_TO_LIVE;
        bytes[23] = PROTOCOL_UDP;
        bytes[26..30].copy_from_slice(&from.socket.ip().octets());
        bytes[30..34].copy_from_slice(&to.socket.ip().octets());
        bytes[34..36].copy_from_slice(&from.socket.port().to_be_bytes());
        bytes[36..38].copy_from_slice(&to.socket.port().to_be_bytes());
        let sum = sum(&bytes[ETHERNET_LEN..ETHERNET_LEN + IP_LEN]);
        Self { bytes, sum }
    }

    /// Returns the headers of a datagram with a payload of this length in bytes. `None` if IP carries none of that
    /// length.
    #[inline]
    pub fn of(&self, payload_len: usize) -> Option<[u8; HEADERS_LEN]> {
        let len = u16::try_from(IP_LEN + UDP_LEN + payload_len).ok()?;
        let mut bytes = self.bytes;
        bytes[16..18].copy_from_slice(&len.to_be_bytes());
        bytes[24..26].copy_from_slice(&(!folded(self.sum + u32::from(len))).to_be_bytes());
        bytes[38..40].copy_from_slice(&(len - IP_LEN as u16).to_be_bytes());
        Some(bytes)
    }
}

/// A datagram that a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried<'a> {
    /// The address of the sender's socket.
    pub from: SocketAddrV4,
    /// The address of the receiver's socket.
    pub to: SocketAddrV4,
    /// The payload.
    pub payload: &'a [u8],
}

/// The reason why a frame carries no datagram that this project reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The frame ends within its headers, or within the payload that they announce.
    Short,
    /// It carries something other than IPv4 without options.
    NotIpv4,
    /// It carries something other than UDP.
    NotUdp,
    /// It is a fragment of a datagram.
    Fragment,
    /// The checksum of the IP header is wrong.
    Checksum,
    /// The length of IP and that of UDP do not fit each other.
    Lengths,
}

/// Parses a frame.
///
/// # Errors
/// Returns the [`Malformed`] of the first field that is not valid.
#[inline]
pub fn parse(frame: &[u8]) -> Result<Carried<'_>, Malformed> {
    let (headers, rest) = frame.split_first_chunk::<HEADERS_LEN>().ok_or(Malformed::Short)?;
    let number = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    if headers[12..14] != TYPE_IPV4 || headers[14] != PLAIN_HEADER {
        return Err(Malformed::NotIpv4);
    }
    if number(20) & FRAGMENT_MASK != 0 {
        return Err(Malformed::Fragment);
    }
    if headers[23] != PROTOCOL_UDP {
        return Err(Malformed::NotUdp);
    }
    if folded(sum(&headers[ETHERNET_LEN..ETHERNET_LEN + IP_LEN])) != u16::MAX {
        return Err(Malformed::Checksum);
    }
    let (ip_len, udp_len) = (usize::from(number(16)), usize::from(number(38)));
    if ip_len != IP_LEN + udp_len || udp_len < UDP_LEN {
        return Err(Malformed::Lengths);
    }
    let payload = rest.get(..udp_len - UDP_LEN).ok_or(Malformed::Short)?;
    let socket = |ip: usize, port: usize| {
        let ip = Ipv4Addr::new(headers[ip], headers[ip + 1], headers[ip + 2], headers[ip + 3]);
        SocketAddrV4::new(ip, number(port))
    };
    Ok(Carried { from: socket(26, 34), to: socket(30, 36), payload })
}

/// Returns the sum of a header as numbers of 16 bits.
#[inline]
fn sum(header: &[u8]) -> u32 {
    header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
}

/// Adds the carries of a sum to it (RFC 1071).
#[inline]
fn folded(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn end(hardware: HardwareAddress, (ip, port): ([u8; 4], u16)) -> LinkEnd {
        LinkEnd { hardware, socket: SocketAddrV4::new(ip.into(), port) }
    }

    fn frame(from: LinkEnd, to: LinkEnd, payload: &[u8]) -> Vec<u8> {
        [&Headers::new(from, to).of(payload.len()).unwrap()[..], payload].concat()
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            hardware: [HardwareAddress; 2], sockets: [([u8; 4], u16); 2],
            payload in proptest::collection::vec(any::<u8>(), 0..1500), padding in 0_usize..20,
        ) {
            let [from, to] = [0, 1].map(|at| end(hardware[at], sockets[at]));
            let mut frame = frame(from, to, &payload);
            frame.resize(frame.len() + padding, 0);
            let carried = Carried { from: from.socket, to: to.socket, payload: &payload };
            prop_assert_eq!(parse(&frame), Ok(carried));
            prop_assert_eq!(&frame[..12], [to.hardware, from.hardware].concat());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(carried) = parse(&bytes) {
                prop_assert!(bytes.len() >= HEADERS_LEN + carried.payload.len());
            }
        }

        /// Most changes of a bit of the IP header are seen.
        #[test]
        fn a_damaged_frame_is_refused(at in 12_usize..34, bit in 0_u8..8, payload: [u8; 20]) {
            let ends = [end([1; 6], ([10, 0, 0, 1], 7)), end([2; 6], ([10, 0, 0, 2], 9))];
            let mut frame = frame(ends[0], ends[1], &payload);
            frame[at] ^= 1 << bit;
            prop_assert!(parse(&frame).is_err());
        }
    }

    #[test]
    fn frames_that_carry_something_else() {
        let ends = [end([1; 6], ([10, 0, 0, 1], 7)), end([2; 6], ([10, 0, 0, 2], 9))];
        let whole = frame(ends[0], ends[1], b"hello");
        for len in 0..whole.len() {
            assert_eq!(parse(&whole[..len]), Err(Malformed::Short), "{len}");
        }
        let with = |changes: &[(usize, u8)]| {
            let mut changed = whole.clone();
            changes.iter().for_each(|&(at, to)| changed[at] = to);
            parse(&changed).map(|_| ())
        };
        assert_eq!(with(&[(12, 0x86), (13, 0xdd)]), Err(Malformed::NotIpv4));
        assert_eq!(with(&[(14, 0x46)]), Err(Malformed::NotIpv4));
        assert_eq!(with(&[(20, 0x20)]), Err(Malformed::Fragment));
        assert_eq!(with(&[(21, 1)]), Err(Malformed::Fragment));
        assert_eq!(with(&[(23, 6)]), Err(Malformed::NotUdp));
        assert_eq!(with(&[(24, !whole[24])]), Err(Malformed::Checksum));
        assert_eq!(with(&[(39, 12)]), Err(Malformed::Lengths));
        assert_eq!(with(&[(40, 1)]), Ok(()));
        assert_eq!(Headers::new(ends[0], ends[1]).of(65_508), None);
    }
}
