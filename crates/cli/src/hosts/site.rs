//! The host set-up of a measurement: hosts, processors, addresses.

use crate::hosts::host::{Host, Machines};
use crate::hosts::peer::Peer;
use crate::hosts::processes::Processes;
use crate::hosts::secret;
use crate::job::ranks::Ranks;
use crate::launch::origin::Origin;
use crate::launch::scout::Scouts;
use crate::options::bench::{CpuList, Measuring};
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_clock::place;
use netdyno_host::datagram::DatagramSocket;
use netdyno_job::launcher::Launcher;
use netdyno_layers::catalogue::{Layer, able};
use netdyno_measure::record::Environment;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;

/// The host set-up of the processes of a launch.
pub struct Site {
    /// Processor of each rank, or both of a process that needs two.
    pub cpus: Vec<usize>,
    /// Number of different processors, over all machines.
    pub processors: usize,
    /// Address of the sockets on this host; the port is the replier's.
    pub bind: SocketAddr,
    /// Origin of the processes, such as a launcher.
    pub origin: Origin,
    /// The machines of the processes.
    pub machines: Machines,
}

impl Site {
    /// Checks the options against this machine, and reserves the peer. Errors that a launch would meet appear
    /// now. `ranks` is the job in which this command runs.
    pub fn find(
        layers: &[Layer],
        measuring: &Measuring,
        processes: Processes,
        ranks: Option<Rc<Ranks>>,
    ) -> Result<Self, Fault> {
        if let Some(server) = measuring.server {
            return Self::of_server(layers, measuring, server, ranks.is_some());
        }
        if let Some(launcher) = &measuring.launcher
            && layers.iter().any(|&layer| layer != Layer::Sim)
        {
            return Self::of_launcher(layers, measuring, processes, launcher);
        }
        match (ranks, processes) {
            (Some(ranks), _) => Self::of_job(layers, measuring, processes, ranks),
            (None, Processes::Many(procs)) => Self::of_many(layers, measuring, procs),
            (None, Processes::Pair | Processes::Single) => Self::of_pair(layers, measuring),
        }
    }

