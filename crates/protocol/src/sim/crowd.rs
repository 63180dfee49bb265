//! Many processors with a network interface each, in one virtual time: the model of
//! [`Interface`](super::Interface), between any two of them.
//!
//! ```text
//! processor ─ o_s ─▶ queue ─▶ send stage (g) ─ L ─▶ receive stage (g) ─▶ ready ─ o_r ─▶ processor
//! ```
//!
//! Each byte but the first of a message occupies the stages for G longer, as there.
//!
//! At any time a node is a requester, whose calls take virtual time, or it answers every
//! request as soon as its processor is free. Requesters take turns: whoever is earliest calls
//! next ([`Crowd::turn`]), so that nothing a call does comes after something that happened
//! later. Nothing here knows what contention does to a gap; that is what makes it a test.

use super::Stuck;
use super::random::Random;
use super::truth::{Ps, Truth};
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    from: usize,
    to: usize,
    is_reply: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A processor has issued a message.
    Issued(Message),
    /// The send stage of a node has taken g and may take the next message.
    SendStageFree(usize),
    /// The last byte of a message, this long after its first, reaches the receive stage of its
    /// node.
    Arrive(Message, Ps),
    /// A message has passed the receive stage of its node.
    Ready(Message),
    /// The processor of a node has received a request and issued this reply.
    Replied(Message),
}

/// What the processor of a requester does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It may call at its time.
    Nothing,
    /// It idles until a reply is ready.
    Waiting,
    /// It has a request to this node to issue once there is room in front of its send stage.
    Stalled(usize),
}

#[derive(Clone, Debug)]
struct Node {
    /// The time of its processor, while that is a requester's.
    now_ps: Ps,
    doing: Doing,
    /// Messages in front of the send stage.
    queue: VecDeque<Message>,
    stage_is_busy: bool,
    /// When the wire delivered last to each node: it does not reorder.
    wire_last_ps: Vec<Ps>,
    receive_free_ps: Ps,
    /// Who has sent the replies that the processor may receive.
    replies: VecDeque<usize>,
    /// Who has sent the requests that the processor may receive.
    requests: VecDeque<usize>,
    is_answering: bool,
    /// Requests without a reply, by whom they went to.
    in_flight: Vec<usize>,
}

/// The nodes and all that is between them.
#[derive(Clone, Debug)]
pub struct Crowd {
    truth: Truth,
    random: Random,
    events: BinaryHeap<Reverse<(Ps, u64, Event)>>,
    event_count: u64,
    nodes: Vec<Node>,
    /// Bytes of a request, and of a reply.
    bytes: usize,
    window: usize,
}

