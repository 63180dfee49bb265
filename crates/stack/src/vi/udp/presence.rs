//! Checks whether a peer is still there that need not send anything: it is probed now and then, and must
//! answer.

/// Number of probes in one timeout. The first is sent after a quarter of the timeout in silence; the
/// peer has the rest of it to answer. The probe is repeated, because a network may lose it.
const ASKED_AGAIN: u64 = 32;

/// The action that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Nothing,
    /// Probe the peer.
    Question,
    /// Report the loss of the peer, which does not answer.
    Loss,
}

/// The timers that watch one peer.
#[derive(Debug)]
pub struct Presence {
    ask_after_ns: u64,
    ask_again_ns: u64,
    answer_within_ns: u64,
    ask_ns: u64,
    /// When the peer is lost, once it was probed.
    lost_ns: u64,
}

impl Presence {
    pub fn new(timeout_ns: u64, now_ns: u64) -> Self {
        let ask_after_ns = timeout_ns / 4;
        Self {
            ask_after_ns,
            ask_again_ns: (timeout_ns / ASKED_AGAIN).max(1),
            answer_within_ns: timeout_ns - ask_after_ns,
            ask_ns: now_ns.saturating_add(ask_after_ns),
            lost_ns: u64::MAX,
        }
    }

    /// Restarts the timers, because the peer has sent something.
    #[inline]
    pub fn heard(&mut self, now_ns: u64) {
        self.ask_ns = now_ns.saturating_add(self.ask_after_ns);
        self.lost_ns = u64::MAX;
    }

    /// Returns the time of the next action.
    #[inline]
    pub fn deadline(&self) -> u64 {
        self.ask_ns.min(self.lost_ns)
    }

    /// Returns the action that is due, once. The time for an answer begins with the first probe, because
    /// this side may not have listened before.
    pub fn on_time(&mut self, now_ns: u64) -> Due {
        if now_ns >= self.lost_ns {
            (self.ask_ns, self.lost_ns) = (u64::MAX, u64::MAX);
            return Due::Loss;
        }
        if now_ns < self.ask_ns {
            return Due::Nothing;
        }
        self.ask_ns = now_ns.saturating_add(self.ask_again_ns);
        self.lost_ns = self.lost_ns.min(now_ns.saturating_add(self.answer_within_ns));
        Due::Question
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_peer_is_asked_some_times_and_then_lost() {
        let mut presence = Presence::new(3200, 1000);
        let mut questions = 0;
        let mut now_ns = presence.deadline();
        assert_eq!(now_ns, 1000 + 800);
        let lost_ns = loop {
            match presence.on_time(now_ns) {
                Due::Question => questions += 1,
                Due::Loss => break now_ns,
                Due::Nothing => panic!("it was due"),
            }
            now_ns = presence.deadline();
        };
        assert_eq!((lost_ns, questions), (1000 + 3200, 24));
        // The loss is reported once.
        assert_eq!((presence.deadline(), presence.on_time(u64::MAX - 1)), (u64::MAX, Due::Nothing));
    }

    #[test]
    fn a_peer_that_answers_is_left_alone_for_a_while() {
        let mut presence = Presence::new(4000, 0);
        for round in 1..100 {
            let now_ns = presence.deadline();
            assert_eq!(now_ns, 1000 * round);
            assert_eq!(presence.on_time(now_ns), Due::Question);
            presence.heard(now_ns);
            assert_eq!(presence.on_time(now_ns), Due::Nothing);
        }
    }

    /// A side that did not poll for long must probe the peer before it reports a loss.
    #[test]
    fn nobody_is_lost_who_was_not_asked() {
        let mut presence = Presence::new(4000, 0);
        assert_eq!(presence.on_time(1_000_000), Due::Question);
        assert_eq!(presence.on_time(1_000_000 + 2999), Due::Question);
        assert_eq!(presence.on_time(1_000_000 + 3000), Due::Loss);
        let mut for_ever = Presence::new(u64::MAX / 2, u64::MAX / 2);
        assert_eq!(for_ever.on_time(u64::MAX / 2), Due::Nothing);
    }
}