    fn of_pair(layers: &[Layer], measuring: &Measuring) -> Result<Self, Fault> {
        let here = cpus_here(measuring)?;
        let peer = match measuring.peer {
            None => None,
            Some(address) => {
                if let Some(layer) = layers.iter().find(|layer| !layer.has_sockets()) {
                    return Err(Fault::BadInput(format!(
                        "{layer} does not reach another host: leave --peer away"
                    )));
                }
                let key = secret::given(measuring.key_file.as_deref())?;
                Some(Peer::reserve(address, key, pair(measuring)?.map(|(_, there)| there))?)
            }
        };
        let local = peer.as_ref().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), Peer::local_ip);
        let bind = measuring.bind.unwrap_or(SocketAddr::new(local, 0));
        let port = if peer.is_some() { 0 } else { bind.port() };
        check_bind(layers, SocketAddr::new(bind.ip(), port))?;
        let Some(peer) = peer else {
            let cpus = vec![here.0, here.1];
            return Ok(Self::of_children(cpus, bind));
        };
        Ok(Self {
            cpus: vec![here.0, peer.cpu()],
            processors: 2,
            bind,
            machines: if peer.is_this_host() { Machines::This } else { Machines::Several(2) },
            origin: Origin::Peer(Arc::new(peer)),
        })
    }

    /// Places the requester of a server that runs already. Nothing is known of the server's place.
    fn of_server(
        layers: &[Layer],
        measuring: &Measuring,
        server: SocketAddr,
        is_job: bool,
    ) -> Result<Self, Fault> {
        if !matches!(layers, [layer] if layer.connects()) {
            return Err(Fault::BadInput(format!(
                "--connect measures one layer over which others serve: use --over with one of {}",
                able(Layer::connects)
            )));
        }
        if is_job {
            return Err(Fault::BadInput(
                "--connect needs one process, and a launcher has started several: leave the launcher away"
                    .into(),
            ));
        }
        let allowed = allowed()?;
        let cpu = match measuring.cpus.as_ref().map(|CpuList(cpus)| &cpus[..]) {
            None => place::choose_pair(&allowed).map_or(allowed[0], |(here, _)| here),
            Some(&[cpu]) => cpu,
            Some(_) => {
                return Err(Fault::BadInput(
                    "--cpus must be one processor, as in 0: with --connect it is that of the requester"
                        .into(),
                ));
            }
        };
        check_allowed(&[cpu], &allowed)?;
        let bind = SocketAddr::new(ip_towards(server)?, 0);
        let (origin, machines) = (Origin::Server(server), Machines::This);
        Ok(Self { cpus: vec![cpu], processors: 1, bind, origin, machines })
    }

    /// Places many processes on this host's processors, in turn.
    fn of_many(layers: &[Layer], measuring: &Measuring, procs: usize) -> Result<Self, Fault> {
        if measuring.peer.is_some() {
            return Err(Fault::BadInput("this is measured on this host alone: leave --peer away".into()));
        }
        let allowed = allowed()?;
        let cpus = measuring.cpus.as_ref().map_or(&allowed, |CpuList(cpus)| cpus);
        check_allowed(cpus, &allowed)?;
        let cpus: Vec<usize> = cpus.iter().copied().cycle().take(procs).collect();
        let bind = measuring.bind.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
        check_bind(layers, bind)?;
        Ok(Self::of_children(cpus, bind))
    }

    fn of_children(cpus: Vec<usize>, bind: SocketAddr) -> Self {
        let processors = cpus.iter().collect::<BTreeSet<_>>().len();
        Self { processors, cpus, bind, origin: Origin::Children, machines: Machines::This }
    }

    /// Places the processes that a launcher starts, on the hosts that it chooses.
    fn of_launcher(
        layers: &[Layer],
        measuring: &Measuring,
        processes: Processes,
        launcher: &Launcher,
    ) -> Result<Self, Fault> {
        measuring.bind.map_or(Ok(()), |bind| check_bind(layers, bind))?;
        let ip = measuring.bind.map(|bind| bind.ip());
        let interrupt = Interrupt::catch()?;
        let scouts = Scouts::start(launcher, processes.number(), ip, &interrupt)?;
        let bind = SocketAddr::new(scouts.ip, measuring.bind.map_or(0, |bind| bind.port()));
        let machines = Machines::of(&scouts.hosts);
        check_reach(layers, machines)?;
        let cpus = match named(measuring, processes)? {
            None => free(&scouts.hosts, processes)?,
            Some(cpus) => {
                // A launcher may bind processes to other processors, which is no limit. That of another machine is known
                // only there.
                if machines == Machines::This {
                    check_allowed(&cpus, &allowed()?)?;
                }
                cpus
            }
        };
        let processors = different(&scouts.hosts, &cpus);
        let placed = scouts.placed(launcher, &cpus)?;
        Ok(Self { cpus, processors, bind, origin: Origin::Launcher(Arc::new(placed)), machines })
    }

    /// Places the processes of the job on the hosts that its launcher has chosen.
    fn of_job(
        layers: &[Layer],
        measuring: &Measuring,
        processes: Processes,
        ranks: Rc<Ranks>,
    ) -> Result<Self, Fault> {
        let (has, wanted) = (ranks.hosts().len(), processes.number());
        // Where one is enough, the others rest.
        if has != wanted && processes != Processes::Single {
            return Err(Fault::BadInput(format!(
                "the job has {has} processes, and {wanted} are wanted: have its launcher start as many"
            )));
        }
        let hosts = &ranks.hosts()[..wanted];
        let machines = Machines::of(hosts);
        check_reach(layers, machines)?;
        let cpus = cpus_of_job(hosts, measuring, processes)?;
        let processors = different(hosts, &cpus);
        let bind =
            SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), measuring.bind.map_or(0, |bind| bind.port()));
        Ok(Self { cpus, processors, bind, origin: Origin::Job(ranks), machines })
    }

    /// Returns the description of the requester's machine, if that is another one than this.
    pub fn requester_environment(&self) -> Option<Environment> {
        match &self.origin {
            Origin::Launcher(placed) => placed.requester.clone(),
            Origin::Children | Origin::Peer(_) | Origin::Server(_) | Origin::Job(_) => None,
        }
    }

    /// Returns the description of another machine on which a process runs, if there is one.
    pub fn peer_environment(&self, interrupt: &Interrupt) -> Result<Option<Environment>, Fault> {
        match &self.origin {
            Origin::Children | Origin::Server(_) => Ok(None),
            Origin::Launcher(placed) => Ok(placed.other.clone()),
            Origin::Peer(peer) => Ok(Some(peer.environment().clone())),
            // The machine of processes that rest is no part of the measurement.
            Origin::Job(_) if self.machines.number() == 1 => Ok(None),
            Origin::Job(ranks) => {
                ranks.elsewhere().map(|rank| ranks.environment(rank, self.cpus[rank], interrupt)).transpose()
            }
        }
    }
}

