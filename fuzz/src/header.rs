//! Headers of datagrams, made of arbitrary bytes.

use arbitrary::Arbitrary;
use netdyno_protocol::frame::datagram::{Header, Kind};

/// The fields of a header beside the connection, which is what an outsider must guess.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Fields {
    kind: u8,
    handler: u8,
    pub sequence: u32,
    pub acknowledged: u32,
    selective: u64,
    completed: u16,
}

impl Fields {
    pub fn header(self, connection: u64) -> Header {
        let kinds = [Kind::Request, Kind::Reply, Kind::Acknowledgement, Kind::Probe, Kind::Goodbye];
        Header {
            kind: kinds[usize::from(self.kind) % kinds.len()],
            handler: self.handler,
            connection,
            sequence: self.sequence,
            acknowledged: self.acknowledged,
            selective: self.selective,
            completed: self.completed,
        }
    }
}
