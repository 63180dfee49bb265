//! How long a round trip takes, and how long to wait for one.

/// Timeouts are not shorter: a process that is scheduled away comes back within this time
/// more often than not.
pub const TIMEOUT_AT_LEAST_NS: u64 = 200_000;
/// Timeouts do not back off further: a network that comes back is noticed within this.
pub const TIMEOUT_AT_MOST_NS: u64 = 50_000_000;
/// Probes of the tail are not sent sooner.
const PROBE_AT_LEAST_NS: u64 = 30_000;
/// No round trip is expected to take longer, whatever was measured: a pause of either side can
/// look like one, and a loss after it must be noticed well before anybody is given up.
const EXPECTED_AT_MOST_NS: u64 = 500_000_000;
/// Assumed before anything was measured.
const INITIAL_NS: u64 = 200_000;

/// A smoothed round trip and its variation (RFC 6298, section 2).
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    smoothed_ns: u64,
    variation_ns: u64,
}

impl RoundTrip {
    /// A transmission was acknowledged after `ns`.
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

    /// When the newest message is sent again, on the suspicion that it or its
    /// acknowledgement was lost and nothing behind it will tell.
    pub fn probe_ns(&self, acknowledgement_delay_ns: u64) -> u64 {
        (self.expected_ns() + acknowledgement_delay_ns).max(PROBE_AT_LEAST_NS)
    }

    /// When everything unacknowledged counts as lost, after `timeouts` in a row.
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