/// Returns the address of this host from which packets to `server` leave. No packet is sent for that.
fn ip_towards(server: SocketAddr) -> Result<IpAddr, Fault> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let local = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(server)?;
        Ok(socket.local_addr()?.ip())
    };
    local().map_err(|error: io::Error| Fault::Failed(format!("--connect {server}: no way to it: {error}")))
}

/// Returns a processor for each process of a job, or two for its only one: those that the user named, or those that its
/// launcher allows it.
fn cpus_of_job(hosts: &[Host], measuring: &Measuring, processes: Processes) -> Result<Vec<usize>, Fault> {
    let Some(cpus) = named(measuring, processes)? else { return free(hosts, processes) };
    for (cpu, host) in cpus.iter().zip(hosts.iter().cycle()) {
        check_allowed(std::slice::from_ref(cpu), &host.cpus)?;
    }
    Ok(cpus)
}

/// Returns the processors that the user named, in turn for the processes.
fn named(measuring: &Measuring, processes: Processes) -> Result<Option<Vec<usize>>, Fault> {
    if processes.are_on_two() {
        pair(measuring)?;
    }
    let cpus = measuring.cpus.as_ref();
    Ok(cpus.map(|CpuList(cpus)| cpus.iter().copied().cycle().take(processes.processors()).collect()))
}

/// Returns a processor for each process that a launcher has put on one of these hosts: the least used of those that the
/// launcher allows the process. A pair that may run on the same processors gets two that are near each other, as does a
/// process that needs two.
fn free(hosts: &[Host], processes: Processes) -> Result<Vec<usize>, Fault> {
    if processes.are_on_two()
        && hosts.iter().all(|host| *host == hosts[0])
        && let Some((a, b)) = hosts[0].near
    {
        return Ok(vec![a, b]);
    }
    let mut taken: BTreeMap<(&str, usize), usize> = BTreeMap::new();
    hosts
        .iter()
        .map(|host| {
            let takers = |cpu: usize| taken.get(&(&host.machine[..], cpu)).copied().unwrap_or(0);
            let cpu = host.cpus.iter().copied().min_by_key(|&cpu| takers(cpu));
            let cpu =
                cpu.ok_or_else(|| Fault::Failed("a process of the launcher may use no processor".into()))?;
            *taken.entry((&host.machine, cpu)).or_default() += 1;
            Ok(cpu)
        })
        .collect()
}

/// Returns the number of different processors, over all machines.
fn different(hosts: &[Host], cpus: &[usize]) -> usize {
    hosts.iter().cycle().zip(cpus).map(|(host, cpu)| (&host.machine, cpu)).collect::<BTreeSet<_>>().len()
}

/// Checks that the layers reach as far as the processes are apart.
fn check_reach(layers: &[Layer], machines: Machines) -> Result<(), Fault> {
    match layers.iter().find(|layer| layer.is_of_one_host()) {
        Some(layer) if machines.number() > 1 => {
            Err(Fault::BadInput(format!("{layer} does not reach another host: leave it away")))
        }
        _ => Ok(()),
    }
}

fn check_bind(layers: &[Layer], bind: SocketAddr) -> Result<(), Fault> {
    if layers.iter().any(|layer| layer.has_sockets()) {
        DatagramSocket::bind(bind).map_err(|error| Fault::BadInput(format!("--bind: {error}")))?;
    }
    Ok(())
}

