//! The job in which this command runs, seen from its leader, rank 0. The launcher has started netdyno in
//! every process, and each one follows the leader's calls ([`crate::job::rank`]).

use crate::hosts::host::{Host, Machines};
use crate::job::gather::gather;
use crate::launch::end::{End, LOOK};
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_job::rendezvous::Rendezvous;
use netdyno_job::workers::{Event, Workers};
use netdyno_layers::catalogue::Layer;
use netdyno_measure::record::Environment;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// Timeout for a process to answer; it calibrates its clock first.
const ANSWERING: Duration = Duration::from_secs(20);

/// A call of the leader to a process of the job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Call {
    /// Describe the machine, and watch this processor for interruptions.
    Environment(usize),
    /// Start a fresh worker, which connects to the rendezvous.
    Worker,
    /// Connect to the rendezvous as a worker itself, because an MPI layer belongs to the process that the
    /// launcher started, not to its children.
    Itself,
    /// End with this exit code.
    End(u8),
}

/// A message of a process of the job to the leader.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Word {
    /// The first message: the host of the process.
    Here(Host),
    /// The answer to [`Call::Environment`].
    Environment(Box<Environment>),
    /// The call failed and no worker will connect. The text is one line for the user.
    Failed(String),
}

/// All processes of the job, by rank.
#[derive(Debug)]
pub struct Ranks {
    rendezvous: Rendezvous,
    processes: RefCell<Workers>,
    hosts: Vec<Host>,
}

impl Ranks {
    /// Waits until all processes have connected to the rendezvous.
    pub fn gather(rendezvous: Rendezvous, procs: usize, interrupt: &Interrupt) -> Result<Self, Fault> {
        let mut processes = Workers::new();
        match meet(&rendezvous, procs, &mut processes, interrupt).map_err(failed) {
            Ok(hosts) => Ok(Self { rendezvous, processes: RefCell::new(processes), hosts }),
            Err(fault) => {
                // They end with this error, and print none of their own.
                end_all(&mut processes, fault.code());
                Err(fault)
            }
        }
    }

    /// Returns the host of each process.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns the machines.
    pub fn machines(&self) -> Machines {
        Machines::of(&self.hosts)
    }

    /// Returns the first rank on another machine than rank 0.
    pub fn elsewhere(&self) -> Option<usize> {
        self.hosts.iter().position(|host| host.machine != self.hosts[0].machine)
    }

    /// Returns the description of a process's machine, whose processor `cpu` is watched for interruptions.
    pub fn environment(&self, rank: usize, cpu: usize, interrupt: &Interrupt) -> Result<Environment, Fault> {
        let mut processes = self.processes.borrow_mut();
        let asked = processes.send(rank, &Call::Environment(cpu)).map_err(End::from);
        match asked.and_then(|()| word(&mut processes, interrupt)) {
            Ok((_, Word::Environment(environment))) => Ok(*environment),
            Ok((rank, other)) => Err(failed(out_of_turn(rank, &other))),
            Err(end) => Err(failed(end)),
        }
    }

    /// Has every process provide a worker, and adds the workers to `workers`, by rank.
    pub fn launch(&self, layer: Layer, workers: &mut Workers, interrupt: &Interrupt) -> Result<(), End> {
        let mut processes = self.processes.borrow_mut();
        let call = if layer.has_launcher() { Call::Itself } else { Call::Worker };
        for rank in 0..self.hosts.len() {
            processes.send(rank, &call)?;
        }
        let guests = gather(&self.rendezvous, self.hosts.len(), interrupt, &mut || match processes
            .next(Duration::ZERO)?
        {
            None => Ok(()),
            Some((rank, event)) => Err(complaint(rank, event)),
        })?;
        for guest in guests {
            workers.enlist(guest.control)?;
        }
        Ok(())
    }

    /// Tells all processes to end. A process that has gone already is ignored.
    pub fn end(&self, code: u8) {
        end_all(&mut self.processes.borrow_mut(), code);
    }
}

/// Waits until all processes have connected and said where they run. Returns their hosts. `processes` has those
/// that have connected, even after an error.
fn meet(
    rendezvous: &Rendezvous,
    procs: usize,
    processes: &mut Workers,
    interrupt: &Interrupt,
) -> Result<Vec<Host>, End> {
    let (guests, end) = match gather(rendezvous, procs, interrupt, &mut || Ok(())) {
        Ok(guests) => (guests, None),
        Err(incomplete) => (incomplete.guests, Some(incomplete.end)),
    };
    for guest in guests {
        processes.enlist(guest.control)?;
    }
    if let Some(end) = end {
        return Err(end);
    }
    let mut hosts = vec![None; procs];
    for _ in 0..procs {
        match word(processes, interrupt)? {
            (rank, Word::Here(host)) => hosts[rank] = Some(host),
            (rank, other) => return Err(out_of_turn(rank, &other)),
        }
    }
    Ok(hosts.into_iter().flatten().collect())
}

fn end_all(processes: &mut Workers, code: u8) {
    for rank in 0..processes.count() {
        let _ = processes.send(rank, &Call::End(code));
    }
}

/// Waits for the next message of any process.
fn word(processes: &mut Workers, interrupt: &Interrupt) -> Result<(usize, Word), End> {
    let until = Instant::now() + ANSWERING;
    loop {
        interrupt.check().map_err(End::Fault)?;
        match processes.next(LOOK)? {
            Some((rank, Event::Message(word))) => return Ok((rank, word)),
            Some((rank, event)) => return Err(complaint(rank, event)),
            None if Instant::now() > until => {
                return Err(End::Failed(format!("a process said nothing for {ANSWERING:?}")));
            }
            None => {}
        }
    }
}

fn complaint(rank: usize, event: Event<Word>) -> End {
    End::Failed(match event {
        Event::Message(Word::Failed(text)) => format!("process {rank}: {text}"),
        Event::Message(other) => return out_of_turn(rank, &other),
        Event::Ended(end) => format!("process {rank} {end}"),
    })
}

fn out_of_turn(rank: usize, word: &Word) -> End {
    End::Failed(format!("process {rank} of the job said {word:?} out of turn"))
}

fn failed(end: End) -> Fault {
    match end {
        End::Fault(fault) => fault,
        End::Failed(text) => Fault::Failed(format!("the job: {text}")),
    }
}
