//! The signals by which two providers connect and disconnect their VIs.
//!
//! ```text
//! 0   checksum       u32, over all bytes that follow
//! 4   kind           u8, 0x42: not a datagram of Active Messages
//! 5   what           u8: 1 request, 2 peer-to-peer request, 3 accept, 4 refuse, 5 disconnect
//! 6   why            u8, the reason of a refusal
//! 7   version        u8
//! 8   connection     u64, the receiver's number; 0 in a request, whose sender does not know it
//! 16  number         u64, the sender's, chosen at random; 0 in a refusal, which has none
//! 24  level          u16 (bytes 24 to 40: in requests and accepts; 0 in other signals)
//! 26  leave          u8: bit 0 allows RDMA writes, bit 1 allows RDMA reads, bit 2 can issue RDMA reads
//! 27  reserved       a zero
//! 28  transfer       u32, bytes
//! 32  qos            u64
//! 40  lengths        4 bytes: host and discriminator of the requester, then of the peer
//! 44  addresses      the bytes of these (from 40 on: in requests only)
//! ```

use super::datagram::checksum;
use crate::vi::{Conflict, Level, Offer};
use alloc::vec::Vec;

/// Length of a signal without addresses, in bytes.
pub const HEADER_LEN: usize = 40;
/// The most bytes of a host's address, and of a discriminator.
pub const LONGEST_NAME: usize = 64;
/// Length of the longest signal, in bytes.
pub const LONGEST: usize = HEADER_LEN + 4 + 4 * LONGEST_NAME;

/// The kind of a signal. All datagrams have their kind at the same offset.
pub const CODE: u8 = 0x42;
const VERSION: u8 = 1;
const REQUEST: u8 = 1;
const PEER_REQUEST: u8 = 2;
const ACCEPT: u8 = 3;
const REFUSE: u8 = 4;
const DISCONNECT: u8 = 5;

/// The address of a VI: a host, in the format of the transport, and a discriminator, which distinguishes the
/// connection points on that host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The host.
    pub host: Vec<u8>,
    /// The discriminator.
    pub discriminator: Vec<u8>,
}

impl Address {
    /// Reports whether the address is short enough to be sent.
    pub fn is_valid(&self) -> bool {
        self.host.len() <= LONGEST_NAME && self.discriminator.len() <= LONGEST_NAME
    }
}

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No VI waits for a connection at that address.
    NoMatch,
    /// The peer rejected the request.
    Rejected,
    /// The peer has no room for another connection.
    NoRoom,
    /// The attributes of the two VIs do not match.
    Conflict(Conflict),
}

impl Why {
    const ALL: [Self; 7] = [
        Self::NoMatch,
        Self::Rejected,
        Self::NoRoom,
        Self::Conflict(Conflict::Level),
        Self::Conflict(Conflict::Transfer),
        Self::Conflict(Conflict::Qos),
        Self::Conflict(Conflict::RdmaRead),
    ];

    const fn code(self) -> u8 {
        match self {
            Self::NoMatch => 1,
            Self::Rejected => 2,
            Self::NoRoom => 3,
            Self::Conflict(Conflict::Level) => 4,
            Self::Conflict(Conflict::Transfer) => 5,
            Self::Conflict(Conflict::Qos) => 6,
            Self::Conflict(Conflict::RdmaRead) => 7,
        }
    }
}

/// A signal from one provider to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The sender's VI requests a connection.
    Request(Request),
    /// The request is accepted: the VIs are connected.
    Accept {
        /// The number in the request.
        to: u64,
        /// The sender's number of the connection.
        number: u64,
        /// The attributes of the sender's VI.
        offer: Offer,
    },
    /// The request is refused.
    Refuse {
        /// The number in the request.
        to: u64,
        /// The reason.
        why: Why,
    },
    /// The connection has ended, or the request is withdrawn.
    Disconnect {
        /// The receiver's number; 0 if the sender never learned it.
        to: u64,
        /// The sender's number.
        number: u64,
    },
}

