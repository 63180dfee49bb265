//! One request after another: poll once, issue, compute.
//!
//! A count is the time from one reply to a later one. The requester handles both while all requesters of
//! the step are active, so that beginning and end of the stream are not part of it. The count consists of
//! whole windows, because a stream that its window limits receives its replies one window at a time. Whole
//! windows also make clock readings rare.

use super::{Course, Member};
use crate::contention::data::Timed;
use crate::layer::{LayerError, Work};
use crate::stats::median;

/// Number of batches by which a delay is measured, and number of delays in a batch.
const GAUGES: usize = 9;
const DELAYS: u32 = 8;
/// The queues fill in at least this many messages, however small the window.
const FILLING: usize = 32;
/// Messages of a delayed stream between two clock readings. They take less than a time slice.
const DELAYED: u64 = 16;

#[derive(Clone, Copy, Debug)]
enum StreamTurn {
    /// Completed delays of the batch, and the time at which the batch began.
    Gauge {
        done: u32,
        began: u64,
    },
    Poll,
    Issue,
    Compute,
    Idle,
}

#[derive(Debug)]
pub(super) struct Stream {
    delay: Option<Work>,
    /// The delay as measured without messages, batch by batch.
    delay_ns: Vec<f64>,
    turn: StreamTurn,
    /// Index of the peer that gets the next request.
    next: usize,
    /// True if the last poll found a reply.
    has_found: bool,
    /// Cost of a poll that finds nothing, in nanoseconds.
    poll_ns: f64,
    /// Number of replies right after a poll that found nothing, since counting began.
    late: u64,
    replies: u64,
    /// The point at which counting began.
    mark: Option<Mark>,
    /// Time per message between consecutive clock readings since then, for a delayed stream.
    stretches_ns: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    began: u64,
    /// Number of replies up to then.
    replies: u64,
    /// Time of the latest clock reading.
    last: u64,
}

impl Stream {
    pub(super) fn new(delay: Option<Work>, poll_ns: f64) -> Self {
        let turn = if delay.is_some() { StreamTurn::Gauge { done: 0, began: 0 } } else { StreamTurn::Poll };
        Self {
            delay,
            delay_ns: Vec::new(),
            turn,
            next: 0,
            has_found: false,
            poll_ns,
            late: 0,
            replies: 0,
            mark: None,
            stretches_ns: Vec::new(),
        }
    }

    #[inline(always)]
    pub(super) fn advance<M: Member>(
        &mut self,
        course: &mut Course,
        member: &mut M,
    ) -> Result<bool, LayerError> {
        match self.turn {
            StreamTurn::Gauge { done, began } => self.gauge(course, member, done, began),
            StreamTurn::Poll => {
                let had_found = std::mem::replace(&mut self.has_found, course.poll(member)?);
                if self.has_found {
                    self.late += u64::from(!had_found && self.mark.is_some());
                    self.note_reply(course, member)?;
                }
                self.turn = match (course.is_stopping(), self.has_found) {
                    (false, _) => StreamTurn::Issue,
                    (true, true) => StreamTurn::Poll,
                    (true, false) => StreamTurn::Idle,
                };
                if course.is_stopping() && course.in_flight == 0 {
                    course.phase = super::Phase::Done;
                }
            }
            StreamTurn::Issue => {
                let peer = course.assignment.peers[self.next];
                if course.issue(member, peer)? {
                    self.next = (self.next + 1) % course.assignment.peers.len();
                    self.turn = if self.delay.is_some() { StreamTurn::Compute } else { StreamTurn::Poll };
                } else {
                    self.turn = if self.has_found { StreamTurn::Poll } else { StreamTurn::Idle };
                }
            }
            StreamTurn::Compute => {
                if let Some(delay) = self.delay {
                    member.compute(delay);
                }
                self.turn = StreamTurn::Poll;
            }
            StreamTurn::Idle => {
                self.turn = StreamTurn::Poll;
                return member.idle();
            }
        }
        Ok(false)
    }

    fn gauge<M: Member>(&mut self, course: &Course, member: &mut M, done: u32, began: u64) {
        let now = member.now();
        if done == DELAYS {
            self.delay_ns.push((course.ns(now - began) - course.timer_ns) / f64::from(DELAYS));
            self.turn = StreamTurn::Gauge { done: 0, began: now };
            if self.delay_ns.len() == GAUGES {
                self.turn = StreamTurn::Poll;
            }
        } else if let Some(delay) = self.delay {
            let began = if done == 0 { now } else { began };
            self.turn = StreamTurn::Gauge { done: done + 1, began };
            member.compute(delay);
        }
    }

    #[inline(always)]
    fn note_reply<M: Member>(&mut self, course: &mut Course, member: &mut M) -> Result<(), LayerError> {
        self.replies += 1;
        // After this many replies every queue that the window can fill is full, even if one stage is only
        // slightly slower than the others.
        if self.replies == 2 * course.window.max(FILLING) as u64 {
            course.is_warm_now();
        }
        if !course.is_counting() {
            return Ok(());
        }
        let Some(mark) = &mut self.mark else {
            let now = member.now();
            self.mark = Some(Mark { began: now, replies: self.replies, last: now });
            return Ok(());
        };
        let replies = self.replies - mark.replies;
        let stride = match self.delay {
            None => (course.window * course.assignment.peers.len()) as u64,
            Some(_) => DELAYED,
        };
        if !replies.is_multiple_of(stride) {
            return Ok(());
        }
        let now = member.now();
        if self.delay.is_some() {
            self.stretches_ns.push((course.ns(now - mark.last) - course.timer_ns) / stride as f64);
        }
        mark.last = now;
        let took_ns = course.ns(now - mark.began);
        let is_enough = course.assignment.enough.is_some_and(|enough| replies >= enough);
        if is_enough || took_ns >= course.assignment.count_ns {
            let ns = self.per_message_ns(took_ns, replies);
            course.has_counted(vec![Timed { ns, samples: replies }])?;
            if let Some(counted) = &mut course.counted {
                counted.polls_ns = self.late as f64 * self.poll_ns / replies as f64;
            }
        }
        Ok(())
    }

    /// Returns the time per message in nanoseconds.
    ///
    /// Without delay it is the time of the whole count over its replies. It includes time in which the
    /// requester had no processor. With a delay it is the time in which the processor is busy beside the
    /// delay. The median over the stretches excludes time without a processor.
    fn per_message_ns(&mut self, took_ns: f64, replies: u64) -> f64 {
        match self.delay {
            None => took_ns / replies as f64,
            Some(_) => median(std::mem::take(&mut self.stretches_ns)) - median(self.delay_ns.iter().copied()),
        }
    }
}
