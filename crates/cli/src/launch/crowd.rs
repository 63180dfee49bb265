//! One launch of many processes: fresh workers, connected with each other, and the steps that they go
//! through. Each worker receives its orders over its own control connection. To synchronise the workers, the
//! launching side waits for the answers of all of them before it goes on.

use crate::launch::bench::{Bench, Launched};
use crate::launch::end::{AFTERMATH, End, Failure, LOOK, SILENCE};
use crate::launch::orders::{Answer, CrowdAnswer, CrowdOrder, Opening, Order};
use crate::launch::start::{self, Started};
use crate::terminal::interrupt::Interrupt;
use netdyno_job::workers::{Event, Workers};
use netdyno_measure::contention::direct::{CrowdPlan, direct};
use netdyno_measure::contention::places::Places;
use netdyno_measure::contention::step::{Counted, Cue, Step};
use netdyno_measure::task::Data;
use std::fmt::Display;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Timeout for further reports after a process has ended. It is shorter than [`AFTERMATH`], because the
/// process that ended is the likely cause.
const FIRST_WORDS: Duration = Duration::from_millis(250);
/// Maximum number of reasons in the message of a failure.
const NAMED_AT_MOST: usize = 3;

/// Launches `plan.procs` processes and leads them through their steps.
pub fn launch(
    bench: &Bench,
    plan: &CrowdPlan,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(f64),
) -> Result<Launched, End> {
    let mut crowd = Crowd::begin(bench, plan, interrupt)?;
    let (began, budget) = (Instant::now(), Duration::from_nanos(plan.budget_ns as u64));
    let mut is_over = || began.elapsed() >= budget;
    let places = Places::of(plan.procs, &crowd.started.machine_of, &bench.cpus);
    let mut data = direct(plan, &places, None, &mut |step| crowd.run(step), &mut is_over, progress)?;
    data.preemptions = crowd.preemptions;
    data.requesting_ns = crowd.requesting.as_nanos() as f64;
    let is_elsewhere = crowd.started.is_elsewhere;
    if bench.layer.is_of_library() {
        crowd.workers.dismiss();
    }
    Ok(Launched { data: Data::Contention(data), library: None, is_elsewhere })
}

/// The current role of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    /// The process waits for an order.
    None,
    /// The process replies to these requesters.
    Replier(Vec<usize>),
}

struct Crowd<'a> {
    workers: Workers,
    /// Dropped after the connections to the workers.
    started: Started,
    interrupt: &'a Interrupt,
    roles: Vec<Role>,
    preemptions: Option<u64>,
    /// The durations of all steps, each times its number of requesters.
    requesting: Duration,
}

impl<'a> Crowd<'a> {
    /// Launches the processes and connects them with each other.
    fn begin(bench: &Bench, plan: &CrowdPlan, interrupt: &'a Interrupt) -> Result<Self, End> {
        let procs = plan.procs;
        let mut workers = Workers::new();
        let started = start::workers(bench, procs, &mut workers, interrupt)?;
        let roles = vec![Role::None; procs];
        let mut crowd =
            Self { workers, started, interrupt, roles, preemptions: Some(0), requesting: Duration::ZERO };
        for rank in 0..procs {
            crowd.say(rank, CrowdOrder::Gather(Box::new(opening(bench, rank, plan))))?;
        }
        let mut addresses: Vec<Vec<Vec<u8>>> = vec![Vec::new(); procs];
        for _ in 0..procs {
            match crowd.next()? {
                (rank, CrowdAnswer::Gathered { addresses: own, shared }) if own.len() == procs => {
                    crowd.started.leftovers.note(shared);
                    addresses[rank] = own;
                }
                (rank, other) => return Err(out_of_turn(rank, &other)),
            }
        }
        for rank in 0..procs {
            let to_it = addresses.iter().map(|of_peer| of_peer.get(rank).cloned().unwrap_or_default());
            crowd.say(rank, CrowdOrder::Meet(to_it.collect()))?;
        }
        for _ in 0..procs {
            match crowd.next()? {
                (_, CrowdAnswer::Met) => {}
                (rank, other) => return Err(out_of_turn(rank, &other)),
            }
        }
        Ok(crowd)
    }

