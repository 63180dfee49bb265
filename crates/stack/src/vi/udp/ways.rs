//! Source addresses of peers that share their address with others.
//!
//! A provider that shares its address has a socket of its own at another port ([`super::sharing`]).
//! Peers know it by the shared address, but answer to that port.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// Maximum number of remembered connections: more than are being made at once. An established connection
/// stores its address itself.
const MOST: usize = 1024;

/// The source addresses of connections that are being made, by the peers' numbers. Peers that share no
/// address are not listed.
#[derive(Debug, Default)]
pub struct Ways {
    known: VecDeque<(u64, SocketAddr)>,
}

impl Ways {
    /// Returns the source address of the peer with this number.
    pub fn get(&self, number: u64) -> Option<SocketAddr> {
        self.known.iter().find(|(known, _)| *known == number).map(|(_, way)| *way)
    }

    /// Notes that the peer known as `host` sends from `way`.
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
