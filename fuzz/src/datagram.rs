//! Datagrams with arbitrary fields.

use arbitrary::Arbitrary;
use netdyno_protocol::dial::timing::Departed;
use netdyno_protocol::frame::datagram::{Arrived, Header, Kind, MOST_GRANTED, alone, stamp, write};

/// The fields of a header, without the number of the connection. An attacker must guess that number.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Fields {
    kind: u8,
    handler: u8,
    pub sequence: u32,
    pub expected: u32,
    selective: u64,
    completed: u16,
    transmission: u16,
    pub latest: u16,
    is_stale: bool,
    departed: Option<(u64, bool)>,
    granted: u8,
}

impl Fields {
    pub fn header(self, connection: u64) -> Header {
        let Self { expected, selective, latest, is_stale, .. } = self;
        let granted = self.granted % (MOST_GRANTED + 1);
        let kinds =
            [Kind::Request, Kind::Reply, Kind::Acknowledgement, Kind::Probe, Kind::Goodbye, Kind::Closing];
        let kind = kinds[usize::from(self.kind) % kinds.len()];
        let departed = self.departed.filter(|_| kind.is_message());
        Header {
            kind,
            handler: self.handler,
            connection,
            sequence: self.sequence,
            transmission: self.transmission,
            arrived: Arrived { expected, selective, latest, is_stale, granted },
            completed: self.completed,
            departed: departed.map(|(at, at_once)| Departed { at, at_once }),
        }
    }
}

/// Encodes a datagram as a connection sends it. Only a message has words and a payload.
pub fn encoded(header: &Header, words: &[u64], payload: &[u8]) -> Vec<u8> {
    if !header.kind.is_message() {
        return alone(header).to_vec();
    }
    let mut bytes = Vec::new();
    write(header, words, payload, &mut bytes);
    stamp(&mut bytes, header.sequence, header.transmission, header.arrived);
    bytes
}
