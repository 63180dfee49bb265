//! The first launch of a launcher, which measures nothing. It finds out where the launcher puts the processes: their
//! processors and the layers on their path depend on that.

use crate::hosts::host::Host;
use crate::launch::bench::REQUESTER;
use crate::launch::end::{End, LOOK};
use crate::launch::orders::{Answer, Order};
use crate::launch::placed::Placed;
use crate::launch::start::{self, Started};
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_host::machine;
use netdyno_job::launcher::Launcher;
use netdyno_job::workers::{Event, Workers};
use netdyno_measure::record::Environment;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

/// Timeout for a process to answer; it calibrates its clock first.
const ANSWERING: Duration = Duration::from_secs(20);

/// The processes of the launch.
pub struct Scouts<'a> {
    workers: Workers,
    /// Dropped after the connections to the workers.
    started: Started,
    interrupt: &'a Interrupt,
    /// The address of this host at which its processes can connect.
    pub ip: IpAddr,
    /// The host of each process, by rank.
    pub hosts: Vec<Host>,
}

impl<'a> Scouts<'a> {
    /// Has the launcher start `procs` processes that tell where they run. They connect to this host at `ip`; without
    /// one, at the address that they reach.
    pub fn start(
        launcher: &Launcher,
        procs: usize,
        ip: Option<IpAddr>,
        interrupt: &'a Interrupt,
    ) -> Result<Self, Fault> {
        let started = || -> Result<Self, End> {
            let mut workers = Workers::new();
            let (started, _) = start::by_launcher(launcher, procs, ip, &[], &mut workers, interrupt)?;
            let ip = ip.or(started.met_at).unwrap_or(Ipv4Addr::LOCALHOST.into());
            let mut scouts = Self { workers, started, interrupt, ip, hosts: Vec::new() };
            scouts.hosts = scouts.tell(procs)?;
            Ok(scouts)
        };
        started().map_err(|end| failed(end, interrupt))
    }

    /// Returns the host of each process.
    fn tell(&mut self, procs: usize) -> Result<Vec<Host>, End> {
        for rank in 0..procs {
            self.workers.send(rank, &Order::Tell)?;
        }
        let mut hosts = vec![None; procs];
        for _ in 0..procs {
            match self.next()? {
                (rank, Answer::Here(host)) => hosts[rank] = Some(host),
                (rank, other) => return Err(out_of_turn(rank, &other)),
            }
        }
        Ok(hosts.into_iter().flatten().collect())
    }

    /// Returns where the processes run. The machines of the requester and of the first process elsewhere are described, as
    /// far as they are others than this one; `cpus` are the processors of the measurement.
    pub fn placed(mut self, launcher: &Launcher, cpus: &[usize]) -> Result<Placed, Fault> {
        let (here, first) = (machine::name(), &self.hosts[REQUESTER].machine);
        let requester = (*first != here).then_some(REQUESTER);
        let other = self.hosts.iter().position(|host| host.machine != *first);
        let mut environment = |rank: Option<usize>| {
            let described = rank.map(|rank| self.environment(rank, cpus.get(rank).copied())).transpose();
            described.map_err(|end| failed(end, self.interrupt))
        };
        let (requester, other) = (environment(requester)?, environment(other)?);
        let hosts = std::mem::take(&mut self.hosts);
        Ok(Placed { launcher: launcher.clone(), hosts, requester, other })
    }

    /// Returns the description of a process's machine.
    fn environment(&mut self, rank: usize, cpu: Option<usize>) -> Result<Environment, End> {
        self.workers.send(rank, &Order::Describe(cpu))?;
        match self.next()? {
            (_, Answer::Environment(environment)) => Ok(*environment),
            (rank, other) => Err(out_of_turn(rank, &other)),
        }
    }

    /// Waits for the next answer.
    fn next(&mut self) -> Result<(usize, Answer), End> {
        let until = Instant::now() + ANSWERING;
        loop {
            self.interrupt.check().map_err(End::Fault)?;
            match self.workers.next(LOOK)? {
                Some((rank, Event::Message(answer))) => return Ok((rank, answer)),
                Some((rank, Event::Ended(end))) => {
                    let words = start::parting_words(self.started.job.as_mut());
                    let words = words.map(|words| format!("; {words}")).unwrap_or_default();
                    let place = self.workers.place(rank);
                    return Err(End::Failed(format!("rank {rank} ({place}) {end}{words}")));
                }
                None if Instant::now() > until => {
                    return Err(End::Failed(format!("a process said nothing for {ANSWERING:?}")));
                }
                None => {}
            }
        }
    }
}

fn failed(end: End, interrupt: &Interrupt) -> Fault {
    match end {
        End::Fault(fault) => fault,
        End::Failed(text) => interrupt.check().err().unwrap_or(Fault::Failed(text)),
    }
}

fn out_of_turn(rank: usize, answer: &Answer) -> End {
    End::Failed(format!("rank {rank} answered out of turn: {answer:?}"))
}
