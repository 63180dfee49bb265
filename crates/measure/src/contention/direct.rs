//! The steps of one launch.
//!
//! The first launch chooses the parameters of the steps ([`CrowdShape`]). Each launch then measures the
//! round trips of every pair. After that it makes rounds: each round runs every stream once, in another
//! order. Drift of the machine therefore cancels out of the ratios within a launch.

use super::data::{CrowdData, CrowdShape, PairTimes, PairsAtOnce, Round, Timed};
use super::places::Places;
use super::step::{Activity, Assignment, Counted, Step};
use crate::layer::LayerError;
use crate::steady;
use serde::{Deserialize, Serialize};

/// Number of rounds.
const ROUNDS: usize = 3;
/// The window of a stream is this many times the requests that fit on the way, and at least
/// `WINDOW_AT_LEAST`.
const WINDOW_OVER_DEPTH: f64 = 4.0;
const WINDOW_AT_LEAST: usize = 64;
/// The delay of a delayed stream, as a multiple of the time per message without delay.
const DELAY_OVER_PLATEAU: f64 = 2.0;
/// The window of the pilot stream, which determines the depth of the pipeline.
const PILOT_WINDOW: usize = 1024;
/// The smallest number of windows in a count that is limited by messages.
const WINDOWS: u64 = 2;
/// Shares of the launch's time budget for the round trips of every pair, and for the rounds.
const TRIPS_SHARE: f64 = 0.2;
const ROUNDS_SHARE: f64 = 0.6;
/// The shortest and the longest time for which a stream is counted.
const COUNT_AT_LEAST_NS: f64 = 1e6;
const COUNT_AT_MOST_NS: f64 = 20e6;

/// The smallest number of processes that have a bisection.
pub(super) const BISECTED_FROM: usize = 4;

/// The plan of one launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CrowdPlan {
    /// The index in the order of launches.
    pub launch: usize,
    /// Number of processes, at least 2.
    pub procs: usize,
    /// Parameters of the steps, if an earlier launch of the run chose them.
    pub shape: Option<CrowdShape>,
    /// Time budget of the whole launch, in nanoseconds.
    pub budget_ns: f64,
    /// Seed of the order of steps.
    pub seed: u64,
}

/// The activity of one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Trips,
    Bursts,
    DelayedStream,
    Stream,
}

const ALL_DOINGS: [Doing; 4] = [Doing::Trips, Doing::Bursts, Doing::DelayedStream, Doing::Stream];

/// A part of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Alone(Doing),
    HalfWindow,
    Halves(Doing),
    OneToMany,
    ManyToOne { requesters: usize },
    Pairs { at: usize, pairs: usize },
    Across,
    Neighbours,
}

/// Directs one launch.
///
/// `places` are those of the processes. `run` executes a step and returns the counts of its requesters, in their
/// order. `enough` is the number of messages that completes the count of a stream, whatever the time. `is_over`
/// reports that the launch's time is up; no further round begins then, except the first one.
pub fn direct<E: From<LayerError>>(
    plan: &CrowdPlan,
    places: &Places,
    enough: Option<u64>,
    run: &mut dyn FnMut(&Step) -> Result<Vec<Counted>, E>,
    is_over: &mut dyn FnMut() -> bool,
    progress: &mut dyn FnMut(f64),
) -> Result<CrowdData, E> {
    let parts = parts(plan.procs);
    let share_ns = ROUNDS_SHARE * plan.budget_ns / (ROUNDS * parts.len()) as f64;
    let mut director = Director {
        plan,
        places,
        enough,
        count_ns: share_ns.clamp(COUNT_AT_LEAST_NS, COUNT_AT_MOST_NS),
        shape: CrowdShape::default(),
        run,
    };
    director.shape = match &plan.shape {
        Some(shape) => shape.clone(),
        None => director.choose_shape()?,
    };
    let steps = (plan.procs + ROUNDS * parts.len()) as f64;
    let mut data = CrowdData {
        launch: plan.launch,
        procs: plan.procs,
        shape: director.shape.clone(),
        order: places.order.clone(),
        bisected_by: places.by,
        ..CrowdData::default()
    };
    for requester in 0..plan.procs {
        data.rtt.push(director.trips_of(requester)?);
        progress((requester + 1) as f64 / steps);
    }
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut order = parts.clone();
    for nth in 0..ROUNDS {
        if nth > 0 && is_over() {
            break;
        }
        random.shuffle(&mut order);
        let mut round = Round::empty(plan.procs);
        for (done, &part) in order.iter().enumerate() {
            director.part(part, &mut round)?;
            progress((plan.procs + nth * parts.len() + done + 1) as f64 / steps);
        }
        data.rounds.push(round);
    }
    Ok(data)
}