    /// Leads the processes through one step. Repliers get their order before the requesters. All requesters
    /// are warm before any counts, and all have counted before any stops.
    fn run(&mut self, step: &Step) -> Result<Vec<Counted>, End> {
        let assignment_of =
            |rank: usize| step.requesters.iter().find(|(requester, _)| *requester == rank).map(|(_, a)| a);
        let wanted: Vec<Role> = (0..self.roles.len())
            .map(|rank| match assignment_of(rank) {
                Some(_) => Role::None,
                None => Role::Replier(step.requesters_of(rank)),
            })
            .collect();
        self.leave_roles(&wanted)?;
        for (rank, role) in wanted.iter().enumerate() {
            if let Role::Replier(requesters) = role
                && self.roles[rank] != *role
            {
                self.say(rank, CrowdOrder::Serve(requesters.clone()))?;
            }
        }
        self.roles = wanted;
        let began = Instant::now();
        for (rank, assignment) in &step.requesters {
            self.say(*rank, CrowdOrder::Perform(Box::new(assignment.clone())))?;
        }
        let count = step.requesters.len();
        for _ in 0..count {
            match self.next()? {
                (_, CrowdAnswer::Warm) => {}
                (rank, other) => return Err(out_of_turn(rank, &other)),
            }
        }
        self.cue(step, Cue::Count)?;
        let mut counted = vec![None; self.roles.len()];
        for _ in 0..count {
            match self.next()? {
                (rank, CrowdAnswer::Counted(news)) => counted[rank] = Some(news),
                (rank, other) => return Err(out_of_turn(rank, &other)),
            }
        }
        self.cue(step, Cue::Stop)?;
        for _ in 0..count {
            match self.next()? {
                (_, CrowdAnswer::Done(lost)) => {
                    self.preemptions = self.preemptions.zip(lost).map(|(sum, lost)| sum.saturating_add(lost));
                }
                (rank, other) => return Err(out_of_turn(rank, &other)),
            }
        }
        self.requesting += began.elapsed() * count as u32;
        Ok(step.requesters.iter().filter_map(|(rank, _)| counted[*rank].take()).collect())
    }

    /// Stops the processes whose role changes.
    fn leave_roles(&mut self, wanted: &[Role]) -> Result<(), End> {
        let mut leaving = 0;
        for (rank, role) in wanted.iter().enumerate() {
            if self.roles[rank] != Role::None && self.roles[rank] != *role {
                self.say(rank, CrowdOrder::Cue(Cue::Stop))?;
                leaving += 1;
            }
        }
        for _ in 0..leaving {
            match self.next()? {
                (_, CrowdAnswer::Done(_)) => {}
                (rank, other) => return Err(out_of_turn(rank, &other)),
            }
        }
        Ok(())
    }

    fn cue(&mut self, step: &Step, cue: Cue) -> Result<(), End> {
        for (rank, _) in &step.requesters {
            self.say(*rank, CrowdOrder::Cue(cue))?;
        }
        Ok(())
    }

    fn say(&mut self, rank: usize, order: CrowdOrder) -> Result<(), End> {
        Ok(self.workers.send(rank, &Order::Crowd(order))?)
    }

    /// Waits for the next answer. The end of a process before that of the launch is a failure.
    fn next(&mut self) -> Result<(usize, CrowdAnswer), End> {
        let silent_at = Instant::now() + SILENCE;
        loop {
            self.interrupt.check().map_err(End::Fault)?;
            match self.workers.next(LOOK)? {
                Some((rank, Event::Message(Answer::Crowd(answer)))) => return Ok((rank, answer)),
                Some((rank, Event::Message(Answer::Failed(text)))) => {
                    return Err(self.aftermath(rank, Failure::Said(text)));
                }
                Some((rank, Event::Message(other))) => {
                    return Err(End::Failed(format!("rank {rank} answered {other:?}")));
                }
                Some((rank, Event::Ended(end))) => {
                    return Err(self.aftermath(rank, Failure::Ended(end.to_string())));
                }
                None if Instant::now() > silent_at => {
                    return Err(End::Failed(format!("nothing was heard for {SILENCE:?}; stopped")));
                }
                None => {}
            }
        }
    }

