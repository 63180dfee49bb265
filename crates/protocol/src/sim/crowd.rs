//! Many processors with a network interface each, in one virtual time. Any two of them are connected as
//! in [`Interface`](super::Interface):
//!
//! ```text
//! processor ─ o_s ─▶ queue ─▶ send stage (g) ─ L ─▶ receive stage (g) ─▶ ready ─ o_r ─▶ processor
//! ```
//!
//! Each byte but the first of a message occupies the stages for G longer, as in that model.
//!
//! At any time a node is either a requester or a replier. The calls of a requester take virtual time. A
//! replier answers every request as soon as its processor is free. The requester with the earliest time
//! calls next ([`Crowd::turn`]), so that no call takes place before an event that was already
//! processed. The model has no formula for the effect of contention on the gap. This makes it an
//! independent test of the instrument.

use super::Stuck;
use super::events::Events;
use super::truth::Truth;
use super::values::Ps;
use crate::random::Random;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// A message in flight.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: usize,
    to: usize,
    is_reply: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A processor has issued a message.
    Issued(Message),
    /// The send stage of a node is free again, after g and the data of its message.
    SendStageFree(usize),
    /// The last byte of a message reaches the receive stage of its destination. The duration is the
    /// time since its first byte.
    Arrive(Message, Ps),
    /// A message has passed the receive stage of its destination.
    Ready(Message),
    /// The processor of a node has received a request and issued this reply.
    Replied(Message),
}

/// The activity of a requester's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It may call at its time.
    Nothing,
    /// It idles until a reply is ready.
    Waiting,
    /// It issues a request to this node as soon as there is room before its send stage.
    Stalled(usize),
}

#[derive(Clone, Debug)]
struct Node {
    /// The time of its processor, valid while the node is a requester.
    now_ps: Ps,
    doing: Doing,
    /// Messages waiting for the send stage.
    queue: VecDeque<Message>,
    stage_is_busy: bool,
    /// Times of the last arrival at each node over the wire, which does not reorder.
    wire_last_ps: Vec<Ps>,
    receive_free_ps: Ps,
    /// The senders of the replies that are ready for the processor.
    replies: VecDeque<usize>,
    /// The senders of the requests that are ready for the processor.
    requests: VecDeque<usize>,
    is_answering: bool,
    /// Requests without a reply, by destination.
    in_flight: Vec<usize>,
}

/// The nodes and the events between them.
#[derive(Clone, Debug)]
pub struct Crowd {
    truth: Truth,
    random: Random,
    events: Events<Event>,
    nodes: Vec<Node>,
    /// Length of a request, and of a reply, bytes.
    bytes: usize,
    window: usize,
}

impl Crowd {
    /// Creates `procs` idle nodes at time 0, with a separate wire between each pair of them. Requests
    /// and replies have `bytes` bytes.
    pub fn new(truth: Truth, procs: usize, bytes: usize, seed: u64) -> Self {
        let node = Node {
            now_ps: 0,
            doing: Doing::Nothing,
            queue: VecDeque::new(),
            stage_is_busy: false,
            wire_last_ps: vec![0; procs],
            receive_free_ps: 0,
            replies: VecDeque::new(),
            requests: VecDeque::new(),
            is_answering: false,
            in_flight: vec![0; procs],
        };
        Self {
            truth,
            random: Random::new(seed),
            events: Events::new(),
            nodes: vec![node; procs],
            bytes,
            window: truth.window,
        }
    }

    /// Returns the virtual time of a node's processor, ps.
    pub fn now_ps(&self, node: usize) -> Ps {
        self.nodes[node].now_ps
    }

    /// Limits the requests without a reply, from each node to each other, to `window`.
    pub fn set_window(&mut self, window: usize) {
        self.window = window;
    }

    /// Processes all events, and sets all processors to one time at which every stage is free.
    pub fn meet(&mut self) {
        while self.step() {}
        let free_ps = self.nodes.iter().map(|node| node.now_ps.max(node.receive_free_ps));
        let last_ps = free_ps.fold(self.events.now(), Ps::max);
        for node in &mut self.nodes {
            (node.now_ps, node.doing) = (last_ps, Doing::Nothing);
        }
    }

    /// Advances the time until one of `requesters` may call, and returns the earliest.
    pub fn turn(&mut self, requesters: &[usize]) -> Result<usize, Stuck> {
        loop {
            let free = requesters.iter().copied().filter(|&rank| self.nodes[rank].doing == Doing::Nothing);
            let earliest = free.min_by_key(|&rank| (self.nodes[rank].now_ps, rank));
            let next_ps = self.events.next_at();
            match (earliest, next_ps) {
                (Some(rank), Some(at_ps)) if at_ps > self.nodes[rank].now_ps => return Ok(rank),
                (Some(rank), None) => return Ok(rank),
                (None, None) => return Err(Stuck),
                _ => self.step(),
            };
        }
    }

