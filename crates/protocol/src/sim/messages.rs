//! Two processes that exchange messages in virtual time, each over an interface as in
//! [`Interface`](super::Interface):
//!
//! ```text
//! processor ─ o_s ─▶ queue ─▶ send stage (g) ─ L ─▶ receive stage (g) ─▶ ready ─ o_r ─▶ processor
//! ```
//!
//! The local processor is the caller. The remote processor only communicates: it is always inside a
//! call, receives every message, and sends the answers that the message asks for.
//!
//! The parameters say which part of the host moves the data:
//! * Without `offload` a message larger than `eager` starts to move only inside a call of the local
//!   processor that tests or waits without success. A message to the local process also needs a posted
//!   receive. Once started, a message moves by itself.
//! * `steal` is processor time for each byte that arrives. It is taken from the running computation, as
//!   by an interrupt, and the message is ready after it.
//! * `helper` is processor time for each byte that arrives, spent on a spare core.

use super::Stuck;
use super::events::Events;
use super::truth::Truth;
use super::values::Ps;
use crate::random::Random;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

const LOCAL: usize = 0;
const REMOTE: usize = 1;

/// A message, and the answers that it asks of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its length, bytes.
    pub bytes: usize,
    /// How many messages the receiver sends in answer.
    pub answers: usize,
    /// Length of each answer, bytes.
    pub answer_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The send stage of a side is free again, after g and all data of its message.
    SendStageFree(usize),
    /// The last byte of a message reaches the receive stage of a side. The duration is the time since
    /// its first byte.
    Arrive(usize, Message, Ps),
    /// A message has passed the receive stage of a side.
    Passed(usize, Message),
    /// A message is ready for the processor of a side.
    Ready(usize, Message),
    /// The remote processor has received a message.
    Took(Message),
    /// The remote processor has issued one answer to a message. The message has the number of answers
    /// that are left.
    Answered(Message),
}

/// The interface between a side's processor and the wire.
#[derive(Clone, Debug, Default)]
struct Side {
    /// Messages waiting for the send stage, each with its slot.
    queue: VecDeque<(Message, usize)>,
    /// The slot of the message in the send stage.
    sending: Option<usize>,
    /// Time of the last arrival over the wire, which does not reorder.
    wire_last_ps: Ps,
    receive_free_ps: Ps,
    /// Time at which the processor has finished all interrupts so far.
    interrupted_until_ps: Ps,
}

/// The state of a slot for receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receive {
    Free,
    Posted,
    /// A message of this many bytes is ready.
    Ready(usize),
}

/// Two processes that exchange messages, driven by the local processor.
#[derive(Clone, Debug)]
pub struct Messages {
    truth: Truth,
    random: Random,
    events: Events<Event>,
    sides: [Side; 2],
    /// The receives, by slot.
    receives: Vec<Receive>,
    /// Slots of receives without a message, in the order of posting.
    posted: VecDeque<usize>,
    /// How many messages are on their way to the local process.
    incoming: usize,
    /// Lengths of messages that arrived without a receive, bytes.
    unexpected: VecDeque<usize>,
    /// Whether a send is in progress, by slot.
    sends: Vec<bool>,
    /// Messages that start to move in the next call, from the local process and from the remote one.
    held: [VecDeque<(Message, usize)>; 2],
    /// Messages that are ready for the remote processor.
    inbox: VecDeque<Message>,
    remote_is_busy: bool,
    /// Time that interrupts have taken since the last step of [`Messages::compute`].
    stolen_ps: Ps,
    helper_ps: Ps,
}

impl Messages {
    /// Creates two idle processes at time 0, each with `depth` slots for sends and for receives.
    pub fn new(truth: Truth, depth: usize, seed: u64) -> Self {
        Self {
            truth,
            random: Random::new(seed),
            events: Events::new(),
            sides: [Side::default(), Side::default()],
            receives: vec![Receive::Free; depth],
            posted: VecDeque::new(),
            incoming: 0,
            unexpected: VecDeque::new(),
            sends: vec![false; depth],
            held: [VecDeque::new(), VecDeque::new()],
            inbox: VecDeque::new(),
            remote_is_busy: false,
            stolen_ps: 0,
            helper_ps: 0,
        }
    }

