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
struct Scouts<'a> {
    workers: Workers,
    /// Dropped after the connections to the workers.
    started: Started,
    interrupt: &'a Interrupt,
}

/// Has the launcher start `procs` processes that tell where they run. They connect to this host at `ip`; without one, at the
/// address that they reach.
pub fn place(
    launcher: &Launcher,
    procs: usize,
    ip: Option<IpAddr>,
    interrupt: &Interrupt,
) -> Result<Placed, Fault> {
    placed(launcher, procs, ip, interrupt).map_err(|end| match end {
        End::Fault(fault) => fault,
        End::Failed(text) => interrupt.check().err().unwrap_or(Fault::Failed(text)),
    })
}

fn placed(
    launcher: &Launcher,
    procs: usize,
    ip: Option<IpAddr>,
    interrupt: &Interrupt,
) -> Result<Placed, End> {
    let mut workers = Workers::new();
    let started = start::by_launcher(launcher, procs, ip, &[], &mut workers, interrupt)?;
    let ip = ip.or(started.met_at).unwrap_or(Ipv4Addr::LOCALHOST.into());
    let mut scouts = Scouts { workers, started, interrupt };
    let hosts = scouts.hosts(procs)?;
    let here = machine::name();
    let is_here = hosts.first().is_none_or(|host| host.machine == here);
    let requester = if is_here { None } else { Some(scouts.environment(REQUESTER, &hosts)?) };
    let elsewhere = hosts.iter().position(|host| host.machine != hosts[REQUESTER].machine);
    let other = elsewhere.map(|rank| scouts.environment(rank, &hosts)).transpose()?;
    Ok(Placed { launcher: launcher.clone(), ip, hosts, requester, other })
}

impl Scouts<'_> {
    /// Returns the host of each process.
    fn hosts(&mut self, procs: usize) -> Result<Vec<Host>, End> {
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

    /// Returns the description of a process's machine.
    fn environment(&mut self, rank: usize, hosts: &[Host]) -> Result<Environment, End> {
        let cpu = hosts[rank].cpus.first().copied();
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

fn out_of_turn(rank: usize, answer: &Answer) -> End {
    End::Failed(format!("rank {rank} answered out of turn: {answer:?}"))
}