    /// Collects the reasons of a failure. A process that has ended is the likely cause of the other failures:
    /// its end is waited for, and named first.
    fn aftermath(&mut self, rank: usize, failure: Failure) -> End {
        let timeout = if matches!(failure, Failure::Ended(_)) { FIRST_WORDS } else { AFTERMATH };
        let mut failures = vec![(rank, failure)];
        let until = Instant::now() + timeout;
        while failures.len() < self.roles.len()
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            match self.workers.next(left) {
                Ok(Some((rank, Event::Message(Answer::Failed(text))))) => {
                    failures.push((rank, Failure::Said(text)));
                }
                Ok(Some((rank, Event::Ended(end)))) => {
                    // The end of a process that has already given a reason adds nothing.
                    if !failures.iter().any(|(other, _)| *other == rank) {
                        failures.push((rank, Failure::Ended(end.to_string())));
                        break;
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        failures.sort_by_key(|(_, failure)| !matches!(failure, Failure::Ended(_)));
        let mut line = describe(&failures, self.roles.len(), |rank| self.workers.place(rank));
        if let Some(words) = start::parting_words(self.started.job.as_mut()) {
            line.push_str(&format!("; {words}"));
        }
        End::Failed(line)
    }
}

/// Describes the failures on one line, out of `procs` processes. A reason of several processes appears once.
/// `place` names the place of a rank.
fn describe<P: Display>(failures: &[(usize, Failure)], procs: usize, place: impl Fn(usize) -> P) -> String {
    let mut reasons: Vec<(&Failure, Vec<usize>)> = Vec::new();
    for (rank, failure) in failures {
        match reasons.iter_mut().find(|(reason, _)| *reason == failure) {
            Some((_, ranks)) => ranks.push(*rank),
            None => reasons.push((failure, vec![*rank])),
        }
    }
    let one = |(reason, ranks): &(&Failure, Vec<usize>)| match ranks[..] {
        [rank] => format!("rank {rank} ({}){reason}", place(rank)),
        _ if ranks.len() == procs => format!("each of {procs} processes{reason}"),
        _ => format!("each of {} of {procs} processes{reason}", ranks.len()),
    };
    let mut line = reasons.iter().take(NAMED_AT_MOST).map(one).collect::<Vec<_>>().join("; ");
    let more: usize = reasons.iter().skip(NAMED_AT_MOST).map(|(_, ranks)| ranks.len()).sum();
    if more > 0 {
        line.push_str(&format!("; {more} more failed"));
    }
    line
}

fn out_of_turn(rank: usize, answer: &CrowdAnswer) -> End {
    End::Failed(format!("rank {rank} answered out of turn: {answer:?}"))
}

fn opening(bench: &Bench, rank: usize, plan: &CrowdPlan) -> Opening {
    Opening {
        layer: bench.layer.to_string(),
        rank,
        procs: plan.procs,
        size_bytes: bench.size_bytes,
        wait: bench.wait.to_string(),
        faults: bench.faults.map(|faults| faults.to_string()),
        dials: (&bench.dials).into(),
        // A fixed port of --bind belongs to rank 0, the destination of many processes.
        bind: SocketAddr::new(bench.worker_ip(), if rank == 0 { bench.bind.port() } else { 0 }),
        // The seeds differ, so that the injected faults of each process differ.
        seed: plan.seed ^ rank as u64,
        cpu: bench.cpus.get(rank).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, describe};

    fn line(failures: &[(usize, Failure)], procs: usize) -> String {
        describe(failures, procs, |rank| format!("process {}", 100 + rank))
    }

    fn said(rank: usize, text: &str) -> (usize, Failure) {
        (rank, Failure::Said(text.into()))
    }

    #[test]
    fn a_reason_of_several_processes_stands_once() {
        let unavailable = "libfabric has no provider 'nosuch'";
        let all = [0, 2, 1].map(|rank| said(rank, unavailable));
        assert_eq!(line(&all, 3), format!("each of 3 processes: {unavailable}"));
        assert_eq!(line(&all, 4), format!("each of 3 of 4 processes: {unavailable}"));
        let killed = (1, Failure::Ended("was killed".into()));
        assert_eq!(
            line(&[killed, said(0, "a peer is lost"), said(2, "a peer is lost")], 3),
            "rank 1 (process 101) was killed; each of 2 of 3 processes: a peer is lost"
        );
        assert_eq!(
            line(&[said(0, "a"), said(1, "b"), said(2, "c"), said(3, "d"), said(4, "d")], 5),
            "rank 0 (process 100): a; rank 1 (process 101): b; rank 2 (process 102): c; 2 more failed"
        );
    }
}