impl Crowd {
    /// `procs` idle nodes at time 0, each pair of them joined by a wire of its own, for requests
    /// and replies of so many bytes.
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
            events: BinaryHeap::new(),
            event_count: 0,
            nodes: vec![node; procs],
            bytes,
            window: truth.window,
        }
    }

    /// Virtual time of a node's processor.
    pub fn now_ps(&self, node: usize) -> Ps {
        self.nodes[node].now_ps
    }

    /// Limits the requests of each node to each other that are without a reply to `window`.
    pub fn set_window(&mut self, window: usize) {
        self.window = window;
    }

    /// Lets all that is under way happen, and all processors go on from the same time, at
    /// which every stage is free.
    pub fn meet(&mut self) {
        let mut last_ps =
            self.nodes.iter().map(|node| node.now_ps.max(node.receive_free_ps)).max().unwrap_or(0);
        while let Some(at_ps) = self.step() {
            last_ps = last_ps.max(at_ps);
        }
        for node in &mut self.nodes {
            last_ps = last_ps.max(node.receive_free_ps);
        }
        for node in &mut self.nodes {
            (node.now_ps, node.doing) = (last_ps, Doing::Nothing);
        }
    }

    /// Lets time pass until one of `requesters` may call, and names it: the earliest.
    pub fn turn(&mut self, requesters: &[usize]) -> Result<usize, Stuck> {
        loop {
            let free = requesters.iter().copied().filter(|&rank| self.nodes[rank].doing == Doing::Nothing);
            let earliest = free.min_by_key(|&rank| (self.nodes[rank].now_ps, rank));
            let next_ps = self.events.peek().map(|Reverse((at_ps, ..))| *at_ps);
            match (earliest, next_ps) {
                (Some(rank), Some(at_ps)) if at_ps > self.nodes[rank].now_ps => return Ok(rank),
                (Some(rank), None) => return Ok(rank),
                (None, None) => return Err(Stuck),
                _ => self.step(),
            };
        }
    }

    /// Lets the processor of `node` compute for `d_ps`.
    pub fn compute(&mut self, node: usize, d_ps: Ps) {
        self.nodes[node].now_ps += d_ps;
    }

    /// Issues a request of `node`; its processor is not free before the queue in front of its
    /// send stage has had room. False, and no time taken, where the window is full.
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

    /// Receives one reply of `node` if one is there, and says whose it is.
    pub fn poll(&mut self, node: usize) -> Option<usize> {
        let Some(from) = self.nodes[node].replies.pop_front() else {
            self.nodes[node].now_ps += self.truth.o_poll_ps;
            return None;
        };
        self.nodes[node].now_ps += self.draw(self.truth.o_r_of(self.bytes));
        self.nodes[node].in_flight[from] -= 1;
        Some(from)
    }

    /// Idles until a reply of `node` is there.
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
        let at_ps = from.now_ps;
        self.schedule(at_ps, Event::Issued(Message { from: node, to, is_reply: false }));
    }

    /// A duration with its noise.
    fn draw(&mut self, mean_ps: Ps) -> Ps {
        self.truth.noise.around(mean_ps, &mut self.random)
    }

    fn schedule(&mut self, at_ps: Ps, event: Event) {
        self.event_count += 1;
        self.events.push(Reverse((at_ps, self.event_count, event)));
    }

    /// Lets the next event happen; says when that was, or `None` where there is none.
    fn step(&mut self) -> Option<Ps> {
        let Reverse((at_ps, _, event)) = self.events.pop()?;
        match event {
            Event::Issued(request) => self.enqueue(request, at_ps),
            Event::SendStageFree(node) => {
                self.nodes[node].stage_is_busy = false;
                self.feed_send_stage(node, at_ps);
                self.go_on(node, at_ps);
            }
            Event::Arrive(message, data_ps) => {
                let g = self.draw(self.truth.g_ps);
                let node = &mut self.nodes[message.to];
                let ready_ps = at_ps.max(node.receive_free_ps + data_ps);
                node.receive_free_ps = ready_ps + g;
                if ready_ps > at_ps {
                    self.schedule(ready_ps, Event::Ready(message));
                } else {
                    self.ready(message, at_ps);
                }
            }
            Event::Ready(message) => self.ready(message, at_ps),
            Event::Replied(reply) => {
                self.nodes[reply.from].is_answering = false;
                self.enqueue(reply, at_ps);
                self.answer(reply.from, at_ps);
            }
        }
        Some(at_ps)
    }

    fn enqueue(&mut self, message: Message, at_ps: Ps) {
        self.nodes[message.from].queue.push_back(message);
        self.feed_send_stage(message.from, at_ps);
    }

    fn feed_send_stage(&mut self, node: usize, at_ps: Ps) {
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
        self.schedule(at_ps + g + data, Event::SendStageFree(node));
        let last_ps = &mut self.nodes[node].wire_last_ps[message.to];
        *last_ps = (at_ps + data + l).max(*last_ps);
        let arrival_ps = *last_ps;
        self.schedule(arrival_ps, Event::Arrive(message, data));
    }

    /// A processor that was stalled goes on once there is room.
    fn go_on(&mut self, node: usize, at_ps: Ps) {
        if let Doing::Stalled(to) = self.nodes[node].doing
            && self.has_room(node)
        {
            self.nodes[node].now_ps = self.nodes[node].now_ps.max(at_ps);
            self.begin_to_issue(node, to);
        }
    }

    fn ready(&mut self, message: Message, at_ps: Ps) {
        let node = &mut self.nodes[message.to];
        if message.is_reply {
            node.replies.push_back(message.from);
            if node.doing == Doing::Waiting {
                node.doing = Doing::Nothing;
                node.now_ps = node.now_ps.max(at_ps);
            }
        } else {
            node.requests.push_back(message.from);
            self.answer(message.to, at_ps);
        }
    }

    fn answer(&mut self, node: usize, at_ps: Ps) {
        if self.nodes[node].is_answering {
            return;
        }
        let Some(to) = self.nodes[node].requests.pop_front() else { return };
        self.nodes[node].is_answering = true;
        let busy = self.draw(self.truth.o_r_of(self.bytes)) + self.draw(self.truth.o_s_of(self.bytes));
        self.schedule(at_ps + busy, Event::Replied(Message { from: node, to, is_reply: true }));
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

    /// What a requester does next.
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
        /// A crowd of two is the interface whose parameters the LogP signature recovers.
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