    /// Keeps the processor of `node` busy for `d_ps`.
    pub fn compute(&mut self, node: usize, d_ps: Ps) {
        self.nodes[node].now_ps += d_ps;
    }

    /// Issues a request of `node`. The processor waits while the queue before its send stage is full.
    /// Returns `false`, and takes no time, if the window is full.
    pub fn issue(&mut self, node: usize, to: usize) -> bool {
        if self.nodes[node].in_flight[to] >= self.window {
            return false;
        }
        self.nodes[node].in_flight[to] += 1;
        if self.has_room(node) {
            self.begin_to_issue(node, to)
        } else {
            self.nodes[node].doing = Doing::Stalled(to)
        }
        true
    }

    /// Receives one reply of `node`, if one is ready, and returns its sender.
    pub fn poll(&mut self, node: usize) -> Option<usize> {
        let Some(from) = self.nodes[node].replies.pop_front() else {
            self.nodes[node].now_ps += self.truth.o_poll_ps;
            return None;
        };
        self.nodes[node].now_ps += self.draw(self.truth.o_r_of(self.bytes));
        self.nodes[node].in_flight[from] -= 1;
        Some(from)
    }

    /// Idles until a reply for `node` is ready.
    pub fn wait(&mut self, node: usize) {
        if self.nodes[node].replies.is_empty() {
            self.nodes[node].doing = Doing::Waiting;
        }
    }

    fn has_room(&self, node: usize) -> bool {
        self.nodes[node].queue.len() < self.truth.capacity
    }

    fn begin_to_issue(&mut self, node: usize, to: usize) {
        let o_s = self.draw(self.truth.o_s_of(self.bytes));
        let from = &mut self.nodes[node];
        from.doing = Doing::Nothing;
        from.now_ps += o_s;
        self.events.schedule(from.now_ps, Event::Issued(Message { from: node, to, is_reply: false }));
    }

    /// Draws a duration with noise.
    fn draw(&mut self, mean_ps: Ps) -> Ps {
        self.truth.noise.around(mean_ps, &mut self.random)
    }

    /// Processes the next event. Returns `false` if there is none.
    fn step(&mut self) -> bool {
        let Some(event) = self.events.take() else { return false };
        match event {
            Event::Issued(request) => self.enqueue(request),
            Event::SendStageFree(node) => {
                self.nodes[node].stage_is_busy = false;
                self.feed_send_stage(node);
                self.go_on(node);
            }
            Event::Arrive(message, data_ps) => {
                let (now_ps, g) = (self.events.now(), self.draw(self.truth.g_ps));
                let node = &mut self.nodes[message.to];
                let ready_ps = now_ps.max(node.receive_free_ps + data_ps);
                node.receive_free_ps = ready_ps + g;
                if ready_ps > now_ps {
                    self.events.schedule(ready_ps, Event::Ready(message));
                } else {
                    self.ready(message);
                }
            }
            Event::Ready(message) => self.ready(message),
            Event::Replied(reply) => {
                self.nodes[reply.from].is_answering = false;
                self.enqueue(reply);
                self.answer(reply.from);
            }
        }
        true
    }

    fn enqueue(&mut self, message: Message) {
        self.nodes[message.from].queue.push_back(message);
        self.feed_send_stage(message.from);
    }

    fn feed_send_stage(&mut self, node: usize) {
        if self.nodes[node].stage_is_busy {
            return;
        }
        let Some(message) = self.nodes[node].queue.pop_front() else { return };
        self.nodes[node].stage_is_busy = true;
        let (g, l) = (self.draw(self.truth.g_ps), self.draw(self.truth.l_of(self.bytes)));
        let data = match self.truth.data_of(self.bytes) {
            0 => 0,
            mean => self.draw(mean),
        };
        self.events.schedule_after(g + data, Event::SendStageFree(node));
        let last_ps = &mut self.nodes[node].wire_last_ps[message.to];
        *last_ps = (self.events.now() + data + l).max(*last_ps);
        self.events.schedule(*last_ps, Event::Arrive(message, data));
    }

    /// Lets a stalled processor continue if there is room.
    fn go_on(&mut self, node: usize) {
        if let Doing::Stalled(to) = self.nodes[node].doing
            && self.has_room(node)
        {
            self.nodes[node].now_ps = self.nodes[node].now_ps.max(self.events.now());
            self.begin_to_issue(node, to);
        }
    }

    fn ready(&mut self, message: Message) {
        let node = &mut self.nodes[message.to];
        if message.is_reply {
            node.replies.push_back(message.from);
            if node.doing == Doing::Waiting {
                node.doing = Doing::Nothing;
                node.now_ps = node.now_ps.max(self.events.now());
            }
        } else {
            node.requests.push_back(message.from);
            self.answer(message.to);
        }
    }

