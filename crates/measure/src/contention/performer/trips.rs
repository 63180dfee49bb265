//! Single round trips, several with each peer in turn.

use super::{Course, Member, Phase};
use crate::contention::data::Timed;
use crate::layer::LayerError;
use crate::stats::trimmed_mean;

/// Number of consecutive round trips with one peer. One more round trip before them does not count.
const TRIPS: usize = 8;
/// Number of round trips after which the requester is warm.
const WARM: usize = 10;

#[derive(Clone, Copy, Debug)]
enum TripTurn {
    Issue,
    Await { issued: u64 },
    Idle { issued: u64 },
    Rest,
}

#[derive(Debug)]
pub(super) struct Trips {
    turn: TripTurn,
    /// Index of the current peer, and the number of trips with it so far.
    peer: usize,
    trip: usize,
    total: usize,
    began: Option<u64>,
    times_ns: Vec<Vec<f64>>,
}

impl Trips {
    pub(super) fn new(course: &Course) -> Self {
        let times_ns = vec![Vec::new(); course.assignment.peers.len()];
        Self { turn: TripTurn::Issue, peer: 0, trip: 0, total: 0, began: None, times_ns }
    }

    #[inline(always)]
    pub(super) fn advance<M: Member>(
        &mut self,
        course: &mut Course,
        member: &mut M,
    ) -> Result<bool, LayerError> {
        match self.turn {
            TripTurn::Issue if course.is_stopping() => course.phase = Phase::Done,
            TripTurn::Issue => {
                let issued = member.now();
                if course.is_counting() && self.began.is_none() {
                    (self.began, self.peer, self.trip) = (Some(issued), 0, 0);
                }
                if !course.issue(member, course.assignment.peers[self.peer])? {
                    return Err(LayerError::new("a window without requests has no room"));
                }
                // A poll now would find nothing, and delay the next one.
                self.turn = TripTurn::Idle { issued };
            }
            TripTurn::Await { issued } => {
                if course.poll(member)? {
                    let now = member.now();
                    self.note(course, issued, now)?;
                    self.turn = if course.rest.is_some() { TripTurn::Rest } else { TripTurn::Issue };
                } else {
                    self.turn = TripTurn::Idle { issued };
                }
            }
            TripTurn::Idle { issued } => {
                self.turn = TripTurn::Await { issued };
                return member.idle();
            }
            TripTurn::Rest => {
                if let Some(rest) = course.rest {
                    member.compute(rest);
                }
                self.turn = TripTurn::Issue;
            }
        }
        Ok(false)
    }

    fn note(&mut self, course: &mut Course, issued: u64, now: u64) -> Result<(), LayerError> {
        self.total += 1;
        if self.total == WARM {
            course.is_warm_now();
        }
        let began = self.began.filter(|_| course.is_counting());
        if began.is_some() && self.trip > 0 {
            self.times_ns[self.peer].push(course.ns(now - issued) - course.timer_ns);
        }
        self.trip = (self.trip + 1) % (TRIPS + 1);
        if self.trip > 0 {
            return Ok(());
        }
        self.peer = (self.peer + 1) % course.assignment.peers.len();
        let Some(began) = began.filter(|_| self.peer == 0) else { return Ok(()) };
        let is_enough =
            course.assignment.enough.is_some_and(|enough| self.times_ns[0].len() as u64 >= enough);
        if is_enough || course.ns(now - began) >= course.assignment.count_ns {
            let timed =
                |times_ns: Vec<f64>| Timed { samples: times_ns.len() as u64, ns: trimmed_mean(times_ns) };
            course.has_counted(std::mem::take(&mut self.times_ns).into_iter().map(timed).collect())?;
        }
        Ok(())
    }
}
