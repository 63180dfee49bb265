//! A discrete-event model of two processors with a network interface each (Culler et al. 1996, figure
//! 1):
//!
//! ```text
//! processor ─ o_s ─▶ queue ─▶ send stage (g) ─ L ─▶ receive stage (g) ─▶ ready ─ o_r ─▶ processor
//! ```
//!
//! Each byte but the first of a message occupies the stages for G longer (LogGP). Bytes flow: each
//! arrives L after it has left, and the receive stage takes it on arrival.
//!
//! The local processor is the caller: each of its calls takes virtual time. The remote processor
//! answers every request as soon as it is free. The model has no formula for the time of a burst. This
//! makes it an independent test of the instrument.

use super::events::Events;
use super::truth::Truth;
use super::values::Ps;
use crate::random::Random;

const LOCAL: usize = 0;
const REMOTE: usize = 1;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The send stage of a side is free again, after g and the data of its message.
    SendStageFree(usize),
    /// The last byte of a message reaches the receive stage of a side. The duration is the time since
    /// its first byte.
    Arrive(usize, Ps),
    /// A message has passed the receive stage of a side.
    Ready(usize),
    /// The remote processor has received a request and issued its reply.
    RemoteReplied,
}

#[derive(Clone, Debug, Default)]
struct Side {
    /// Messages waiting for the send stage.
    queued: usize,
    stage_is_busy: bool,
    /// Time of the last arrival over the wire, which does not reorder.
    wire_last_ps: Ps,
    receive_free_ps: Ps,
    /// Messages that are ready for the processor.
    ready: usize,
}

/// No event is left that could end a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck;

/// The simulated interface, driven by the local processor.
#[derive(Clone, Debug)]
pub struct Interface {
    truth: Truth,
    random: Random,
    events: Events<Event>,
    sides: [Side; 2],
    /// Length of the messages that each side sends, bytes.
    sizes: [usize; 2],
    remote_is_busy: bool,
    window: usize,
    in_flight: usize,
    /// Time that the calls and computations of each side have taken.
    busy_ps: [Ps; 2],
    /// Messages of both sides.
    messages: u64,
}

/// The time that processors have spent so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessorTime {
    /// The process that issues requests, ps.
    pub local_ps: f64,
    /// The process that answers them, ps.
    pub remote_ps: f64,
    /// Soft interrupts on a third processor, ps.
    pub softirq_ps: f64,
}

impl Interface {
    /// Creates an idle interface at time 0.
    pub fn new(truth: Truth, seed: u64) -> Self {
        Self {
            truth,
            random: Random::new(seed),
            events: Events::new(),
            sides: [Side::default(), Side::default()],
            sizes: [1, 1],
            remote_is_busy: false,
            window: truth.window,
            in_flight: 0,
            busy_ps: [0; 2],
            messages: 0,
        }
    }

    /// Returns the virtual time, ps.
    pub fn now_ps(&self) -> Ps {
        self.events.now()
    }

    /// Returns the number of requests without a reply.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Limits the requests without a reply to `window`.
    pub fn set_window(&mut self, window: usize) {
        self.window = window;
    }

