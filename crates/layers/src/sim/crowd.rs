//! Many simulated interfaces in one virtual time: a launch without processes. The code that measures
//! processes in real time measures their requesters, one call at a time. The requester whose time is the
//! earliest makes the next call.

use super::check_time;
use super::time::in_virtual_time;
use netdyno_measure::contention::data::CrowdData;
use netdyno_measure::contention::direct::{CrowdPlan, direct};
use netdyno_measure::contention::member::Member;
use netdyno_measure::contention::performer::Performer;
use netdyno_measure::contention::places::Places;
use netdyno_measure::contention::step::{Counted, Step};
use netdyno_measure::layer::LayerError;
use netdyno_protocol::sim::{Crowd, Truth};

/// Messages that all requesters together count in a step. They are few, because virtual time has little
/// noise.
const ENOUGH: u64 = 2000;

/// Measures one launch of `plan.procs` interfaces, with messages of `size_bytes`.
///
/// # Errors
/// The simulated interfaces have nothing in flight while a requester waits.
pub fn launch(
    truth: Truth,
    size_bytes: usize,
    plan: &CrowdPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<CrowdData, LayerError> {
    let mut crowd = Crowd::new(truth, plan.procs, size_bytes, plan.seed);
    // No time limit holds in virtual time.
    let places = Places::by_rank(plan.procs);
    direct(
        plan,
        &places,
        Some(ENOUGH),
        &mut |step| run(&mut crowd, truth.window, step),
        &mut || false,
        progress,
    )
}

/// Runs a step: all requesters warm up, then all of them count, then all of them stop.
fn run(crowd: &mut Crowd, max_window: usize, step: &Step) -> Result<Vec<Counted>, LayerError> {
    crowd.meet();
    let mut performers = Vec::new();
    for (rank, assignment) in &step.requesters {
        performers.push(Performer::new(&mut SimMember { crowd, rank: *rank, max_window }, assignment)?);
    }
    let mut active: Vec<usize> = step.requesters.iter().map(|(rank, _)| *rank).collect();
    let at_of = |rank: usize| step.requesters.iter().position(|(other, _)| *other == rank).unwrap_or(0);
    let mut counted = vec![None; performers.len()];
    let mut is_warm = vec![false; performers.len()];
    let stuck = |_| LayerError::new("the simulated interfaces have nothing under way");
    while !active.is_empty() {
        let rank = crowd.turn(&active).map_err(stuck)?;
        let at = at_of(rank);
        performers[at].advance(&mut SimMember { crowd, rank, max_window })?;
        if performers[at].is_warm() && !is_warm[at] {
            is_warm[at] = true;
            if is_warm.iter().all(|is_warm| *is_warm) {
                performers.iter_mut().for_each(Performer::count);
            }
        }
        if let Some(news) = performers[at].take_counted() {
            counted[at] = Some(news);
            if counted.iter().all(Option::is_some) {
                performers.iter_mut().for_each(Performer::stop);
            }
        }
        if performers[at].is_done() {
            active.retain(|other| *other != rank);
        }
    }
    Ok(counted.into_iter().flatten().collect())
}

/// One requester of the crowd.
struct SimMember<'a> {
    crowd: &'a mut Crowd,
    rank: usize,
    max_window: usize,
}

in_virtual_time!(SimMember<'_>, crowd, rank);

impl Member for SimMember<'_> {
    fn issue(&mut self, peer: usize) -> Result<bool, LayerError> {
        check_time(self.crowd.now_ps(self.rank))?;
        Ok(self.crowd.issue(self.rank, peer))
    }

    fn poll(&mut self) -> Result<Option<usize>, LayerError> {
        Ok(self.crowd.poll(self.rank))
    }

    /// Waits in virtual time, which passes in [`Crowd::turn`]: the crowd knows whether anything can arrive.
    fn idle(&mut self) -> Result<bool, LayerError> {
        self.crowd.wait(self.rank);
        Ok(false)
    }

    fn max_window(&self) -> usize {
        self.max_window
    }

    fn set_window(&mut self, window: usize) {
        self.crowd.set_window(window);
    }
}
