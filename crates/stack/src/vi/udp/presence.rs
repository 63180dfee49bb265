//! Whether a peer is there, of which nothing need come: it is asked now and then, and what comes of it
//! is an answer.

/// A peer is asked when a quarter of the patience has passed in silence. It has the rest of it to
/// answer, and is asked again each time that this part has passed, for a network may lose a question.
const ASKED_AGAIN: u64 = 32;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Nothing,
    /// The peer is to be asked.
    Question,
    /// It does not answer.
    Loss,
}

/// What is known of a peer's presence.
#[derive(Debug)]
pub struct Presence {
    ask_after_ns: u64,
    ask_again_ns: u64,
    answer_within_ns: u64,
    ask_ns: u64,
    /// Once it was asked: until when it has to answer.
    lost_ns: u64,
}

impl Presence {
    pub fn new(patience_ns: u64, now_ns: u64) -> Self {
        let ask_after_ns = patience_ns / 4;
        Self {
            ask_after_ns,
            ask_again_ns: (patience_ns / ASKED_AGAIN).max(1),
            answer_within_ns: patience_ns - ask_after_ns,
            ask_ns: now_ns.saturating_add(ask_after_ns),
            lost_ns: u64::MAX,
        }
    }

    /// It has said something.
    #[inline]
    pub fn heard(&mut self, now_ns: u64) {
        self.ask_ns = now_ns.saturating_add(self.ask_after_ns);
        self.lost_ns = u64::MAX;
    }

    /// When to come back, at the latest.
    #[inline]
    pub fn deadline(&self) -> u64 {
        self.ask_ns.min(self.lost_ns)
    }

    /// What is due, told once. The time for an answer begins with the first question: before that, this
    /// side may not have listened.
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
        // That is told once.
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

    /// A side that did not look for long takes its own absence for nobody's.
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
