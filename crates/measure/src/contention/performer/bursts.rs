//! Bursts of requests alone, from quiet: the send overhead.

use super::{Course, Member, Phase};
use crate::contention::data::Timed;
use crate::layer::LayerError;
use crate::logp::data::Burst;
use crate::logp::send_overhead::send_overhead;
use crate::stats::trimmed_mean;

/// Numbers of requests in a burst.
const SIZES: [usize; 5] = [1, 2, 4, 8, 16];
/// Each size has at least this many bursts.
const BURSTS_AT_LEAST: usize = 12;
/// The bursts of a size are grouped into at most this many batches.
const BATCHES: usize = 12;

#[derive(Clone, Copy, Debug)]
enum BurstTurn {
    Issue { issued: usize, began: u64 },
    Drain,
    Idle,
    Rest,
}

#[derive(Debug)]
pub(super) struct Bursts {
    turn: BurstTurn,
    /// The bursts by size, and the index of the current one.
    bursts: Vec<Burst>,
    at: usize,
    began: Option<u64>,
}

impl Bursts {
    pub(super) fn new(course: &Course) -> Self {
        let sizes = SIZES.into_iter().filter(|&m| m <= course.window);
        let bursts = sizes.map(|m| Burst { m, ..Burst::default() }).collect();
        Self { turn: BurstTurn::Issue { issued: 0, began: 0 }, bursts, at: 0, began: None }
    }

    #[inline(always)]
    pub(super) fn advance<M: Member>(
        &mut self,
        course: &mut Course,
        member: &mut M,
    ) -> Result<bool, LayerError> {
        match self.turn {
            BurstTurn::Issue { issued: 0, .. } if course.is_stopping() => course.phase = Phase::Done,
            BurstTurn::Issue { issued, began } => {
                let m = self.bursts[self.at].m;
                if issued == m {
                    let now = member.now();
                    self.note(course, began, now);
                    self.turn = BurstTurn::Drain;
                } else {
                    let began = if issued == 0 { self.begin(course, member) } else { began };
                    if !course.issue(member, course.assignment.peers[0])? {
                        return Err(LayerError::new("a window without requests has no room"));
                    }
                    self.turn = BurstTurn::Issue { issued: issued + 1, began };
                }
            }
            BurstTurn::Drain if course.in_flight == 0 => {
                self.next(course, member)?;
                self.turn = if course.rest.is_some() {
                    BurstTurn::Rest
                } else {
                    BurstTurn::Issue { issued: 0, began: 0 }
                };
            }
            BurstTurn::Drain => {
                if !course.poll(member)? {
                    self.turn = BurstTurn::Idle;
                }
            }
            BurstTurn::Idle => {
                self.turn = BurstTurn::Drain;
                return member.idle();
            }
            BurstTurn::Rest => {
                if let Some(rest) = course.rest {
                    member.compute(rest);
                }
                self.turn = BurstTurn::Issue { issued: 0, began: 0 };
            }
        }
        Ok(false)
    }

    /// Begins a burst. Returns the time of its first request.
    fn begin<M: Member>(&mut self, course: &Course, member: &mut M) -> u64 {
        let now = member.now();
        if course.is_counting() && self.began.is_none() {
            (self.began, self.at) = (Some(now), 0);
        }
        // A second clock reading excludes the work above from the burst.
        member.now()
    }

    fn note(&mut self, course: &Course, began: u64, now: u64) {
        if self.began.is_some() && course.is_counting() {
            self.bursts[self.at].issue_ns.push(course.ns(now - began));
        }
    }

    /// Ends the burst once all its replies have arrived, and moves on to the next size.
    fn next<M: Member>(&mut self, course: &mut Course, member: &mut M) -> Result<(), LayerError> {
        self.at = (self.at + 1) % self.bursts.len();
        if self.at > 0 {
            return Ok(());
        }
        course.is_warm_now();
        let Some(began) = self.began.filter(|_| course.is_counting()) else { return Ok(()) };
        let bursts = self.bursts[0].issue_ns.len();
        let is_enough = course.assignment.enough.is_some_and(|enough| bursts as u64 >= enough);
        let is_over = course.ns(member.now() - began) >= course.assignment.count_ns;
        if bursts < BURSTS_AT_LEAST || !(is_enough || is_over) {
            return Ok(());
        }
        let overhead = send_overhead(&self.batched(bursts), course.timer_ns);
        let samples = (overhead.m * bursts) as u64;
        course.has_counted(vec![Timed { ns: overhead.value_ns, samples }])
    }

    /// Returns the bursts in batches, so that an interruption affects one batch only.
    fn batched(&self, bursts: usize) -> Vec<Burst> {
        let per_batch = bursts.div_ceil(BATCHES);
        let batches = |burst: &Burst| {
            burst.issue_ns.chunks(per_batch).map(|batch| trimmed_mean(batch.iter().copied())).collect()
        };
        self.bursts
            .iter()
            .map(|burst| Burst { m: burst.m, per_batch, issue_ns: batches(burst), ..Burst::default() })
            .collect()
    }
}
