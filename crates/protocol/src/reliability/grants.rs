//! The grants of an endpoint: it shares a window of messages among the peers whose bulk transfers arrive.
//!
//! Von Eicken et al. 1994 (the section on the memory use of SSAM) propose that the first message of a long one asks the
//! receiver for a larger window, and that its first acknowledgement grants it. So the receiver limits how many senders
//! transfer large blocks at the same time. Here every sender is granted an equal share, so that long transfers share
//! the way to their receiver fairly.

use super::congestion::Controller;
use super::connection::Connection;
use crate::frame::datagram::MOST_GRANTED;

/// The grants of an endpoint to its peers.
#[derive(Debug)]
pub struct Grants {
    /// The number of connections on which bytes arrive.
    arriving: u32,
    /// The messages that each of them is granted. That is at least one, so that every transfer goes on.
    share: u8,
}

impl Default for Grants {
    fn default() -> Self {
        Self { arriving: 0, share: MOST_GRANTED }
    }
}

impl Grants {
    /// Notes whether bytes arrive on a connection of the endpoint. The caller does so after the connection took a
    /// datagram, began a get, or ended.
    #[inline]
    pub fn note<C: Controller>(&mut self, connection: &mut Connection<C>) {
        match connection.change_of_arrival() {
            None => return,
            Some(true) => self.arriving += 1,
            Some(false) => self.arriving -= 1,
        }
        let share = u32::from(MOST_GRANTED) / self.arriving.max(1);
        self.share = share.max(1) as u8;
    }