fn parts(procs: usize) -> Vec<Part> {
    let mut parts = vec![Part::HalfWindow, Part::OneToMany];
    parts.extend(ALL_DOINGS.map(Part::Alone));
    parts.extend(ALL_DOINGS.map(Part::Halves));
    parts.extend((1..procs).map(|requesters| Part::ManyToOne { requesters }));
    // Fewer processes have the same pairs in both patterns.
    if procs >= BISECTED_FROM {
        parts.extend([Part::Across, Part::Neighbours]);
    }
    parts.extend(in_between(procs).enumerate().map(|(at, pairs)| Part::Pairs { at, pairs }));
    parts
}

/// Returns the powers of two between one pair and all pairs.
fn in_between(procs: usize) -> impl Iterator<Item = usize> {
    (1..).map(|log| 1 << log).take_while(move |&pairs| pairs < procs / 2)
}

impl Round {
    fn empty(procs: usize) -> Self {
        Self {
            halves: vec![PairTimes::default(); procs / 2],
            many_to_one: vec![Vec::new(); procs - 1],
            pairs: in_between(procs).map(|pairs| PairsAtOnce { pairs, streams: Vec::new() }).collect(),
            ..Self::default()
        }
    }
}

struct Director<'a, E> {
    plan: &'a CrowdPlan,
    places: &'a Places,
    enough: Option<u64>,
    count_ns: f64,
    shape: CrowdShape,
    run: &'a mut dyn FnMut(&Step) -> Result<Vec<Counted>, E>,
}

