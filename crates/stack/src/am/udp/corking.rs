//! Requests that wait to leave in a batch, because the program has corked its endpoint.

use super::UdpPeers;

/// Requests to one peer that leave together at the latest. The kernel passes on a batch of them in one call, and a
/// longer one costs each of them hardly less.
const FULL_BATCH: u32 = 32;

/// Whether requests wait, and for which peers some do.
#[derive(Default)]
pub(super) struct Corking {
    pub(super) is_on: bool,
    /// The places of the peers, with the number of requests that wait for each.
    waiting: Vec<(usize, u32)>,
}

impl UdpPeers {
    /// Sends a request that the connection has taken, or lets it wait.
    #[inline]
    pub(super) fn depart_or_wait(&mut self, place: usize, now_ns: u64) {
        if !self.corking.is_on || self.corking.is_full_with_one_more(place) {
            self.transmit(place, now_ns);
        }
    }

    /// Sends the requests that wait.
    #[inline]
    pub(super) fn send_waiting(&mut self) {
        if !self.corking.waiting.is_empty() {
            let now_ns = self.driver.clock.now_ns();
            while let Some((place, _)) = self.corking.waiting.pop() {
                self.transmit(place, now_ns);
            }
        }
    }
}

impl Corking {
    /// Notes that one more request waits for the peer. Returns whether its batch is full, and then begins a new one.
    fn is_full_with_one_more(&mut self, place: usize) -> bool {
        let Some(at) = self.waiting.iter().position(|(other, _)| *other == place) else {
            self.waiting.push((place, 1));
            return false;
        };
        self.waiting[at].1 += 1;
        let is_full = self.waiting[at].1 == FULL_BATCH;
        if is_full {
            self.waiting.swap_remove(at);
        }
        is_full
    }
}
