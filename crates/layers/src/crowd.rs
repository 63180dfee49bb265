//! A crowd of simulated interfaces in one virtual time: a launch without processes. Its
//! requesters are measured by the code that measures processes in real time, one call at a
//! time, whoever is the earliest.

use netdyno_measure::contention::data::CrowdData;
use netdyno_measure::contention::direct::{CrowdPlan, direct};
use netdyno_measure::contention::member::Member;
use netdyno_measure::contention::performer::Performer;
use netdyno_measure::contention::step::{Counted, Step};
use netdyno_measure::layer::{LayerError, Time, Work};
use netdyno_protocol::sim::{Crowd, Truth};

const PS_PER_NS: f64 = 1e3;
/// Messages that are counted in a step, over all requesters: virtual time has little noise.
const ENOUGH: u64 = 2000;

/// Measures one launch of `plan.procs` interfaces, with messages of `size_bytes`.
pub fn launch(
    truth: Truth,
    size_bytes: usize,
    plan: &CrowdPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<CrowdData, LayerError> {
    let mut crowd = Crowd::new(truth, plan.procs, size_bytes, plan.seed);
    // Nobody waits for virtual time.
    direct(plan, Some(ENOUGH), &mut |step| run(&mut crowd, truth.window, step), &mut || false, progress)
}

/// Runs a step: all requesters warm, then all of them counting, then all of them stopping.
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

/// One requester of the crowd. A tick is a picosecond.
struct SimMember<'a> {
    crowd: &'a mut Crowd,
    rank: usize,
    max_window: usize,
}

impl Time for SimMember<'_> {
    fn now(&mut self) -> u64 {
        self.crowd.now_ps(self.rank)
    }

    fn tick_ns(&self) -> f64 {
        1.0 / PS_PER_NS
    }

    fn work(&self, d_ns: f64) -> Work {
        Work((d_ns * PS_PER_NS).round() as u64)
    }

    fn compute(&mut self, work: Work) {
        self.crowd.compute(self.rank, work.0);
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

impl Member for SimMember<'_> {
    fn issue(&mut self, peer: usize) -> Result<bool, LayerError> {
        Ok(self.crowd.issue(self.rank, peer))
    }

    fn poll(&mut self) -> Result<Option<usize>, LayerError> {
        Ok(self.crowd.poll(self.rank))
    }

    /// Virtual time passes in [`Crowd::turn`], which knows whether anything can come.
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