impl<E: From<LayerError>> Director<'_, E> {
    /// Chooses the parameters of the steps from measurements of one pair alone.
    fn choose_shape(&mut self) -> Result<CrowdShape, E> {
        let all = self.run_step(vec![(0, self.assignment(Doing::Stream, vec![1], PILOT_WINDOW))])?;
        let (plateau_ns, max_window) = (all[0].times[0].ns.max(steady::SHORTEST_NS), all[0].max_window);
        let back_to_back_ns = self.alone(Doing::Trips)?.ns;
        self.shape.rest_ns = steady::rest_ns(plateau_ns, back_to_back_ns);
        let rtt_ns = if self.shape.rest_ns > 0.0 { self.alone(Doing::Trips)?.ns } else { back_to_back_ns };
        let depth = (WINDOW_OVER_DEPTH * rtt_ns / plateau_ns).ceil() as usize;
        let to_ps = |ns: f64| (ns * 1e3).round() / 1e3;
        Ok(CrowdShape {
            window: depth.next_power_of_two().max(WINDOW_AT_LEAST).min(max_window),
            delay_ns: to_ps(DELAY_OVER_PLATEAU * plateau_ns),
            rest_ns: to_ps(self.shape.rest_ns),
        })
    }

    /// Measures the round trips of `requester` with every other process.
    fn trips_of(&mut self, requester: usize) -> Result<Vec<Option<Timed>>, E> {
        let peers: Vec<usize> = (0..self.plan.procs).filter(|&peer| peer != requester).collect();
        let mut assignment = self.assignment(Doing::Trips, peers, self.shape.window);
        if self.enough.is_none() {
            assignment.count_ns = TRIPS_SHARE * self.plan.budget_ns / self.plan.procs as f64;
        }
        let counted = self.run_step(vec![(requester, assignment)])?;
        let mut times: Vec<Option<Timed>> = counted[0].times.iter().copied().map(Some).collect();
        times.insert(requester, None);
        Ok(times)
    }

    fn part(&mut self, part: Part, round: &mut Round) -> Result<(), E> {
        match part {
            Part::Alone(Doing::Stream) => {
                let step = vec![(0, self.assignment(Doing::Stream, vec![1], self.shape.window))];
                let counted = &self.run_step(step)?[0];
                (round.alone.stream, round.alone.polls_ns) = (counted.times[0], counted.polls_ns);
            }
            Part::Alone(doing) => *round.alone.of_mut(doing) = self.alone(doing)?,
            Part::HalfWindow => {
                let window = steady::smaller_window(self.shape.window).max(1);
                let step = vec![(0, self.assignment(Doing::Stream, vec![1], window))];
                round.half_window = self.run_step(step)?[0].times[0];
            }
            Part::Halves(doing) => {
                let times = self.pairs(doing, self.plan.procs / 2)?;
                for (pair, timed) in round.halves.iter_mut().zip(times) {
                    *pair.of_mut(doing) = timed;
                }
            }
            Part::OneToMany => {
                let peers = (1..self.plan.procs).collect();
                let step = vec![(0, self.assignment(Doing::Stream, peers, self.shape.window))];
                round.one_to_many = self.run_step(step)?[0].times[0];
            }
            Part::ManyToOne { requesters } => {
                let step = (1..=requesters)
                    .map(|rank| (rank, self.assignment(Doing::Stream, vec![0], self.shape.window)));
                let counted = self.run_step(step.collect())?;
                round.many_to_one[requesters - 1] = counted.iter().map(|counted| counted.times[0]).collect();
            }
            Part::Pairs { at, pairs } => round.pairs[at].streams = self.pairs(Doing::Stream, pairs)?,
            Part::Across => round.across = self.between(Doing::Stream, &self.places.across())?,
            Part::Neighbours => round.neighbours = self.between(Doing::Stream, &self.places.neighbours())?,
        }
        Ok(())
    }

    /// Measures rank 0 with rank 1 alone.
    fn alone(&mut self, doing: Doing) -> Result<Timed, E> {
        Ok(self.pairs(doing, 1)?[0])
    }

    /// Measures `pairs` pairs at once: requester 2i, replier 2i + 1.
    fn pairs(&mut self, doing: Doing, pairs: usize) -> Result<Vec<Timed>, E> {
        let pairs: Vec<(usize, usize)> = (0..pairs).map(|pair| (2 * pair, 2 * pair + 1)).collect();
        self.between(doing, &pairs)
    }

    /// Measures these pairs of requester and replier at once.
    fn between(&mut self, doing: Doing, pairs: &[(usize, usize)]) -> Result<Vec<Timed>, E> {
        let assigned = |&(requester, replier): &(usize, usize)| {
            (requester, self.assignment(doing, vec![replier], self.shape.window))
        };
        let step = pairs.iter().map(assigned);
        let counted = self.run_step(step.collect())?;
        Ok(counted.iter().map(|counted| counted.times[0]).collect())
    }

    fn assignment(&self, doing: Doing, peers: Vec<usize>, window: usize) -> Assignment {
        Assignment {
            peers,
            activity: match doing {
                Doing::Trips => Activity::RoundTrips,
                Doing::Bursts => Activity::Bursts,
                Doing::DelayedStream => Activity::Stream { delay_ns: self.shape.delay_ns },
                Doing::Stream => Activity::Stream { delay_ns: 0.0 },
            },
            window,
            rest_ns: self.shape.rest_ns,
            // A count that messages limit has no time limit.
            count_ns: if self.enough.is_some() { f64::INFINITY } else { self.count_ns },
            enough: self.enough,
        }
    }

    /// Runs a step and checks that every requester returned all its counts. Divides the number of messages
    /// in `enough` among all counted requesters and peers.
    fn run_step(&mut self, mut requesters: Vec<(usize, Assignment)>) -> Result<Vec<Counted>, E> {
        let count = requesters.len() as u64;
        for (_, assignment) in &mut requesters {
            let window = assignment.window as u64;
            assignment.enough = self.enough.map(|enough| match assignment.activity {
                Activity::RoundTrips => enough / (count * assignment.peers.len() as u64),
                Activity::Bursts => enough / (count * 32),
                Activity::Stream { .. } => (enough / count).max(WINDOWS * window),
            });
        }
        let step = Step { requesters };
        let counted = (self.run)(&step)?;
        let wanted = step.requesters.iter().map(|(_, assignment)| match assignment.activity {
            Activity::RoundTrips => assignment.peers.len(),
            Activity::Bursts | Activity::Stream { .. } => 1,
        });
        if counted.len() != step.requesters.len() || !counted.iter().map(|c| c.times.len()).eq(wanted) {
            return Err(LayerError::new("a requester has not brought what it was asked for").into());
        }
        Ok(counted)
    }
}

impl PairTimes {
    fn of_mut(&mut self, doing: Doing) -> &mut Timed {
        match doing {
            Doing::Trips => &mut self.rtt,
            Doing::Bursts => &mut self.o_s,
            Doing::DelayedStream => &mut self.busy,
            Doing::Stream => &mut self.stream,
        }
    }
}