    /// Returns the virtual time, ps.
    pub fn now_ps(&self) -> Ps {
        self.events.now()
    }

    /// Returns the processor time that the helper has spent so far, ps.
    pub fn helper_ps(&self) -> Ps {
        self.helper_ps
    }

    /// Keeps the processor busy for `d_ps`, and longer by the time of interrupts.
    pub fn compute(&mut self, d_ps: Ps) {
        let mut left_ps = d_ps + self.sides[LOCAL].interrupted_until_ps.saturating_sub(self.now_ps());
        loop {
            self.stolen_ps = 0;
            self.advance(left_ps);
            left_ps = self.stolen_ps;
            if left_ps == 0 {
                return;
            }
        }
    }

    /// Posts a receive in a free slot.
    pub fn post_receive(&mut self, slot: usize) {
        debug_assert_eq!(self.receives[slot], Receive::Free);
        self.advance(0);
        self.receives[slot] = match self.unexpected.pop_front() {
            Some(bytes) => Receive::Ready(bytes),
            None => {
                self.posted.push_back(slot);
                Receive::Posted
            }
        };
    }

    /// Posts a send in a free slot.
    pub fn post_send(&mut self, slot: usize, message: Message) {
        debug_assert!(!self.sends[slot]);
        let o_s = self.draw(self.truth.o_s_of(message.bytes));
        self.compute(o_s);
        self.sends[slot] = true;
        self.send(LOCAL, message, slot);
    }

    /// Reports whether the receive of a slot is complete; if so, frees the slot.
    pub fn test_receive(&mut self, slot: usize) -> bool {
        if self.receives[slot] == Receive::Posted {
            self.progress();
        }
        match self.receives[slot] {
            Receive::Free => true,
            Receive::Posted => {
                self.compute(self.truth.o_poll_ps);
                false
            }
            Receive::Ready(bytes) => {
                self.receives[slot] = Receive::Free;
                let o_r = self.draw(self.truth.o_r_of(bytes));
                self.compute(o_r);
                true
            }
        }
    }

    /// Reports whether the send of a slot is complete; if so, frees the slot.
    pub fn test_send(&mut self, slot: usize) -> bool {
        if self.sends[slot] {
            self.progress();
            self.compute(self.truth.o_poll_ps);
        }
        !self.sends[slot]
    }

    /// Idles until the receive of a slot is complete.
    pub fn wait_receive(&mut self, slot: usize) -> Result<(), Stuck> {
        self.idle_until(|messages| messages.receives[slot] != Receive::Posted)?;
        self.test_receive(slot);
        Ok(())
    }

    /// Idles until the send of a slot is complete.
    pub fn wait_send(&mut self, slot: usize) -> Result<(), Stuck> {
        self.idle_until(|messages| !messages.sends[slot])
    }

    fn idle_until(&mut self, is_complete: impl Fn(&Self) -> bool) -> Result<(), Stuck> {
        // A call that succeeds at once makes no progress on other messages.
        while !is_complete(self) {
            self.progress();
            if !is_complete(self) && !self.step() {
                return Err(Stuck);
            }
        }
        Ok(())
    }

    /// Makes progress on all messages: starts those that wait for a call.
    fn progress(&mut self) {
        self.advance(0);
        while let Some((message, slot)) = self.held[LOCAL].pop_front() {
            self.enqueue(LOCAL, message, slot);
        }
        while self.incoming < self.posted.len()
            && let Some((message, slot)) = self.held[REMOTE].pop_front()
        {
            self.enqueue(REMOTE, message, slot);
        }
    }

    /// Draws a duration with noise.
    fn draw(&mut self, mean_ps: Ps) -> Ps {
        self.truth.noise.around(mean_ps, &mut self.random)
    }

    /// Advances the time by `d_ps` and processes all events until then.
    fn advance(&mut self, d_ps: Ps) {
        let end_ps = self.now_ps() + d_ps;
        while let Some(event) = self.events.take_until(end_ps) {
            self.process(event);
        }
    }