    fn answer(&mut self, node: usize) {
        if self.nodes[node].is_answering {
            return;
        }
        let Some(to) = self.nodes[node].requests.pop_front() else { return };
        self.nodes[node].is_answering = true;
        let busy = self.draw(self.truth.o_r_of(self.bytes)) + self.draw(self.truth.o_s_of(self.bytes));
        self.events.schedule_after(busy, Event::Replied(Message { from: node, to, is_reply: true }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Interface;
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    const US: Ps = 1_000_000;

    fn crowd(text: &str, procs: usize) -> Crowd {
        Crowd::new(text.parse().unwrap(), procs, 1, 0)
    }

    #[test]
    fn a_round_trip_takes_twice_the_one_way_time() {
        let mut crowd = crowd("o_s=1us,o_r=2us,g=5us,L=7us", 3);
        assert!(crowd.issue(2, 1));
        crowd.wait(2);
        assert_eq!((crowd.turn(&[2]), crowd.now_ps(2)), (Ok(2), 18 * US));
        assert_eq!((crowd.poll(2), crowd.now_ps(2)), (Some(1), 20 * US));
        crowd.wait(2);
        assert_eq!(crowd.turn(&[2]), Err(Stuck));
    }

    #[test]
    fn a_receiver_takes_one_message_in_a_gap_whoever_sent_it() {
        let mut crowd = crowd("o_s=1us,o_r=2us,g=50us,L=7us", 4);
        for rank in [1, 2, 3] {
            assert!(crowd.issue(rank, 0));
            crowd.wait(rank);
        }
        for (rank, expected_us) in [(1, 20), (2, 70), (3, 120)] {
            assert_eq!(crowd.turn(&[1, 2, 3]), Ok(rank));
            crowd.poll(rank);
            assert_eq!(crowd.now_ps(rank), expected_us * US);
            crowd.wait(rank);
        }
    }

    #[test]
    fn pairs_do_not_notice_each_other() {
        let mut crowd = crowd("o_s=1us,o_r=2us,g=50us,L=7us", 4);
        for (requester, replier) in [(0, 1), (2, 3)] {
            crowd.issue(requester, replier);
            crowd.wait(requester);
        }
        for rank in [0, 2] {
            assert_eq!(crowd.turn(&[0, 2]), Ok(rank));
            crowd.poll(rank);
            assert_eq!(crowd.now_ps(rank), 20 * US);
            crowd.wait(rank);
        }
    }

    #[test]
    fn windows_are_those_of_pairs() {
        let mut crowd = crowd("o_s=1us,o_r=2us,g=5us,L=7us,window=1", 3);
        assert!(crowd.issue(0, 1) && !crowd.issue(0, 1) && crowd.issue(0, 2));
    }

    /// The next call of a requester.
    #[derive(Clone, Copy, Debug)]
    enum Call {
        Issue,
        Poll,
        Wait,
        Compute(u32),
    }

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let call = prop_oneof![
            4 => Just(Call::Issue),
            3 => Just(Call::Poll),
            2 => Just(Call::Wait),
            1 => (0..20_000u32).prop_map(Call::Compute),
        ];
        proptest::collection::vec(call, 1..200)
    }

    proptest! {
        /// A crowd of two behaves as [`Interface`], whose parameters the LogP signature recovers.
        #[test]
        fn two_are_an_interface(
            calls in calls(), o_s in 1..3000u32, o_r in 1..3000u32, g in 0..9000u32, l in 0..30_000u32,
            capacity in 1..5usize, window in 1..40usize, per_byte in 0..200u32, bytes in 1..40usize,
        ) {
            let text = format!("o_s={o_s}ns,o_r={o_r}ns,g={g}ns,L={l}ns,capacity={capacity},window={window},o_poll=7ns,G={per_byte}ns/B,O_s=2ns/B,O_r={per_byte}ns/B,change=20,change_L=900ns");
            let truth: Truth = text.parse().unwrap();
            let (mut interface, mut crowd) = (Interface::new(truth, 0), Crowd::new(truth, 2, bytes, 0));
            interface.set_sizes(bytes, bytes);
            for call in calls {
                prop_assert_eq!(crowd.turn(&[0]), Ok(0));
                match call {
                    Call::Issue => prop_assert_eq!(interface.issue(), crowd.issue(0, 1)),
                    Call::Poll => prop_assert_eq!(interface.poll(), crowd.poll(0).is_some()),
                    Call::Wait => {
                        if interface.in_flight() > 0 {
                            prop_assert_eq!(interface.wait(), Ok(()));
                            crowd.wait(0);
                            prop_assert_eq!(crowd.turn(&[0]), Ok(0));
                            prop_assert_eq!(crowd.poll(0), Some(1));
                        }
                    }
                    Call::Compute(ns) => {
                        interface.compute(Ps::from(ns) * 1000);
                        crowd.compute(0, Ps::from(ns) * 1000);
                    }
                }
                prop_assert_eq!(crowd.turn(&[0]), Ok(0));
                prop_assert_eq!(interface.now_ps(), crowd.now_ps(0));
            }
        }
    }
}
