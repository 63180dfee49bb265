//! How many messages may be under way: additive increase, as in RFC 5681 but slower, and a
//! decrease by what was lost, as in Relentless Congestion Control (Mathis 2009), in messages.
//!
//! The question that the ATM paper left open: many senders that turn to one receiver at
//! once. One message each is all that the network is asked to hold when it loses.
//!
//! What a network loses is what it could not hold, so a window that is smaller by just that
//! fits. Half of it, as RFC 5681 takes, is right where the half is one or two messages, and
//! there it is the same. A flow that holds many loses most of its rate to it where losses have
//! nothing to do with how much is sent: at 1 % it would hold 7 messages on the average, and
//! with this half of the most that it may.

/// Fractions of a message, so that growth by less than one a round trip adds up.
const ONE: u32 = 1 << 8;
/// What is sent before anything is known.
const INITIAL: u32 = 16 * ONE;
/// What the selective acknowledgement can describe.
pub const MOST: u32 = 64;

/// What a round trip without loss adds to the window. A whole message each, as in RFC 5681,
/// makes many senders overrun a short queue so often that the link stands idle while they wait
/// for their timeouts: simulated, 64 to one used 0.77 of it, and 0.91 with this.
const GROWTH: u32 = ONE / 4;

/// A window of many messages grows faster, by one over this for the square of them: a quarter of a
/// message makes up for 1 % of 25, and this for 1 % of any. Where many senders share a queue
/// no window is that long.
const GROWTH_OF_MANY: u32 = 8192;

/// The congestion window.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    window: u32,
    threshold: u32,
}

impl Congestion {
    /// The window of a connection that knows nothing yet.
    pub const fn new() -> Self {
        Self { window: INITIAL, threshold: MOST * ONE }
    }

    /// Messages that may be under way.
    pub const fn window(&self) -> u32 {
        self.window / ONE
    }

    /// One more message has arrived.
    pub fn arrived(&mut self) {
        let growth = if self.window < self.threshold { ONE } else { self.growth() * ONE / self.window };
        self.window = (self.window + growth.max(1)).min(MOST * ONE);
    }

    /// What a round trip without loss adds.
    fn growth(&self) -> u32 {
        GROWTH + self.window() * self.window / GROWTH_OF_MANY
    }

    /// So many more messages were lost.
    pub fn lost(&mut self, count: u32) {
        self.threshold = self.window.saturating_sub(count * ONE).max(ONE);
        self.window = self.threshold;
    }

    /// A message that counted as lost has arrived, before it was sent again: that was no loss.
    pub fn was_late(&mut self) {
        self.window = (self.window + ONE).min(MOST * ONE);
    }

    /// Nothing came back for so long that everything counts as lost.
    pub fn timed_out(&mut self) {
        self.threshold = (self.window / 2).max(2 * ONE);
        self.window = ONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_and_shrinks_within_bounds() {
        let mut congestion = Congestion::new();
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
        // A quarter of a message more a round trip, roughly, of growing length.
        for _ in 0..100 {
            congestion.arrived();
        }
        assert!((6..=9).contains(&congestion.window()), "{}", congestion.window());
    }

    /// With one in a hundred lost at random about half of the longest window is left.
    #[test]
    fn losses_at_random_leave_a_window_of_many() {
        let (mut congestion, mut sum) = (Congestion::new(), 0);
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
