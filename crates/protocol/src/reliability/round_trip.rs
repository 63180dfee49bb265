//! The round-trip time and the timeouts that follow from it.

use super::recovery::Recovery;

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

    fn expected_ns(&self, recovery: &Recovery) -> u64 {
        match self.smoothed_ns {
            0 => recovery.initial_rtt_ns,
            ns => (ns + 4 * self.variation_ns).min(recovery.max_rtt_ns),
        }
    }

    /// Returns the time after which the newest message is retransmitted as a tail loss probe. It or its
    /// acknowledgement may be lost, and no later message would show that.
    pub fn probe_ns(&self, recovery: &Recovery, acknowledgement_delay_ns: u64) -> u64 {
        (self.expected_ns(recovery) + acknowledgement_delay_ns).max(recovery.min_probe_ns)
    }

    /// Returns the time after which all unacknowledged messages count as lost, after `timeouts` in a row.
    pub fn timeout_ns(&self, recovery: &Recovery, acknowledgement_delay_ns: u64, timeouts: u32) -> u64 {
        let first = (self.expected_ns(recovery) + acknowledgement_delay_ns).max(recovery.min_timeout_ns);
        first.saturating_mul(1 << timeouts.min(16)).min(recovery.max_timeout_ns.max(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_follow_the_round_trip_and_back_off() {
        let (mut trip, recovery) = (RoundTrip::default(), &Recovery::default());
        assert_eq!(trip.timeout_ns(recovery, 0, 0), recovery.min_timeout_ns);
        for _ in 0..100 {
            trip.sample(1_000_000);
        }
        assert!((1_000_000..1_100_000).contains(&trip.timeout_ns(recovery, 0, 0)));
        assert_eq!(trip.timeout_ns(recovery, 0, 3), 8 * trip.timeout_ns(recovery, 0, 0));
        assert_eq!(trip.timeout_ns(recovery, 0, 60), recovery.max_timeout_ns);
        for _ in 0..100 {
            trip.sample(7_000);
        }
        assert_eq!(trip.timeout_ns(recovery, 25_000, 0), recovery.min_timeout_ns);
        assert!(trip.probe_ns(recovery, 25_000) < 50_000);
        trip.sample(u64::MAX / 16);
        assert_eq!(trip.probe_ns(recovery, 0), recovery.max_rtt_ns);
    }
}
