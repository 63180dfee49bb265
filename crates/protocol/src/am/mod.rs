//! The request/reply rules of Active Messages (von Eicken et al., section 2;
//! Culler et al. 1996, "Active Messages"), apart from any wire.
//!
//! A pair of endpoints has, for each direction of requests, one ring of requests and
//! one ring of replies, both of `window` slots. Three rules make the pair free of
//! deadlock and of any shared index:
//!
//! 1. A requester has at most `window` requests whose completion it has not seen.
//! 2. A responder handles requests in order and writes at most one message into the
//!    reply ring for each of them: its reply, or a credit, where a handler does not reply
//!    and half a window is owed, or there is nothing else to do, or a part of a bulk
//!    transfer has left its cell. The slot of that message was reserved when the request
//!    was accepted, so a reply never waits.
//! 3. Each such message says how many requests were handled so far. Requests are seen
//!    as complete only through it, in ring order.
//!
//! From 1 and 3 follows that neither ring ever holds more than `window` unread
//! messages (the tests drive this against a model of the rings).

/// The right to write one message into a ring: a slot of it is free, and is this message's.
///
/// [`Credits`] and [`Ledger`] give them out, and a writer takes one for each message. There is no other way to have
/// one:
///
/// ```compile_fail,E0423
/// let credit = netdyno_protocol::am::Credit(());
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the slot stays taken until a message is written into it"]
pub struct Credit(());

/// The requester's half: how many requests may still be issued to one peer.
#[derive(Clone, Copy, Debug)]
pub struct Credits {
    window: u32,
    sent: u64,
    completed: u64,
}

/// A peer said that it handled requests that were never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overclaim;

impl Credits {
    /// Credits for a `window` of requests, none of them sent yet.
    pub const fn new(window: u32) -> Self {
        Self { window, sent: 0, completed: 0 }
    }

    /// Requests sent whose completion has not been seen.
    #[inline]
    pub const fn in_flight(&self) -> u32 {
        (self.sent - self.completed) as u32
    }

    /// Requests sent so far: the next one is of this number, counted from 0.
    #[inline]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Requests that are known to be complete: all up to this number, without it.
    #[inline]
    pub const fn completed(&self) -> u64 {
        self.completed
    }

    /// Whether one more request may be sent.
    #[inline]
    pub const fn has_room(&self) -> bool {
        self.in_flight() < self.window
    }

    /// Takes the credit of one request; `None` where the window is full.
    #[inline]
    pub const fn take(&mut self) -> Option<Credit> {
        if !self.has_room() {
            return None;
        }
        self.sent += 1;
        Some(Credit(()))
    }

    /// Takes back the credit that was taken last, where its request was not written.
    #[inline]
    pub const fn give_back(&mut self, credit: Credit) {
        debug_assert!(self.sent > self.completed);
        let Credit(()) = credit;
        self.sent -= 1;
    }

    /// Learns from a reply or a credit that `completed` requests (mod 2^16) were
    /// handled. Returns how many of them are news.
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

/// The responder's half: what was handled and what the requester does not know yet.
#[derive(Clone, Copy, Debug)]
pub struct Ledger {
    window: u32,
    handled: u64,
    owed: u32,
}

impl Ledger {
    /// A ledger for a requester with a `window` of requests.
    pub const fn new(window: u32) -> Self {
        Self { window, handled: 0, owed: 0 }
    }

    /// Counts one request as handled; called before its handler, so that its reply
    /// already carries it. Returns the count to put into that reply.
    #[inline]
    pub const fn handle(&mut self) -> u16 {
        self.handled += 1;
        self.owed += 1;
        self.handled as u16
    }

    /// A reply or a credit went out and told everything.
    #[inline]
    pub const fn told(&mut self) {
        self.owed = 0;
    }

    /// Takes the credit of a message in the reply ring, which tells everything. A request that was handled since the
    /// last such message has reserved its slot.
    #[inline]
    pub const fn answer(&mut self) -> Credit {
        debug_assert!(self.owed > 0);
        self.told();
        Credit(())
    }

    /// Whether an explicit credit is due: half the window is owed and nothing flowed
    /// back that could have carried it.
    #[inline]
    pub const fn credit_is_due(&self) -> bool {
        self.owed * 2 >= self.window
    }

    /// Whether anything is owed, to be told when there is time.
    pub const fn is_owing(&self) -> bool {
        self.owed > 0
    }

    /// The count to put into a credit.
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
        /// Any interleaving: no ring ever holds more than its slots, and once both
        /// sides have caught up, every credit is back.
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
