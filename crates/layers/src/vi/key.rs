//! The key of a piece of memory, as part of an address: where a peer may write to it.

use netdyno_measure::layer::LayerError;
use netdyno_stack::vi::Remote;

/// Bytes of a key.
const KEY_LEN: usize = 12;

/// Returns the bytes of a key.
pub(super) fn write(Remote { address, handle }: Remote) -> Vec<u8> {
    [&address.to_le_bytes()[..], &handle.to_le_bytes()].concat()
}

/// Takes a key off the front of an address. Returns the key and the rest.
pub(super) fn take(address: &[u8]) -> Result<(Remote, &[u8]), LayerError> {
    let (&key, rest) = address
        .split_first_chunk::<KEY_LEN>()
        .ok_or_else(|| LayerError::new("the address of the other process is too short"))?;
    let [a, b, c, d, e, f, g, h, handle @ ..] = key;
    let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    Ok((Remote { address, handle: u32::from_le_bytes(handle) }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            match take(&bytes) {
                Ok((remote, rest)) => prop_assert_eq!([write(remote), rest.to_vec()].concat(), bytes),
                Err(_) => prop_assert!(bytes.len() < KEY_LEN),
            }
        }
    }
}
