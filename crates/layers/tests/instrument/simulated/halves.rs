//! Simulated interfaces on two hosts, in virtual time. All messages between the hosts go through one middle, which takes
//! a message in a time of its own:
//!
//! ```text
//! processor ─ o_s ─▶ send stage (g) ─ L ─▶ middle (m) ─▶ processor: o_r, o_s ─ L ─▶ processor ─ o_r
//! ```
//!
//! Replies do not pass the middle. The model has no noise.

use netdyno_measure::contention::data::CrowdData;
use netdyno_measure::contention::direct::{CrowdPlan, direct};
use netdyno_measure::contention::member::Member;
use netdyno_measure::contention::performer::Performer;
use netdyno_measure::contention::places::Places;
use netdyno_measure::contention::step::{Counted, Step};
use netdyno_measure::layer::{LayerError, Time, Work};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Messages that all requesters together count in a step.
const ENOUGH: u64 = 4000;
/// The largest window that a requester may choose.
const WINDOW: usize = 1 << 16;

/// The model parameters, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub o_s: u64,
    pub o_r: u64,
    pub g: u64,
    pub latency: u64,
    /// The time that the middle takes for a message.
    pub middle: u64,
}

/// A process.
#[derive(Clone, Debug)]
struct Process {
    host: usize,
    /// The time of its processor, if it is a requester.
    now: u64,
    /// When its send stage is free, and when its processor has answered all requests so far.
    stage: u64,
    answered: u64,
    /// The times at which replies are ready, each with the process that sent it.
    replies: BinaryHeap<Reverse<(u64, usize)>>,
    in_flight: Vec<usize>,
}

/// The processes and the middle.
pub struct Halves {
    times: Times,
    processes: Vec<Process>,
    /// When the middle is free.
    middle: u64,
    window: usize,
}

impl Halves {
    /// Returns idle processes, each on the host that `hosts` names.
    pub fn new(times: Times, hosts: &[usize]) -> Self {
        let process = |&host: &usize| Process {
            host,
            now: 0,
            stage: 0,
            answered: 0,
            replies: BinaryHeap::new(),
            in_flight: vec![0; hosts.len()],
        };
        Self { times, processes: hosts.iter().map(process).collect(), middle: 0, window: WINDOW }
    }

    /// Measures one launch of these processes.
    pub fn launch(&mut self, plan: &CrowdPlan, places: &Places) -> CrowdData {
        let mut run = |step: &Step| self.run(step);
        direct(plan, places, Some(ENOUGH), &mut run, &mut || false, &mut |_| {}).unwrap()
    }

    /// Runs a step: all requesters warm up, then all of them count, then all of them stop.
    fn run(&mut self, step: &Step) -> Result<Vec<Counted>, LayerError> {
        self.meet();
        let mut performers = Vec::new();
        for (rank, assignment) in &step.requesters {
            performers.push((*rank, Performer::new(&mut Caller { halves: self, rank: *rank }, assignment)?));
        }
        let mut counted = vec![None; performers.len()];
        loop {
            let active = performers.iter().enumerate().filter(|(_, (_, performer))| !performer.is_done());
            let earliest = active.min_by_key(|(_, (rank, _))| self.processes[*rank].now);
            let Some(at) = earliest.map(|(at, _)| at) else { break };
            let (rank, performer) = &mut performers[at];
            performer.advance(&mut Caller { halves: self, rank: *rank })?;
            counted[at] = performer.take_counted().or(counted[at].take());
            if performers.iter().all(|(_, performer)| performer.is_warm()) {
                performers.iter_mut().for_each(|(_, performer)| performer.count());
            }
            if counted.iter().all(Option::is_some) {
                performers.iter_mut().for_each(|(_, performer)| performer.stop());
            }
        }
        Ok(counted.into_iter().flatten().collect())
    }

    /// Sets all processors to one time at which every stage is free.
    fn meet(&mut self) {
        let free = self.processes.iter().map(|one| one.now.max(one.stage).max(one.answered));
        let latest = free.fold(self.middle, u64::max);
        self.processes.iter_mut().for_each(|one| one.now = latest);
    }

    fn issue(&mut self, from: usize, to: usize) -> bool {
        let Times { o_s, o_r, g, latency, middle } = self.times;
        if self.processes[from].in_flight[to] >= self.window {
            return false;
        }
        let crosses = self.processes[from].host != self.processes[to].host;
        let sender = &mut self.processes[from];
        sender.in_flight[to] += 1;
        sender.now += o_s;
        let departs = sender.now.max(sender.stage);
        sender.stage = departs + g;
        let mut there = departs + latency;
        if crosses {
            there = there.max(self.middle) + middle;
            self.middle = there;
        }
        let replier = &mut self.processes[to];
        replier.answered = there.max(replier.answered) + o_r + o_s;
        let here = replier.answered + latency;
        self.processes[from].replies.push(Reverse((here, to)));
        true
    }
}

/// One requester.
struct Caller<'a> {
    halves: &'a mut Halves,
    rank: usize,
}

impl Caller<'_> {
    fn process(&mut self) -> &mut Process {
        &mut self.halves.processes[self.rank]
    }
}

impl Time for Caller<'_> {
    fn now(&mut self) -> u64 {
        self.process().now
    }

    fn tick_ns(&self) -> f64 {
        1e-3
    }

    fn work(&self, d_ns: f64) -> Work {
        Work((d_ns * 1e3).round() as u64)
    }

    fn compute(&mut self, work: Work) {
        self.process().now += work.0;
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

impl Member for Caller<'_> {
    fn issue(&mut self, peer: usize) -> Result<bool, LayerError> {
        Ok(self.halves.issue(self.rank, peer))
    }

    fn poll(&mut self) -> Result<Option<usize>, LayerError> {
        let o_r = self.halves.times.o_r;
        let process = self.process();
        if process.replies.peek().is_none_or(|Reverse((here, _))| *here > process.now) {
            return Ok(None);
        }
        let reply = process.replies.pop().map(|Reverse((_, from))| from);
        if let Some(from) = reply {
            process.now += o_r;
            process.in_flight[from] -= 1;
        }
        Ok(reply)
    }

    fn idle(&mut self) -> Result<bool, LayerError> {
        let process = self.process();
        let Some(Reverse((here, _))) = process.replies.peek() else {
            return Err(LayerError::new("nothing is under way"));
        };
        process.now = process.now.max(*here);
        Ok(false)
    }

    fn max_window(&self) -> usize {
        WINDOW
    }

    fn set_window(&mut self, window: usize) {
        self.halves.window = window;
    }
}