/// A request for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The requester's number of the connection.
    pub number: u64,
    /// Whether both sides request the connection (peer-to-peer), or one side waits for the request
    /// (client-server).
    pub is_of_peer: bool,
    /// The address of the requester.
    pub from: Address,
    /// The address of the peer.
    pub to: Address,
    /// The attributes of the requester's VI.
    pub offer: Offer,
}

/// The reason why bytes are not a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The bytes end within the header or the addresses.
    Short,
    /// Longer than any signal.
    Long,
    /// The checksum does not match.
    Checksum,
    /// Another kind or version, or fields that no provider sends.
    Meaning,
}

impl Signal {
    /// Encodes the signal. An address that is too long is cut.
    pub fn encode(&self) -> Vec<u8> {
        let (what, why, to, number, offer) = match self {
            Self::Request(request) => {
                let what = if request.is_of_peer { PEER_REQUEST } else { REQUEST };
                (what, 0, 0, request.number, Some(&request.offer))
            }
            Self::Accept { to, number, offer } => (ACCEPT, 0, *to, *number, Some(offer)),
            Self::Refuse { to, why } => (REFUSE, why.code(), *to, 0, None),
            Self::Disconnect { to, number } => (DISCONNECT, 0, *to, *number, None),
        };
        let mut out = Vec::with_capacity(LONGEST);
        out.extend_from_slice(&[0, 0, 0, 0, CODE, what, why, VERSION]);
        out.extend_from_slice(&to.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&offer.map_or([0; 16], offer_bytes));
        if let Self::Request(Request { from, to, .. }) = self {
            let names = [&from.host, &from.discriminator, &to.host, &to.discriminator];
            let names = names.map(|name| &name[..name.len().min(LONGEST_NAME)]);
            out.extend_from_slice(&names.map(|name| name.len() as u8));
            names.iter().for_each(|name| out.extend_from_slice(name));
        }
        let sum = checksum(&out);
        out[0..4].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Parses and checks the signal in `bytes`.
    ///
    /// # Errors
    /// Returns the [`Malformed`] of the first check that fails.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Short)?;
        if bytes.len() > LONGEST {
            return Err(Malformed::Long);
        }
        if header[0..4] != checksum(bytes).to_le_bytes() {
            return Err(Malformed::Checksum);
        }
        let [_, to, number, ..] = words_of(header);
        let offer = || parse_offer(header).ok_or(Malformed::Meaning);
        let signal = match header[5] {
            what @ (REQUEST | PEER_REQUEST) => {
                let (from, addressed) = parse_addresses(rest)?;
                let (is_of_peer, offer) = (what == PEER_REQUEST, offer()?);
                Self::Request(Request { number, is_of_peer, from, to: addressed, offer })
            }
            ACCEPT => Self::Accept { to, number, offer: offer()? },
            REFUSE => {
                let why = Why::ALL.into_iter().find(|why| why.code() == header[6]);
                Self::Refuse { to, why: why.ok_or(Malformed::Meaning)? }
            }
            DISCONNECT => Self::Disconnect { to, number },
            _ => return Err(Malformed::Meaning),
        };
        // Only the canonical encoding is valid.
        if signal.encode() == bytes { Ok(signal) } else { Err(Malformed::Meaning) }
    }
}

fn offer_bytes(offer: &Offer) -> [u8; 16] {
    let Offer { level, transfer_bytes, qos, can_be_written, can_be_read, can_read } = *offer;
    let leave = u8::from(can_be_written) | u8::from(can_be_read) << 1 | u8::from(can_read) << 2;
    let mut bytes = [0; 16];
    bytes[0..2].copy_from_slice(&(level as u16).to_le_bytes());
    bytes[2] = leave;
    bytes[4..8].copy_from_slice(&transfer_bytes.to_le_bytes());
    bytes[8..16].copy_from_slice(&qos.to_le_bytes());
    bytes
}

