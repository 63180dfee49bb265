//! The congestion window: the number of messages that may be in flight. It grows by additive increase, as in
//! RFC 5681 but slower. It shrinks by the number of messages lost, as in Relentless Congestion Control
//! (Mathis 2009). Its unit is a message.
//!
//! The ATM paper left open the case of many senders that turn to one receiver at once. Here a loss can shrink
//! each window to one message. The network then has to hold one message of each sender.
//!
//! The network loses the messages that it cannot hold, so a window that is smaller by their number fits. RFC
//! 5681 halves the window instead. That is right if half the window is one or two messages, and then both
//! rules agree. A flow with many messages in flight loses most of its rate by halving, if losses do not
//! depend on the rate. At 1 % loss it would hold 7 messages on average. With the rule here it holds half of
//! the largest window.

/// One message. The window has fractions of a message, so that growth by less than one a round trip adds up.
const ONE: u32 = 1 << 8;
/// The largest window, in messages: as many as the selective acknowledgement can describe.
pub const MOST: u32 = 64;

/// The growth of the window in a round trip without loss. RFC 5681 adds a whole message. Many senders then
/// overrun a short queue so often that the link is idle while they wait for their timeouts. In a simulation
/// of 64 senders and one receiver the link was used to 0.77, and to 0.91 with this growth.
const GROWTH: u32 = ONE / 4;

/// A window of many messages grows faster, by its square over this. The growth of a quarter of a message
/// makes up for 1 % loss of a window of 25. Both together make up for 1 % loss of any window. Where many
/// senders share a queue, no window is that large.
const GROWTH_OF_MANY: u32 = 8192;

/// The congestion window.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    window: u32,
    threshold: u32,
}

impl Congestion {
    /// Creates the window of a new connection, which begins with `initial` messages.
    pub fn new(initial: u32) -> Self {
        Self { window: initial.clamp(1, MOST) * ONE, threshold: MOST * ONE }
    }

    /// Returns the number of messages that may be in flight.
    pub const fn window(&self) -> u32 {
        self.window / ONE
    }

    /// Grows the window because one more message has arrived.
    pub fn arrived(&mut self) {
        let growth = if self.window < self.threshold { ONE } else { self.growth() * ONE / self.window };
        self.window = (self.window + growth.max(1)).min(MOST * ONE);
    }

    /// Returns the growth in a round trip without loss.
    fn growth(&self) -> u32 {
        GROWTH + self.window() * self.window / GROWTH_OF_MANY
    }

    /// Shrinks the window by `count` messages that were lost.
    pub fn lost(&mut self, count: u32) {
        self.threshold = self.window.saturating_sub(count * ONE).max(ONE);
        self.window = self.threshold;
    }

    /// Takes back one loss: the message has arrived before it was retransmitted.
    pub fn was_late(&mut self) {
        self.window = (self.window + ONE).min(MOST * ONE);
    }

    /// Shrinks the window to one message after a timeout, when all messages in flight count as lost.
    pub fn timed_out(&mut self) {
        self.threshold = (self.window / 2).max(2 * ONE);
        self.window = ONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reliability::recovery::Recovery;

    #[test]
    fn the_window_grows_and_shrinks_within_bounds() {
        let mut congestion = Congestion::new(Recovery::default().initial_window);
        for _ in 0..10_000 {
            congestion.arrived();
        }
        assert_eq!(congestion.window(), MOST);
        congestion.lost(1);
        assert_eq!(congestion.window(), MOST - 1);
        congestion.lost(10);
        assert_eq!(congestion.window(), MOST - 11);
        congestion.lost(MOST);
        assert_eq!(congestion.window(), 1);
        congestion.timed_out();
        assert_eq!(congestion.window(), 1);
        // It grows by about a quarter of a message per round trip, and a round trip has ever more messages.
        for _ in 0..100 {
            congestion.arrived();
        }
        assert!((6..=9).contains(&congestion.window()), "{}", congestion.window());
    }

    /// With random loss of one message in a hundred, about half of the largest window is left.
    #[test]
    fn losses_at_random_leave_a_window_of_many() {
        let (mut congestion, mut sum) = (Congestion::new(Recovery::default().initial_window), 0);
        for n in 1..=100_000_u32 {
            if n.is_multiple_of(100) {
                congestion.lost(1);
            } else {
                congestion.arrived();
            }
            sum += congestion.window();
        }
        assert!((28..40).contains(&(sum / 100_000)), "{}", sum / 100_000);
    }
}
