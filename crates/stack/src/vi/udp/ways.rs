//! Where peers speak from that share an address with others.
//!
//! A provider that shares its address has a socket of its own at another port ([`super::sharing`]). Its
//! peers know it by the shared address, and answer to that port.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// Connections that are remembered: more than are being made at once. A connection that is there has its
/// address itself.
const MOST: usize = 1024;

/// The addresses of connections that are being made, by the numbers that the peers have told for them. Those
/// of peers that share no address are not among them.
#[derive(Debug, Default)]
pub struct Ways {
    known: VecDeque<(u64, SocketAddr)>,
}

impl Ways {
    /// Returns the address that the peer with this number speaks from.
    pub fn get(&self, number: u64) -> Option<SocketAddr> {
        self.known.iter().find(|(known, _)| *known == number).map(|(_, way)| *way)
    }

    /// A peer known as `host` speaks from `way`.
    pub fn note(&mut self, number: u64, host: SocketAddr, way: SocketAddr) {
        if host.port() == way.port() || self.get(number) == Some(way) {
            return;
        }
        self.known.retain(|(known, _)| *known != number);
        if self.known.len() == MOST {
            self.known.pop_front();
        }
        self.known.push_back((number, way));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_known_by_the_number_and_forgotten_when_many_have_come_since() {
        let [host, way] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let mut ways = Ways::default();
        ways.note(7, host, host);
        assert_eq!(ways.get(7), None);
        ways.note(7, host, way);
        ways.note(7, host, way);
        assert_eq!((ways.get(7), ways.get(8), ways.known.len()), (Some(way), None, 1));
        (0..MOST as u64).for_each(|nth| ways.note(100 + nth, host, way));
        assert_eq!((ways.get(7), ways.known.len()), (None, MOST));
    }
}
