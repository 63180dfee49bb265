//! The request/reply rules of Active Messages, without a transport (von Eicken et al., section 2; Culler et
//! al. 1996, "Active Messages").
//!
//! A pair of endpoints has, for each direction of requests, one ring of requests and one ring of replies.
//! Each ring has `window` slots. Three rules keep the pair free of deadlock and of any shared index:
//!
//! 1. A requester has at most `window` requests whose completion it has not seen.
//! 2. A responder handles requests in order. For each request it writes at most one message into the reply
//!    ring: its reply, or a credit. It writes a credit if a handler does not reply and one of these holds:
//!    half a window is owed, there is nothing else to do, or a part of a bulk transfer has left its bounce
//!    buffer. The slot of that message is reserved when the request is accepted, so a reply never waits.
//! 3. Each message in the reply ring carries the number of requests handled so far. Only this number
//!    completes requests, in ring order.
//!
//! By rules 1 and 3, neither ring ever holds more than `window` unread messages. The tests check this against
//! a model of the rings.

/// The right to write one message into a ring: a slot of the ring is free and reserved for that message.
///
/// [`Credits`] and [`Ledger`] give out credits, and a writer takes one for each message. No other code can
/// create one:
///
/// ```compile_fail,E0423
/// let credit = netdyno_protocol::am::Credit(());
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the slot stays taken until a message is written into it"]
pub struct Credit(());

/// The requester's side: how many more requests it may issue to one peer.
#[derive(Clone, Copy, Debug)]
pub struct Credits {
    window: u32,
    sent: u64,
    completed: u64,
}

/// The peer claims to have handled requests that were never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overclaim;

impl Credits {
    /// Creates the credits for a `window` of requests, none of which has been sent.
    pub const fn new(window: u32) -> Self {
        Self { window, sent: 0, completed: 0 }
    }

    /// Returns the number of requests that were sent and are not known to be complete.
    #[inline]
    pub const fn in_flight(&self) -> u32 {
        (self.sent - self.completed) as u32
    }

    /// Returns the number of requests sent. The next request has this number, counted from 0.
    #[inline]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of completed requests: all requests with smaller numbers are complete.
    #[inline]
    pub const fn completed(&self) -> u64 {
        self.completed
    }

    /// Reports whether one more request may be sent.
    #[inline]
    pub const fn has_room(&self) -> bool {
        self.in_flight() < self.window
    }

    /// Takes the credit of one request. Returns `None` if the window is full.
    #[inline]
    pub const fn take(&mut self) -> Option<Credit> {
        if !self.has_room() {
            return None;
        }
        self.sent += 1;
        Some(Credit(()))
    }

    /// Takes back the credit that was taken last, because its request was not written.
    #[inline]
    pub const fn give_back(&mut self, credit: Credit) {
        debug_assert!(self.sent > self.completed);
        let Credit(()) = credit;
        self.sent -= 1;
    }

    /// Applies the count of a reply or a credit: `completed` requests (mod 2^16) were handled. Returns how
    /// many of them were not known to be complete.
    ///
    /// # Errors
    /// Returns [`Overclaim`] if the count is larger than the number of requests sent, or smaller than the
    /// last count.
    #[inline]
    pub const fn complete_to(&mut self, completed: u16) -> Result<u32, Overclaim> {
        let news = completed.wrapping_sub(self.completed as u16) as u32;
        if news > self.in_flight() {
            return Err(Overclaim);
        }
        self.completed += news as u64;
        Ok(news)
    }
}

/// The responder's side: how many requests it has handled, and how many of them the requester does not know
/// about.
#[derive(Clone, Copy, Debug)]
pub struct Ledger {
    window: u32,
    handled: u64,
    owed: u32,
}

impl Ledger {
    /// Creates the ledger for a requester with a `window` of requests.
    pub const fn new(window: u32) -> Self {
        Self { window, handled: 0, owed: 0 }
    }

    /// Counts one request as handled. Called before the handler of the request, so that its reply carries the
    /// new count. Returns the count for that reply.
    #[inline]
    pub const fn handle(&mut self) -> u16 {
        self.handled += 1;
        self.owed += 1;
        self.handled as u16
    }

