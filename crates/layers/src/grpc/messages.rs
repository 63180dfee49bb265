//! The messages and the methods of the service, as docs/rpc.md writes them in Protocol Buffers.

use prost::Message;
use prost::bytes::Bytes;

/// The method whose result is its argument.
pub(super) const ECHO: &str = "/netdyno.Echo/Echo";
/// The method whose argument says how long the result must be.
pub(super) const TRANSFER: &str = "/netdyno.Echo/Transfer";

/// The data of a call or of a reply.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Payload {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) data: Bytes,
}

/// The arguments of [`TRANSFER`].
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TransferArgs {
    /// The bytes of data in the result.
    #[prost(uint32, tag = "1")]
    pub(super) reply_bytes: u32,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) data: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are written out from the encoding of Protocol Buffers: a key has the number of the field and the
    /// type, 0 for a number and 2 for bytes.
    #[test]
    fn messages_are_encoded_as_protocol_buffers() {
        let data = Bytes::from_static(b"hello");
        assert_eq!(Payload { data: data.clone() }.encode_to_vec(), b"\x0a\x05hello");
        assert_eq!(TransferArgs { reply_bytes: 300, data }.encode_to_vec(), b"\x08\xac\x02\x12\x05hello");
        assert_eq!(Payload::decode(&b""[..]), Ok(Payload { data: Bytes::new() }));
        assert!(Payload::decode(&b"\x0a\x09hello"[..]).is_err());
    }
}