    /// Sets the lengths of requests and of replies. No request may be in flight.
    pub fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) {
        debug_assert_eq!(self.in_flight, 0);
        self.sizes = [request_bytes, reply_bytes];
    }

    /// Keeps the processor busy for `d_ps`. The events until then happen meanwhile.
    pub fn compute(&mut self, d_ps: Ps) {
        self.busy_ps[LOCAL] += d_ps;
        self.pass(d_ps);
    }

    /// Returns the processor time so far. A process that waits is as busy as the model parameters say.
    pub fn processor_time(&self) -> ProcessorTime {
        let time = |busy_ps: Ps| {
            let waited_ps = self.now_ps() as f64 - busy_ps as f64;
            busy_ps as f64 + self.truth.spin * waited_ps
        };
        let [local_ps, remote_ps] = self.busy_ps.map(time);
        ProcessorTime { local_ps, remote_ps, softirq_ps: self.messages as f64 * self.truth.softirq_ps as f64 }
    }

    /// Lets `d_ps` pass. The events until then happen meanwhile.
    pub fn pass(&mut self, d_ps: Ps) {
        let end_ps = self.now_ps() + d_ps;
        while let Some(event) = self.events.take_until(end_ps) {
            self.process(event);
        }
    }

    /// Issues a request, after waiting while the queue before the send stage is full. Returns `false`,
    /// and takes no time, if the window is full.
    pub fn issue(&mut self) -> bool {
        if self.in_flight >= self.window {
            return false;
        }
        while self.sides[LOCAL].queued >= self.truth.capacity {
            // A full queue means a busy stage, and its end is one of the events.
            if !self.step() {
                break;
            }
        }
        let o_s = self.draw(self.truth.o_s_of(self.sizes[LOCAL]));
        self.compute(o_s);
        self.in_flight += 1;
        self.enqueue(LOCAL);
        true
    }

    /// Receives one reply, if one is ready. Returns whether there was one.
    pub fn poll(&mut self) -> bool {
        // A reply may be ready at this very time.
        self.compute(0);
        if self.sides[LOCAL].ready == 0 {
            self.compute(self.truth.o_poll_ps);
            return false;
        }
        self.sides[LOCAL].ready -= 1;
        let o_r = self.draw(self.truth.o_r_of(self.sizes[REMOTE]));
        self.compute(o_r);
        self.in_flight -= 1;
        true
    }

    /// Idles until a reply is ready and receives it.
    ///
    /// # Errors
    /// Returns `Stuck` if no reply can come.
    pub fn wait(&mut self) -> Result<(), Stuck> {
        while self.sides[LOCAL].ready == 0 {
            if !self.step() {
                return Err(Stuck);
            }
        }
        self.poll();
        Ok(())
    }

    /// Draws a duration with noise.
    fn draw(&mut self, mean_ps: Ps) -> Ps {
        self.truth.noise.around(mean_ps, &mut self.random)
    }

    /// Advances the time to the next event and processes it. Returns `false` if there is none.
    fn step(&mut self) -> bool {
        self.events.take().map(|event| self.process(event)).is_some()
    }

    fn process(&mut self, event: Event) {
        match event {
            Event::SendStageFree(side) => {
                self.sides[side].stage_is_busy = false;
                self.feed_send_stage(side);
            }
            Event::Arrive(side, data_ps) => {
                let (now_ps, g) = (self.now_ps(), self.draw(self.truth.g_ps));
                let ready_ps = now_ps.max(self.sides[side].receive_free_ps + data_ps);
                self.sides[side].receive_free_ps = ready_ps + g;
                if ready_ps > now_ps {
                    self.events.schedule(ready_ps, Event::Ready(side));
                } else {
                    self.ready(side);
                }
            }
            Event::Ready(side) => self.ready(side),
            Event::RemoteReplied => {
                self.remote_is_busy = false;
                self.enqueue(REMOTE);
                self.feed_remote_processor();
            }
        }
    }

    fn enqueue(&mut self, side: usize) {
        self.messages += 1;
        self.sides[side].queued += 1;
        self.feed_send_stage(side);
    }

    fn feed_send_stage(&mut self, side: usize) {
        if self.sides[side].stage_is_busy || self.sides[side].queued == 0 {
            return;
        }
        self.sides[side].queued -= 1;
        self.sides[side].stage_is_busy = true;
        let bytes = self.sizes[side];
        let (g, l) = (self.draw(self.truth.g_ps), self.draw(self.truth.l_of(bytes)));
        let data = match self.truth.data_of(bytes) {
            0 => 0,
            mean => self.draw(mean),
        };
        self.events.schedule_after(g + data, Event::SendStageFree(side));
        let arrival_ps = (self.now_ps() + data + l).max(self.sides[side].wire_last_ps);
        self.sides[side].wire_last_ps = arrival_ps;
        self.events.schedule(arrival_ps, Event::Arrive(1 - side, data));
    }

    fn ready(&mut self, side: usize) {
        self.sides[side].ready += 1;
        if side == REMOTE {
            self.feed_remote_processor();
        }
    }

    fn feed_remote_processor(&mut self) {
        if self.remote_is_busy || self.sides[REMOTE].ready == 0 {
            return;
        }
        self.sides[REMOTE].ready -= 1;
        self.remote_is_busy = true;
        let (o_r, o_s) = (self.truth.o_r_of(self.sizes[LOCAL]), self.truth.o_s_of(self.sizes[REMOTE]));
        let busy = self.draw(o_r) + self.draw(o_s);
        self.busy_ps[REMOTE] += busy;
        self.events.schedule_after(busy, Event::RemoteReplied);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    const US: Ps = 1_000_000;

    fn interface(text: &str) -> Interface {
        Interface::new(text.parse().unwrap(), 0)
    }

    #[test]
    fn a_round_trip_takes_twice_the_one_way_time() {
        let mut i = interface("o_s=1us,o_r=2us,g=5us,L=7us");
        assert!(i.issue());
        assert_eq!(i.now_ps(), US);
        i.wait().unwrap();
        assert_eq!(i.now_ps(), 20 * US);
        assert_eq!(i.wait(), Err(Stuck));
    }

    /// Alexandrov et al. 1995: two consecutive messages of k bytes take o + (k-1)G + g + (k-1)G + L +
    /// o.
    #[test]
    fn bytes_flow_and_hold_up_the_next_message() {
        let mut i = interface("o_s=1us,o_r=2us,g=5us,L=7us,G=1us/B");
        i.set_sizes(11, 1);
        i.issue();
        i.issue();
        assert_eq!(i.now_ps(), 2 * US, "the processor does not carry the data");
        i.wait().unwrap();
        assert_eq!(i.now_ps(), 30 * US);
        i.wait().unwrap();
        assert_eq!(i.now_ps(), 45 * US);
        i.set_sizes(1, 11);
        i.issue();
        i.wait().unwrap();
        assert_eq!(i.now_ps(), (45 + 30) * US);
    }

    #[test]
    fn a_processor_that_carries_the_data_is_busy_with_them() {
        let mut i = interface("o_s=1us,o_r=2us,g=5us,L=7us,O_s=1us/B,O_r=2us/B,change=12,change_L=4us");
        i.set_sizes(11, 11);
        i.issue();
        assert_eq!(i.now_ps(), 11 * US);
        i.wait().unwrap();
        assert_eq!(i.now_ps(), 2 * (11 + 7 + 22) * US);
        i.set_sizes(12, 1);
        i.issue();
        i.wait().unwrap();
        assert_eq!(i.now_ps(), (80 + 12 + 11 + 24 + 1 + 7 + 2) * US);
    }

    #[test]
    fn a_process_is_busy_in_its_calls_and_as_it_waits() {
        let times = |rest: &str| {
            let mut i = interface(&format!("o_s=1us,o_r=2us,g=5us,L=7us{rest}"));
            i.issue();
            i.wait().unwrap();
            i.pass(20 * US);
            i.processor_time()
        };
        let of = |local, remote, softirq| ProcessorTime {
            local_ps: local * US as f64,
            remote_ps: remote * US as f64,
            softirq_ps: softirq * US as f64,
        };
        assert_eq!(times(""), of(3.0, 3.0, 0.0));
        assert_eq!(times(",spin=1,softirq=4us"), of(40.0, 40.0, 8.0));
        assert_eq!(times(",spin=0.5"), of(21.5, 21.5, 0.0));
    }

    #[test]
    fn the_issuer_waits_once_the_queue_is_full() {
        // One message in the stage and two in the queue: the fourth waits for the stage.
        let mut i = interface("o_s=1us,o_r=2us,g=50us,L=7us,capacity=2");
        for expected_us in [1, 2, 3, 52] {
            i.issue();
            assert_eq!(i.now_ps(), expected_us * US);
        }
    }

    #[test]
    fn replies_are_a_gap_apart() {
        let mut i = interface("o_s=1us,o_r=2us,g=50us,L=7us");
        for _ in 0..3 {
            i.issue();
        }
        for expected_us in [20, 70, 120] {
            i.wait().unwrap();
            assert_eq!(i.now_ps(), expected_us * US);
        }
    }

    #[test]
    fn a_full_window_takes_no_time() {
        let mut i = interface("o_s=1us,o_r=2us,g=5us,L=7us,window=1");
        assert!(i.issue());
        assert!(!i.issue());
        assert_eq!(i.now_ps(), US);
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let run = |seed| {
            let mut i = Interface::new("o_s=1us,o_r=2us,g=5us,L=7us,noise=0.1".parse().unwrap(), seed);
            for _ in 0..100 {
                i.issue();
                i.wait().unwrap();
            }
            i.now_ps()
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }
}
