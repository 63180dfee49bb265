//! Congestion control: how many messages may be in flight. Its unit is a message.
//!
//! A connection tells its [`Controller`] about its messages and asks it for the congestion window (RFC 5681,
//! section 2). [`Relentless`] is the controller of a connection that names no other.

/// The largest congestion window, in messages: as many as the selective acknowledgement can describe.
pub const MAX_WINDOW: u32 = 64;

/// A congestion control algorithm.
pub trait Controller {
    /// Returns the congestion window: the number of messages that may be in flight, at least 1. A connection
    /// has at most 64 messages in flight, even if the window is larger.
    fn window(&self) -> u32;

    /// Notes that one more message is acknowledged.
    fn on_ack(&mut self);

    /// Notes that `count` messages count as lost, because later ones have arrived (RFC 9002, section 6.1.1).
    fn on_loss(&mut self, count: u32);

    /// Notes that a message had counted as lost and is acknowledged before its retransmission. A call of
    /// [`Controller::on_ack`] follows.
    fn on_spurious_loss(&mut self);

    /// Notes that all `count` messages in flight count as lost after a retransmission timeout. Only the first of
    /// several timeouts in a row is reported, as RFC 5681, section 3.1, holds the threshold constant then.
    fn on_timeout(&mut self, count: u32);
}

/// The window has fractions of a message, so that growth by less than one a round trip adds up.
const ONE: u32 = 1 << 8;

/// The growth of the window in a round trip without loss. RFC 5681 adds a whole message. Many senders then
/// overrun a short queue so often that the link is idle while they wait for their timeouts. In a simulation
/// of 64 senders and one receiver the link was used to 0.77, and to 0.91 with this growth.
const GROWTH: u32 = ONE / 4;

/// A window of many messages grows faster, by its square over this. The growth of a quarter of a message
/// makes up for 1 % loss of a window of 25. Both together make up for 1 % loss of any window. Where many
/// senders share a queue, no window is that large.
const GROWTH_OF_MANY: u32 = 8192;

/// Slow start and additive increase as in RFC 5681, section 3.1, but slower. The window shrinks by the number
/// of messages lost, as in Relentless Congestion Control (Mathis 2009).
///
/// The network loses the messages that it cannot hold, so a window that is smaller by their number fits. RFC
/// 5681 halves the window instead. That is right if half the window is one or two messages, and then both
/// rules agree. A flow with many messages in flight loses most of its rate by halving, if losses do not
/// depend on the rate. At 1 % loss it would hold 7 messages on average. With the rule here it holds half of
/// the largest window.
///
/// The ATM paper left open the case of many senders that turn to one receiver at once. Here a loss can shrink
/// each window to one message. The network then has to hold one message of each sender.
#[derive(Clone, Copy, Debug)]
pub struct Relentless {
    window: u32,
    /// The slow start threshold.
    threshold: u32,
}

impl Relentless {
    /// Creates the controller of a new connection, whose window begins with `initial` messages.
    pub fn new(initial: u32) -> Self {
        Self { window: initial.clamp(1, MAX_WINDOW) * ONE, threshold: MAX_WINDOW * ONE }
    }

    /// Returns the growth in a round trip without loss.
    fn growth(&self) -> u32 {
        GROWTH + self.window() * self.window / GROWTH_OF_MANY
    }
}

impl Controller for Relentless {
    fn window(&self) -> u32 {
        self.window / ONE
    }

    /// Grows the window by a message in slow start, and else by its share of the growth in a round trip (RFC
    /// 5681, section 3.1, equations 2 and 3).
    fn on_ack(&mut self) {
        let growth = if self.window < self.threshold { ONE } else { self.growth() * ONE / self.window };
        self.window = (self.window + growth.max(1)).min(MAX_WINDOW * ONE);
    }

    fn on_loss(&mut self, count: u32) {
        self.threshold = self.window.saturating_sub(count * ONE).max(ONE);
        self.window = self.threshold;
    }

    /// Takes back one loss.
    fn on_spurious_loss(&mut self) {
        self.window = (self.window + ONE).min(MAX_WINDOW * ONE);
    }

    /// Begins slow start anew with one message. Where less than half of the window was in flight, the threshold is
    /// reduced by the number of messages, and not to the half of the window (RFC 5681, section 3.1, equation 4, has half
    /// of what was in flight). A peer that computes acknowledges nothing meanwhile, so that a single message times out
    /// again and again. The window would then be two messages.
    fn on_timeout(&mut self, count: u32) {
        let left = self.window.saturating_sub(count * ONE);
        self.threshold = left.max(self.window / 2).max(2 * ONE);
        self.window = ONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reliability::recovery::Recovery;

    #[test]
    fn the_window_grows_and_shrinks_within_bounds() {
        let mut congestion = Relentless::new(Recovery::default().initial_window);
        for _ in 0..10_000 {
            congestion.on_ack();
        }
        assert_eq!(congestion.window(), MAX_WINDOW);
        congestion.on_loss(1);
        assert_eq!(congestion.window(), MAX_WINDOW - 1);
        congestion.on_loss(10);
        assert_eq!(congestion.window(), MAX_WINDOW - 11);
        congestion.on_loss(MAX_WINDOW);
        assert_eq!(congestion.window(), 1);
        congestion.on_timeout(1);
        assert_eq!(congestion.window(), 1);
        // It grows by about a quarter of a message per round trip, and a round trip has ever more messages.
        for _ in 0..100 {
            congestion.on_ack();
        }
        assert!((6..=9).contains(&congestion.window()), "{}", congestion.window());
    }

    #[test]
    fn a_timeout_of_a_single_message_leaves_the_threshold() {
        let mut congestion = Relentless::new(16);
        let slow_start = |congestion: &mut Relentless| (0..200).for_each(|_| congestion.on_ack());
        slow_start(&mut congestion);
        for _ in 0..20 {
            congestion.on_timeout(1);
            assert_eq!(congestion.window(), 1);
            slow_start(&mut congestion);
            assert!(congestion.window() >= MAX_WINDOW - 1, "{}", congestion.window());
        }
        // Half of the window is the least.
        congestion.on_timeout(MAX_WINDOW);
        slow_start(&mut congestion);
        assert!(
            (MAX_WINDOW / 2..MAX_WINDOW / 2 + 4).contains(&congestion.window()),
            "{}",
            congestion.window()
        );
    }

    /// With random loss of one message in a hundred, about half of the largest window is left.
    #[test]
    fn losses_at_random_leave_a_window_of_many() {
        let (mut congestion, mut sum) = (Relentless::new(Recovery::default().initial_window), 0);
        for n in 1..=100_000_u32 {
            if n.is_multiple_of(100) {
                congestion.on_loss(1);
            } else {
                congestion.on_ack();
            }
            sum += congestion.window();
        }
        assert!((28..40).contains(&(sum / 100_000)), "{}", sum / 100_000);
    }
}
