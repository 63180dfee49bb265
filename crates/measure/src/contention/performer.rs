//! The activity of one requester in a step, one call to the layer at a time.
//!
//! Each [`Performer::advance`] ends with its only call of unknown duration (issuing, idling). A caller with
//! several performers can therefore always advance the one with the earliest clock. In this way the same
//! code measures many requesters in one virtual time and processes in real time.

mod bursts;
mod stream;
mod trips;

use super::data::Timed;
use super::member::Member;
use super::step::{Activity, Assignment, Counted};
use crate::layer::{LayerError, Work};
use crate::stats::trimmed_mean;
use bursts::Bursts;
use stream::Stream;
use trips::Trips;

/// Number of clock readings that determine the cost of one.
const READINGS: usize = 200;
/// Number of polls that determine the cost of one that finds nothing.
const POLLS: usize = 32;

/// A requester within a step.
#[derive(Debug)]
pub struct Performer {
    course: Course,
    job: Job,
}

#[derive(Debug)]
enum Job {
    Trips(Trips),
    Bursts(Bursts),
    Stream(Stream),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Warming,
    Warm,
    Counting,
    HasCounted,
    Stopping,
    Done,
}

/// The state that all activities of a requester share.
#[derive(Debug)]
struct Course {
    assignment: Assignment,
    max_window: usize,
    window: usize,
    tick_ns: f64,
    timer_ns: f64,
    rest: Option<Work>,
    phase: Phase,
    in_flight: usize,
    counted: Option<Counted>,
}

impl Performer {
    /// Returns a requester that has not begun.
    pub fn new<M: Member>(member: &mut M, assignment: &Assignment) -> Result<Self, LayerError> {
        if assignment.peers.is_empty() {
            return Err(LayerError::new("a requester without peers"));
        }
        let max_window = member.max_window();
        let window = assignment.window.clamp(1, max_window);
        member.set_window(window);
        let tick_ns = member.tick_ns();
        let course = Course {
            max_window,
            window,
            tick_ns,
            timer_ns: clock_cost(member, tick_ns),
            rest: (assignment.rest_ns > 0.0).then(|| member.work(assignment.rest_ns)),
            phase: Phase::Warming,
            in_flight: 0,
            counted: None,
            assignment: assignment.clone(),
        };
        let job = match assignment.activity {
            Activity::RoundTrips => Job::Trips(Trips::new(&course)),
            Activity::Bursts => Job::Bursts(Bursts::new(&course)),
            Activity::Stream { delay_ns } => {
                let poll_ns = poll_cost(member, &course)?;
                Job::Stream(Stream::new((delay_ns > 0.0).then(|| member.work(delay_ns)), poll_ns))
            }
        };
        Ok(Self { course, job })
    }

    /// Advances to the end of one call to the layer. Returns true if that call yielded the processor, or if
    /// the requester is done.
    #[inline(always)]
    pub fn advance<M: Member>(&mut self, member: &mut M) -> Result<bool, LayerError> {
        if self.is_done() {
            return Ok(true);
        }
        match &mut self.job {
            Job::Trips(trips) => trips.advance(&mut self.course, member),
            Job::Bursts(bursts) => bursts.advance(&mut self.course, member),
            Job::Stream(stream) => stream.advance(&mut self.course, member),
        }
    }

    /// Begins to count, if the requester is warm.
    pub fn count(&mut self) {
        if self.course.phase == Phase::Warm {
            self.course.phase = Phase::Counting;
        }
    }

    /// Ends the activity once every request has its reply.
    pub fn stop(&mut self) {
        if !self.is_done() {
            self.course.phase = Phase::Stopping;
        }
    }

    /// Reports that the requester is in steady activity and may count.
    pub fn is_warm(&self) -> bool {
        self.course.phase != Phase::Warming
    }

    /// Returns the counts, once.
    pub fn take_counted(&mut self) -> Option<Counted> {
        self.course.counted.take()
    }

    /// Reports that the requester has stopped and has all its replies.
    pub fn is_done(&self) -> bool {
        self.course.phase == Phase::Done
    }
}

impl Course {
    fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.tick_ns
    }

    /// Issues a request, if the window has room.
    #[inline(always)]
    fn issue<M: Member>(&mut self, member: &mut M, peer: usize) -> Result<bool, LayerError> {
        let has_gone = member.issue(peer)?;
        self.in_flight += usize::from(has_gone);
        Ok(has_gone)
    }

    /// Handles a reply, if one has arrived.
    #[inline(always)]
    fn poll<M: Member>(&mut self, member: &mut M) -> Result<bool, LayerError> {
        let found = member.poll()?.is_some();
        self.in_flight -= usize::from(found);
        Ok(found)
    }

    fn is_counting(&self) -> bool {
        self.phase == Phase::Counting
    }

    fn is_stopping(&self) -> bool {
        self.phase == Phase::Stopping
    }

    fn is_warm_now(&mut self) {
        if self.phase == Phase::Warming {
            self.phase = Phase::Warm;
        }
    }

    fn has_counted(&mut self, times: Vec<Timed>) -> Result<(), LayerError> {
        if times.iter().any(|timed| !timed.ns.is_finite()) {
            return Err(LayerError::new("the clock stood still while messages were counted"));
        }
        self.phase = Phase::HasCounted;
        self.counted = Some(Counted { times, max_window: self.max_window, polls_ns: 0.0 });
        Ok(())
    }
}

fn clock_cost<M: Member>(member: &mut M, tick_ns: f64) -> f64 {
    trimmed_mean((0..READINGS).map(|_| {
        let start = member.now();
        (member.now() - start) as f64 * tick_ns
    }))
}

/// Returns the cost of a poll that finds nothing, in nanoseconds. The requester has issued nothing yet.
fn poll_cost<M: Member>(member: &mut M, course: &Course) -> Result<f64, LayerError> {
    let mut poll = || {
        let start = member.now();
        member.poll()?;
        Ok(course.ns(member.now() - start) - course.timer_ns)
    };
    let polls: Vec<f64> = (0..POLLS).map(|_| poll()).collect::<Result<_, LayerError>>()?;
    Ok(trimmed_mean(polls).max(0.0))
}