fn parse_offer(header: &[u8; HEADER_LEN]) -> Option<Offer> {
    let [.., first, qos] = words_of(header);
    let leave = header[26];
    Some(Offer {
        level: Level::of(first as u16)?,
        transfer_bytes: (first >> 32) as u32,
        qos,
        can_be_written: leave & 1 != 0,
        can_be_read: leave & 2 != 0,
        can_read: leave & 4 != 0,
    })
}

/// Parses the addresses of the requester and of the peer.
fn parse_addresses(bytes: &[u8]) -> Result<(Address, Address), Malformed> {
    let (lens, mut rest) = bytes.split_first_chunk::<4>().ok_or(Malformed::Short)?;
    let mut name = |len: u8| {
        let (name, behind) = rest.split_at_checked(len.into()).ok_or(Malformed::Short)?;
        rest = behind;
        Ok(name.to_vec())
    };
    let from = Address { host: name(lens[0])?, discriminator: name(lens[1])? };
    let to = Address { host: name(lens[2])?, discriminator: name(lens[3])? };
    Ok((from, to))
}

fn words_of(header: &[u8; HEADER_LEN]) -> [u64; HEADER_LEN / 8] {
    let mut words = [0; HEADER_LEN / 8];
    for (word, chunk) in words.iter_mut().zip(header.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::{datagram, vi_fragment};
    use super::*;
    use proptest::prelude::*;

    fn names() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 0..=LONGEST_NAME)
    }

    prop_compose! {
        fn offers()(
            level in 0..3_usize, transfer_bytes: u32, qos: u64, leave: [bool; 3],
        ) -> Offer {
            let [can_be_written, can_be_read, can_read] = leave;
            Offer { level: Level::ALL[level], transfer_bytes, qos, can_be_written, can_be_read, can_read }
        }
    }

    prop_compose! {
        fn signals()(
            what in 0..5_u8, to: u64, number: u64, offer in offers(), why in 0..Why::ALL.len(),
            names in [names(), names(), names(), names()],
        ) -> Signal {
            let [host, discriminator, other, others] = names;
            let from = Address { host, discriminator };
            let addressed = Address { host: other, discriminator: others };
            match what {
                0 | 1 => {
                    Signal::Request(Request { number, is_of_peer: what == 1, from, to: addressed, offer })
                }
                2 => Signal::Accept { to, number, offer },
                3 => Signal::Refuse { to, why: Why::ALL[why] },
                _ => Signal::Disconnect { to, number },
            }
        }
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(signal in signals()) {
            let bytes = signal.encode();
            prop_assert!(bytes.len() <= LONGEST);
            prop_assert!(datagram::parse(&bytes).is_err() && vi_fragment::parse(&bytes).is_err());
            prop_assert_eq!(Signal::parse(&bytes), Ok(signal));
        }

        #[test]
        fn damage_is_found(signal in signals(), at: prop::sample::Index, bit in 0..8_u8, cut: prop::sample::Index) {
            let bytes = signal.encode();
            let mut damaged = bytes.clone();
            damaged[at.index(bytes.len())] ^= 1 << bit;
            prop_assert!(Signal::parse(&damaged).is_err());
            prop_assert!(Signal::parse(&bytes[..cut.index(bytes.len())]).is_err());
        }

        /// Bytes that no provider sends are refused even if their checksum matches.
        #[test]
        fn whatever_parses_encodes_to_the_same_bytes(
            signal in signals(), at: prop::sample::Index, flip: u8, more in 0..2_usize,
        ) {
            let mut bytes = signal.encode();
            let len = bytes.len();
            bytes[4 + at.index(len - 4)] ^= flip;
            bytes.resize(len + more, 0);
            let sum = checksum(&bytes);
            bytes[0..4].copy_from_slice(&sum.to_le_bytes());
            if let Ok(signal) = Signal::parse(&bytes) {
                prop_assert_eq!(signal.encode(), bytes);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(Signal::parse(&bytes).is_err());
        }
    }
}