    /// Advances the time to the next event and processes it. Returns `false` if there is none.
    fn step(&mut self) -> bool {
        self.events.take().map(|event| self.process(event)).is_some()
    }

    fn process(&mut self, event: Event) {
        match event {
            Event::SendStageFree(side) => {
                let sent = self.sides[side].sending.take();
                if side == LOCAL
                    && let Some(slot) = sent
                {
                    self.sends[slot] = false;
                }
                self.feed_send_stage(side);
            }
            Event::Arrive(side, message, data_ps) => {
                let g = self.draw(self.truth.g_ps);
                let passed_ps = self.now_ps().max(self.sides[side].receive_free_ps + data_ps);
                self.sides[side].receive_free_ps = passed_ps + g;
                self.events.schedule(passed_ps, Event::Passed(side, message));
            }
            Event::Passed(side, message) => self.interrupt(side, message),
            Event::Ready(LOCAL, message) => {
                self.incoming -= 1;
                match self.posted.pop_front() {
                    Some(slot) => self.receives[slot] = Receive::Ready(message.bytes),
                    None => self.unexpected.push_back(message.bytes),
                }
            }
            Event::Ready(_, message) => {
                self.inbox.push_back(message);
                self.feed_remote_processor();
            }
            Event::Took(message) => self.answer(message),
            Event::Answered(message) => {
                let answer = Message { bytes: message.answer_bytes, answers: 0, answer_bytes: 0 };
                self.send(REMOTE, answer, 0);
                self.answer(message);
            }
        }
    }

    /// Spends the processor time for the arrival of a message, on the side's processor and on the
    /// helper.
    fn interrupt(&mut self, side: usize, message: Message) {
        let taken_ps = self.draw(self.truth.steal_of(message.bytes));
        let until_ps = self.now_ps().max(self.sides[side].interrupted_until_ps) + taken_ps;
        self.sides[side].interrupted_until_ps = until_ps;
        if side == LOCAL {
            self.stolen_ps += taken_ps;
            self.helper_ps += self.draw(self.truth.helper_of(message.bytes));
        }
        self.events.schedule(until_ps, Event::Ready(side, message));
    }

    /// Reports whether a message only starts to move inside a call of the local processor.
    fn needs_call(&self, message: &Message) -> bool {
        !self.truth.offload && message.bytes > self.truth.eager_bytes
    }

    fn send(&mut self, side: usize, message: Message, slot: usize) {
        // Messages do not overtake each other.
        if self.needs_call(&message) || !self.held[side].is_empty() {
            self.held[side].push_back((message, slot));
        } else {
            self.enqueue(side, message, slot);
        }
    }

    fn enqueue(&mut self, side: usize, message: Message, slot: usize) {
        self.incoming += usize::from(side == REMOTE);
        self.sides[side].queue.push_back((message, slot));
        self.feed_send_stage(side);
    }

    fn feed_send_stage(&mut self, side: usize) {
        if self.sides[side].sending.is_some() {
            return;
        }
        let Some((message, slot)) = self.sides[side].queue.pop_front() else { return };
        self.sides[side].sending = Some(slot);
        let (g, l) = (self.draw(self.truth.g_ps), self.draw(self.truth.l_of(message.bytes)));
        let data = self.draw(self.truth.data_of(message.bytes));
        self.events.schedule_after(g + data, Event::SendStageFree(side));
        let arrival_ps = (self.now_ps() + data + l).max(self.sides[side].wire_last_ps);
        self.sides[side].wire_last_ps = arrival_ps;
        self.events.schedule(arrival_ps, Event::Arrive(1 - side, message, data));
    }

    fn feed_remote_processor(&mut self) {
        if self.remote_is_busy {
            return;
        }
        let Some(message) = self.inbox.pop_front() else { return };
        self.remote_is_busy = true;
        let o_r = self.draw(self.truth.o_r_of(message.bytes));
        self.events.schedule_after(o_r, Event::Took(message));
    }