    /// Grants a connection its share, before it sends.
    #[inline]
    pub fn grant<C: Controller>(&self, connection: &mut Connection<C>) {
        connection.grant(self.share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::datagram::{self, Datagram, Kind};
    use crate::reliability::{Config, Delivery, Event, Loss};
    use crate::sim::switch::Placed;
    use alloc::vec::Vec;

    fn pair() -> [Connection; 2] {
        [(1, 2), (2, 1)].map(|(local, remote)| Connection::new(Config::default(), local, remote, 0))
    }

    /// Returns all datagrams that a connection sends now, with those of its transfers.
    fn transmit(from: &mut Connection) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        loop {
            while let Some(bytes) = from.transmit(0) {
                sent.push(bytes.to_vec());
            }
            if !from.feed(&mut Placed::default(), 0) {
                return sent;
            }
        }
    }

    /// Delivers datagrams. Returns the number of stores and gets that they complete.
    fn deliver(to: &mut Connection, datagrams: &[Vec<u8>]) -> usize {
        let mut complete = 0;
        for bytes in datagrams {
            let datagram = datagram::parse(bytes).unwrap();
            if to.receive(&datagram, 0) == Delivery::Now && datagram.header.kind.is_of_transfer() {
                complete += usize::from(to.transfer(&datagram, &mut Placed::default()) != Event::Nothing);
            }
        }
        complete
    }

    fn count(datagrams: &[Vec<u8>], is_counted: impl Fn(&Datagram<'_>) -> bool) -> usize {
        datagrams.iter().filter(|bytes| is_counted(&datagram::parse(bytes).unwrap())).count()
    }

    /// Exchanges datagrams until no side has any. Returns the most messages of transfers from `a` in one exchange, and
    /// the number of transfers that were completed.
    fn settle(a: &mut Connection, b: &mut Connection) -> (usize, usize) {
        let (mut most, mut complete) = (0, 0);
        loop {
            let sent = transmit(a);
            let answers = {
                complete += deliver(b, &sent);
                transmit(b)
            };
            complete += deliver(a, &answers);
            most = most
                .max(count(&sent, |datagram| matches!(datagram.header.kind, Kind::Chunk | Kind::Fetched)));
            if sent.is_empty() && answers.is_empty() {
                return (most, complete);
            }
        }
    }

    #[test]
    fn the_first_message_of_a_long_store_asks_and_its_acknowledgement_grants() {
        let [mut a, mut b] = pair();
        b.grant(5);
        a.store(0, &[], [0, 0, 100_000], 0).unwrap();
        let first = transmit(&mut a);
        // These go unasked, as far as the congestion window allows.
        assert_eq!(count(&first, |datagram| datagram.header.kind == Kind::Chunk), 15);
        deliver(&mut b, &first[..1]);
        let grants = transmit(&mut b);
        assert_eq!(count(&grants, |datagram| datagram.header.arrived.granted == 5), 1);
        deliver(&mut a, &grants);
        assert_eq!((transmit(&mut a).len(), a.granted_in_flight()), (0, 15));
        deliver(&mut b, &first[1..]);
        deliver(&mut a, &transmit(&mut b));
        assert_eq!((transmit(&mut a).len(), a.granted_in_flight()), (5, 5));
    }

    /// One message is enough to go on, in either direction.
    #[test]
    fn a_grant_of_one_brings_a_transfer_to_its_end() {
        let [mut a, mut b] = pair();
        b.grant(1);
        a.store(0, &[], [0, 0, 100_000], 0).unwrap();
        // The first messages go unasked.
        deliver(&mut b, &transmit(&mut a));
        deliver(&mut a, &transmit(&mut b));
        assert_eq!(settle(&mut a, &mut b), (1, 1));
        let [mut a, mut b] = pair();
        b.grant(1);
        b.get([0, 0, 100_000], 0).unwrap();
        let request = transmit(&mut b);
        deliver(&mut a, &request);
        assert_eq!(settle(&mut a, &mut b), (1, 1));
    }

    #[test]
    fn a_peer_that_stops_in_a_store_is_lost_and_its_share_comes_back() {
        let timeout_ns = Config::default().peer_timeout_ns;
        let [mut a, mut b] = pair();
        let mut grants = Grants::default();
        a.store(0, &[], [0, 0, 100_000], 0).unwrap();
        deliver(&mut b, &transmit(&mut a)[..1]);
        grants.note(&mut b);
        transmit(&mut b);
        assert_eq!((grants.arriving, b.deadline()), (1, Some(timeout_ns)));
        b.on_time(timeout_ns - 1);
        assert_eq!(b.lost(), None);
        b.on_time(timeout_ns);
        assert_eq!(b.lost(), Some(Loss::Silent));
        grants.note(&mut b);
        assert_eq!(grants.arriving, 0);
    }

    /// Messages that belong to no long transfer need no grant.
    #[test]
    fn requests_and_short_stores_need_no_grant() {
        let [mut a, mut b] = pair();
        b.grant(1);
        b.get([0, 0, 100_000], 0).unwrap();
        deliver(&mut a, &transmit(&mut b));
        for _ in 0..5 {
            a.request(0, &[], &[], 0).unwrap();
            a.store(0, &[], [0, 0, 100], 0).unwrap();
        }
        let sent = transmit(&mut a);
        assert_eq!(count(&sent, |datagram| datagram.header.kind == Kind::Fetched), 1);
        assert_eq!(count(&sent, |datagram| datagram.header.kind.is_request()), 10);
    }

    #[test]
    fn peers_whose_bytes_arrive_share_a_window() {
        let mut grants = Grants::default();
        let mut pairs: Vec<[Connection; 2]> = (0..100).map(|_| pair()).collect();
        let granted = |grants: &Grants, at: &mut Connection| {
            grants.grant(at);
            datagram::parse(at.goodbye()).unwrap().header.arrived.granted
        };
        let mut rest = Vec::new();
        for (nth, [a, b]) in pairs.iter_mut().enumerate() {
            a.store(0, &[], [0, 0, 2_000], 0).unwrap();
            let mut sent = transmit(a);
            rest.push(sent.split_off(1));
            deliver(b, &sent);
            grants.note(b);
            // It counts once.
            grants.note(b);
            assert_eq!(u32::from(granted(&grants, b)), (64 / (nth as u32 + 1)).max(1));
        }
        for (nth, ([_, b], rest)) in pairs.iter_mut().zip(&rest).enumerate() {
            // A transfer ends when its last byte has come, or its connection ends.
            if nth % 2 == 0 {
                assert_eq!(deliver(b, rest), 1);
            } else {
                b.end();
            }
            grants.note(b);
            assert_eq!(u32::from(granted(&grants, b)), (64 / (99 - nth as u32).max(1)).max(1));
        }
    }

    /// A grant that was overtaken by a later one does not hold.
    #[test]
    fn an_overtaken_grant_is_not_taken() {
        let [mut a, mut b] = pair();
        a.store(0, &[], [0, 0, 100_000], 0).unwrap();
        let first = transmit(&mut a);
        b.grant(40);
        deliver(&mut b, &first[..1]);
        let old = transmit(&mut b);
        b.grant(3);
        deliver(&mut b, &first[1..]);
        deliver(&mut a, &transmit(&mut b));
        deliver(&mut a, &old);
        assert_eq!((transmit(&mut a).len(), a.granted_in_flight()), (3, 3));
    }
}
