//! Requests for connections that have been answered or withdrawn.
//!
//! A network delivers copies of a datagram late. A late copy of a settled request must not reach the
//! next program that waits. That program would accept a request that no VI has any more, and would miss
//! the request that it waits for. So a provider remembers the numbers of settled requests.

use crate::frame::vi_signal::Why;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How many requests are remembered. A host sends a request every 20 ms at most, and a copy of a
/// datagram is seldom late by more than a second.
const MOST: usize = 1024;

#[derive(Clone, Debug)]
struct Settlement {
    host: Vec<u8>,
    number: u64,
    /// The refusal to repeat for a requester that has not heard it. `None` where the requester has
    /// withdrawn the request.
    answer: Option<Why>,
}

/// The settled requests, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Settled(VecDeque<Settlement>);

impl Settled {
    /// Remembers a request. The first settlement of a request holds; the oldest request is forgotten
    /// where there are too many.
    pub fn insert(&mut self, host: &[u8], number: u64, answer: Option<Why>) {
        if self.get(host, number).is_some() {
            return;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(Settlement { host: host.to_vec(), number, answer });
    }

    /// Returns the answer to a copy of a settled request: `None` if the request is not settled,
    /// `Some(None)` if it needs no answer.
    pub fn get(&self, host: &[u8], number: u64) -> Option<Option<Why>> {
        let is_it = |settlement: &&Settlement| settlement.number == number && settlement.host == host;
        self.0.iter().rev().find(is_it).map(|settlement| settlement.answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_settlement_holds_for_its_host_alone() {
        let mut settled = Settled::default();
        settled.insert(b"a", 1, Some(Why::Rejected));
        settled.insert(b"a", 1, None);
        assert_eq!(settled.get(b"a", 1), Some(Some(Why::Rejected)));
        assert_eq!(settled.get(b"b", 1), None);
        assert_eq!(settled.get(b"a", 2), None);
    }

    #[test]
    fn the_oldest_is_forgotten_where_there_are_too_many() {
        let mut settled = Settled::default();
        (0..=MOST as u64).for_each(|number| settled.insert(b"a", number, None));
        assert_eq!(settled.get(b"a", 0), None);
        assert_eq!(settled.get(b"a", 1), Some(None));
        assert_eq!(settled.0.len(), MOST);
    }
}