    /// Lets the remote processor issue the next answer to `message`, or receive the next message.
    fn answer(&mut self, message: Message) {
        let Some(left) = message.answers.checked_sub(1) else {
            self.remote_is_busy = false;
            self.feed_remote_processor();
            return;
        };
        let o_s = self.draw(self.truth.o_s_of(message.answer_bytes));
        self.events.schedule_after(o_s, Event::Answered(Message { answers: left, ..message }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    const US: Ps = 1_000_000;
    const BASE: &str = "o_s=1us,o_r=2us,g=5us,L=7us,G=1us/B";

    fn messages(rest: &str) -> Messages {
        Messages::new(format!("{BASE}{rest}").parse().unwrap(), 4, 0)
    }

    fn asking(bytes: usize, answers: usize) -> Message {
        Message { bytes, answers, answer_bytes: bytes }
    }

    /// Posts a receive and a send, computes, and waits for both. Returns the time after each of these
    /// three steps.
    fn cycle(m: &mut Messages, message: Message, d_ps: Ps) -> [Ps; 3] {
        m.post_receive(0);
        m.post_send(0, message);
        let posted = m.now_ps();
        m.compute(d_ps);
        let computed = m.now_ps();
        m.wait_receive(0).unwrap();
        m.wait_send(0).unwrap();
        [posted, computed, m.now_ps()]
    }

    #[test]
    fn a_round_trip_takes_twice_the_one_way_time() {
        for rest in ["", ",offload=off"] {
            let mut m = messages(rest);
            assert_eq!(cycle(&mut m, asking(11, 1), 0), [US, US, 2 * (1 + 10 + 7 + 2) * US], "{rest}");
            assert_eq!(m.wait_receive(1), Ok(()), "nothing was posted there");
            m.post_receive(1);
            assert_eq!(m.wait_receive(1), Err(Stuck));
        }
    }

    #[test]
    fn messages_move_behind_computation_where_they_are_offloaded() {
        let mut m = messages("");
        assert_eq!(cycle(&mut m, asking(11, 1), 100 * US), [US, 101 * US, 103 * US]);
        let mut m = messages(",offload=off");
        assert_eq!(cycle(&mut m, asking(11, 1), 100 * US), [US, 101 * US, (101 + 39) * US]);
        let mut m = messages(",offload=off,eager=11");
        assert_eq!(cycle(&mut m, asking(11, 1), 100 * US), [US, 101 * US, 103 * US]);
    }

    #[test]
    fn an_interrupt_takes_time_from_computation() {
        let mut m = messages(",steal=2us/B,helper=3us/B");
        assert_eq!(cycle(&mut m, asking(11, 1), 100 * US), [US, 123 * US, 125 * US]);
        assert_eq!(m.helper_ps(), 33 * US);
        let mut m = messages(",steal=2us/B");
        let [.., done] = cycle(&mut m, asking(11, 1), 0);
        assert_eq!(done, 2 * (1 + 10 + 7 + 22 + 2) * US, "it is on the way of a message as well");
    }

    #[test]
    fn the_remote_side_sends_what_it_is_asked_for() {
        let mut m = messages("");
        for slot in 0..2 {
            m.post_receive(slot);
        }
        m.post_send(0, asking(11, 2));
        assert!(!m.test_receive(0) && !m.test_send(0));
        m.wait_receive(0).unwrap();
        assert_eq!(m.now_ps(), 40 * US);
        m.wait_receive(1).unwrap();
        // The stages are occupied by g and the data of the first message before those of the second.
        assert_eq!(m.now_ps(), 55 * US);
        m.post_receive(0);
        m.post_send(0, asking(11, 0));
        assert_eq!(m.wait_receive(0), Err(Stuck));
    }

    #[test]
    fn a_message_that_comes_before_its_receive_waits_for_it() {
        let mut m = messages("");
        m.post_send(0, asking(11, 1));
        m.compute(100 * US);
        m.post_receive(3);
        assert!(m.test_receive(3));
        assert_eq!(m.now_ps(), 103 * US);
    }
}
