//! The round-trip time and the timeouts that follow from it.

/// The shortest timeout. A process that was descheduled usually runs again within this time.
pub const TIMEOUT_AT_LEAST_NS: u64 = 200_000;
/// The longest timeout after backoff. A network that recovers is noticed within this time.
pub const TIMEOUT_AT_MOST_NS: u64 = 50_000_000;
/// The shortest time until a tail loss probe.
const PROBE_AT_LEAST_NS: u64 = 30_000;
/// The longest expected round trip, whatever the samples say. A pause of either side can look like a round
/// trip. A loss after it must be noticed well before the peer timeout.
const EXPECTED_AT_MOST_NS: u64 = 500_000_000;
/// The expected round trip before the first sample.
const INITIAL_NS: u64 = 200_000;

/// The smoothed round-trip time and its variation (RFC 6298, section 2).
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    smoothed_ns: u64,
    variation_ns: u64,
}

impl RoundTrip {
    /// Takes a sample: a transmission was acknowledged after `ns`.
    pub fn sample(&mut self, ns: u64) {
        if self.smoothed_ns == 0 {
            self.smoothed_ns = ns.max(1);
            self.variation_ns = ns / 2;
        } else {
            self.variation_ns = (3 * self.variation_ns + self.smoothed_ns.abs_diff(ns)) / 4;
            self.smoothed_ns = ((7 * self.smoothed_ns + ns) / 8).max(1);
        }
    }

    fn expected_ns(&self) -> u64 {
        match self.smoothed_ns {
            0 => INITIAL_NS,
            ns => (ns + 4 * self.variation_ns).min(EXPECTED_AT_MOST_NS),
        }
    }

    /// Returns the time after which the newest message is retransmitted as a tail loss probe. It or its
    /// acknowledgement may be lost, and no later message would show that.
    pub fn probe_ns(&self, acknowledgement_delay_ns: u64) -> u64 {
        (self.expected_ns() + acknowledgement_delay_ns).max(PROBE_AT_LEAST_NS)
    }

    /// Returns the time after which all unacknowledged messages count as lost, after `timeouts` in a row.
    pub fn timeout_ns(&self, acknowledgement_delay_ns: u64, timeouts: u32) -> u64 {
        let first = (self.expected_ns() + acknowledgement_delay_ns).max(TIMEOUT_AT_LEAST_NS);
        first.saturating_mul(1 << timeouts.min(16)).min(TIMEOUT_AT_MOST_NS.max(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_follow_the_round_trip_and_back_off() {
        let mut trip = RoundTrip::default();
        assert_eq!(trip.timeout_ns(0, 0), TIMEOUT_AT_LEAST_NS);
        for _ in 0..100 {
            trip.sample(1_000_000);
        }
        assert!((1_000_000..1_100_000).contains(&trip.timeout_ns(0, 0)));
        assert_eq!(trip.timeout_ns(0, 3), 8 * trip.timeout_ns(0, 0));
        assert_eq!(trip.timeout_ns(0, 60), TIMEOUT_AT_MOST_NS);
        for _ in 0..100 {
            trip.sample(7_000);
        }
        assert_eq!(trip.timeout_ns(25_000, 0), TIMEOUT_AT_LEAST_NS);
        assert!(trip.probe_ns(25_000) < 50_000);
        trip.sample(u64::MAX / 16);
        assert_eq!(trip.probe_ns(0), EXPECTED_AT_MOST_NS);
    }
}