fn allowed() -> Result<Vec<usize>, Fault> {
    let allowed = place::allowed()
        .map_err(|error| Fault::Failed(format!("cannot read which processors may be used: {error}")))?;
    if allowed.is_empty() { Err(Fault::Failed("no processor may be used".into())) } else { Ok(allowed) }
}

fn check_allowed(cpus: &[usize], allowed: &[usize]) -> Result<(), Fault> {
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(Fault::BadInput(format!(
            "processor {cpu} of --cpus cannot be used here: choose from {allowed:?}"
        ))),
    }
}

/// Returns the two processors that the user named.
fn pair(measuring: &Measuring) -> Result<Option<(usize, usize)>, Fault> {
    match measuring.cpus.as_ref().map(|CpuList(cpus)| &cpus[..]) {
        None => Ok(None),
        Some(&[a, b]) => Ok(Some((a, b))),
        Some(_) => Err(Fault::BadInput("--cpus must be two processors, as in 0,1".into())),
    }
}

/// Returns the processors for requester and replier on this host.
fn cpus_here(measuring: &Measuring) -> Result<(usize, usize), Fault> {
    let allowed = allowed()?;
    let Some((a, b)) = pair(measuring)? else {
        return place::choose_pair(&allowed).ok_or_else(|| Fault::Failed("no processor may be used".into()));
    };
    // With a peer the second processor belongs to that host.
    let of_here = if measuring.peer.is_some() { vec![a] } else { vec![a, b] };
    check_allowed(&of_here, &allowed)?;
    Ok((a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn cpus(args: &[&str], processes: Processes, hosts: &[(&str, &[usize])]) -> Result<Vec<usize>, Fault> {
        let args = [&["netdyno"], args].concat();
        let measuring = crate::command::Cli::parse_from(args).measuring;
        let hosts: Vec<Host> = hosts
            .iter()
            .map(|(machine, cpus)| Host {
                machine: (*machine).into(),
                cpus: cpus.to_vec(),
                near: place::choose_pair(cpus),
            })
            .collect();
        cpus_of_job(&hosts, &measuring, processes)
    }

    #[test]
    fn every_process_of_a_job_has_a_processor_of_its_own_where_there_are_enough() {
        let bound: [(&str, &[usize]); 4] = [("a", &[2, 3]), ("a", &[2, 3]), ("b", &[2, 3]), ("a", &[2, 3])];
        assert_eq!(cpus(&[], Processes::Many(4), &bound).unwrap(), [2, 3, 2, 2]);
        assert_eq!(cpus(&[], Processes::Pair, &[("a", &[0]), ("a", &[0, 1])]).unwrap(), [0, 1]);
        assert_eq!(cpus(&[], Processes::Pair, &[("a", &[5]), ("b", &[5])]).unwrap(), [5, 5]);
        assert!(cpus(&[], Processes::Pair, &[("a", &[]), ("b", &[5])]).is_err());
    }

    #[test]
    fn processors_that_are_named_must_be_left_to_their_processes() {
        let bound: [(&str, &[usize]); 2] = [("a", &[0]), ("b", &[1])];
        assert_eq!(cpus(&["--cpus", "0,1"], Processes::Pair, &bound).unwrap(), [0, 1]);
        assert!(cpus(&["--cpus", "1,0"], Processes::Pair, &bound).is_err());
        assert!(cpus(&["--cpus", "0,1,0"], Processes::Pair, &bound).is_err());
        assert_eq!(cpus(&["--cpus", "0,1"], Processes::Many(2), &bound).unwrap(), [0, 1]);
    }

    #[test]
    fn a_process_that_is_both_ends_gets_two_processors_of_its_host() {
        let single = |args: &[&str], allowed: &[usize]| cpus(args, Processes::Single, &[("a", allowed)]);
        assert_eq!(single(&[], &[0]).unwrap(), [0, 0]);
        assert_eq!(single(&["--cpus", "0,0"], &[0]).unwrap(), [0, 0]);
        assert!(single(&["--cpus", "0,1"], &[0]).is_err() && single(&["--cpus", "0"], &[0]).is_err());
        assert!(single(&[], &[]).is_err());
    }
}
