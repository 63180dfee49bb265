//! The send overhead o_s: processor time to issue a message, from short bursts of requests alone.

use super::data::Burst;
use crate::stats::median;

/// A longer burst still only sends if a message costs at most this share more than in a shorter one.
const SEND_ONLY_GROWTH: f64 = 0.001;

/// A send overhead, and the length of the burst that gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SendOverhead {
    /// Time per message.
    pub(crate) value_ns: f64,
    /// Messages in the burst.
    pub(crate) m: usize,
}

/// Returns the time per message in the longest burst that only sends. The messages of such a burst cost no
/// more than those of shorter bursts, within the error of the measurement.
pub(crate) fn send_overhead(bursts: &[Burst], timer_ns: f64) -> SendOverhead {
    let mut best = SendOverhead { value_ns: f64::NAN, m: 0 };
    let (mut least, mut least_error) = (f64::INFINITY, 0.0);
    for burst in bursts {
        let value_ns = cost_of_request(burst, timer_ns);
        let error_ns = standard_error(&burst.issue_ns) / burst.m as f64;
        // The cost of a clock reading is known to 5 %. Without slack for noise, a burst that is slower by
        // chance would end the search, and the chosen value would be too small.
        let slack_ns = SEND_ONLY_GROWTH * least
            + 0.05 * timer_ns / burst.m as f64
            + 3.0 * f64::hypot(error_ns, least_error);
        if value_ns <= least + slack_ns || best.m == 0 {
            best = SendOverhead { value_ns, m: burst.m };
        }
        if value_ns < least {
            (least, least_error) = (value_ns, error_ns);
        }
    }
    best
}

/// Returns the cost of one request of a burst, in nanoseconds, without the clock reading.
pub(super) fn cost_of_request(burst: &Burst, timer_ns: f64) -> f64 {
    (median(burst.issue_ns.iter().copied()) - timer_ns) / burst.m as f64
}

/// Returns the standard error of the mean of batches; 0 for a single batch.
fn standard_error(batches: &[f64]) -> f64 {
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let squares: f64 = batches.iter().map(|batch| (batch - mean).powi(2)).sum();
    (squares / (n - 1.0).max(1.0) / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_send_burst_ends_where_a_request_costs_more() {
        let burst = |m: usize, ns: f64| Burst { m, per_batch: 1, issue_ns: vec![ns], done_ns: vec![] };
        let growing = [burst(1, 30.0), burst(2, 40.0), burst(4, 60.0), burst(8, 200.0)];
        assert_eq!(send_overhead(&growing, 20.0), SendOverhead { value_ns: 10.0, m: 4 });
        assert_eq!(send_overhead(&growing[..1], 20.0).m, 1);
        assert_eq!(send_overhead(&[], 20.0).m, 0);
    }
}
