//! The address of a shared-memory port, which processes exchange.
//!
//! ```text
//! 0   magic "NDP1"
//! 4   process id           u32, little endian
//! 8   file descriptor      u32
//! 12  window               u32, slots of each ring, a power of two
//! 16  medium bytes         u32, size of a slot's payload buffer
//! 20  nonce                16 bytes, also at the start of the segment
//! ```

/// Length of an encoded address, in bytes.
pub const LEN: usize = 36;
/// The largest window, because completion counts have 16 bits.
pub const MAX_WINDOW: u32 = 1 << 15;
/// The largest medium payload, in bytes.
pub const MAX_MEDIUM: u32 = 1 << 20;

const MAGIC: [u8; 4] = *b"NDP1";

/// The location and the layout of a port's shared-memory segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortAddress {
    /// The process that created the segment.
    pub pid: u32,
    /// The descriptor of the segment in that process.
    pub fd: u32,
    /// The number of slots of each ring.
    pub window: u32,
    /// The most payload bytes of a medium message.
    pub medium_bytes: u32,
    /// Distinguishes the segment from any other file at that descriptor.
    pub nonce: [u8; 16],
}

/// The reason why bytes are not a port's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The length is not [`LEN`] bytes.
    Length(usize),
    /// Another format, or another version of this one.
    Magic,
    /// The window is not a power of two up to [`MAX_WINDOW`].
    Window(u32),
    /// The payload size is not a multiple of 64 up to [`MAX_MEDIUM`].
    Medium(u32),
}

/// Reports whether rings can have `window` slots.
pub const fn window_is_valid(window: u32) -> bool {
    window.is_power_of_two() && window <= MAX_WINDOW
}

/// Reports whether payload buffers can have `bytes` bytes.
pub const fn medium_is_valid(bytes: u32) -> bool {
    bytes.is_multiple_of(64) && bytes <= MAX_MEDIUM
}

impl PortAddress {
    /// Encodes the address for the peer.
    pub fn encode(&self) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[0..4].copy_from_slice(&MAGIC);
        out[4..8].copy_from_slice(&self.pid.to_le_bytes());
        out[8..12].copy_from_slice(&self.fd.to_le_bytes());
        out[12..16].copy_from_slice(&self.window.to_le_bytes());
        out[16..20].copy_from_slice(&self.medium_bytes.to_le_bytes());
        out[20..36].copy_from_slice(&self.nonce);
        out
    }

    /// Decodes and checks an address.
    ///
    /// # Errors
    /// Returns the [`Malformed`] of the first field that is not valid.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; LEN] = bytes.try_into().map_err(|_| Malformed::Length(bytes.len()))?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[0..4] != MAGIC {
            return Err(Malformed::Magic);
        }
        let (window, medium_bytes) = (word(12), word(16));
        if !window_is_valid(window) {
            return Err(Malformed::Window(window));
        }
        if !medium_is_valid(medium_bytes) {
            return Err(Malformed::Medium(medium_bytes));
        }
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&bytes[20..36]);
        Ok(Self { pid: word(4), fd: word(8), window, medium_bytes, nonce })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_parses_encodes_to_the_same_bytes(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..48),
            plausible: bool,
            log in 0u32..18,
        ) {
            if plausible {
                bytes.resize(LEN, 7);
                bytes[0..4].copy_from_slice(b"NDP1");
                bytes[12..16].copy_from_slice(&(1u32 << log).to_le_bytes());
                bytes[16..20].copy_from_slice(&4096u32.to_le_bytes());
            }
            match PortAddress::parse(&bytes) {
                Ok(address) => prop_assert_eq!(&address.encode()[..], &bytes[..]),
                Err(_) => prop_assert!(!plausible || log > 15),
            }
        }
    }
}
