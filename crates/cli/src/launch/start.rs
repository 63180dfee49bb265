//! Starts the workers of a launch: as children, on a served host, by a launcher such as mpiexec, or by the
//! processes of the job in which this command runs.

use crate::hosts::secret;
use crate::job::gather::{gather, numbered};
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
use std::ffi::OsStr;
use std::io;

/// The parts of a launch besides its workers.
pub struct Started {
    /// The launcher's job.
    pub job: Option<Job>,
    /// The machine of each worker, numbered from 0.
    pub machine_of: Vec<usize>,
    /// The workers' files in shared memory, removed after the job has ended.
    pub leftovers: Leftovers,
}

impl Started {
    fn new(job: Option<Job>, machine_of: Vec<usize>) -> Self {
        Self { job, machine_of, leftovers: Leftovers::default() }
    }

    /// Returns the number of machines on which the workers run.
    pub fn machines(&self) -> usize {
        self.machine_of.iter().max().map_or(0, |last| last + 1)
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
    let machine_of = match &bench.origin {
        Origin::Launcher(launcher) => {
            return by_launcher(launcher, procs, bench, workers, interrupt);
        }
        Origin::Job(ranks) => {
            ranks.launch(bench.layer, workers, interrupt)?;
            numbered(ranks.hosts().iter().map(|host| &host.machine[..]))
        }
        Origin::Peer(peer) => {
            for rank in 0..procs {
                match rank {
                    REPLIER => workers.enlist(peer.launch(interrupt)?)?,
                    _ => workers.launch(worker::command(&bench.variables).map_err(WorkersError::Spawn)?)?,
                };
            }
            let is_elsewhere = |rank: usize| rank == REPLIER && !peer.is_this_host();
            (0..procs).map(|rank| usize::from(is_elsewhere(rank))).collect()
        }
        Origin::Children | Origin::Server(_) => {
            for _ in 0..procs {
                workers.launch(worker::command(&bench.variables).map_err(WorkersError::Spawn)?)?;
            }
            vec![0; procs]
        }
    };
    Ok(Started::new(None, machine_of))
}

fn by_launcher(
    launcher: &Launcher,
    procs: usize,
    bench: &Bench,
    workers: &mut Workers,
    interrupt: &Interrupt,
) -> Result<Started, End> {
    // The address of this host that the workers reach.
    let ip = bench.bind.ip();
    let rendezvous =
        Rendezvous::open(ip).map_err(|error| End::Failed(format!("cannot listen at {ip}: {error}")))?;
    let mut command = worker::command(&[]).map_err(WorkersError::Spawn)?;
    command.arg("--dial").arg(rendezvous.address().to_string());
    let mut variables: Vec<(&str, &OsStr)> = vec![(secret::VARIABLE, rendezvous.key_text().as_ref())];
    variables.extend(bench.variables.iter().map(|(name, value)| (*name, value.as_os_str())));
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
    let machine_of = numbered(guests.iter().map(|guest| &guest.machine[..]));
    for guest in guests {
        workers.enlist(guest.control)?;
    }
    Ok(Started::new(Some(job), machine_of))
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