    /// Notes that a reply or a credit was sent with the latest count.
    #[inline]
    pub const fn told(&mut self) {
        self.owed = 0;
    }

    /// Takes the credit of a message in the reply ring that carries the latest count. A request handled since
    /// the last such message has reserved its slot.
    #[inline]
    pub const fn answer(&mut self) -> Credit {
        debug_assert!(self.owed > 0);
        self.told();
        Credit(())
    }

    /// Reports whether an explicit credit is due: half the window is owed, and no message has carried the
    /// count back.
    #[inline]
    pub const fn credit_is_due(&self) -> bool {
        self.owed * 2 >= self.window
    }

    /// Reports whether the requester does not know the latest count. The responder sends it when it has
    /// nothing else to do.
    pub const fn is_owing(&self) -> bool {
        self.owed > 0
    }

    /// Returns the count to put into a credit.
    pub const fn completed(&self) -> u16 {
        self.handled as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Request { answered: bool },
        Respond,
        Collect,
        IdleCredit,
    }

    fn steps() -> impl Strategy<Value = alloc::vec::Vec<Step>> {
        let step = prop_oneof![
            4 => any::<bool>().prop_map(|answered| Step::Request { answered }),
            3 => Just(Step::Respond),
            3 => Just(Step::Collect),
            1 => Just(Step::IdleCredit),
        ];
        proptest::collection::vec(step, 0..2000)
    }

    proptest! {
        /// In any interleaving no ring holds more messages than it has slots. Once both sides have caught up,
        /// every credit is back.
        #[test]
        fn rings_never_overflow_and_credits_come_back(log in 0u32..6, steps in steps()) {
            let window = 1u32 << log;
            let (mut credits, mut ledger) = (Credits::new(window), Ledger::new(window));
            let (mut requests, mut replies) = (VecDeque::new(), VecDeque::new());
            let drain = core::iter::repeat_n([Step::Respond, Step::IdleCredit, Step::Collect], 3 * window as usize);
            for step in steps.into_iter().chain(drain.flatten()) {
                match step {
                    Step::Request { answered } => if credits.take().is_some() {
                        requests.push_back(answered);
                    },
                    Step::Respond => if let Some(answered) = requests.pop_front() {
                        let completed = ledger.handle();
                        if answered || ledger.credit_is_due() {
                            let _credit = ledger.answer();
                            replies.push_back(completed);
                        }
                    },
                    Step::IdleCredit => if ledger.is_owing() {
                        replies.push_back(ledger.completed());
                        let _credit = ledger.answer();
                    },
                    Step::Collect => if let Some(completed) = replies.pop_front() {
                        credits.complete_to(completed).unwrap();
                    },
                }
                prop_assert!(requests.len() <= window as usize);
                prop_assert!(replies.len() <= window as usize);
            }
            prop_assert_eq!(credits.in_flight(), 0);
        }
    }

    #[test]
    fn a_peer_cannot_complete_what_was_not_sent() {
        let mut credits = Credits::new(4);
        assert!(credits.take().is_some());
        assert_eq!(credits.complete_to(2), Err(Overclaim));
        assert_eq!(credits.complete_to(1), Ok(1));
        assert_eq!(credits.complete_to(0), Err(Overclaim));
    }

    #[test]
    fn counts_wrap_at_sixteen_bits() {
        let (mut credits, mut ledger) = (Credits::new(1), Ledger::new(1));
        for _ in 0..200_000 {
            assert!(credits.take().is_some());
            assert_eq!(credits.complete_to(ledger.handle()), Ok(1));
        }
    }

    #[test]
    fn a_full_window_has_no_credit_until_one_comes_back() {
        let mut credits = Credits::new(2);
        let first = credits.take().unwrap();
        let second = credits.take().unwrap();
        assert_eq!(credits.take(), None);
        credits.give_back(second);
        assert_eq!((credits.in_flight(), credits.sent()), (1, 1));
        assert_eq!(credits.take(), Some(first));
        assert_eq!(credits.take(), None);
        assert_eq!(credits.complete_to(1), Ok(1));
        assert!(credits.take().is_some());
    }
}
