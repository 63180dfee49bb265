//! Starts the workers of a launch: as children, on a served host, by a launcher such as mpiexec, or by the
//! processes of the job in which this command runs.

use crate::hosts::secret;
use crate::job::gather::{gather, numbered};
use crate::job::lobby;
use crate::launch::bench::{Bench, REPLIER};
use crate::launch::end::{AFTERMATH, End};
use crate::launch::origin::Origin;
use crate::launch::worker;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_job::launcher::{Job, Launcher};
use netdyno_job::rendezvous::Rendezvous;
use netdyno_job::shared_files::SharedFiles;
use netdyno_job::workers::{Workers, WorkersError};
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The parts of a launch besides its workers.
pub struct Started {
    /// The launcher's job.
    pub job: Option<Job>,
    /// The machine of each worker, numbered from 0.
    pub machine_of: Vec<usize>,
    /// The address of this host at which all workers of a launcher can connect.
    pub met_at: Option<IpAddr>,
    /// Whether a launcher has put the workers on other machines than in its first launch.
    pub is_elsewhere: bool,
    /// The workers' files in shared memory, removed after the job has ended.
    pub leftovers: Leftovers,
}

impl Started {
    fn new(job: Option<Job>, machine_of: Vec<usize>) -> Self {
        Self { job, machine_of, met_at: None, is_elsewhere: false, leftovers: Leftovers::default() }
    }
}

/// The workers' files in shared memory on this machine. A drop removes the files that outlived their workers.
#[derive(Default)]
pub struct Leftovers(SharedFiles);

impl Leftovers {
    /// Notes the files of a worker.
    pub fn note(&mut self, files: SharedFiles) {
        self.0.add(files);
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        std::mem::take(&mut self.0).remove_unused();
    }
}

/// Starts `procs` workers and connects to them, by rank.
pub fn workers(
    bench: &Bench,
    procs: usize,
    workers: &mut Workers,
    interrupt: &Interrupt,
) -> Result<Started, End> {
    match &bench.origin {
        Origin::Launcher(placed) => {
            let ip = Some(bench.bind.ip());
            let (started, machines) =
                by_launcher(&placed.launcher, procs, ip, &bench.variables, workers, interrupt)?;
            let planned = placed.hosts.iter().map(|host| &host.machine);
            let is_elsewhere = machines.iter().zip(planned).any(|(machine, planned)| machine != planned);
            Ok(Started { is_elsewhere, ..started })
        }
        Origin::Job(ranks) => {
            ranks.launch(bench.layer, workers, interrupt)?;
            Ok(Started::new(None, numbered(ranks.hosts().iter().map(|host| &host.machine[..]))))
        }
        Origin::Peer(peer) => {
            for rank in 0..procs {
                match rank {
                    REPLIER => workers.enlist(peer.launch(interrupt)?)?,
                    _ => workers.launch(worker::command(&bench.variables).map_err(WorkersError::Spawn)?)?,
                };
            }
            let is_elsewhere = |rank: usize| rank == REPLIER && !peer.is_this_host();
            Ok(Started::new(None, (0..procs).map(|rank| usize::from(is_elsewhere(rank))).collect()))
        }
        Origin::Children | Origin::Server(_) => {
            for _ in 0..procs {
                workers.launch(worker::command(&bench.variables).map_err(WorkersError::Spawn)?)?;
            }
            Ok(Started::new(None, vec![0; procs]))
        }
    }
}

/// Has a launcher start `procs` workers, with additional environment variables, and connects to them, by rank. `ip` is the
/// address of this host that the workers reach; without one, they try all of its addresses. Returns the machine of each
/// worker as well.
pub fn by_launcher(
    launcher: &Launcher,
    procs: usize,
    ip: Option<IpAddr>,
    additional: &[(&'static str, OsString)],
    workers: &mut Workers,
    interrupt: &Interrupt,
) -> Result<(Started, Vec<String>), End> {
    let (rendezvous, addresses) = open(ip).map_err(|error| {
        let at = ip.map(|ip| format!(" at {ip}")).unwrap_or_default();
        End::Failed(format!("cannot listen{at}: {error}"))
    })?;
    let mut command = worker::command(&[]).map_err(WorkersError::Spawn)?;
    let dialled: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    command.arg("--dial").arg(dialled.join(","));
    let mut variables: Vec<(&str, &OsStr)> = vec![(secret::VARIABLE, rendezvous.key_text().as_ref())];
    variables.extend(additional.iter().map(|(name, value)| (*name, value.as_os_str())));
    let mut job = launcher.start(procs, &command, &variables).map_err(|error| unstarted(launcher, &error))?;
    let program = launcher.program();
    let guests =
        gather(&rendezvous, procs, interrupt, &mut || match job.ended().map_err(WorkersError::Wait)? {
            None => Ok(()),
            Some((status, words)) if words.is_empty() => Err(End::Failed(format!(
                "'{program}' ended ({status}) before its {procs} processes had come, and said nothing: does \
             --launcher start processes, as 'mpiexec -n {{n}}' does?"
            ))),
            Some((status, words)) => Err(End::Failed(format!(
                "'{program}' ended ({status}) before its {procs} processes had come: {words}"
            ))),
        })?;
    let machines: Vec<String> = guests.iter().map(|guest| guest.machine.clone()).collect();
    let machine_of = numbered(machines.iter().map(|machine| &machine[..]));
    // The processes of some hosts do not reach the first addresses.
    let met_at = guests.iter().filter_map(|guest| guest.control.local_addr().ok());
    let met_at = met_at.map(|address| address.ip().to_canonical());
    let met_at = met_at.max_by_key(|ip| addresses.iter().position(|address| address.ip() == *ip));
    for guest in guests {
        workers.enlist(guest.control)?;
    }
    Ok((Started { met_at, ..Started::new(Some(job), machine_of) }, machines))
}

/// Opens a rendezvous at `ip`, or at all addresses of this host. Returns it with the addresses to try, those for
/// processes of this host first.
fn open(ip: Option<IpAddr>) -> io::Result<(Rendezvous, Vec<SocketAddr>)> {
    let rendezvous = lobby::open(ip)?;
    let mut addresses = lobby::addresses(&rendezvous)?;
    if rendezvous.address().ip().is_unspecified() {
        let near: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let port = rendezvous.address().port();
        addresses.splice(0..0, near.map(|ip| SocketAddr::new(ip, port)));
    }
    Ok((rendezvous, addresses))
}

/// Returns the launcher's own message about the failure of its processes.
pub fn parting_words(job: Option<&mut Job>) -> Option<String> {
    let words = job?.parting_words(AFTERMATH)?;
    Some(format!("their launcher says: {words}"))
}

fn unstarted(launcher: &Launcher, error: &io::Error) -> End {
    let program = launcher.program();
    End::Fault(Fault::BadInput(match error.kind() {
        io::ErrorKind::NotFound => {
            format!("--launcher: there is no program '{program}': install it, or name its path")
        }
        _ => format!("--launcher: cannot start '{program}': {error}"),
    }))
}
